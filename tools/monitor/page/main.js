// Asks the monitor while the page is visible, and shows the answers.
import { read } from "./api.js";
import { byId, setText, show } from "./dom.js";
import { showActivity } from "./activity.js";
import { showAlerts } from "./alerts.js";
import { showCell } from "./cell.js";
import { showMemory } from "./memory.js";
import { figuresNow, showRequests } from "./requests.js";
import { ratesNow, showRates, showTenants } from "./tenants.js";
import { showEvents, showHistory, showRevocations, showTotals, showWorkers } from "./sections.js";

const kInterval_ms = 2000;
const kSlowRounds = 3; // the history and the map of extents are asked for in every third round

const data = {};
let round = 0;
let rates;
let timer;
let isAsking = false;
let isPaused = false;

function showState(state, text) {
  const element = byId("state");
  if (element.dataset.state === state) return;
  element.dataset.state = state;
  setText(element, text);
  setText(byId("announcement"), text); // a screen reader hears changes, not every answer
}

function showAll() {
  if (!data.overview) return;
  const { overview } = data;
  const now = overview.now_boottime_ns;
  const figures = figuresNow(data.workers, now);
  showTotals(overview, rates, figures, showAlerts(overview, figures, data.cell));
  showRequests(data.workers, figures);
  showActivity(data.requests);
  showHistory(data.history);
  showRates(data.history);
  showRevocations(data.leases, overview.status, now);
  showTenants(overview, rates);
  showMemory(data.extents, new Map(data.leases.items.map((each) => [each.lease, each])), overview.status);
  showWorkers(overview);
  showCell(data.cell);
  showEvents(data.events, now);
  setText(byId("version"), `Leasehold ${overview.version}.`);
}

async function ask() {
  const names = ["leases", "events", "workers", "requests", "cell"];
  if (round % kSlowRounds === 0 || !data.extents) names.push("extents", "history");
  const overview = await read("overview"); // first: while the broker is down, nothing else is asked
  const answers = await Promise.all(names.map(read));
  names.forEach((name, i) => (data[name] = answers[i]));
  data.overview = overview;
  rates = ratesNow(overview);
  round += 1;
}

async function cycle() {
  clearTimeout(timer);
  if (isAsking || isPaused || document.visibilityState !== "visible") return;
  isAsking = true;
  try {
    await ask();
    show("problem", false);
    showAll();
    if (!isPaused) showState("live", "Live");
    setText(byId("updated"), `at ${new Date().toLocaleTimeString()}`);
  } catch (error) {
    show("problem", true, `${error.message} The page shows the last answer and asks again.`);
    showState("down", "No answer");
  } finally {
    isAsking = false;
    document.documentElement.dataset.rounds = String(round);
    if (!isPaused) timer = setTimeout(cycle, kInterval_ms);
  }
}

function pause() {
  isPaused = !isPaused;
  byId("pause").setAttribute("aria-pressed", String(isPaused));
  if (isPaused) showState("paused", "Paused");
  cycle();
}

byId("pause").addEventListener("click", pause);
byId("event-kind").addEventListener("change", showAll);
document.addEventListener("visibilitychange", cycle);
let redraw;
addEventListener("resize", () => {
  clearTimeout(redraw);
  redraw = setTimeout(showAll, 100);
});
cycle();
