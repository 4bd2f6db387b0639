// What the page holds for the script: report.json, the slices of every block and the flame graphs.

export interface Report {
  comparisons: Comparison[];
  variants: { name: string; label: string; control_of: string | null }[];
  trials: Trial[];
  traffic: Traffic | Traffic[];
}

type Family = "inet" | "inet6";

/** What the tester sent; it has a name where there were several. */
interface Traffic {
  name?: string;
  families: Family[];
}

export interface Comparison {
  rows: Row[];
  control: { row: Row } | null;
}

export interface Row {
  variant: string;
  effect: { blocks: { block: number; percent: number }[] } | null;
}

export interface Trial {
  session: number;
  block: number;
  attempt: number;
  order: number;
  variant: string;
  family: Family;
  traffic?: string;
  start: string;
  forwarding_rate_pps: number;
  offered_load_pps: number | null;
  dropped_frames: number;
  steal_percent: number | null;
  calibration_ratio: number | null;
  disturbed_percent: number | null;
  counts: boolean;
  invalid: string[];
}

/** The slices of a block in the order of time, a column each. */
export interface BlockSlices {
  session: number;
  block: number;
  attempt: number;
  variants: string[];
  /** Labels of strata, as `stratumOf` makes them. */
  families: string[];
  variant: number[];
  family: number[];
  round: number[];
  position: number[];
  start_ms: number[];
  time_ms: number[];
  offered_frames: number[];
  forwarded_frames: number[];
  dropped_frames: number[];
  undisturbed_ms: number[];
  undisturbed_frames: number[];
  calibration_ns: number[];
  steal_ms: number[];
}

/** Boxes of a flame graph, callers before what they call. */
export interface FlameBoxes {
  title: string;
  subtitle: string;
  /** Why its ns/packet are not those of the verdicts. */
  basis: string;
  unit: string;
  legend: string;
  width: number;
  frames: string[];
  /** Before the name of each of these: "+", "-" or nothing. */
  signs: string[];
  colours: string[];
  notes: string[];
  depth: number[];
  frame: number[];
  colour: number[];
  note: number[];
  width_thousandths: number[];
}

/** The data in the element of that id; null where the page has none. */
export function embedded<T>(id: string): T | null {
  const text = document.getElementById(id)?.textContent;
  return text ? (JSON.parse(text) as T) : null;
}

const PROTOCOLS: Record<Family, string> = { inet: "IPv4", inet6: "IPv6" };

/** What is measured and shown apart, as readers know it: the family, and the traffic where that has a name. */
export function stratumOf(of: { family: Family; traffic?: string }): string {
  return of.traffic === undefined ? PROTOCOLS[of.family] : `${PROTOCOLS[of.family]}, ${of.traffic}`;
}

/** All of these, in the experiment's order. */
export function strataOf(report: Report): string[] {
  const traffics = Array.isArray(report.traffic) ? report.traffic : [report.traffic];
  return traffics.flatMap(({ name, families }) => families.map((family) => stratumOf({ family, traffic: name })));
}
