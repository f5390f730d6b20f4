// Polls the daemon, and says so when it does not answer or is another process than before.
// `#minutes=5&theme=dark` in the address chooses what is shown at first.

const RETRY_MS = 2000;
const PATIENCE_MS = 10000;
const live = { started: null, lostAt: null, timer: 0, asking: false, legend: "", jobs: "", inspected: "" };

const minutes = () => Number(byId("minutes").value);
/** The longer the window, the less a second changes. */
const intervalMs = () => Math.max(1000, minutes() * 500);

function notice(id, mood, text, action = null) {
  const old = byId(id);
  if (old?.firstChild.nextSibling.textContent === text) return;
  const sign = element("span", { className: "sign", "aria-hidden": "true" }, mood === "bad" ? "✖" : "▲");
  const made = element("div", { id, className: `notice ${mood}` }, sign, element("span", {}, text), action);
  if (old === null) byId("notices").append(made);
  else old.replaceWith(made);
}

const unnotice = (id) => byId(id)?.remove();

/** Shows the next state of a run that goes on. A part that is looked at stays where it is, or stays at the end. */
function showTimeline(next, same) {
  if (state.held) return;
  const before = data;
  const [from, to] = [state.from, state.to];
  const whole = before === null || !same || (from <= 0 && to >= before.wall);
  load(next);
  state.zero = data.wall;
  if (whole) {
    show(0, data.wall);
  } else if (to >= before.wall) {
    show(data.wall - (to - from), data.wall);
  } else {
    const shift = before.start - data.start;
    show(from + shift, to + shift);
  }
  const legend = JSON.stringify(data.stages);
  if (live.legend !== legend) showLegend();
  const jobs = JSON.stringify([data.jobs.map((_, k) => jobName(k)), state.job]);
  if (live.jobs !== jobs && document.activeElement !== byId("job")) showJobs();
  const inspected = state.job < 0 ? "" : JSON.stringify([data.jobs[state.job], spansOfJob[state.job].length]);
  if (live.inspected !== inspected) selectJob(state.job);
  Object.assign(live, { legend, jobs, inspected });
  layOut();
  requestDraw();
  showPointed();
}

function showAll({ status, timeline }) {
  const restarted = live.started !== null && live.started !== status.started_unix_ms;
  const same = live.started === status.started_unix_ms;
  live.started = status.started_unix_ms;
  showTimeline(timeline, same);
  showHead(status);
  showNumbers(status);
  showDeviceCards(status.devices);
  showPools(status.pools, status.keys);
  showQueue(status);
  showUnfinished(status, status.started_unix_ms + status.uptime_seconds * 1000);
  showEnded(status);
  showErrors(status);
  showFoot(status);
  if (restarted) {
    const at = timeOfDay(status.started_unix_ms);
    const close = element("button", { onclick: () => unnotice("restarted") }, "Dismiss");
    notice("restarted", "warn", `The daemon was restarted at ${at}. Its counters began anew.`, close);
  }
  if (status.ready) unnotice("unready");
  else notice("unready", status.state === "draining" ? "warn" : "bad", `Not ready: ${status.not_ready_because}.`);
}

function found() {
  live.lostAt = null;
  unnotice("lost");
  document.body.classList.remove("stale");
  fill("connection", "live", () => badge("live", "good"));
}

function lost(why) {
  live.lostAt ??= Date.now();
  const since = timeOfDay(live.lostAt);
  const shown = live.started === null ? "" : " What is shown is from before.";
  notice("lost", "bad", `The daemon does not answer since ${since} (${why}).${shown} Trying again every 2 seconds.`);
  document.body.classList.add("stale");
  fill("connection", "lost", () => badge("no connection", "bad"));
}

async function ask() {
  if (live.asking) return;
  live.asking = true;
  clearTimeout(live.timer);
  let wait = RETRY_MS;
  try {
    const how = { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) };
    const answer = await fetch(`/live?minutes=${minutes()}`, how);
    if (answer.status === 401) {
      const again = element("button", { onclick: () => location.reload() }, "Sign in");
      notice("lost", "bad", "The token is not valid any more.", again);
      live.asking = false;
      return;
    }
    if (!answer.ok) throw new Error(`it answers with ${answer.status}`);
    showAll(await answer.json());
    found();
    wait = intervalMs();
    document.documentElement.dataset.ready = "true";
  } catch (error) {
    lost(error instanceof TypeError ? "no connection" : error.message);
  }
  live.asking = false;
  if (!document.hidden) live.timer = setTimeout(ask, wait);
}

function showWindow() {
  byId("as-page").href = `/waterfall?minutes=${minutes()}`;
  byId("as-trace").href = `/timeline?minutes=${minutes()}`;
}

function start() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const offered = [...byId("minutes").options].map((option) => option.value);
  if (offered.includes(wanted.get("minutes"))) byId("minutes").value = wanted.get("minutes");
  setTheme(wanted.get("theme"));
  state.folded = new Set(["Waiting partitions", "Memory"]); // the sections below say it, too
  listenToPointer();
  listenToOverview();
  listenToKeys();
  byId("minutes").onchange = () => {
    live.started = null; // so that all of the new window is shown
    showWindow();
    ask();
  };
  document.addEventListener("visibilitychange", () => !document.hidden && ask());
  showWindow();
  ask().then(listenToSize);
}

start();
