// The requests that run or wait now, as the workers list them.
import { byId, fillTable, show, showPart } from "./dom.js";
import { age, count } from "./format.js";

const kShown = 100;

export function showActivity({ items, more, unreachable }) {
  const oldest = [...items].sort((a, b) => b.age_ms - a.age_ms).slice(0, kShown);
  fillTable("activity-table", oldest.map((each) => ({
    key: `${each.worker} ${each.id}`,
    cells: [
      { text: each.id, look: "name" }, { text: each.worker, look: "name wide" },
      each.state.replace("_", " ") + (each.detached ? ", detached" : ""),
      { text: each.prompt_tokens === 0 ? "–" : count(each.prompt_tokens), look: "number wide" },
      each.max_emitted_tokens === 0
        ? { text: count(each.emitted_tokens) }
        : { text: `${count(each.emitted_tokens)} / ${count(each.max_emitted_tokens)}`, share: each.emitted_tokens / each.max_emitted_tokens },
      { text: age(each.age_ms * 1e6), look: "number" },
    ],
  })));
  byId("activity-table").hidden = items.length === 0;
  show("activity-none", items.length === 0 && unreachable.length === 0);
  show("activity-errors", unreachable.length > 0, unreachable.map((each) => `Worker ${each.worker}: ${each.detail}`).join(" "));
  const missing = more ? 1 : items.length - oldest.length;
  showPart("activity-more", missing, `The oldest ${oldest.length} are shown; brokerctl requests lists all.`);
}
