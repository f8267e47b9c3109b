// Throughput of tenants, and their shares.
import { byId, colourOf, fillTable, legend, show, showPart } from "./dom.js";
import { drawRates } from "./charts.js";
import { count, percent, rate } from "./format.js";

const kWindow_ns = 10e9;
const kShownTenants = 200;
const kSeries = 6;

let recent = []; // of the last answers: {at, tokens: Map}

// Tokens per second of each tenant in the last ten seconds; undefined before there are two answers.
export function ratesNow(overview) {
  const at = overview.now_boottime_ns;
  const tokens = new Map(overview.tenants.map((each) => [each.policy.tenant, each.served.tokens]));
  const last = recent.at(-1);
  const isOtherBroker = last && [...last.tokens].some(([name, before]) => (tokens.get(name) ?? before) < before);
  if (isOtherBroker || (last && at < last.at)) recent = [];
  recent.push({ at, tokens });
  while (recent.length > 2 && at - recent[1].at >= kWindow_ns) recent.shift();
  const [first] = recent;
  const seconds = (at - first.at) / 1e9;
  if (seconds <= 0 || seconds > 60) return undefined;
  return new Map([...tokens].map(([name, now]) => [name, (now - (first.tokens.get(name) ?? now)) / seconds]));
}

// The rate at each sample, over the samples of the ten seconds before it.
function ratesOf(times, tokens) {
  let first = 0;
  return times.map((at, i) => {
    while (first < i - 1 && at - times[first + 1] >= kWindow_ns) ++first;
    const seconds = (at - times[first]) / 1e9;
    if (seconds <= 0 || tokens[i] === null || tokens[first] === null) return undefined;
    return (tokens[i] - tokens[first]) / seconds;
  });
}

export function showRates(history) {
  const times = history.at_boottime_ns;
  const all = Object.entries(history.tokens)
    .map(([name, tokens]) => {
      const values = ratesOf(times, tokens);
      return { name, values, sum: values.reduce((sum, value) => sum + (value ?? 0), 0) };
    })
    .filter((each) => each.sum > 0)
    .sort((a, b) => b.sum - a.sum);
  const series = all.slice(0, kSeries).map((each) => ({ ...each, look: colourOf(each.name) }));
  const others = all.slice(kSeries);
  if (others.length > 0) {
    const sums = times.map((_, i) => others.reduce((sum, each) => sum + (each.values[i] ?? 0), 0));
    series.push({ name: `${others.length} others`, look: "rest", values: sums });
  }
  drawRates(byId("token-chart"), times, series);
  legend(byId("token-legend"), series);
}

function nameOf(tenant) {
  const notes = [tenant.policy.cell && `of cell ${tenant.policy.cell}`, tenant.draining && "draining"].filter(Boolean);
  return notes.length > 0 ? `${tenant.policy.tenant} (${notes.join(", ")})` : tenant.policy.tenant;
}

// What became of the memory of the tenant's leases; a broker without a state directory does not count them.
function erasedOf(tenant) {
  const counts = tenant.leases;
  return counts ? [counts.erased, counts.open, counts.held + counts.quarantined].map(count).join(" / ") : "–";
}

export function showTenants(overview, rates) {
  const sum = rates ? [...rates.values()].reduce((a, b) => a + b, 0) : 0;
  const rateOf = (each) => rates?.get(each.policy.tenant);
  const tenants = [...overview.tenants].sort(
    (a, b) => (rateOf(b) ?? 0) - (rateOf(a) ?? 0) || b.served.tokens - a.served.tokens,
  );
  fillTable("tenant-table", tenants.slice(0, kShownTenants).map((each) => {
    const share = sum > 0 ? (rateOf(each) ?? 0) / sum : 0;
    return {
      key: each.policy.tenant,
      cells: [
        { text: nameOf(each), look: "name" },
        { text: rate(rateOf(each)), look: "number" },
        { text: sum > 0 ? percent(share) : "–", share },
        { text: count(each.policy.weight), look: "number wide" },
        { text: count(each.leases_live), look: "number wide" },
        { text: `${count(each.blocks_held)} / ${count(each.policy.max_blocks)}`, look: "number" },
        { text: each.policy.tier, look: "wide" },
        { text: count(each.served.tokens), look: "number wide" },
        { text: erasedOf(each), look: "number wide" },
      ],
    };
  }));
  byId("tenant-table").hidden = tenants.length === 0;
  show("tenants-none", tenants.length === 0);
  showPart("tenants-more", tenants.length - kShownTenants,
    `The first ${kShownTenants} of ${count(tenants.length)} tenants; brokerctl tenants shows all.`);
}
