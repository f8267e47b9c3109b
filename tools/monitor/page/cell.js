// The hosts of the cell, if the monitor was given one.
import { byId, fillTable, setText, show } from "./dom.js";
import { age, count } from "./format.js";

const kSilent = "silent";

function problemOf({ error, problems = [] }) {
  if (error) return `etcd cannot be read, so the table may be old. ${error.code}: ${error.detail}`;
  return problems.join(" ");
}

// For showAlerts: how many hosts have stopped and are still members.
export const silentHosts = (cell) => (cell.items ?? []).filter((each) => each.state === kSilent).length;

export function showCell(cell) {
  const isKnown = cell.cell !== undefined;
  byId("cell").hidden = !isKnown;
  byId("cell-link").hidden = !isKnown;
  if (!isKnown) return;
  setText(byId("cell-title"), `Hosts of cell ${cell.cell}`);
  const problem = problemOf(cell);
  show("cell-error", problem !== "", problem);
  show("cell-none", cell.items.length === 0 && problem === "");
  byId("cell-table").hidden = cell.items.length === 0;
  const hosts = [...cell.items].sort((a, b) => b.beat_age_ms - a.beat_age_ms || a.host.localeCompare(b.host));
  fillTable("cell-table", hosts.map((each) => ({
    key: each.host,
    cells: [
      { text: each.host, look: "name" },
      each.state,
      { text: `${age(each.beat_age_ms * 1e6)} ago`, look: "number" },
      { text: count(each.tenants), look: "number" },
      { text: count(each.requests), look: "number" },
      { text: count(each.free_blocks), look: "number wide" },
      { text: each.models.join(", "), look: "wide" },
    ],
  })));
}
