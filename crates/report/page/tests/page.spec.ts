import AxeBuilder from "@axe-core/playwright";
import type { Page } from "@playwright/test";

import { address, at, expect, inert, isPrinted, record, test } from "./pages";

const NAMES = ["default", "many", "profiled", "factorial", "hostile", "none", "large"];

test.describe("figures", () => {
  test("a printed number is told from a wrong one", () => {
    expect(isPrinted("2\u202f412\u202f000", 2_412_345)).toBe(true);
    expect(isPrinted("2\u202f413\u202f000", 2_412_345)).toBe(false);
    expect(isPrinted("-21.4 %", -21.36)).toBe(true);
    expect(isPrinted("-21.3 %", -21.36)).toBe(false);
    expect(isPrinted("2.41 Mpps", 2_412_345)).toBe(true);
    expect(isPrinted("2.42 Mpps", 2_412_345)).toBe(false);
    expect(isPrinted("<0.001", 0.0004)).toBe(true);
    expect(isPrinted("<0.001", 0.004)).toBe(false);
  });

  for (const name of NAMES) {
    test(`${name}: every figure is that of its record`, async ({ page }) => {
      await page.goto(address(name));
      const report = record(name);
      const shown = await page.evaluate(() =>
        [...document.querySelectorAll<HTMLElement>("[data-record]")].map((element) => ({
          pointer: element.dataset["record"] ?? "",
          text: element.textContent,
          hasInner: element.querySelector("[data-record]") !== null,
          isFigure: element.tagName === "SPAN",
        })),
      );
      let compared = 0;
      for (const { pointer, text, hasInner, isFigure } of shown) {
        const value = at(report, pointer);
        expect(value, `${pointer} of ${text}`).not.toBeUndefined();
        if (!isFigure || hasInner) {
          continue;
        }
        if (typeof value === "number") {
          expect(isPrinted(text, value), `${pointer}: ${text} for ${value}`).toBe(true);
          compared++;
        } else if (typeof value === "string") {
          // Code spans are elements on the page, and backticks in the record.
          expect(text.replaceAll("`", "").trim(), pointer).toBe(inert(value).replaceAll("`", "").trim());
          compared++;
        }
      }
      expect(compared).toBeGreaterThan(0);
    });
  }
});

test("the whole report is in the page", async ({ page }) => {
  await page.goto(address("many"));
  const embedded = await page.evaluate(() => JSON.parse(document.getElementById("report")?.textContent ?? ""));
  expect(embedded).toEqual(record("many"));
});

test("tables are sorted up, down and back, and what has no value stands last", async ({ page }) => {
  await page.goto(address("many"));
  const table = page.locator("table.effects").first();
  const names = () => table.locator("tbody th").allTextContents();
  const before = await names();
  const effects = async () =>
    (await table.locator("tbody td:nth-child(2)").evaluateAll((cells) => cells.map((cell) => cell.dataset["value"])))
      .map((value) => (value === undefined ? null : Number(value)));
  const button = table.getByRole("button", { name: "effect" });
  await button.click();
  const down = await effects();
  expect(down.at(-1)).toBeNull();
  const values = down.slice(0, -1) as number[];
  expect(values).toEqual([...values].sort((a, b) => b - a));
  await button.press("Enter");
  const up = (await effects()).slice(0, -1) as number[];
  expect(up).toEqual([...values].reverse());
  await button.click();
  expect(await names()).toEqual(before);
});

test("a filter leaves what has its words, and the baseline", async ({ page }) => {
  await page.goto(address("many"));
  await page.getByLabel("Filter variants").fill("110 RULES");
  await expect(page.locator("#filtered")).toHaveText("1 of 13 variants");
  const table = page.locator("table.effects").first();
  await expect(table.locator("tbody tr:visible th")).toHaveText(["ruleset with 0 rules", "ruleset with 110 rules"]);
  await expect(page.locator("#findings li[data-variant]:visible")).toHaveCount(2);
  await page.getByLabel("Filter variants").fill("");
  await expect(table.locator("tbody tr:visible")).toHaveCount(13);
});

/** The report's trials of a family in the order of the plot. */
function trials(name: string): { block: number; forwarding_rate_pps: number; variant: string }[] {
  const report = record(name) as { trials: { family: string; block: number; forwarding_rate_pps: number; variant: string }[] };
  return report.trials.filter((trial) => trial.family === "inet");
}

async function pixels(page: Page): Promise<string> {
  return page.locator("#trials-plot canvas").first().evaluate((canvas) => (canvas as HTMLCanvasElement).toDataURL());
}

test("trials are read with the keyboard, zoomed and opened", async ({ page }) => {
  await page.goto(address("many"));
  const plot = page.locator("#trials-plot");
  const status = page.locator("#trial-status");
  await plot.focus();
  await page.keyboard.press("ArrowRight");
  await expect(status).toContainText("block 1, session 1");
  const first = await status.textContent();
  await page.keyboard.press("ArrowRight");
  await expect(status).not.toHaveText(first ?? "");
  await page.keyboard.press("ArrowLeft");
  await expect(status).toHaveText(first ?? "");
  // Up to the fastest trial of the block.
  for (let step = 0; step < 20; step++) {
    await page.keyboard.press("ArrowUp");
  }
  const block = trials("many").filter((trial) => trial.block === 1);
  const fastest = Math.max(...block.map((trial) => trial.forwarding_rate_pps));
  const said = /([\d.]+ Mpps), IPv4/.exec((await status.textContent()) ?? "")?.[1] ?? "";
  expect(isPrinted(said, fastest), said).toBe(true);

  const whole = await pixels(page);
  await page.keyboard.press("+");
  await expect.poll(() => pixels(page)).not.toBe(whole);
  await page.keyboard.press("0");
  await expect.poll(() => pixels(page)).toBe(whole);

  await page.keyboard.press("Enter");
  const slices = page.locator("#slices");
  await expect(slices.getByRole("heading", { level: 3 })).toHaveText("Slices of block 1, session 1, IPv4");
  await expect(slices.locator("tbody tr")).toHaveCount(10);
  await slices.getByRole("button", { name: "Close" }).click();
  await expect(slices).toBeHidden();
  await expect(plot).toBeFocused();
});

test("trials are zoomed by a drag, all of them by a double click", async ({ page }) => {
  await page.goto(address("many"));
  const over = page.locator("#trials-plot .u-over").first();
  await over.scrollIntoViewIfNeeded();
  const whole = await pixels(page);
  const box = await over.boundingBox();
  if (!box) {
    throw new Error("no plot");
  }
  await page.mouse.move(box.x + 100, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + 300, box.y + 60, { steps: 5 });
  await page.mouse.up();
  await expect.poll(() => pixels(page)).not.toBe(whole);
  await over.dblclick({ position: { x: 5, y: 5 } });
  await expect.poll(() => pixels(page)).toBe(whole);
});

test("a point tells what it is, and opens its slices", async ({ page }) => {
  await page.goto(address("many"));
  const plot = page.locator("#trials-plot");
  await plot.focus();
  await page.keyboard.press("ArrowRight");
  const said = await page.locator("#trial-status").textContent();
  const ring = await page.locator("#trials-plot .ring").first().boundingBox();
  if (!ring) {
    throw new Error("no ring");
  }
  await page.mouse.move(ring.x + ring.width / 2, ring.y + ring.height / 2);
  const tip = page.locator("#tip");
  await expect(tip).toBeVisible();
  expect((await tip.locator("div").allTextContents()).join("; ")).toBe(said);
  await page.mouse.click(ring.x + ring.width / 2, ring.y + ring.height / 2);
  await expect(page.locator("#slices")).toBeVisible();
});

test("the legend and the choice of a family change what is plotted", async ({ page }) => {
  await page.goto(address("many"));
  const whole = await pixels(page);
  const box = page.locator("#trials-tools").getByLabel("ruleset with 110 rules");
  await box.uncheck();
  await expect.poll(() => pixels(page)).not.toBe(whole);
  await box.check();
  await expect.poll(() => pixels(page)).toBe(whole);
  await page.getByLabel("Family").selectOption("IPv6");
  await expect.poll(() => pixels(page)).not.toBe(whole);
});

test("single blocks of an effect are told", async ({ page }) => {
  await page.goto(address("default"));
  await page.locator("table.effects tbody tr").nth(1).locator(".plot svg").hover();
  await expect(page.locator("#tip")).toHaveText(/^block \d+: [+-]\d+\.\d\d %$/);
});

test("the flame graph that opens is the first difference, with signs before what costs more or less", async ({ page }) => {
  await page.goto(address("profiled"));
  const choice = page.getByLabel("Flame graph", { exact: true }).first();
  await expect(choice.locator("option:checked")).toHaveText("nftables, 10 stateless rules against no filter");
  await expect(page.locator("#flame-words")).toContainText("+ orange-red: costs more, - blue-green: less");
  const labels = await page.locator("#flame-graph text").allTextContents();
  expect(labels).toContain("+ nft_do_chain");
  expect(labels).toContain("ip_forward");
  await expect(page.getByRole("treeitem", { name: /^\+ nft_do_chain: / })).toHaveAccessibleName(/, \+[\d.]+ ± [\d.]+, more/);
});

test("a flame graph says which blocks it is of, and why its figures are not those of the results", async ({ page }) => {
  await page.goto(address("profiled"));
  await expect(page.locator("#flame-words")).toContainText(" ns/packet in all 8 blocks");
  await expect(page.locator("#flame-basis")).toHaveText(
    /^These ns\/packet are means over all 8 blocks; those of the results table, [\d.]+ -> [\d.]+, are medians over all 8 blocks\.$/,
  );
});

test("a table that is wider than a phone says that it scrolls", async ({ page }) => {
  await page.goto(address("default"));
  const hint = page.getByText("Scroll the table sideways");
  await page.setViewportSize({ width: 1200, height: 800 });
  await expect(hint).toBeHidden();
  await page.setViewportSize({ width: 500, height: 800 });
  await expect(hint).toBeVisible();
  const table = page.getByRole("region", { name: "Effects: All variants" });
  expect(await table.evaluate((region) => region.scrollWidth - region.clientWidth)).toBeGreaterThan(50);
});

test("flame graphs are chosen, zoomed and searched", async ({ page }) => {
  await page.goto(address("profiled"));
  const graph = page.locator("#flame-graph");
  const boxes = graph.getByRole("treeitem");
  await page.getByLabel("Flame graph", { exact: true }).first().selectOption({ label: "nftables, 10 stateless rules" });
  await expect(boxes).toHaveCount(5);
  await graph.getByRole("treeitem", { name: /^nft_do_chain/ }).click();
  await expect(page.locator("#flame-status")).toContainText("nft_do_chain");
  // Its callers and itself.
  await expect(boxes).toHaveCount(4);
  await page.getByRole("button", { name: "Reset zoom" }).click();
  await expect(boxes).toHaveCount(5);

  const search = page.getByLabel("Search");
  await search.fill("NFT_");
  await expect(page.locator("#flame-found")).toHaveText(/^1 box, [\d.]+ ns\/packet \([\d.]+ %\)$/);
  await expect(graph.locator(".matched")).toHaveCount(1);
  await search.fill("/^(fib|nft)_/");
  await expect(graph.locator(".matched")).toHaveCount(2);
  await search.fill("/(/");
  await expect(page.locator("#flame-found")).toHaveText("not a regular expression");
  await search.fill("no such function");
  await expect(page.locator("#flame-found")).toHaveText("nothing found");
});

test("flame graphs are walked with the keyboard", async ({ page }) => {
  await page.goto(address("profiled"));
  await page.getByLabel("Flame graph", { exact: true }).first().selectOption({ label: "nftables, 10 stateless rules" });
  const tree = page.getByRole("tree");
  await tree.focus();
  const status = page.locator("#flame-status");
  await page.keyboard.press("ArrowUp");
  await expect(status).toContainText("fwdlab: ");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  await expect(status).toContainText("fib_lookup: ");
  await page.keyboard.press("ArrowRight");
  await expect(status).toContainText("nft_do_chain: ");
  await page.keyboard.press("ArrowDown");
  await expect(status).toContainText("ip_forward: ");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("treeitem")).toHaveCount(5);
  await page.keyboard.press("Escape");
  await expect(status).toContainText("fwdlab: ");
  await page.keyboard.press("/");
  await expect(page.getByLabel("Search")).toBeFocused();
});

test("dark mode, and paper that stays light", async ({ page }) => {
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(address("many"));
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  expect(await background()).toBe("rgb(13, 17, 23)");
  const dark = await pixels(page);
  await page.emulateMedia({ colorScheme: "light" });
  await expect.poll(() => pixels(page)).not.toBe(dark);
  expect(await background()).toBe("rgb(255, 255, 255)");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  expect(await background()).toBe("rgb(255, 255, 255)");
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  expect(await background()).toBe("rgb(13, 17, 23)");
});

for (const width of [360, 380, 400]) {
  for (const name of ["default", "many", "factorial"]) {
    test(`${name}: effect and verdict are seen on a phone of ${width} pixels without scrolling to the side`, async ({ page }) => {
      await page.setViewportSize({ width, height: 740 });
      await page.goto(address(name));
      // Whatever a variant is called.
      await page.locator("table.effects tbody th").last().evaluate((heading) => {
        heading.append(" net.netfilter.nf_conntrack_tcp_timeout_established");
      });
      let seen = 0;
      for (const table of await page.locator("#effects table, #factors table").all()) {
        const headings = await table.locator("thead th").allTextContents();
        expect(headings.slice(1, 3)).toEqual(["effect", "verdict"]);
        for (const cell of await table.locator("th:nth-child(-n+3), td:nth-child(-n+3)").all()) {
          const { left, right } = await cell.evaluate((cell) => {
            const scrolled = cell.closest(".scroll") as HTMLElement;
            const shown = scrolled.getBoundingClientRect();
            const words = document.createRange();
            words.selectNodeContents(cell);
            const box = words.getBoundingClientRect();
            return { left: box.left - shown.left, right: shown.left + scrolled.clientWidth - box.right };
          });
          expect(Math.min(left, right)).toBeGreaterThanOrEqual(0);
          seen++;
        }
      }
      expect(seen).toBeGreaterThan(6);
    });
  }
}

for (const colorScheme of ["light", "dark"] as const) {
  test(`better and worse differ in colour, sign and word, ${colorScheme}`, async ({ page }) => {
    await page.emulateMedia({ colorScheme });
    await page.goto(address("default"));
    const told = await page.locator("table.effects tbody tr").evaluateAll((rows) =>
      rows.map((row) => {
        const [, effect, verdict] = (row as HTMLTableRowElement).cells;
        const whisker = row.querySelector(".whisker");
        return {
          sign: effect?.textContent?.[0] ?? "",
          word: /faster|slower/.exec(verdict?.textContent ?? "")?.[0] ?? "",
          colours: [effect, verdict, whisker].map((part) => (part ? getComputedStyle(part).color : "")),
        };
      }),
    );
    const worse = colorScheme === "light" ? "rgb(184, 66, 10)" : "rgb(255, 133, 82)";
    const better = colorScheme === "light" ? "rgb(0, 119, 107)" : "rgb(45, 212, 191)";
    expect(told.slice(1, 4)).toEqual([
      { sign: "-", word: "slower", colours: [worse, worse, worse] },
      { sign: "-", word: "slower", colours: [worse, worse, worse] },
      { sign: "+", word: "faster", colours: [better, better, better] },
    ]);
    expect(told[4]?.word).toBe("");
    const edges = await page.locator("#findings li").evaluateAll((items) =>
      items.map((item) => [getComputedStyle(item).borderLeftColor, /faster|slower/.exec(item.textContent ?? "")?.[0]]),
    );
    expect(edges.slice(0, 3)).toEqual([
      [worse, "slower"],
      [worse, "slower"],
      [better, "faster"],
    ]);
  });
}

for (const name of NAMES) {
  test(`${name}: nothing is wider than a phone`, async ({ page }) => {
    await page.setViewportSize({ width: 360, height: 740 });
    await page.goto(address(name));
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  });
}

for (const name of ["many", "profiled", "factorial", "hostile", "none"]) {
  for (const colorScheme of ["light", "dark"] as const) {
    test(`${name}, ${colorScheme}: accessible`, async ({ browser }) => {
      const context = await browser.newContext({ colorScheme });
      const page = await context.newPage();
      await page.goto(address(name));
      if (name === "many") {
        await page.locator("#trials-plot").focus();
        await page.keyboard.press("ArrowRight");
        await page.keyboard.press("Enter");
      }
      const { violations } = await new AxeBuilder({ page }).analyze();
      const grave = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
      expect(grave.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join("\n")}`)).toEqual([]);
      await context.close();
    });
  }
}

test("hostile names are shown and do nothing", async ({ page }) => {
  await page.goto(address("hostile"));
  expect(await page.evaluate(() => "hostile" in window)).toBe(false);
  expect(await page.locator("img, iframe, object, embed, link, base, form").count()).toBe(0);
  // The page's own: one that acts, the others are data.
  const scripts = await page.locator("script").evaluateAll((all) => all.map((script) => (script as HTMLScriptElement).type));
  expect(scripts.filter((type) => type !== "application/json")).toEqual([""]);
  const handlers = await page.evaluate(() =>
    [...document.querySelectorAll("*")].flatMap((element) => element.getAttributeNames().filter((name) => /^on|^style$/.test(name) && !element.closest(".uplot, #tip"))),
  );
  expect(handlers).toEqual([]);
  const addresses = await page.locator("a").evaluateAll((all) => all.map((link) => link.getAttribute("href") ?? ""));
  expect(addresses.filter((href) => !/^#[a-z]+$|^[\w.-]+\.svg$/.test(href))).toEqual([]);
  await expect(page.getByRole("heading", { level: 1 })).toContainText("<script>");
  // In what the script makes too.
  await page.locator("#trials-plot").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await expect(page.locator("#slices")).toBeVisible();
  expect(await page.evaluate(() => "hostile" in window)).toBe(false);
});

test("without its script the page has its sentences, tables and effects", async ({ browser }) => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(address("many"));
  await expect(page.locator("#findings li")).toHaveCount(24);
  await expect(page.locator("table.effects tbody tr")).toHaveCount(26);
  await context.close();
});

test("two hundred variants of a hundred blocks", async ({ page }) => {
  await page.goto(address("large"));
  await page.locator("#trials-plot").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("+");
  await page.keyboard.press("Enter");
  await expect(page.locator("#slices tbody tr")).toHaveCount(2);
  await page.getByLabel("Filter variants").fill("variant 17");
  await expect(page.locator("#filtered")).toHaveText("12 of 200 variants");
});
