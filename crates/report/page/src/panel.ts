// A plot of points on canvas: uPlot's axes, zoom and cursor, with the marks of the other plots.

import uPlot from "uplot";

import { element } from "./element";
import { addMark, colour } from "./theme";

/** A plot's point; `group` says which mark it has. */
export interface Point {
  x: number;
  y: number | null;
  group: number;
  /** Filled, or only its edge. */
  isFilled: boolean;
}

export interface Group {
  /** Of its colour: `c0`, `control`. */
  name: string;
  shape: number;
}

export interface PanelOptions {
  heading: string;
  height: number;
  points: Point[];
  groups: Group[];
  /** The whole of the x axis. */
  range: [number, number];
  /** Whether the y axis begins at zero whatever is shown. */
  fromZero: boolean;
  radius: number;
  xTicks: (min: number, max: number, pixels: number) => number[];
  xLabel: (place: number) => string;
  yLabel: (value: number) => string;
  /** Behind the points, in the canvas's own pixels. */
  drawBehind: (plot: uPlot) => void;
  onZoom: (min: number, max: number) => void;
}

export class Panel {
  readonly root: HTMLElement;
  readonly plot: uPlot;
  private points: Point[];
  private isShown: (point: number) => boolean = () => true;
  private readonly ring = element("div", { class: "ring", hidden: true });

  constructor(private readonly options: PanelOptions) {
    this.points = options.points;
    this.root = element("div", { class: "panel" }, element("h4", {}, options.heading));
    const axis = {
      stroke: () => colour("muted"),
      grid: { stroke: () => colour("line"), width: 1 },
      ticks: { show: false },
      font: "11px sans-serif",
    };
    this.plot = new uPlot(
      {
        width: 600,
        height: options.height,
        legend: { show: false },
        padding: [6, 12, 0, 0],
        cursor: {
          points: { show: false },
          y: false,
          drag: { x: true, y: false, dist: 6, setScale: false },
          bind: {
            dblclick: () => () => {
              options.onZoom(...options.range);
              return null;
            },
          },
        },
        // The x axis is what `zoom` says, the same in all plots that stand above each other.
        scales: { x: { time: false, auto: false, min: options.range[0], max: options.range[1] }, y: { range: (_, min, max) => this.yRange(min, max) } },
        axes: [
          {
            ...axis,
            size: 24,
            gap: 2,
            grid: { show: false },
            splits: (plot, _axis, min, max) => options.xTicks(min, max, plot.bbox.width / devicePixelRatio),
            values: (_, splits) => splits.map(options.xLabel),
          },
          { ...axis, size: 62, values: (_, splits) => splits.map(options.yLabel) },
        ],
        series: [{}, { paths: () => null, points: { show: false } }],
        hooks: {
          drawClear: [options.drawBehind],
          draw: [(plot) => this.draw(plot)],
          setSelect: [
            ({ select, posToVal, setSelect }) => {
              if (select.width > 0) {
                options.onZoom(posToVal(select.left, "x"), posToVal(select.left + select.width, "x"));
                setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              }
            },
          ],
        },
      },
      this.data(),
      this.root,
    );
    this.plot.over.append(this.ring);
  }

  /** Which points are shown; by their place in the list. */
  show(isShown: (point: number) => boolean): void {
    this.isShown = isShown;
    this.plot.setData(this.data(), false);
    const { min, max } = this.plot.scales["x"] ?? {};
    if (min != null && max != null) {
      // Brings the y axis up to date with what is shown.
      this.plot.setScale("x", { min, max });
    }
  }

  zoom(min: number, max: number): void {
    const { x } = this.plot.scales;
    if (x && (x.min !== min || x.max !== max)) {
      this.plot.setScale("x", { min, max });
    }
  }

  resize(width: number): void {
    this.plot.setSize({ width, height: this.options.height });
  }

  /** The shown point nearest to a place on the plot, in CSS pixels; none within reach gives null. */
  nearest(left: number, top: number, reach: number): number | null {
    const x = this.plot.posToVal(left, "x");
    const span = this.plot.posToVal(left + reach, "x") - x;
    let found: number | null = null;
    let least = reach * reach;
    for (let index = this.firstFrom(x - span); index < this.points.length; index++) {
      const point = this.points[index] as Point;
      if (point.x > x + span) {
        break;
      }
      if (point.y === null || !this.isShown(index)) {
        continue;
      }
      const [across, up] = [this.plot.valToPos(point.x, "x") - left, this.plot.valToPos(point.y, "y") - top];
      const distance = across * across + up * up;
      if (distance < least) {
        least = distance;
        found = index;
      }
    }
    return found;
  }

  /** Puts the ring around a point, or nowhere. */
  mark(index: number | null): void {
    const point = index === null ? undefined : this.points[index];
    const { min, max } = this.plot.scales["x"] ?? {};
    const isSeen =
      point !== undefined && point.y !== null && min != null && max != null && point.x >= min && point.x <= max;
    this.ring.hidden = !isSeen;
    if (isSeen && point.y !== null) {
      this.ring.style.left = `${this.plot.valToPos(point.x, "x")}px`;
      this.ring.style.top = `${this.plot.valToPos(point.y, "y")}px`;
    }
  }

  private data(): uPlot.AlignedData {
    const ys = this.points.map((point, index) => (this.isShown(index) ? point.y : null));
    return [this.points.map((point) => point.x), ys];
  }

  /** From zero where values differ much, close around them where they do not. */
  private yRange(min: number | null, max: number | null): [number, number] {
    if (min === null || max === null) {
      return [0, 1];
    }
    if (this.options.fromZero || min < 0.5 * max) {
      const high = max > 0 ? max * 1.08 : 1;
      // Marks at zero stand above the axis's edge.
      return [Math.min(0, min) - 0.06 * high, high];
    }
    const air = Math.max(0.06 * (max - min), 0.005 * max);
    return [min - air, max + air];
  }

  /** The place in the list from which points are not left of x. */
  private firstFrom(x: number): number {
    let [low, high] = [0, this.points.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.points[middle] as Point).x < x) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  private draw(plot: uPlot): void {
    const { ctx, bbox } = plot;
    const { min, max } = plot.scales["x"] ?? {};
    if (min == null || max == null) {
      return;
    }
    const radius = this.options.radius * devicePixelRatio;
    const filled = this.options.groups.map(() => new Path2D());
    const hollow = this.options.groups.map(() => new Path2D());
    for (let index = this.firstFrom(min); index < this.points.length; index++) {
      const { x, y, group, isFilled } = this.points[index] as Point;
      if (x > max) {
        break;
      }
      const path = (isFilled ? filled : hollow)[group];
      const shape = this.options.groups[group]?.shape;
      if (y !== null && path && shape !== undefined && this.isShown(index)) {
        addMark(path, shape, plot.valToPos(x, "x", true), plot.valToPos(y, "y", true), radius);
      }
    }
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left - radius, bbox.top - radius, bbox.width + 2 * radius, bbox.height + 2 * radius);
    ctx.clip();
    ctx.lineWidth = 1.5 * devicePixelRatio;
    this.options.groups.forEach(({ name }, group) => {
      ctx.fillStyle = ctx.strokeStyle = colour(name);
      ctx.fill(filled[group] as Path2D);
      ctx.stroke(hollow[group] as Path2D);
    });
    ctx.restore();
  }
}
