// The alerts of tools/prometheus/rules.yml that one reading of the figures is enough for.
import { silentHosts } from "./cell.js";
import { byId, el, show } from "./dom.js";
import { bytes, count, duration, percent } from "./format.js";

const kPoolNearlyFull = 0.05;
const kWaitingRequests = 100;
const kSlowFirstToken_s = 10;
const kSlowToken_s = 1;
const kRefusedKeysPerMinute = 10;

const many = (number, one) => `${count(number)} ${one}${number === 1 ? "" : "s"}`;

// The hosts of the cell, if the monitor was given one.
function hostRulesOf(cell) {
  const silent = silentHosts(cell);
  return [
    [silent > 0, "LeaseholdCellHostSilent", `${many(silent, "host")} of the cell silent and not expired`, "brokerctl cell hosts"],
    [cell.error, "LeaseholdMonitorWithoutEtcd", "the monitor cannot read etcd", "journalctl -u leasehold-monitor"],
  ];
}

// The ceiling of the cell, if this host is in one.
function cellRulesOf({ cell }) {
  if (!cell) return [];
  const left = cell.ceiling_left_ms;
  return [
    [left > 0 && left < cell.ceiling_age_ms, "LeaseholdCellCeilingSoon", `tenants of the cell stop in ${duration(left * 1e6)} unless a beat arrives`, "journalctl -u leasehold-cell"],
    [left === 0 && cell.tenants > 0, "LeaseholdCellCeilingPassed", "this host runs no tenant of its cell", "journalctl -u leasehold-cell"],
    [!cell.has_agent, "LeaseholdCellAgentAway", "the agent of the cell is not connected", "systemctl status leasehold-cell"],
  ];
}

// [condition, name, text, the command that shows more]
function rulesOf({ status, workers, audit }, figures, cell) {
  const serving = workers.filter((each) => each.state === "ready" && !each.out_of_service).length;
  const free = status.capacity_bytes > 0 ? status.free_bytes / status.capacity_bytes : 1;
  const worst = (field) => Math.max(0, ...figures.map((each) => each[field] ?? 0));
  const sum = (field) => figures.reduce((all, each) => all + each[field], 0);
  return [
    [status.leases_stuck > 0, "LeaseholdLeasesStuck", `${many(status.leases_stuck, "lease")} revoked and not fenced in time`, "brokerctl leases --state Revoked"],
    [status.workers_lost > 0, "LeaseholdWorkerLost", `${many(status.workers_lost, "worker")} lost, which may still run`, "brokerctl workers"],
    [status.workers_out_of_service > 0, "LeaseholdWorkerOutOfService", `${many(status.workers_out_of_service, "worker")} without weights`, "brokerctl workers"],
    [serving === 0, "LeaseholdNoWorker", "no worker serves", "brokerctl workers --wait ready"],
    [status.quarantined_bytes > 0, "LeaseholdMemoryQuarantined", `${bytes(status.quarantined_bytes)} of memory quarantined`, "brokerctl quarantine"],
    [status.tampered > 0, "LeaseholdTableTampered", `a process changed ${many(status.tampered, "slot")} of the lease table`, "brokerctl events"],
    [status.journal_faults > 0, "LeaseholdJournalFaults", `${many(status.journal_faults, "decision")} not journaled at once`, "brokerctl status"],
    [audit?.key_is_unlinked, "LeaseholdAuditKeyLost", "the key of the audit chain was lost, and auditors do not know the new one", "brokerctl doctor"],
    [status.device_state === "lost", "LeaseholdDeviceLost", `the agent of ${status.device} has exited`, "brokerctl status"],
    [free === 0, "LeaseholdPoolFull", "no KV memory is free", "brokerctl tenants"],
    [free > 0 && free < kPoolNearlyFull, "LeaseholdPoolNearlyFull", `${percent(free)} of the KV memory is free`, "brokerctl tenants"],
    [sum("waiting") > kWaitingRequests, "LeaseholdRequestsWait", `${many(sum("waiting"), "request")} waiting for the batch`, "brokerctl top"],
    [worst("first_p99") > kSlowFirstToken_s, "LeaseholdFirstTokenSlow", "one request in a hundred waits too long for its first token", "brokerctl top"],
    [worst("inter_p99") > kSlowToken_s, "LeaseholdTokensSlow", "one token in a hundred comes too late", "brokerctl watch --steps"],
    [sum("refusedKeysPerMinute") > kRefusedKeysPerMinute, "LeaseholdKeysRefused", "many requests have an API key that is not valid", "brokerctl keys"],
    ...cellRulesOf(status),
    ...hostRulesOf(cell),
  ];
}

// Returns the number of alerts.
export function showAlerts(overview, figures, cell) {
  const alerts = rulesOf(overview, figures, cell).filter(([isSo]) => isSo);
  const list = byId("alert-list");
  const text = alerts.map(([, name, what]) => `${name}: ${what}`).join("\n");
  if (list.dataset.text !== text) {
    list.dataset.text = text;
    list.replaceChildren(...alerts.map(([, name, what, command]) =>
      el("li", {}, el("strong", {}, name), `: ${what}; run `, el("code", {}, command))));
  }
  show("alerts", alerts.length > 0);
  return alerts.length;
}
