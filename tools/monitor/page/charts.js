// Charts over time, and the clocks of a revocation.
import { drawing, svg, widthOf } from "./dom.js";
import { age, count, duration, rate } from "./format.js";

const kHeight = 190;
const kMargin = { left: 46, right: 10, top: 8, bottom: 24 };

// A round upper end of an axis, and the distance of its lines.
function scaleTo(largest) {
  const step = 10 ** Math.floor(Math.log10(Math.max(largest, 1) / 2));
  const distance = [1, 2, 5, 10].map((factor) => factor * step).find((each) => largest / each <= 4) ?? step * 10;
  const whole = Math.max(1, distance);
  return { end: Math.max(whole, Math.ceil(largest / whole) * whole), distance: whole };
}

function frame(width, from, to, largest) {
  const { end, distance } = scaleTo(largest);
  const right = width - kMargin.right;
  const bottom = kHeight - kMargin.bottom;
  const x = (at) => kMargin.left + ((at - from) / Math.max(1, to - from)) * (right - kMargin.left);
  const y = (value) => bottom - (value / end) * (bottom - kMargin.top);
  const parts = [];
  for (let value = 0; value <= end; value += distance) {
    parts.push(svg("line", { class: "grid", x1: kMargin.left, x2: right, y1: y(value), y2: y(value) }));
    parts.push(svg("text", { x: kMargin.left - 6, y: y(value) + 4, "text-anchor": "end" }, count(value)));
  }
  const names = width < 460 ? 2 : 4;
  for (let i = 0; i <= names; ++i) {
    const at = from + ((to - from) * i) / names;
    const text = i === names ? "now" : `−${age(to - at)}`;
    const anchor = i === 0 ? "start" : i === names ? "end" : "middle";
    parts.push(svg("text", { x: x(at), y: kHeight - 6, "text-anchor": anchor }, text));
  }
  return { x, y, parts };
}

// Times at which no sample was made for so long that a line between its neighbours would be invented.
function gapsOf(times) {
  const steps = times.slice(1).map((at, i) => at - times[i]);
  const usual = [...steps].sort((a, b) => a - b)[Math.floor(steps.length / 2)] ?? 0;
  return steps.map((step) => step > Math.max(30e9, 4 * usual));
}

function range(times) {
  const to = times.at(-1) ?? 60e9;
  return { from: Math.min(times[0] ?? 0, to - 60e9), to };
}

// `series`: [{name, look, values}], as long as `times`, which are nanoseconds.
export function drawStates(container, times, series) {
  const width = widthOf(container);
  const { from, to } = range(times);
  const largest = Math.max(0, ...series.flatMap((each) => each.values));
  const { x, y, parts } = frame(width, from, to, largest);
  const gaps = gapsOf(times);
  for (const { look, values } of series) {
    let path = "";
    values.forEach((value, i) => {
      const starts = i === 0 || gaps[i - 1];
      path += starts ? `M${x(times[i])} ${y(value)}` : `H${x(times[i])}V${y(value)}`;
      if (starts) path += "h1"; // a sample alone is a dot
    });
    parts.push(svg("path", { class: `line ${look}`, d: path || "M0 0" }));
  }
  const now = series.map((each) => `${count(each.values.at(-1) ?? 0)} ${each.name}`).join(", ");
  const most = series.map((each) => `${count(Math.max(0, ...each.values))} ${each.name}`).join(", ");
  drawing(container, width, kHeight, "Lease states over time",
    `Now ${now}. In the last ${age(to - from)} at most ${most}.`, parts);
}

// Areas on top of each other. A value is undefined where no rate is known.
export function drawRates(container, times, series) {
  const width = widthOf(container);
  const { from, to } = range(times);
  const sums = times.map((_, i) => series.reduce((sum, each) => sum + (each.values[i] ?? 0), 0));
  const { x, y, parts } = frame(width, from, to, Math.max(0, ...sums));
  const gaps = gapsOf(times);
  const below = times.map(() => 0);
  for (const { look, values } of series) {
    let run = [];
    const close = () => {
      if (run.length > 1) {
        const upper = run.map((i) => `${x(times[i])} ${y(below[i] + (values[i] ?? 0))}`);
        const lower = run.map((i) => `${x(times[i])} ${y(below[i])}`).reverse();
        parts.push(svg("path", { class: `area edge ${look}`, d: `M${upper.join("L")}L${lower.join("L")}Z` }));
      }
      run = [];
    };
    times.forEach((_, i) => {
      if (i > 0 && gaps[i - 1]) close();
      run.push(i);
    });
    close();
    values.forEach((value, i) => (below[i] += value ?? 0));
  }
  const last = (each) => each.values.findLast((value) => value !== undefined) ?? 0;
  const parts_text = series.map((each) => `${each.name} ${rate(last(each))}`).join(", ");
  drawing(container, width, kHeight, "Tokens per second by tenant",
    series.length === 0 ? "No tenant has computed a token." : `Now ${parts_text}.`, parts);
}

// The bars of a revocation begin at the revocation, on an axis of powers of ten. `clocks`: [{name, ns, look}];
// a clock of -1 ns is not known.
export function drawClocks(container, title, clocks, fenced_ns) {
  const width = widthOf(container);
  const known = clocks.map((each) => each.ns).concat(fenced_ns).filter((ns) => ns > 0);
  const low = Math.floor(Math.log10(Math.min(...known, 1e6)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...known, 10 ** (low + 1)))));
  const left = 72;
  const right = width - 64;
  const x = (ns) => left + ((Math.log10(Math.max(ns, 10 ** low)) - low) / (high - low)) * (right - left);
  const row = 34;
  const bottom = clocks.length * row + 8;
  const parts = [];
  const every = Math.ceil((high - low) / (width < 460 ? 3 : 6));
  for (let power = low; power <= high; ++power) {
    parts.push(svg("line", { class: "grid", x1: x(10 ** power), x2: x(10 ** power), y1: 4, y2: bottom }));
    if ((power - low) % every !== 0) continue;
    parts.push(svg("text", { x: x(10 ** power), y: bottom + 16, "text-anchor": "middle" }, duration(10 ** power)));
  }
  clocks.forEach(({ name, ns, look }, i) => {
    const y = i * row + row / 2 + 4;
    parts.push(svg("text", { class: "strong", x: left - 8, y: y + 4, "text-anchor": "end" }, name));
    const text = { x: left + 6, y: y + 4, class: "strong", "data-clock": name, "data-ns": ns };
    if (ns >= 0) {
      const end = Math.max(left + 2, x(ns));
      parts.push(svg("rect", { class: `bar ${look}`, x: left, y: y - 8, width: end - left, height: 16, rx: 2 }));
      parts.push(svg("circle", { class: `mark ${look}`, cx: end, cy: y, r: 7 }));
      text.x = end + 11;
    }
    parts.push(svg("text", text, ns < 0 ? "not known" : duration(ns)));
  });
  if (fenced_ns >= 0) {
    parts.push(svg("line", { class: "line d1 rest", x1: x(fenced_ns), x2: x(fenced_ns), y1: 0, y2: bottom }));
    parts.push(svg("text", { x: x(fenced_ns), y: bottom + 32, "text-anchor": "middle" }, `fenced ${duration(fenced_ns)}`));
  }
  const says = clocks.map((each) => `${each.name} ${each.ns < 0 ? "not known" : duration(each.ns)}`).join(", ");
  drawing(container, width, bottom + 38, title, `Since the revocation, on a logarithmic axis: ${says}.`, parts);
}
