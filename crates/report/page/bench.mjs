// How long two pages take to open, and how fast the larger one answers: `node bench.mjs PUBLISHED LARGEST TIMES`, with
// FWDLAB_CHROMIUM. For `cargo xtask bench page`.

import { chromium } from "@playwright/test";

const [published, largest, times] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.FWDLAB_CHROMIUM,
  // As in the tests.
  args: ["--no-sandbox", "--disable-gpu"],
});

/** Milliseconds from the start of a navigation to the first picture of the whole page. */
async function open(path) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  await page.goto(`file://${path}`);
  const opened = await page.evaluate(
    () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve(performance.now())))),
  );
  return { context, page, opened };
}

/** Milliseconds from each act to the picture after it. */
async function answers(page, act, steps) {
  return page.evaluate(
    async ({ act, steps }) => {
      const answered = [];
      for (const step of steps) {
        const start = performance.now();
        if (act === "key") {
          const plot = document.querySelector("#trials-plot");
          plot.dispatchEvent(new KeyboardEvent("keydown", { key: step, bubbles: true, cancelable: true }));
        } else {
          const filter = document.querySelector("#filter");
          filter.value = step;
          filter.dispatchEvent(new Event("input", { bubbles: true }));
        }
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
        answered.push(performance.now() - start);
      }
      return answered;
    },
    { act, steps },
  );
}

const found = { published: [], largest: [], zoom: [], walk: [], filter: [] };
for (let time = 0; time < Number(times); time += 1) {
  for (const [name, path] of [
    ["published", published],
    ["largest", largest],
  ]) {
    const { context, page, opened } = await open(path);
    found[name].push(opened);
    if (name === "largest") {
      await page.locator("#trials-plot").focus();
      found.zoom.push(...(await answers(page, "key", ["+", "+", "+", "-", "+", "-", "-", "0"])));
      found.walk.push(...(await answers(page, "key", Array(8).fill("ArrowRight"))));
      found.filter.push(...(await answers(page, "filter", ["1", "12", "120", "12", "1", "", "rules 1", ""])));
    }
    await context.close();
  }
}
await browser.close();
console.log(JSON.stringify(found));
