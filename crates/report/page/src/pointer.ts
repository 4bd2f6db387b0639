// What is shown when the pointer rests on something: where a figure comes from, and single blocks of an effect.

import type { Comparison, Report } from "./data";
import { element } from "./element";
import { signed } from "./format";

/** The box beside the pointer. */
export class Tip {
  private readonly box = element("div", { id: "tip", "aria-hidden": "true", hidden: true });

  constructor() {
    document.body.append(this.box);
  }

  show(lines: string[], x: number, y: number): void {
    this.box.replaceChildren(...lines.map((line) => element("div", {}, line)));
    this.box.hidden = false;
    const { width, height } = this.box.getBoundingClientRect();
    this.box.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
    this.box.style.top = `${Math.max(4, y + height + 22 > innerHeight ? y - height - 12 : y + 16)}px`;
  }

  hide(): void {
    this.box.hidden = true;
  }
}

/** Figures say which record they are of. */
export function nameRecords(): void {
  document.addEventListener("pointerover", (event) => {
    const figure = (event.target as Element).closest?.("[data-record]");
    if (figure instanceof HTMLElement && !figure.title) {
      figure.title = `report.json ${figure.dataset.record ?? ""}`;
    }
  });
}

/** Single blocks of the effects, on the plot of a row. */
export function nameBlocks(report: Report, tip: Tip): void {
  const tables = [...document.querySelectorAll<HTMLTableElement>("table.effects")];
  tables.forEach((table, index) => {
    const comparison = report.comparisons[index];
    const [low, high] = numbers(table.dataset.axis);
    const [left, right, width] = numbers(table.dataset.pixels);
    if (!comparison || low === undefined || high === undefined || left === undefined) {
      return;
    }
    const place = (percent: number): number =>
      left + ((Math.log1p(percent / 100) - low) / (high - low)) * ((right ?? 0) - left);
    table.addEventListener("pointermove", (event) => {
      const plot = (event.target as Element).closest("tbody .plot svg");
      const variant = plot?.closest("tr")?.dataset.variant;
      const blocks = rowOf(comparison, variant)?.effect?.blocks ?? [];
      if (!plot || blocks.length === 0) {
        tip.hide();
        return;
      }
      const box = plot.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * (width ?? 1);
      const nearest = blocks.reduce((one, other) =>
        Math.abs(place(other.percent) - x) < Math.abs(place(one.percent) - x) ? other : one,
      );
      tip.show([`block ${nearest.block}: ${signed(nearest.percent, 2)} %`], event.clientX, event.clientY);
    });
    table.addEventListener("pointerleave", () => tip.hide());
  });
}

function rowOf(comparison: Comparison, variant: string | undefined) {
  const rows = [...comparison.rows, ...(comparison.control ? [comparison.control.row] : [])];
  return rows.find((row) => row.variant === variant);
}

function numbers(text: string | undefined): number[] {
  return (text ?? "").split(" ").map(Number);
}
