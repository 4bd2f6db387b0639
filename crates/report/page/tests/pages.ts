// Pages of made-up runs, and what every one of them has to keep to.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, type Page, test as base } from "@playwright/test";

const FOLDER = process.env.FWDLAB_PAGES ?? "";

export function address(name: string): string {
  return `file://${join(FOLDER, name, "report.html")}`;
}

export function record(name: string): unknown {
  return JSON.parse(readFileSync(join(FOLDER, name, "report.json"), "utf8"));
}

/** The value at a JSON pointer (RFC 6901); undefined where there is none. */
export function at(value: unknown, pointer: string): unknown {
  let found = value;
  for (const part of pointer.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    found = (found as Record<string, unknown> | null | undefined)?.[key];
  }
  return found;
}

const UNITS: Record<string, number> = { kpps: 1e3, Mpps: 1e6, Gpps: 1e9 };

/** Whether a printed number is that value, rounded to the digits that are shown. */
export function isPrinted(text: string, value: number): boolean {
  const plain = text.replaceAll(/[\u202f\s,]/g, "");
  const found = /^([<>]?)([+-]?\d+(?:\.(\d+))?)(kpps|Mpps|Gpps)?/.exec(plain);
  if (!found) {
    return false;
  }
  const [, bound, digits = "", decimals, unit] = found;
  const factor = unit ? (UNITS[unit] ?? 1) : 1;
  const shown = Number(digits) * factor;
  if (bound) {
    return bound === "<" ? value < shown : value > shown;
  }
  const zeros = decimals === undefined && Math.abs(value) >= 1e4 ? (/0*$/.exec(digits)?.[0].length ?? 0) : 0;
  const step = 10 ** (zeros - (decimals?.length ?? 0)) * factor;
  return Math.abs(shown - value) <= step * 0.5000001;
}

/** A page that fails its test when it complains or asks for anything but itself. */
export const test = base.extend<{ page: Page }>({
  page: async ({ page }, use) => {
    const complaints: string[] = [];
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) {
        complaints.push(`${message.type()}: ${message.text()}`);
      }
    });
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("request", (request) => {
      if (!(request.url().startsWith("file://") && request.isNavigationRequest())) {
        complaints.push(`asked for ${request.url()}`);
      }
    });
    await use(page);
    expect(complaints).toEqual([]);
  },
});

export { expect };

/** A text as the page shows it: characters that turn the direction of what follows are written out. */
export function inert(text: string): string {
  return text.replace(
    /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16)}`,
  );
}
