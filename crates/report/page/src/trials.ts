// Every trial over time: rate, offered load, calibration and what the machine lost, above each other.

import type uPlot from "uplot";

import { type Report, strataOf, stratumOf, type Trial } from "./data";
import { byId, element } from "./element";
import { count, rate, significant } from "./format";
import { type Group, Panel, type Point } from "./panel";
import type { Tip } from "./pointer";
import { showSlices } from "./slices";
import { colour, marks, onThemeChange } from "./theme";

/** An attempt at a block: a band of the plots. */
interface Band {
  session: number;
  block: number;
  attempt: number;
  /** How many trials it has of all strata. */
  trials: number;
}

interface Placed {
  trial: Trial;
  x: number;
  band: number;
  group: number;
}

/** How near the pointer must be, in CSS pixels. */
const REACH = 24;
/** Room of a block's number. */
const LABEL_WIDTH = 30;

interface Measure {
  heading: string;
  height: number;
  fromZero: boolean;
  of: (trial: Trial) => number | null;
}

export interface TrialPlots {
  /** Which variants are shown, besides those that the legend hides. */
  filter: (isShown: (variant: string) => boolean) => void;
}

export function trialPlots(report: Report, tip: Tip): TrialPlots {
  const root = byId("trials-plot");
  const tools = byId("trials-tools");
  const status = byId("trial-status");
  if (!root || !tools || !status || report.trials.length === 0) {
    return { filter: () => {} };
  }
  const groups = groupsOf(report);
  const bands = bandsOf(report.trials);
  const placed = place(report, bands);
  const labels = new Map(report.variants.map((variant) => [variant.name, variant.label]));
  const strata = strataOf(report).filter((stratum) => placed.some(({ trial }) => stratumOf(trial) === stratum));

  let chosen = strata[0];
  let shown: Placed[] = [];
  let panels: Panel[] = [];
  let active: number | null = null;
  let isFiltered: (variant: string) => boolean = () => true;
  const hidden = new Set<string>();
  let view: [number, number] = [0, bands.length];

  const isShown = (index: number): boolean => {
    const variant = shown[index]?.trial.variant ?? "";
    return !hidden.has(variant) && isFiltered(variant);
  };

  const zoom = (min: number, max: number): void => {
    // A tenth of a block is as near as is of use.
    const width = Math.min(Math.max(max - min, 0.1), bands.length);
    const start = Math.min(Math.max(min, 0), bands.length - width);
    if (view[0] === start && view[1] === start + width) {
      return;
    }
    view = [start, start + width];
    for (const panel of panels) {
      panel.zoom(...view);
    }
    mark(active);
  };

  const mark = (index: number | null): void => {
    active = index;
    for (const panel of panels) {
      panel.mark(index);
    }
  };

  const describe = (trial: Trial): string[] => {
    const lines = [
      labels.get(trial.variant) ?? trial.variant,
      `${rate(trial.forwarding_rate_pps)}${strata.length > 1 ? `, ${stratumOf(trial)}` : ""}; block ${
        trial.block
      }${trial.attempt > 1 ? ` (attempt ${trial.attempt})` : ""}, session ${trial.session}, ${trial.start}`,
    ];
    const facts: [string, number | null, (value: number) => string][] = [
      ["offered", trial.offered_load_pps, rate],
      ["dropped", trial.dropped_frames, (frames) => `${count(frames)} frames`],
      ["calibration", trial.calibration_ratio, (ratio) => ratio.toFixed(3)],
      ["steal", watched(trial, trial.steal_percent), (percent) => `${significant(percent)} %`],
      ["disturbed", watched(trial, trial.disturbed_percent), (percent) => `${significant(percent)} %`],
    ];
    lines.push(facts.flatMap(([name, value, words]) => (value === null ? [] : [`${name} ${words(value)}`])).join(", "));
    if (trial.invalid.length > 0) {
      lines.push(`invalid: ${trial.invalid.join("; ")}`);
    } else if (!trial.counts) {
      lines.push("does not count: its block is invalid or was cut short");
    }
    return lines;
  };

  const tell = (index: number): void => {
    const trial = shown[index]?.trial;
    if (trial) {
      status.textContent = describe(trial).join("; ");
    }
  };

  const open = (index: number): void => {
    const trial = shown[index]?.trial;
    if (trial) {
      showSlices(report, trial, groups);
    }
  };

  const drawBands = (plot: uPlot): void => {
    const { ctx, bbox } = plot;
    const from = Math.max(0, Math.floor(view[0]));
    const to = Math.min(bands.length, Math.ceil(view[1]));
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.fillStyle = colour("stripe");
    ctx.strokeStyle = colour("muted");
    ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    for (let band = from; band < to; band++) {
      const left = plot.valToPos(band, "x", true);
      if (band % 2 === 1) {
        ctx.fillRect(left, bbox.top, plot.valToPos(band + 1, "x", true) - left, bbox.height);
      }
      if (band > 0 && bands[band]?.session !== bands[band - 1]?.session) {
        ctx.beginPath();
        ctx.moveTo(left, bbox.top);
        ctx.lineTo(left, bbox.top + bbox.height);
        ctx.stroke();
      }
    }
    ctx.restore();
  };

  const bandTicks = (min: number, max: number, pixels: number): number[] => {
    const step = Math.max(1, Math.ceil(((max - min) * LABEL_WIDTH) / pixels));
    const ticks = [];
    for (let band = Math.max(0, Math.ceil(min - 0.5)); band + 0.5 <= max && band < bands.length; band++) {
      if (band % step === 0) {
        ticks.push(band + 0.5);
      }
    }
    return ticks;
  };

  const bandLabel = (tick: number): string => {
    const band = bands[Math.floor(tick)];
    return band ? `${band.block}${"′".repeat(Math.min(band.attempt - 1, 3))}` : "";
  };

  const draw = (): void => {
    shown = placed.filter(({ trial }) => stratumOf(trial) === chosen);
    root.replaceChildren();
    active = null;
    const trials = shown.map(({ trial }) => trial);
    const radius = shown.length > 4000 ? 2 : shown.length > 400 ? 3 : 4;
    panels = measures(trials).map((measure) => {
      const points: Point[] = shown.map(({ trial, x, group }) => ({
        x,
        y: measure.of(trial),
        group,
        isFilled: trial.counts,
      }));
      return new Panel({
        ...measure,
        points,
        groups,
        range: [0, bands.length],
        radius: measure.height > 200 ? radius : Math.min(radius, 3),
        xTicks: bandTicks,
        xLabel: bandLabel,
        yLabel: (value) => String(Number(value.toPrecision(6))),
        drawBehind: drawBands,
        onZoom: zoom,
      });
    });
    for (const panel of panels) {
      root.append(panel.root);
      panel.resize(root.clientWidth);
      panel.zoom(...view);
      listen(panel);
    }
    refresh();
  };

  const refresh = (): void => {
    for (const panel of panels) {
      panel.show(isShown);
    }
    mark(active !== null && isShown(active) ? active : null);
  };

  const listen = (panel: Panel): void => {
    const { over } = panel.plot;
    const near = (event: MouseEvent): number | null => {
      const box = over.getBoundingClientRect();
      return panel.nearest(event.clientX - box.left, event.clientY - box.top, REACH);
    };
    over.addEventListener("pointermove", (event) => {
      const index = near(event);
      mark(index);
      const trial = index === null ? undefined : shown[index]?.trial;
      if (trial) {
        tip.show(describe(trial), event.clientX, event.clientY);
      } else {
        tip.hide();
      }
    });
    over.addEventListener("pointerleave", () => tip.hide());
    let start = 0;
    over.addEventListener("pointerdown", (event) => {
      start = event.clientX;
    });
    over.addEventListener("click", (event) => {
      const index = near(event);
      // The end of a drag is a zoom.
      if (index !== null && Math.abs(event.clientX - start) < 4) {
        tell(index);
        open(index);
      }
    });
  };

  /** The next shown trial in time, or the next rate up or down in the same block. */
  const move = (key: string): void => {
    const all = shown.map((_, index) => index).filter(isShown);
    if (all.length === 0) {
      return;
    }
    let next: number | undefined;
    if (active === null) {
      next = key === "ArrowLeft" ? all.at(-1) : all.find((index) => (shown[index]?.x ?? 0) >= view[0]);
    } else if (key === "ArrowLeft" || key === "ArrowRight") {
      next = all[all.indexOf(active) + (key === "ArrowRight" ? 1 : -1)];
    } else {
      const band = shown[active]?.band;
      const ofRate = (index: number): number => shown[index]?.trial.forwarding_rate_pps ?? 0;
      const block = all.filter((index) => shown[index]?.band === band).sort((a, b) => ofRate(a) - ofRate(b));
      next = block[block.indexOf(active) + (key === "ArrowUp" ? 1 : -1)];
    }
    if (next === undefined) {
      return;
    }
    const x = shown[next]?.x ?? 0;
    if (x < view[0] || x > view[1]) {
      const width = view[1] - view[0];
      zoom(x - width / 2, x + width / 2);
    }
    mark(next);
    tell(next);
  };

  root.tabIndex = 0;
  root.setAttribute("role", "application");
  root.setAttribute("aria-label", "Every trial over time");
  root.setAttribute("aria-describedby", "trial-status");
  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const [min, max] = view;
    const middle = active === null ? (min + max) / 2 : (shown[active]?.x ?? 0);
    const width = max - min;
    switch (event.key) {
      case "ArrowLeft":
      case "ArrowRight":
      case "ArrowUp":
      case "ArrowDown":
        move(event.key);
        break;
      case "+":
      case "=":
        zoom(middle - width / 4, middle + width / 4);
        break;
      case "-":
        zoom(middle - width, middle + width);
        break;
      case "0":
        zoom(0, bands.length);
        break;
      case "Enter":
        if (active !== null) {
          open(active);
        }
        break;
      default:
        return;
    }
    event.preventDefault();
  });

  tools.append(...stratumChoice(strata, (stratum) => {
    chosen = stratum;
    draw();
  }));
  tools.append(legend(report, placed, (variant, isOn) => {
    if (isOn) {
      hidden.delete(variant);
    } else {
      hidden.add(variant);
    }
    refresh();
  }));
  draw();
  const redraw = (): void => panels.forEach((panel) => panel.plot.redraw());
  onThemeChange(redraw);
  let width = root.clientWidth;
  new ResizeObserver(() => {
    if (root.clientWidth !== width) {
      width = root.clientWidth;
      panels.forEach((panel) => panel.resize(width));
      mark(active);
    }
  }).observe(root);
  return {
    filter: (isLeft) => {
      isFiltered = isLeft;
      refresh();
    },
  };
}

function groupsOf(report: Report): Group[] {
  return [...marks(report).values()];
}

function bandsOf(trials: Trial[]): Band[] {
  const bands = new Map<string, Band>();
  for (const { session, block, attempt, order } of trials) {
    const band = bands.get(`${session} ${block} ${attempt}`);
    if (band) {
      band.trials = Math.max(band.trials, order + 1);
    } else {
      bands.set(`${session} ${block} ${attempt}`, { session, block, attempt, trials: order + 1 });
    }
  }
  return [...bands.values()];
}

/** Where on the x axis each trial stands, in that order. */
function place(report: Report, bands: Band[]): Placed[] {
  const bandIndex = new Map(bands.map(({ session, block, attempt }, index) => [`${session} ${block} ${attempt}`, index]));
  const groupIndex = new Map(report.variants.map((variant, index) => [variant.name, index]));
  const placed = report.trials.map((trial) => {
    const band = bandIndex.get(`${trial.session} ${trial.block} ${trial.attempt}`) ?? 0;
    // A band's outer eighths stay empty, so that blocks stand apart.
    const part = ((trial.order + 0.5) / (bands[band]?.trials ?? 1)) * 0.75 + 0.125;
    return { trial, band, x: band + part, group: groupIndex.get(trial.variant) ?? 0 };
  });
  return placed.sort((a, b) => a.x - b.x);
}

/** What is plotted of these trials; what was not measured is left out. */
/** What is known of the DUT's CPU only where a calibration loop ran beside the load: not of a host of its own. */
function watched<T>(trial: Trial, value: T): T | null {
  return trial.calibration_ratio === null ? null : value;
}

function measures(trials: Trial[]): Measure[] {
  const highest = Math.max(...trials.map((trial) => trial.forwarding_rate_pps));
  const [unit, name] = highest >= 1e6 ? [1e6, "Mpps"] : highest >= 1e3 ? [1e3, "kpps"] : [1, "pps"];
  const all: Measure[] = [
    {
      heading: `Forwarding rate (${name})`,
      height: 260,
      fromZero: false,
      of: (trial) => trial.forwarding_rate_pps / unit,
    },
    {
      heading: `Offered load (${name})`,
      height: 120,
      fromZero: false,
      of: (trial) => (trial.offered_load_pps === null ? null : trial.offered_load_pps / unit),
    },
    {
      heading: "Calibration loop (times its undisturbed time)",
      height: 110,
      fromZero: false,
      of: (trial) => trial.calibration_ratio,
    },
    {
      heading: "Steal (% of the measured time)",
      height: 110,
      fromZero: true,
      of: (trial) => watched(trial, trial.steal_percent),
    },
    {
      heading: "Disturbed (% of the measured time)",
      height: 110,
      fromZero: true,
      of: (trial) => watched(trial, trial.disturbed_percent),
    },
  ];
  return all.filter((measure) => trials.some((trial) => measure.of(trial) !== null));
}

function stratumChoice(strata: string[], choose: (stratum: string) => void): HTMLElement[] {
  if (strata.length < 2) {
    return [];
  }
  const select = element(
    "select",
    { id: "trials-stratum" },
    ...strata.map((stratum) => element("option", { value: stratum }, stratum)),
  );
  select.addEventListener("change", () => choose(select.value));
  const name = strata.some((stratum) => stratum.includes(",")) ? "Traffic" : "Family";
  return [element("p", { class: "tools" }, element("label", { for: "trials-stratum" }, name), select)];
}

function legend(report: Report, placed: Placed[], toggle: (variant: string, isOn: boolean) => void): HTMLElement {
  const measured = new Set(placed.map(({ trial }) => trial.variant));
  const byVariant = marks(report);
  const boxes = report.variants
    .filter((variant) => measured.has(variant.name))
    .map((variant) => {
      const box = element("input", { type: "checkbox", checked: true });
      box.addEventListener("change", () => toggle(variant.name, box.checked));
      const { name } = byVariant.get(variant.name) ?? { name: "control" };
      const key = element("span", { class: `key ${name}`, "aria-hidden": "true" }, SHAPES[byVariant.get(variant.name)?.shape ?? 0] ?? "");
      return element("label", { title: variant.label }, box, " ", key, " ", variant.label);
    });
  return element("fieldset", { class: "legend" }, element("legend", { class: "hidden" }, "Variants shown"), ...boxes);
}

/** What addMark draws, as text. */
const SHAPES = ["●", "■", "◆", "▲", "▼"];
