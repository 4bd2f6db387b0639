import { defineConfig } from "@playwright/test";

// `cargo test -p fwdlab-report --test page` writes the pages, and says where: everything goes there.
export default defineConfig({
  testDir: "tests",
  outputDir: `${process.env.FWDLAB_PAGES}/playwright`,
  reporter: "line",
  workers: 1,
  timeout: 120_000,
  use: {
    launchOptions: {
      executablePath: process.env.FWDLAB_CHROMIUM,
      // Chromium's sandbox does not start for root; the pages are our own.
      args: ["--no-sandbox", "--disable-gpu"],
    },
  },
});
