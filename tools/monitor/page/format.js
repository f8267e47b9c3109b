// Numbers as people read them.

const kUnits = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

const digits = (value) => (value < 9.95 ? value.toFixed(1).replace(/\.0$/, "") : String(Math.round(value)));

// "1.2 ms"; "–" for a clock that is not known.
export function duration(ns) {
  if (ns === undefined || ns < 0) return "–";
  if (ns === 0) return "0";
  const [unit, name] = kUnits.find(([size]) => ns >= size);
  return `${digits(ns / unit)} ${name}`;
}

// "12 s", "3 min", "2 h", "4 d"
export function age(ns) {
  const s = Math.max(0, ns) / 1e9;
  if (s < 120) return `${Math.floor(s)} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

export function bytes(size) {
  const names = ["B", "KiB", "MiB", "GiB", "TiB"];
  let power = 0;
  for (; size >= 1024 && power + 1 < names.length; ++power) size /= 1024;
  return `${digits(size)} ${names[power]}`;
}

export const count = (value) => Number(value).toLocaleString("en");

// Tokens per second; "–" before two answers are compared.
export const rate = (value) => (value === undefined ? "–" : value < 9.95 ? digits(value) : count(Math.round(value)));

export const percent = (part) => `${Math.round(part * 100)} %`;
