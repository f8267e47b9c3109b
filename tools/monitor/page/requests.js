// Requests and latencies, from the metrics of the workers.
import { byId, fillTable, show } from "./dom.js";
import { count, duration } from "./format.js";

const kWindow_ns = 60e9;

const recent = new Map(); // by worker, of the last answers: {at, figures}

function windowOf(figures, at) {
  const answers = recent.get(figures.worker) ?? [];
  const last = answers.at(-1)?.figures;
  const isOther = last && last.first_token.counts.some((each, i) => each > (figures.first_token.counts[i] ?? 0));
  if (isOther) answers.length = 0; // a new process of this name
  if (answers.at(-1)?.at !== at) answers.push({ at, figures });
  while (answers.length > 2 && at - answers[1].at >= kWindow_ns) answers.shift();
  recent.set(figures.worker, answers);
  return answers[0].figures;
}

// The upper bound of the bucket with this share of the samples since `before`; without one, of all samples.
// Undefined without a sample, Infinity beyond the last bound.
export function quantile(now, before, share) {
  const since = now.counts.map((each, i) => each - (before.counts[i] ?? 0));
  const counts = since.at(-1) > 0 ? since : now.counts;
  const all = counts.at(-1) ?? 0;
  if (all <= 0) return undefined;
  const bound = now.bounds_s[counts.findIndex((each) => each >= share * all)];
  return bound === null ? Infinity : bound;
}

function latency(seconds, bounds) {
  if (seconds === undefined) return "–";
  return seconds === Infinity ? `> ${duration(bounds.at(-2) * 1e9)}` : `≤ ${duration(seconds * 1e9)}`;
}

// What is known of each worker: {worker, running, waiting, first_p50, first_p99, inter_p50, inter_p99, refused,
// refusedKeysPerMinute}.
export function figuresNow({ items }, at) {
  return items.filter((each) => each.worker).map((now) => {
    const before = windowOf(now, at);
    const q = (field, share) => quantile(now[field], before[field], share);
    const first = recent.get(now.worker)[0];
    const minutes = Math.max(at - first.at, 1e9) / 60e9;
    return {
      ...now,
      first_p50: q("first_token", 0.5), first_p99: q("first_token", 0.99),
      inter_p50: q("inter_token", 0.5), inter_p99: q("inter_token", 0.99),
      refusedKeysPerMinute: (now.refused_keys - before.refused_keys) / minutes,
      before,
    };
  });
}

export function showRequests({ items }, figures) {
  const number = (text) => ({ text, look: "number" });
  fillTable("request-table", figures.map((each) => ({
    key: each.worker,
    cells: [
      { text: each.worker, look: "name" }, number(count(each.running)), number(count(each.waiting)),
      ...[["first_p50", "first_token"], ["first_p99", "first_token"], ["inter_p50", "inter_token"], ["inter_p99", "inter_token"]]
        .map(([field, buckets]) => ({
          text: latency(each[field], each[buckets].bounds_s), look: field.endsWith("p50") ? "number wide" : "number",
        })),
    ],
  })));
  const refusals = figures.flatMap((each) => {
    const codes = Object.entries(each.refused);
    if (each.refused_keys > 0) codes.push(["API key not valid", each.refused_keys]);
    return codes.map(([code, all]) => {
      const earlier = code === "API key not valid" ? each.before.refused_keys : each.before.refused[code] ?? 0;
      return { worker: each.worker, code, all, recent: all - earlier };
    });
  }).sort((a, b) => b.recent - a.recent || b.all - a.all);
  fillTable("refusal-table", refusals.map((each) => ({
    key: `${each.worker} ${each.code}`,
    cells: [each.code, { text: each.worker, look: "name" }, number(count(each.recent)), number(count(each.all))],
  })));
  byId("request-table").hidden = figures.length === 0;
  byId("refusal-table").hidden = refusals.length === 0;
  show("requests-none", items.length === 0);
  show("refusals-none", figures.length > 0 && refusals.length === 0);
  const errors = items.filter((each) => each.error).map((each) => each.error);
  show("requests-errors", errors.length > 0, errors.join(" "));
}
