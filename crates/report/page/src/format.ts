// Numbers as the report writes them (crates/report/src/format.rs).

const GROUP = "\u202f";

export function count(value: number): string {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, GROUP);
}

export function rate(pps: number): string {
  for (const [unit, name] of [[1e9, "Gpps"], [1e6, "Mpps"], [1e3, "kpps"]] as const) {
    if (pps >= unit * 0.9995) {
      return `${significant(pps / unit)} ${name}`;
    }
  }
  return `${significant(pps)} pps`;
}

export function significant(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

export function signed(value: number, decimals: number): string {
  const text = value.toFixed(decimals);
  return value > 0 && Number(text) !== 0 ? `+${text}` : text;
}
