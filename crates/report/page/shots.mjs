// Takes pictures of pages: `node shots.mjs LIST`, with FWDLAB_CHROMIUM; LIST is a JSON array of pictures. For
// `cargo xtask gallery`.
//
// A picture: { page, file, width, height, scheme, from?, act? }; `from` is what stands at its top, `act` what is done first:
// "slices" opens the slices of a trial, "difference" chooses the first differential flame graph.

import { chromium } from "@playwright/test";

const browser = await chromium.launch({
  executablePath: process.env.FWDLAB_CHROMIUM,
  // As in the tests.
  args: ["--no-sandbox", "--disable-gpu"],
});
for (const { page: path, file, width, height, scheme, from, act } of JSON.parse(process.argv[2])) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: scheme });
  await page.goto(`file://${path}`);
  if (act === "slices") {
    await page.locator("#trials-plot").focus();
    for (const key of ["ArrowRight", "ArrowRight", "ArrowRight", "Enter"]) {
      await page.keyboard.press(key);
    }
  }
  if (act === "difference") {
    const choice = page.getByLabel("Flame graph", { exact: true }).first();
    const labels = await choice.locator("option").allTextContents();
    const difference = labels.filter((label) => label.includes(" against "));
    await choice.selectOption({ label: difference[1] ?? difference[0] ?? labels[0] });
  }
  if (from) {
    await page.locator(from).evaluate((element) => element.scrollIntoView());
  }
  await page.screenshot({ path: file });
  await page.close();
}
await browser.close();
