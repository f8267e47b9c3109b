// The KV map: one square for each extent, coloured by its owner.
import { byId, colourOf, drawing, fillTable, legend, show, showPart, svg, widthOf } from "./dom.js";
import { bytes, count, percent } from "./format.js";

const kFree = "free";

// The tenant of the extent's lease, else what is known of it.
export function ownerOf(extent, leases) {
  if (extent.state === "Free" || !extent.lease) return kFree;
  const lease = leases.get(extent.lease);
  if (!lease) return `lease ${extent.lease}`;
  return lease.tenant || `shared ${lease.scope === "adapter" ? "adapter" : "text"} ${lease.part}`;
}

const pools = (extents) => ["kv", "swap"].map((pool) => [pool, extents.filter((each) => each.pool === pool)]);

function drawMap(container, extents, lookOf, description) {
  const width = widthOf(container);
  const side = Math.max(6, Math.min(26, Math.floor(Math.sqrt((width * 220) / Math.max(1, extents.length)))));
  const columns = Math.floor(width / side);
  const parts = [];
  let top = 0;
  for (const [pool, members] of pools(extents)) {
    if (members.length === 0) continue;
    parts.push(svg("text", { class: "strong", x: 0, y: top + 14 }, `${pool}: ${count(members.length)} extents of ${bytes(members[0].size_bytes)}`));
    top += 22;
    members.forEach((each, i) => {
      const what = [`extent ${each.extent}`, each.state, each.owner];
      if (each.lease) what.push(`lease ${each.lease}`);
      const place = { x: (i % columns) * side, y: top + Math.floor(i / columns) * side, width: side - 1, height: side - 1 };
      const look = each.state === "Quarantined" ? "quarantined" : "";
      parts.push(svg("rect", { class: `bar ${lookOf(each.owner)} ${look}`, ...place }, svg("title", {}, what.join(", "))));
    });
    top += Math.ceil(members.length / columns) * side + 8;
  }
  drawing(container, width, Math.max(top, 8), "KV memory by extent and owner", description, parts);
}

function ownerRows(extents) {
  const owners = new Map();
  for (const each of extents) {
    const key = `${each.pool} ${each.owner}`;
    const owner = owners.get(key) ?? { ...each, extents: 0, bytes: 0, states: new Map() };
    owners.set(key, owner);
    owner.extents += 1;
    owner.bytes += each.size_bytes;
    owner.states.set(each.state, (owner.states.get(each.state) ?? 0) + 1);
  }
  return [...owners].sort(([, a], [, b]) => b.bytes - a.bytes);
}

let drawn = "";

export function showMemory({ items, total }, leases, status) {
  const extents = items.map((each) => ({ ...each, owner: ownerOf(each, leases) }));
  const container = byId("memory-chart");
  // Thousands of squares are drawn again only when one of them changed.
  const state = JSON.stringify([extents.map((each) => [each.extent, each.state, each.owner]), total, widthOf(container)]);
  if (state === drawn) return;
  drawn = state;
  const rows = ownerRows(extents);
  const capacities = { kv: status.capacity_bytes, swap: status.swap.capacity_bytes };
  const shareOf = (each) => (capacities[each.pool] > 0 ? each.bytes / capacities[each.pool] : 0);
  const owners = [...new Set(extents.map((each) => each.owner))].filter((each) => each !== kFree).sort();
  const lookOf = (owner) => (owner === kFree ? kFree : colourOf(owner));
  const says = rows.map(([, each]) => `${each.owner} ${count(each.extents)} of ${each.pool}`).join(", ");
  container.hidden = extents.length === 0;
  drawMap(container, extents, lookOf, `Extents by owner: ${says || "none"}.`);
  const named = owners.slice(0, 12).map((each) => ({ name: each, look: lookOf(each) }));
  if (owners.length > 12) named.push({ name: `${owners.length - 12} more in the table`, look: "rest" });
  if (extents.some((each) => each.state === "Quarantined")) named.push({ name: "outlined: quarantined", look: "alarm" });
  legend(byId("memory-legend"), extents.length === 0 ? [] : [...named, { name: kFree, look: kFree }]);
  fillTable("owner-table", rows.map(([key, each]) => ({
    key,
    cells: [
      { text: each.owner, look: "name" },
      each.pool,
      { text: count(each.extents), look: "number" },
      { text: bytes(each.bytes), look: "number" },
      { text: percent(shareOf(each)), share: shareOf(each) },
      [...each.states].map(([name, number]) => `${name} ${count(number)}`).join(", "),
    ],
  })));
  show("memory-none", extents.length === 0);
  showPart("memory-more", total - items.length, `The first ${count(items.length)} of ${count(total)} extents; brokerctl extents shows all.`);
}
