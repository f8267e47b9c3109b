// The other sections: totals, leases, revocations, workers, events.
import { byId, el, fillTable, legend, setText, show, showPart } from "./dom.js";
import { drawClocks, drawStates } from "./charts.js";
import { age, bytes, count, duration, percent, rate } from "./format.js";

const kShownRevocations = 50;
const kShownEvents = 200;
const kShownSamples = 60;

const kNoCeiling_ms = 1e12; // a cell without a TTL

function cellTotals(cell, tenants) {
  const left = cell.ceiling_left_ms;
  const ceiling = left > kNoCeiling_ms ? "none" : left === 0 ? "passed" : `in ${duration(left * 1e6)}`;
  const parts = tenants.filter((each) => each.part && each.policy.max_concurrent > 0);
  return [
    [`Ceiling of cell ${cell.cell}`, ceiling, left === 0 && cell.tenants > 0],
    ["Cell tenants with a part", `${count(parts.length)} of ${count(cell.tenants)}`],
    ["Requests in these parts", count(parts.reduce((sum, each) => sum + each.policy.max_concurrent, 0))],
  ];
}

export function showTotals({ status, tenants, workers, audit }, rates, figures, alerts) {
  const sum = rates ? [...rates.values()].reduce((a, b) => a + b, 0) : undefined;
  const used = status.capacity_bytes > 0 ? 1 - status.free_bytes / status.capacity_bytes : 0;
  const all = (field) => (figures.length > 0 ? count(figures.reduce((sum, each) => sum + each[field], 0)) : "–");
  const loading = workers.filter((each) => each.state === "attached").length;
  const totals = [
    ["Alerts", count(alerts), alerts > 0],
    ["Running", all("running")],
    ["Waiting", all("waiting")],
    ["Live leases", count(status.leases_live)],
    ["Revoked", count(status.leases_revoked)],
    ["Stuck", count(status.leases_stuck), status.leases_stuck > 0],
    ["Fenced in all", count(status.leases_fenced)],
    ["Live tenants", `${count(status.tenants_live)} of ${count(status.tenants)}`],
    ["Workers", count(workers.filter((each) => each.state === "ready").length)],
    ["KV in use", percent(used)],
    ["Tokens/s", rate(sum)],
  ];
  if (loading > 0) totals.push(["Workers loading", count(loading)]);
  if (status.quarantined_bytes > 0) totals.push(["Quarantined", bytes(status.quarantined_bytes), true]);
  if (status.workers_lost > 0) totals.push(["Workers lost", count(status.workers_lost), true]);
  if (status.workers_out_of_service > 0) totals.push(["Workers out of service", count(status.workers_out_of_service), true]);
  if (status.workers_asleep > 0) totals.push(["Workers asleep", count(status.workers_asleep)]);
  if (status.adapters_loaded > 0) totals.push(["Adapters", `${count(status.adapters_loaded)}, ${bytes(status.adapter_bytes)}`]);
  if (status.journal_faults > 0) totals.push(["Journal faults", count(status.journal_faults), true]);
  if (audit?.gaps > 0) totals.push(["Audit gaps", count(audit.gaps), true]);
  if (audit?.key_is_unlinked) totals.push(["Audit key", "lost", true]);
  if (status.tampered > 0) totals.push(["Tampered slots", count(status.tampered), true]);
  if (status.cell) totals.push(...cellTotals(status.cell, tenants));
  const card = status.device === "cpu" ? "No card" : `Card ${status.device} (${status.device_state})`;
  const list = byId("totals");
  while (list.children.length > totals.length) list.lastChild.remove();
  totals.forEach(([name, value, isBad], i) => {
    const tile = list.children[i] ?? list.appendChild(el("div", {}, el("dt"), el("dd")));
    setText(tile.firstChild, name);
    setText(tile.lastChild, value);
    tile.lastChild.className = isBad ? "bad" : "";
  });
  const isolation = status.isolation === "same-user" ? "broker and workers share a user" : status.isolation;
  setText(byId("broker"), `${card}, ${bytes(status.capacity_bytes)}, ${isolation}, up ${age(status.uptime_ms * 1e6)}`);
}

export function showHistory(history) {
  const times = history.at_boottime_ns;
  const series = [
    { name: "live", look: "c0", values: history.live },
    { name: "revoked", look: "d1 c1", values: history.revoked },
    { name: "stuck", look: "d2 alarm", values: history.stuck },
  ];
  drawStates(byId("lease-chart"), times, series);
  legend(byId("lease-legend"), series.map((each) => ({ ...each, look: each.look.split(" ").at(-1) })));
  const newest = times.at(-1);
  const shown = times.map((at, i) => i).slice(-kShownSamples).reverse();
  fillTable("lease-table", shown.map((i) => ({
    key: String(times[i]),
    cells: [age(newest - times[i]), count(history.live[i]), count(history.revoked[i]), count(history.stuck[i])],
  })));
  showPart("samples-more", times.length - shown.length, `The newest ${count(shown.length)} of ${count(times.length)} samples.`);
}

const kHolders = { engine: "engine", shared: "shared text", adapter: "adapter" };
const holderOf = (lease) => (lease.scope in kHolders ? `${kHolders[lease.scope]} ${lease.part}` : lease.tenant);

let chosen; // the lease whose clocks are drawn, once one was chosen

const kSteps = [
  ["t_refuse", "refuse_ns", "c0", "the first poll of the gate that refused", "no unit polled it, or its worker did not report it"],
  ["t_error", "error_ns", "c1", "the typed error was handed to the holder's socket", "no request ran under it"],
  ["t_quiet", "quiet_ns", "c2", "the last unit that could use its memory ended", "not needed, or not over yet"],
  ["t_reuse", "reuse_ns", "c3", "its memory was verified to be empty", "not free yet"],
];

// A clock that is not known is missing.
const clockOf = (lease, field) => lease.clocks[field] ?? -1;

function showTimeline(lease, now) {
  const container = byId("timeline-chart");
  show("timeline-text", true);
  container.hidden = !lease;
  if (!lease) {
    setText(byId("timeline-text"), "There is nothing to draw before a lease is revoked.");
    byId("timeline-steps").replaceChildren();
    return;
  }
  const flip = lease.times.revoked_boottime_ns;
  const fenced = lease.times.fenced_boottime_ns;
  const clocks = kSteps.map(([name, field, look]) => ({ name, ns: clockOf(lease, field), look }));
  drawClocks(container, `Clocks of lease ${lease.lease}`, clocks, fenced === 0 ? -1 : fenced - flip);
  const proof = lease.proof ? `, proof ${lease.proof}` : "";
  setText(byId("timeline-text"), `Lease ${lease.lease} of ${holderOf(lease)} on ${lease.worker}: revoked ${age(now - flip)} ago, reason ${lease.reason}${proof}.`);
  const texts = kSteps.map(([name, field, , happened, missing]) => {
    const ns = clockOf(lease, field);
    return ns < 0 ? `${name}: not known: ${missing}` : `${name}: ${duration(ns)}: ${happened}`;
  });
  if (lease.replaced_by) texts.push(`It continued under lease ${lease.replaced_by}`);
  const list = byId("timeline-steps");
  if (list.dataset.text === texts.join("\n")) return;
  list.dataset.text = texts.join("\n");
  list.replaceChildren(...texts.map((each) => el("li", {}, each)));
}

// The broker's list is cut, too: then the revocations of the leases behind it are not known here.
function partOfRevocations(known, leases, total) {
  const shown = `The newest ${count(Math.min(known, kShownRevocations))} of ${count(known)} revocations`;
  if (leases === total) return `${shown}; brokerctl leases shows all.`;
  return `${shown} among the first ${count(leases)} of ${count(total)} leases; brokerctl leases shows all.`;
}

// The word of a lease that its tenant ended says "revoked", too. These come last, so that they do not push out
// the others.
const kTenantEnds = ["holder_gone", "ttl_expired"];

export function showRevocations({ items, total, past }, status, now) {
  const isTenantEnd = (each) => kTenantEnds.includes(each.reason);
  const known = [...items, ...past]
    .filter((each) => each.times.revoked_boottime_ns > 0 && each.reason !== "released")
    .sort((a, b) => isTenantEnd(a) - isTenantEnd(b) || b.times.revoked_boottime_ns - a.times.revoked_boottime_ns);
  const revoked = known.slice(0, kShownRevocations);
  const missing = known.length - revoked.length + total - items.length;
  showPart("revocations-more", missing, partOfRevocations(known.length, items.length, total));
  const drawn = revoked.find((each) => each.lease === chosen) ?? revoked[0];
  const redraw = () => showRevocations({ items, total, past }, status, now);
  fillTable("revocation-table", revoked.map((each) => ({
    key: each.lease,
    cells: [
      { text: each.lease, button: { isPressed: each === drawn, press: () => { chosen = each.lease; redraw(); } } },
      { text: holderOf(each), look: "name" },
      each.reason,
      { text: each.state, look: "wide" },
      { text: duration(clockOf(each, "reuse_ns")), look: "number" },
    ],
  })));
  byId("revocation-table").hidden = revoked.length === 0;
  show("revocations-none", revoked.length === 0);
  showTimeline(drawn, now);
  fillTable("clock-table", status.clocks.map(({ clock, since_start }) => ({
    key: clock,
    cells: [clock, count(since_start.count), ...["p50_ns", "p99_ns", "max_ns"].map((field) => since_start.count ? duration(since_start[field]) : "–")]
      .map((text, i) => (i === 0 ? text : { text, look: "number" })),
  })));
}

export function showWorkers({ workers }) {
  fillTable("worker-table", workers.map((each) => ({
    key: `${each.worker} ${each.pid}`,
    cells: [
      { text: each.worker, look: "name" }, each.state === "attached" ? "loading its weights" : each.state, { text: each.out_of_service ? `out of service: ${each.out_of_service}` : each.drain, look: "wide" },
      { text: count(each.leases), look: "number" }, { text: count(each.revocations), look: "number" },
      { text: each.arithmetic ? `${each.model} (${each.arithmetic})` : each.model, look: "name wide" },
    ],
  })));
  byId("worker-table").hidden = workers.length === 0;
  show("workers-none", workers.length === 0);
}

// "lease 3.1, state Revoked": the fields of the event in their order, without those that are empty.
function textOf(event) {
  return Object.entries(event)
    .filter(([key, value]) => !["event", "sequence", "at_boottime_ns"].includes(key) && value !== "" && value !== null)
    .map(([key, value]) => `${key} ${key.endsWith("_ns") ? duration(value) : typeof value === "object" ? JSON.stringify(value) : value}`)
    .join(", ");
}

export function showEvents({ items, newest }, now) {
  const kind = byId("event-kind").value;
  const isShown = (each) => (kind.startsWith("-") ? each.event !== kind.slice(1) : !kind || each.event === kind);
  const known = items.filter(isShown);
  const shown = known.slice(-kShownEvents).reverse();
  fillTable("event-table", shown.map((each) => ({
    key: String(each.sequence),
    cells: [each.event, { text: age(now - each.at_boottime_ns), look: "number" }, { text: textOf(each), look: "what" }],
  })));
  byId("event-table").hidden = shown.length === 0;
  show("events-none", shown.length === 0);
  showPart("events-more", known.length - shown.length + newest - items.length,
    `The newest ${count(shown.length)} of ${count(known.length)} events of this kind, from the newest ${count(items.length)} of ${count(newest)}; brokerctl events shows more.`);
}
