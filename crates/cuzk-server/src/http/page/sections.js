// The sections of the status page, each from a part of `/status`.

const KIND_NAMES = {
  porep_seal_commit: "PoRep", snap_deals_update: "Snap deals", window_post_partition: "WindowPoSt",
  winning_post: "WinningPoSt",
};
const kindName = (kind) => KIND_NAMES[kind] ?? kind;
const TIER_NAMES = { hot: "on a device", warm: "in host memory", cold: "on disk" };

// Stages of a job, with the colours that they have in the waterfall.
const JOB_STAGES = [
  ["queue_seconds", "queue", STAGE_COLORS["queue"]],
  ["key_seconds", "key", STAGE_COLORS["key load"]],
  ["synthesis_seconds", "synthesis", STAGE_COLORS["witness"]],
  ["device_seconds", "device", STAGE_COLORS["kernels"]],
  ["finish_seconds", "finish", STAGE_COLORS["finish"]],
];

const seconds = (s) => showTime(s * 1e9);
/** How long ago, in whole seconds. */
const age = (s) => (s < 120 ? `${Math.floor(s)} s` : seconds(Math.floor(s)));
const timeOfDay = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false });
const muted = (text) => element("span", { className: "muted" }, text);
const nothing = (text) => element("p", { className: "muted" }, text);
const plural = (count, one, many) => `${count} ${count === 1 ? one : many}`;

/** A state in words, with a sign that differs in form as well as in colour. */
function badge(text, mood) {
  const sign = { good: "●", busy: "◆", idle: "○", warn: "▲", bad: "✖" }[mood];
  const dot = element("span", { className: "sign", "aria-hidden": "true" }, sign);
  return element("span", { className: `badge ${mood}` }, dot, text);
}

/** A bar that is filled to a share, perhaps with a mark; `label` says the same in words. */
function bar(share, label, mark = null) {
  const width = (part) => `${100 * Math.min(1, Math.max(0, part))}%`;
  const filled = element("i", { style: { width: width(share) } });
  const marked = mark === null ? null : element("b", { style: { left: width(mark) } });
  const now = String(Math.round(100 * Math.min(1, share)));
  const range = { "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": now, "aria-label": label };
  const track = element("div", { className: share > 0.95 ? "track full" : "track", title: label, ...range }, filled);
  track.setAttribute("role", "meter");
  if (marked !== null) track.append(marked);
  return track;
}

const oneLine = (...cells) => element("div", { className: "line" }, ...cells);

/** A table. On a narrow screen a wide one becomes a list of its rows, in which each cell has its head before it. */
function table(name, heads, rows) {
  const head = (text) => element("th", { scope: "col" }, text);
  const cell = (content, n) => element("td", { "data-head": heads[n] }, element("div", {}, ...[content].flat()));
  const row = (cells) => element("tr", {}, ...cells.map(cell));
  const made = element("table", {}, element("thead", {}, element("tr", {}, ...heads.map(head))),
    element("tbody", {}, ...rows.map(row)));
  made.setAttribute("aria-label", name);
  return element("div", { className: heads.length > 6 ? "scroll wide" : "scroll", tabIndex: 0 }, made);
}

const written = new Map();

/** Fills a section if it has changed, so that what a person selects or reads stays. The focus stays in any case. */
function fill(id, source, make) {
  const key = JSON.stringify(source);
  if (written.get(id) === key) return;
  written.set(id, key);
  const section = byId(id);
  const focus = section.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  section.replaceChildren(...[make()].flat());
  if (focus !== undefined) [...section.querySelectorAll("[data-key]")].find((e) => e.dataset.key === focus)?.focus();
}

function showHead(status) {
  const { title, ready, state: service } = status;
  document.title = `${title} – cuzk status`;
  fill("title", title, () => title);
  const mood = ready ? "good" : service === "draining" ? "warn" : "bad";
  fill("state", [service, ready], () => badge(ready || service === "draining" ? service : "not ready", mood));
}

function showNumbers({ proofs, queue, workers, process }) {
  const { jobs, devices } = data.summary;
  const failures = [];
  if (proofs.failed > 0) failures.push(`${proofs.failed} failed`);
  if (proofs.cancelled > 0) failures.push(`${proofs.cancelled} cancelled`);
  if (proofs.verification_failures > 0) failures.push(`${proofs.verification_failures} withheld: not valid`);
  const ages = queue.by_priority.map((p) => p.oldest_seconds ?? 0);
  const oldest = age(Math.max(0, ...ages));
  const waiting = queue.pending === 0 ? "none waits" : `${queue.pending} wait, the oldest for ${oldest}`;
  const perJob = jobs.wall_per_job === null ? "–" : showTime(jobs.wall_per_job);
  const rate = jobs.completed === 0 ? "no job ended in this window" : `${THREE(jobs.per_hour)} jobs an hour`;
  const latency = jobs.latency.count === 0 ? "–" : showTime(jobs.latency.mean);
  const within = jobs.latency.count === 0 ? "of jobs in this window" : `95 % within ${showTime(jobs.latency.p95)}`;
  // A tile has no room for the model, which is named below.
  const busy = devices.slice(0, 8).map((d) => ({
    name: d.name.split(":")[0], share: d.utilization, number: showPercent(d.utilization),
  }));
  const mean = devices.reduce((sum, d) => sum + d.utilization, 0) / Math.max(1, devices.length);
  const tiles = [
    ["Proofs", String(proofs.completed), "since the start", failures.join(" · ") || "none failed"],
    ["Jobs under way", String(queue.in_progress), "", waiting],
    ["Throughput", perJob, "a job", rate],
    ["Latency", latency, "mean", within],
  ];
  const { gpu_workers: threads, partition_workers: partitions } = workers;
  fill("tiles", [tiles, busy, process, workers, failures], () => {
    const made = tiles.map((t) => tile(...t));
    if (failures.length > 0) made[0].classList.add("failures");
    const all = busy.length > 1 ? "mean" : "";
    if (busy.length > 0) made.push(tile("Devices busy", showPercent(mean), all, meters(busy)));
    if (process !== null) {
      const peak = `peak ${showBytes(process.peak_resident_bytes)}`;
      made.push(tile("Memory of the daemon", showBytes(process.resident_bytes), "", peak));
    }
    const note = `and ${plural(threads, "GPU thread", "GPU threads")}`;
    made.push(tile("Partitions at a time", String(partitions), "", note, { title: workers.because }));
    return made;
  });
}

function showDeviceCards(devices) {
  const moods = { healthy: "good", testing: "warn", fenced: "bad", retired: "bad" };
  const card = (d) => {
    const used = d.memory_bytes - d.memory_free_bytes;
    const memory = `${showBytes(used)} of ${showBytes(d.memory_bytes)} in use`;
    const busy = `busy ${showPercent(d.busy)} of the time since the start`;
    const now = d.job === null ? ["idle", d.idle_reason ?? "no reason is stated", "idle"] : ["computes", d.job, "busy"];
    const share = d.memory_bytes > 0 ? used / d.memory_bytes : 0;
    const facts = [`device ${d.index}`, d.backend, d.driver === "" ? null : `driver ${d.driver}`, d.uuid];
    return element("article", { className: "card" },
      oneLine(element("h3", {}, d.name), badge(d.health, moods[d.health] ?? "warn")),
      element("div", { className: "muted small" }, facts.filter((fact) => fact).join(" · ")),
      element("div", { className: "now" }, badge(now[0], now[2]),
        element("span", { className: "cut", title: now[1] }, now[1])),
      oneLine(element("span", {}, "Busy since the start"), muted(showPercent(d.busy))), bar(d.busy, busy),
      oneLine(element("span", {}, "Memory"), muted(memory)), bar(share, memory));
  };
  const none = () => nothing("There is no device.");
  fill("devices", devices, () => (devices.length === 0 ? none() : devices.map(card)));
}

function showPools(pools, keys) {
  const one = (pool) => {
    const { name, reserved_bytes: now, peak_bytes: peak, capacity_bytes: all } = pool;
    const text = all > 0 ? `${showBytes(now)} of ${showBytes(all)}` : showBytes(now);
    const label = `${name}: ${text} reserved, peak ${showBytes(peak)}`;
    const share = (bytes) => (all > 0 ? bytes / all : 0);
    return element("div", { className: "pool" }, oneLine(element("span", {}, name), muted(text)),
      bar(share(now), label, share(peak)), oneLine(element("span", {}), muted(`▴ peak ${showBytes(peak)}`)));
  };
  const key = (k) => [k.circuit, TIER_NAMES[k.tier], showBytes(k.bytes), String(k.users)];
  const heads = ["circuit", "where", "bytes", "users"];
  fill("pools", [pools, keys], () => [
    ...(pools.length === 0 ? [nothing("No pool is known.")] : pools.map(one)),
    element("h3", {}, "Keys"),
    keys.length === 0 ? nothing("No key is loaded.") : table("Keys", heads, keys.map(key)),
  ]);
}

function showQueue({ proofs, queue }) {
  const ages = queue.by_priority.map((p) => (p.oldest_seconds === null ? "–" : age(p.oldest_seconds)));
  const kind = (k, n) => {
    const { completed, failed, cancelled } = proofs.by_kind[n];
    return [kindName(k.kind), ...[k.pending, k.in_progress, completed, failed, cancelled].map(String)];
  };
  const priority = (p, n) => [p.priority, String(p.pending), ages[n]];
  const kinds = ["kind", "waiting", "under way", "proved", "failed", "cancelled"];
  const priorities = ["priority", "waiting", "the oldest for"];
  fill("queue", [proofs, queue.by_kind, queue.by_priority.map((p) => p.pending), ages], () => [
    table("Jobs by kind", kinds, queue.by_kind.map(kind)),
    table("Waiting jobs by priority", priorities, queue.by_priority.map(priority)),
  ]);
}

/** A job's name, which leads to it in the waterfall; below it the caller's name. */
function jobLink({ job, request_id: request }) {
  const find = () => {
    const place = data.jobs.findIndex((_, k) => jobName(k) === job);
    if (place < 0) return;
    selectJob(place);
    chart.scrollIntoView({ block: "center" });
  };
  const link = element("button", { className: "link", title: "Show it in the waterfall", onclick: find }, job);
  link.dataset.key = job;
  return request === "" ? [link] : [link, element("div", { className: "muted small" }, request)];
}

const JOB_MOODS = { queued: "idle", running: "busy", completed: "good", failed: "bad", cancelled: "warn" };
const SHOWN_UNFINISHED = 12;
const SHOWN_ENDED = 25;

function showUnfinished({ unfinished, queue }, now) {
  const row = (j) => {
    const share = j.partitions_done / Math.max(1, j.partitions);
    const done = `${j.partitions_done} of ${j.partitions}`;
    const before = j.position === 0 ? "next" : `${plural(j.position, "job", "jobs")} before it`;
    const news = j.state === "queued" ? before : j.news;
    return [jobLink(j), `${kindName(j.kind)} · ${j.circuit}`, j.priority, badge(j.state, JOB_MOODS[j.state]),
      [bar(share, `${done} partitions proved`), element("span", { className: "small" }, done)], news,
      age(Math.max(0, (now - j.accepted_unix_ms) / 1000))];
  };
  const shown = unfinished.slice(0, SHOWN_UNFINISHED);
  const more = queue.pending + queue.in_progress - shown.length;
  fill("unfinished", [shown, more, Math.floor(now / 1000)], () => [
    shown.length === 0 ? nothing("Nothing to do.") : table("Jobs under way",
      ["job", "proof", "priority", "state", "partitions", "last news", "since"], shown.map(row)),
    more > 0 && shown.length > 0 ? nothing(`and ${more} more`) : "",
  ]);
}

/** Where the time of a job went: a bar, and the same in words. */
function stageBar(times) {
  const all = JOB_STAGES.reduce((sum, [field]) => sum + times[field], 0);
  const parts = JOB_STAGES.filter(([field]) => times[field] > 0);
  const text = parts.map(([field, name]) => `${name} ${seconds(times[field])}`).join(" · ");
  const part = ([field, , background]) =>
    element("i", { style: { width: `${(100 * times[field]) / Math.max(all, 1e-9)}%`, background } });
  const word = ([field, name, color]) => element("span", {},
    element("span", { className: "swatch", style: { background: color }, "aria-hidden": "true" }), `${name} `,
    element("span", { className: "muted" }, seconds(times[field])));
  return [element("div", { className: "bar", title: text, "aria-hidden": "true" }, ...parts.map(part)),
    element("div", { className: "words small" }, ...parts.map(word))];
}

function showEnded({ recent }) {
  const row = (j) => {
    const total = j.ended_unix_ms === null ? "–" : seconds((j.ended_unix_ms - j.accepted_unix_ms) / 1000);
    const why = j.error === "" ? muted("–") : element("div", { className: "cause" }, j.error);
    const ended = j.ended_unix_ms === null ? "–" : timeOfDay(j.ended_unix_ms);
    const outcome = badge(j.state, JOB_MOODS[j.state]);
    const story = j.times === null ? why : stageBar(j.times);
    return [ended, jobLink(j), `${kindName(j.kind)} · ${j.circuit}`, outcome, total, story, j.device || "–"];
  };
  const shown = recent.slice(0, SHOWN_ENDED);
  const heads = ["ended", "job", "proof", "outcome", "total", "where the time went", "device"];
  fill("recent", shown, () =>
    (shown.length === 0 ? nothing("None has ended since the start.") : table("Recent jobs", heads, shown.map(row))));
}

function showErrors({ errors }) {
  const row = (e) => element("li", {}, element("time", {}, timeOfDay(e.at_unix_ms)),
    e.job === "" ? null : element("code", {}, e.job), element("span", { className: "cause" }, e.text));
  const shown = errors.slice(0, SHOWN_ENDED);
  fill("errors", shown, () =>
    (shown.length === 0 ? nothing("None since the start.") : element("ul", {}, ...shown.map(row))));
}

function showFoot(status) {
  const { version, commit, journal, workers } = status;
  const of = `${showBytes(journal.bytes)} of ${showBytes(journal.limit_bytes)}`;
  const parts = [
    `cuzk ${version}${commit === "" ? "" : ` (${commit})`}`,
    `started ${new Date(status.started_unix_ms).toLocaleString([], { hour12: false })}`,
    `up ${age(status.uptime_seconds)}`,
    `journal: ${of}, ${plural(journal.unfinished, "job", "jobs")} unfinished, ${journal.ended} kept`,
    workers.because === "" ? null : `partitions at a time: ${workers.because}`,
  ];
  const link = (href, text) => element("a", { href }, text);
  fill("foot", parts, () => [
    ...parts.filter((part) => part !== null).map((part) => element("span", {}, part)),
    link("/status", "JSON"), link("/metrics", "metrics"),
  ]);
}
