// The slices of the block that was chosen: a plot of the block, a table of the trial.

import { type BlockSlices, embedded, type Report, stratumOf, type Trial } from "./data";
import { byId, element } from "./element";
import { count, rate, significant } from "./format";
import { type Group, Panel } from "./panel";
import { makeSortable } from "./tables";

export function showSlices(report: Report, trial: Trial, groups: Group[]): void {
  const root = byId("slices");
  if (!root) {
    return;
  }
  const heading = `Slices of block ${trial.block}, session ${trial.session}${
    trial.attempt > 1 ? `, attempt ${trial.attempt}` : ""
  }, ${stratumOf(trial)}`;
  const close = element("button", { type: "button" }, "Close");
  close.addEventListener("click", () => {
    root.hidden = true;
    byId("trials-plot")?.focus();
  });
  const head = element("div", { class: "heading" }, element("h3", { tabindex: -1 }, heading), close);
  const slices = embedded<BlockSlices>(`slices-${trial.session}-${trial.block}-${trial.attempt}`);
  root.hidden = false;
  root.replaceChildren(head);
  if (!slices) {
    root.append(element("p", {}, "No slices are recorded of this block: it was imported, or was cut short."));
    return;
  }
  const places = slices.start_ms
    .map((_, index) => index)
    .filter((index) => slices.families[slices.family[index] ?? 0] === stratumOf(trial));
  drawPlot(root, report, trial, slices, places, groups);
  const mine = places.filter((index) => slices.variants[slices.variant[index] ?? 0] === trial.variant);
  const label = report.variants.find((variant) => variant.name === trial.variant)?.label ?? trial.variant;
  root.append(element("h4", {}, `${label}: its ${mine.length} slices`), table(slices, mine, label));
  makeSortable(root);
  root.scrollIntoView({ block: "nearest" });
  head.querySelector("h3")?.focus({ preventScroll: true });
}

function rateOf(slices: BlockSlices, index: number): number | null {
  const time = slices.time_ms[index] ?? 0;
  return time > 0 ? (slices.forwarded_frames[index] ?? 0) / (time / 1e3) : null;
}

function drawPlot(
  root: HTMLElement,
  report: Report,
  trial: Trial,
  slices: BlockSlices,
  places: number[],
  groups: Group[],
): void {
  const rates = places.map((index) => rateOf(slices, index));
  const highest = Math.max(0, ...rates.map((value) => value ?? 0));
  const [unit, name] = highest >= 1e6 ? [1e6, "Mpps"] : highest >= 1e3 ? [1e3, "kpps"] : [1, "pps"];
  const groupOf = new Map(report.variants.map((variant, index) => [variant.name, index]));
  const starts = places.map((index) => (slices.start_ms[index] ?? 0) / 1e3);
  const first = Math.min(...starts);
  const last = Math.max(...starts);
  const air = Math.max((last - first) * 0.01, 0.001);
  const range: [number, number] = [first - air, last + air];
  const holder = element("div", { class: "slices-plot" });
  root.append(holder);
  const panel = new Panel({
    heading: `Forwarding rate of every slice of the block (${name}) over the block's time (s); filled: of this trial`,
    height: 220,
    points: places.map((index, at) => {
      const value = rates[at] ?? null;
      const variant = slices.variants[slices.variant[index] ?? 0] ?? "";
      return {
        x: starts[at] ?? 0,
        y: value === null ? null : value / unit,
        group: groupOf.get(variant) ?? 0,
        isFilled: variant === trial.variant,
      };
    }),
    groups,
    range,
    fromZero: false,
    radius: places.length > 1000 ? 2 : 3,
    xTicks: (min, max, pixels) => {
      const raw = (max - min) / Math.max(2, pixels / 80);
      const power = 10 ** Math.floor(Math.log10(raw));
      const step = ([1, 2, 5, 10].find((factor) => factor * power >= raw) ?? 10) * power;
      const ticks = [];
      for (let place = Math.ceil(min / step); place * step <= max; place++) {
        ticks.push(place * step);
      }
      return ticks;
    },
    xLabel: (value) => String(Number(value.toPrecision(6))),
    yLabel: (value) => String(Number(value.toPrecision(6))),
    drawBehind: () => {},
    onZoom: (min, max) => panel?.zoom(Math.max(min, range[0]), Math.min(max, range[1])),
  });
  holder.append(panel.root);
  panel.resize(holder.clientWidth);
  panel.zoom(...range);
}

function table(slices: BlockSlices, places: number[], label: string): HTMLElement {
  type Column = [heading: string, value: (index: number) => number | null, words: (value: number) => string];
  const per = (part: number | undefined, whole: number | undefined): number | null =>
    whole !== undefined && whole > 0 ? ((part ?? 0) / whole) * 100 : null;
  const percent = (value: number): string => `${significant(value)} %`;
  const columns: Column[] = [
    ["at (s)", (index) => (slices.start_ms[index] ?? 0) / 1e3, (value) => value.toFixed(3)],
    ["round", (index) => slices.round[index] ?? null, String],
    ["position", (index) => (slices.position[index] ?? 0) + 1, String],
    ["length (ms)", (index) => slices.time_ms[index] ?? null, (value) => value.toFixed(1)],
    ["offered", (index) => slices.offered_frames[index] ?? null, count],
    ["forwarded", (index) => slices.forwarded_frames[index] ?? null, count],
    ["dropped", (index) => slices.dropped_frames[index] ?? null, count],
    ["rate", (index) => rateOf(slices, index), rate],
    ["undisturbed", (index) => per(slices.undisturbed_ms[index], slices.time_ms[index]), percent],
    ["steal", (index) => per(slices.steal_ms[index], slices.time_ms[index]), percent],
    ["calibration (ns)", (index) => slices.calibration_ns[index] ?? null, count],
  ];
  const head = columns.map(([heading]) =>
    element("th", { scope: "col", class: "number", "data-sort": "number" }, heading),
  );
  const rows = places.map((index) =>
    element(
      "tr",
      {},
      ...columns.map(([, of, words]) => {
        const value = of(index);
        return element("td", { class: "number", "data-value": value }, value === null ? "–" : words(value));
      }),
    ),
  );
  return element(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": `Slices of ${label}` },
    element("table", {}, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)),
  );
}
