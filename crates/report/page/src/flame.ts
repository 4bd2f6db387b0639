// Flame graphs: callers below what they call, zoomed and searched.

import { embedded, type FlameBoxes } from "./data";
import { byId, svg } from "./element";
import { significant } from "./format";
import type { Tip } from "./pointer";

const ROW = 18;
/** Room of a character, for names that would not fit. */
const CHARACTER = 7.25;
/** Narrower boxes, in pixels, are not drawn. */
const NARROWEST = 0.4;

interface Box {
  name: string;
  /** What its colour says of a difference: "+" costs more, "-" less. */
  sign: string;
  note: string;
  colour: string;
  depth: number;
  /** Edges, in the graph's unit. */
  from: number;
  width: number;
  caller: Box | null;
  callees: Box[];
}

interface Graph {
  boxes: FlameBoxes;
  root: Box;
}

export function flameGraphs(tip: Tip): void {
  const choice = byId<HTMLSelectElement>("flame-choice");
  const search = byId<HTMLInputElement>("flame-search");
  const reset = byId<HTMLButtonElement>("flame-reset");
  const found = byId<HTMLOutputElement>("flame-found");
  const words = byId("flame-words");
  const basisWords = byId("flame-basis");
  const holder = byId("flame-graph");
  const status = byId("flame-status");
  if (!choice || !search || !reset || !found || !words || !basisWords || !holder || !status) {
    return;
  }
  const graphs = new Map<string, Graph | null>();
  let graph: Graph | null = null;
  let zoomed: Box | null = null;
  let active: Box | null = null;
  let isMatch: ((name: string) => boolean) | null = null;
  let drawn = new Map<Box, SVGGElement>();
  const picture = svg("svg", { role: "tree", tabindex: 0, "aria-label": "Flame graph" });
  holder.append(picture);

  const part = (box: Box): string => {
    const { unit } = graph?.boxes ?? { unit: "" };
    const whole = graph?.root.width ?? 0;
    const percent = whole > 0 ? ` (${significant((box.width / whole) * 100)} %)` : "";
    return `${significant(box.width)} ${unit}${percent}`;
  };
  const describe = (box: Box): string => `${labelOf(box)}: ${part(box)}${box.note ? `, ${box.note}` : ""}`;

  const draw = (): void => {
    drawn = new Map();
    if (!graph || !zoomed) {
      picture.replaceChildren();
      return;
    }
    const width = holder.clientWidth;
    const scale = zoomed.width > 0 ? width / zoomed.width : 0;
    const { from } = zoomed;
    const path: Box[] = [];
    for (let box: Box | null = zoomed; box; box = box.caller) {
      path.unshift(box);
    }
    // What is drawn: the callers of the zoomed box, as wide as the picture, itself, and what it calls.
    const places: { box: Box; x: number; width: number }[] = path.map((box) => ({ box, x: 0, width }));
    const open = [...zoomed.callees];
    let deepest = zoomed.depth;
    for (let box = open.pop(); box; box = open.pop()) {
      const place = { box, x: (box.from - from) * scale, width: box.width * scale };
      if (place.width >= NARROWEST) {
        places.push(place);
        deepest = Math.max(deepest, box.depth);
        open.push(...box.callees);
      }
    }
    const height = (deepest + 1) * ROW;
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    picture.setAttribute("height", String(height));
    // Names as far as there is room, in a layer of their own: a shortened name is not what its box is called.
    const names = svg("g", { "aria-hidden": "true" });
    picture.replaceChildren(
      ...places.map(({ box, x, width }, index) => {
        const y = height - (box.depth + 1) * ROW;
        const room = Math.floor((width - 6) / CHARACTER);
        const label = labelOf(box);
        // A sign is worth its place where nothing of the name has any.
        const text = room < 3 ? (room > 0 ? box.sign : "") : label.length <= room ? label : `${label.slice(0, room - 1)}…`;
        const faded = box.depth < (zoomed?.depth ?? 0) ? "faded" : "";
        if (text) {
          names.append(svg("text", { x: x + 3, y: y + ROW - 5, class: faded }, text));
        }
        const item = svg(
          "g",
          {
            id: `flame-box-${index}`,
            role: "treeitem",
            "aria-level": box.depth + 1,
            "aria-label": describe(box),
            class: faded,
          },
          svg("rect", { x, y, width, height: ROW - 1, fill: box.colour, rx: 1 }),
        );
        drawn.set(box, item);
        return item;
      }),
      names,
    );
    boxOf = new Map([...drawn].map(([box, item]) => [item, box]));
    match();
    activate(active && drawn.has(active) ? active : null);
  };
  let boxOf = new Map<Element, Box>();

  const zoom = (box: Box): void => {
    zoomed = box;
    active = box;
    draw();
    holder.scrollTop = holder.scrollHeight;
    status.textContent = describe(box);
  };

  const activate = (box: Box | null): void => {
    for (const item of picture.querySelectorAll(".active")) {
      item.classList.remove("active");
    }
    active = box;
    const item = box ? drawn.get(box) : undefined;
    if (box && item) {
      item.classList.add("active");
      picture.setAttribute("aria-activedescendant", item.id);
      status.textContent = describe(box);
    } else {
      picture.removeAttribute("aria-activedescendant");
    }
  };

  const match = (): void => {
    if (!graph) {
      return;
    }
    for (const [box, item] of drawn) {
      item.classList.toggle("matched", isMatch?.(box.name) ?? false);
      item.classList.toggle("unmatched", isMatch !== null && !isMatch(box.name));
    }
    if (isMatch) {
      const { width, boxes } = matchedWidth(graph.root, isMatch);
      const percent = graph.root.width > 0 ? (width / graph.root.width) * 100 : 0;
      found.textContent =
        boxes > 0
          ? `${boxes} ${boxes === 1 ? "box" : "boxes"}, ${significant(width)} ${graph.boxes.unit} (${significant(percent)} %)`
          : "nothing found";
    }
  };

  const choose = (): void => {
    const id = choice.value;
    if (!graphs.has(id)) {
      const boxes = embedded<FlameBoxes>(id);
      graphs.set(id, boxes ? { boxes, root: treeOf(boxes) } : null);
    }
    graph = graphs.get(id) ?? null;
    if (!graph) {
      return;
    }
    const { title, subtitle, basis, legend, unit } = graph.boxes;
    words.textContent = [subtitle, legend].filter((words) => words !== "").join(" | ") || unit;
    basisWords.textContent = basis;
    picture.setAttribute("aria-label", `Flame graph: ${title}`);
    zoom(graph.root);
    activate(null);
    status.textContent = "";
  };

  choice.addEventListener("change", choose);
  reset.addEventListener("click", () => {
    search.value = "";
    searchChanged();
    if (graph) {
      zoom(graph.root);
    }
  });
  const searchChanged = (): void => {
    const wanted = search.value.trim();
    found.textContent = "";
    search.removeAttribute("aria-invalid");
    const expression = /^\/(.+)\/$/.exec(wanted)?.[1];
    isMatch = null;
    if (expression !== undefined) {
      try {
        const compiled = new RegExp(expression, "i");
        isMatch = (name) => compiled.test(name);
      } catch {
        search.setAttribute("aria-invalid", "true");
        found.textContent = "not a regular expression";
      }
    } else if (wanted !== "") {
      const lower = wanted.toLowerCase();
      isMatch = (name) => name.toLowerCase().includes(lower);
    }
    match();
  };
  search.addEventListener("input", searchChanged);

  const boxAt = (event: Event): Box | undefined => {
    const item = (event.target as Element).closest?.("g");
    return item ? boxOf.get(item) : undefined;
  };
  picture.addEventListener("click", (event) => {
    const box = boxAt(event);
    if (box) {
      zoom(box);
    }
  });
  picture.addEventListener("pointermove", (event) => {
    const box = boxAt(event);
    if (box) {
      tip.show([labelOf(box), part(box), ...(box.note ? [box.note] : [])], event.clientX, event.clientY);
    } else {
      tip.hide();
    }
  });
  picture.addEventListener("pointerleave", () => tip.hide());
  picture.addEventListener("keydown", (event) => {
    if (!graph || !zoomed || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const now = active ?? zoomed;
    const seen = (box: Box | null | undefined): Box | null => (box && drawn.has(box) ? box : null);
    let next: Box | null = null;
    switch (event.key) {
      case "ArrowUp":
        next = seen(now.callees.reduce<Box | null>((one, other) => (one && one.width >= other.width ? one : other), null));
        break;
      case "ArrowDown":
        next = seen(now.caller);
        break;
      case "ArrowLeft":
        next = seen(neighbour(now, -1, seen));
        break;
      case "ArrowRight":
        next = seen(neighbour(now, 1, seen));
        break;
      case "Home":
        next = graph.root;
        break;
      case "Enter":
      case " ":
        zoom(now);
        break;
      case "Escape":
        zoom(zoomed.caller ?? graph.root);
        break;
      case "/":
        search.focus();
        break;
      default:
        return;
    }
    event.preventDefault();
    if (next) {
      activate(next);
      drawn.get(next)?.scrollIntoView({ block: "nearest" });
    }
  });
  let width = holder.clientWidth;
  new ResizeObserver(() => {
    if (holder.clientWidth !== width) {
      width = holder.clientWidth;
      draw();
    }
  }).observe(holder);
  choose();
}

function labelOf({ sign, name }: Box): string {
  return sign === "" ? name : `${sign} ${name}`;
}

/** Boxes that match, each with what it stands on once. */
function matchedWidth(root: Box, isMatch: (name: string) => boolean): { width: number; boxes: number } {
  let width = 0;
  let boxes = 0;
  const open: { box: Box; isWithin: boolean }[] = [{ box: root, isWithin: false }];
  for (let next = open.pop(); next; next = open.pop()) {
    const { box, isWithin } = next;
    const matches = isMatch(box.name);
    boxes += Number(matches);
    width += matches && !isWithin ? box.width : 0;
    for (const callee of box.callees) {
      open.push({ box: callee, isWithin: isWithin || matches });
    }
  }
  return { width, boxes };
}

/** The next box of the same depth that is drawn, by the same caller or another. */
function neighbour(box: Box, step: number, seen: (box: Box | undefined) => Box | null): Box | null {
  const siblings = box.caller?.callees ?? [];
  for (let at = siblings.indexOf(box) + step; at >= 0 && at < siblings.length; at += step) {
    const next = seen(siblings[at]);
    if (next) {
      return next;
    }
  }
  return null;
}

function treeOf(boxes: FlameBoxes): Box {
  const root: Box = {
    name: "all",
    sign: "",
    note: "",
    colour: "#f0f0f0",
    depth: 0,
    from: 0,
    width: boxes.width,
    caller: null,
    callees: [],
  };
  // The boxes below the next one, callers first, and how far each is filled.
  const path: { box: Box; filled: number }[] = [{ box: root, filled: 0 }];
  boxes.depth.forEach((depth, index) => {
    path.length = Math.min(path.length, depth + 1);
    const caller = path.at(-1) as { box: Box; filled: number };
    const width = (boxes.width_thousandths[index] ?? 0) / 1e3;
    const box: Box = {
      name: boxes.frames[boxes.frame[index] ?? 0] ?? "",
      sign: boxes.signs[boxes.frame[index] ?? 0] ?? "",
      note: boxes.notes[boxes.note[index] ?? 0] ?? "",
      colour: boxes.colours[boxes.colour[index] ?? 0] ?? "",
      depth: caller.box.depth + 1,
      from: caller.filled,
      width,
      caller: caller.box,
      callees: [],
    };
    caller.filled += width;
    caller.box.callees.push(box);
    path.push({ box, filled: box.from });
  });
  return root;
}
