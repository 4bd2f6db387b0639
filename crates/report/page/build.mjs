// Makes dist/: one script, one style, the policy that allows a browser these two and nothing else, and the licence
// of what is in them that is not ours.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "dist");
const { outputFiles } = await build({
  absWorkingDir: here,
  entryPoints: { page: "src/main.ts" },
  bundle: true,
  format: "iife",
  target: ["es2022"],
  minify: true,
  charset: "utf8",
  legalComments: "none",
  write: false,
  outdir: out,
});

mkdirSync(out, { recursive: true });
const hashes = {};
for (const { path, text } of outputFiles) {
  const kind = path.endsWith(".css") ? "style" : "script";
  if (/<\/(script|style)/i.test(text)) {
    throw new Error(`${path}: would end the element that it stands in`);
  }
  hashes[kind] = `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  writeFileSync(path, text);
}
const policy = [
  "default-src 'none'",
  `script-src ${hashes.script}`,
  `style-src ${hashes.style}`,
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");
writeFileSync(join(out, "policy.txt"), `${policy}\n`);
writeFileSync(join(out, "LICENSE-uPlot"), readFileSync(join(here, "node_modules/uplot/LICENSE")));
