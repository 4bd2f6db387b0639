// Colours and marks of variants on canvases, the same as in the page's style.

import type { Report } from "./data";

export interface Mark {
  colour: string;
  shape: number;
}

const SHAPES = 5;
const COLOURS = 6;

export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** The class of a variant's colour and its shape, by name: the control is grey and square. */
export function marks(report: Report): Map<string, { name: string; shape: number }> {
  let next = 0;
  return new Map(
    report.variants.map((variant) => {
      if (variant.control_of !== null) {
        return [variant.name, { name: "control", shape: 1 }];
      }
      const index = next++;
      return [variant.name, { name: `c${index % COLOURS}`, shape: index % SHAPES }];
    }),
  );
}

/** Adds a mark of that shape around a point. */
export function addMark(path: Path2D, shape: number, x: number, y: number, radius: number): void {
  switch (shape) {
    case 0:
      path.moveTo(x + radius, y);
      path.arc(x, y, radius, 0, 2 * Math.PI);
      break;
    case 1: {
      const side = radius * 0.9;
      path.rect(x - side, y - side, 2 * side, 2 * side);
      break;
    }
    case 2: {
      const reach = radius * 1.25;
      path.moveTo(x, y - reach);
      path.lineTo(x + reach, y);
      path.lineTo(x, y + reach);
      path.lineTo(x - reach, y);
      path.closePath();
      break;
    }
    default: {
      // A triangle on its base, then one on its tip.
      const up = shape === 3 ? 1 : -1;
      const reach = radius * 1.2;
      path.moveTo(x - reach, y + up * reach * 0.8);
      path.lineTo(x + reach, y + up * reach * 0.8);
      path.lineTo(x, y - up * reach);
      path.closePath();
    }
  }
}

/** Calls back when the colours change: with the reader's theme, and for paper, which is always light. */
export function onThemeChange(redraw: () => void): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("beforeprint", () => {
    document.documentElement.dataset.theme = "light";
    redraw();
  });
  addEventListener("afterprint", () => {
    delete document.documentElement.dataset.theme;
    redraw();
  });
}
