// Sorting and filtering of the page's tables.

import { byId, element } from "./element";

type Direction = "ascending" | "descending";

/** Gives every column that can be sorted a button. */
export function makeSortable(root: ParentNode): void {
  for (const heading of root.querySelectorAll<HTMLTableCellElement>("th[data-sort]")) {
    const button = element("button", { type: "button" }, ...heading.childNodes);
    button.addEventListener("click", () => sort(heading));
    heading.replaceChildren(button);
  }
}

function sort(heading: HTMLTableCellElement): void {
  const table = heading.closest("table");
  const body = table?.tBodies[0];
  if (!table || !body) {
    return;
  }
  const first: Direction = heading.dataset.sort === "number" ? "descending" : "ascending";
  const other: Direction = first === "ascending" ? "descending" : "ascending";
  const before = heading.getAttribute("aria-sort");
  // A third click restores the report's order.
  const next = before === null ? first : before === first ? other : null;
  for (const each of table.querySelectorAll("th[aria-sort]")) {
    each.removeAttribute("aria-sort");
  }
  const rows = [...body.rows];
  rows.forEach((row, index) => (row.dataset.place ??= String(index)));
  const place = (row: HTMLTableRowElement): number => Number(row.dataset.place);
  if (next === null) {
    rows.sort((a, b) => place(a) - place(b));
  } else {
    heading.setAttribute("aria-sort", next);
    const sign = next === "ascending" ? 1 : -1;
    const column = heading.cellIndex;
    const isNumber = heading.dataset.sort === "number";
    const value = (row: HTMLTableRowElement): number => {
      const value = row.cells[column]?.dataset.value;
      return value === undefined ? NaN : Number(value);
    };
    const text = (row: HTMLTableRowElement): string => row.cells[column]?.textContent ?? "";
    rows.sort((a, b) => {
      if (!isNumber) {
        return sign * text(a).localeCompare(text(b), "en", { numeric: true }) || place(a) - place(b);
      }
      const [one, other] = [value(a), value(b)];
      // What has no value stands last in both directions.
      if (Number.isNaN(one) || Number.isNaN(other)) {
        return Number(Number.isNaN(one)) - Number(Number.isNaN(other)) || place(a) - place(b);
      }
      return sign * (one - other) || place(a) - place(b);
    });
  }
  body.append(...rows);
}

/** The plots follow when nobody has typed for so long: drawing many trials again would hold up the next letter. */
const PAUSE_MS = 120;

/** Hides the rows of variants in which the filter's words do not occur, and tells which are left. */
export function makeFilter(onChange: (isShown: (variant: string) => boolean) => void): void {
  const input = byId<HTMLInputElement>("filter");
  const told = byId<HTMLOutputElement>("filtered");
  const rows = [...document.querySelectorAll<HTMLTableRowElement>("tr[data-variant]")];
  const items = [...document.querySelectorAll<HTMLLIElement>("li[data-variant]")];
  if (!input) {
    return;
  }
  const texts = new Map<string, string>();
  for (const row of rows) {
    const variant = row.dataset.variant ?? "";
    // Labels, levels and words of verdicts; not figures, in which any digit would be found.
    const cells = [...row.cells].filter((cell) => !cell.classList.contains("number"));
    const words = cells.map((cell) => cell.textContent).join(" ");
    texts.set(variant, `${texts.get(variant) ?? ""} ${words}`.toLowerCase());
  }
  let pending: ReturnType<typeof setTimeout> | undefined;
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
    const isShown = (variant: string): boolean => {
      const text = texts.get(variant) ?? "";
      return words.every((word) => text.includes(word));
    };
    for (const shown of [...rows, ...items]) {
      // A baseline is what the others are read against.
      shown.hidden = shown.dataset.kind !== "baseline" && !isShown(shown.dataset.variant ?? "");
    }
    const left = [...texts.keys()].filter(isShown).length;
    if (told) {
      told.textContent = words.length > 0 ? `${left} of ${texts.size} variants` : "";
    }
    clearTimeout(pending);
    pending = setTimeout(() => onChange(isShown), PAUSE_MS);
  });
}
