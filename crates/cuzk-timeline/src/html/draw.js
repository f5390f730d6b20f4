// Rows, and drawing them.

const AXIS = 24;
const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif';
const chart = byId("chart");
const [base, overlay, overview] = [byId("base"), byId("overlay"), byId("overview")];

const GROUPS = [
  { kind: "device", name: "Devices", height: 34 },
  { kind: "transfer", name: "Transfers", height: 16 },
  { kind: "synthesis", name: "Synthesis", height: 16 },
  { kind: "finish", name: "Finish", height: 16 },
  { kind: "waiting", name: "Waiting partitions", height: 44 },
];

let rows = [];
let size = { width: 800, height: 400 };
let gutter = 192; // where the names are

/** Puts the rows below each other: for each group a head, then its tracks, unless it is folded. */
function layOut() {
  rows = [];
  let y = AXIS;
  const put = (row, height) => {
    rows.push({ ...row, y, height });
    y += height;
  };
  const devices = tracks.filter((track) => track.kind === "device");
  const busy = (track) => showPercent(data.summary.devices[devices.indexOf(track)].utilization);
  for (const group of GROUPS) {
    const own = tracks.filter((track) => track.kind === group.kind);
    if (own.length === 0) continue;
    put({ type: "head", group: group.name, count: own.length }, 22);
    if (state.folded.has(group.name)) continue;
    const usual = own.length > 24 && group.kind !== "device" ? group.height / 2 : group.height;
    for (const track of own) {
      if (group.kind === "waiting") {
        // Apart, because what is not admitted would hide the little that is.
        track.waits ??= countsOf(track);
        const queued = track.waits.filter((c) => stages[c.stage].label === "queue");
        const admitted = track.waits.filter((c) => !queued.includes(c));
        for (const [name, waits] of [["for admission", queued], ["admitted", admitted]]) {
          const note = `at most ${peakOf(track, waits)}`;
          if (waits.length > 0) put({ type: "counts", track, waits, name, note }, group.height);
        }
      } else {
        const lanes = track.spansOf.length;
        const lane = Math.max(4, Math.min(usual, (3 * usual) / lanes));
        const note = group.kind === "device" ? `${busy(track)} busy` : "";
        put({ type: "spans", track, name: track.name, note, lane }, lane * lanes + 4);
      }
    }
  }
  if (data.pools.length > 0) {
    put({ type: "head", group: "Memory", count: data.pools.length }, 22);
    if (!state.folded.has("Memory")) {
      data.pools.forEach((pool, k) => {
        const peak = data.summary.pools[k].peak;
        const top = Math.max(pool.capacity, peak, 1) * 1.06;
        const of = pool.capacity > 0 ? ` of ${showBytes(pool.capacity)}` : "";
        const height = data.pools.length > 5 ? 38 : 58;
        put({ type: "memory", pool, name: pool.name, note: `peak ${showBytes(peak)}${of}`, top }, height);
      });
    }
  }
  size.height = y + 6;
}

const rowAt = (y) => rows.find((row) => y >= row.y && y < row.y + row.height) ?? null;
const plotWidth = () => Math.max(50, size.width - gutter - 10);
const xOf = (moment) => gutter + ((moment - state.from) / (state.to - state.from)) * plotWidth();
const momentAt = (x) => state.from + ((x - gutter) / plotWidth()) * (state.to - state.from);
/** A moment, as seen from the one that is written as 0. */
const showAt = (moment, step) => showMoment(moment - state.zero, step);
const perPixel = () => (state.to - state.from) / plotWidth();

/** The theme that is wished for, or else the system's. */
function setTheme(wish) {
  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  const theme = ["dark", "light"].includes(wish) ? wish : dark ? "dark" : "light";
  document.documentElement.dataset.theme = theme;
  const style = getComputedStyle(document.documentElement);
  for (const name of ["back", "panel", "text", "muted", "line", "row", "accent", "bad"]) {
    state.theme[name] = style.getPropertyValue(`--${name}`).trim();
  }
  hatchings.clear();
}

/** Fits a canvas to its place and the screen's pixels, and gives its context, cleared. */
function prepared(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  canvas.style.height = `${height}px`;
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  g.font = FONT;
  g.textBaseline = "middle";
  return g;
}

const hatchings = new Map();

/** Diagonal lines on a faint ground. */
function hatching(g, color) {
  if (!hatchings.has(color)) {
    const tile = element("canvas", { width: 16, height: 16 });
    const t = tile.getContext("2d");
    t.fillStyle = `${color}1c`;
    t.fillRect(0, 0, 16, 16);
    t.strokeStyle = `${color}a0`;
    t.lineWidth = 2.6;
    t.beginPath();
    for (const x of [-16, -8, 0, 8, 16, 24]) t.moveTo(x, 18), t.lineTo(x + 18, 0);
    t.stroke();
    const pattern = g.createPattern(tile, "repeat");
    pattern.setTransform(new DOMMatrix().scale(0.5));
    hatchings.set(color, pattern);
  }
  return hatchings.get(color);
}

/** Text that is cut to the width, with an ellipsis; nothing, where not even eight letters fit. */
function fitText(g, text, x, y, width) {
  const own = g.measureText(text).width;
  if (own > width) {
    const letters = Math.floor((text.length * width) / own) - 1;
    if (letters < 8) return;
    text = `${text.slice(0, letters)}…`;
  }
  g.fillText(text, x, y);
}

/** The first of several texts that fits, or none. */
function fitOneOf(g, texts, x, y, width) {
  const text = texts.find((t) => g.measureText(t).width <= width);
  if (text !== undefined) g.fillText(text, x, y);
}

/** Round steps of time such that there are about `count` of them. */
function niceStep(length, count) {
  const raw = length / count;
  const seconds = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
  if (raw >= 1e9) return (seconds.find((s) => s * 1e9 >= raw) ?? 86400 * Math.ceil(raw / 86400e9)) * 1e9;
  const power = 10 ** Math.floor(Math.log10(Math.max(raw, 1)));
  return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) ?? 10 * power;
}

function draw() {
  const { theme } = state;
  const g = prepared(base, size.width, size.height);
  const step = niceStep(state.to - state.from, plotWidth() / 110);
  const ticks = [];
  const first = Math.ceil((state.from - state.zero) / step) * step;
  for (let t = first; t <= state.to - state.zero; t += step) ticks.push(t + state.zero);

  for (const row of rows) {
    if (row.type === "head") {
      g.fillStyle = theme.row;
      g.fillRect(0, row.y, size.width, row.height);
    }
    g.fillStyle = theme.line;
    g.fillRect(0, row.y + row.height - 1, size.width, 1);
  }
  g.fillStyle = theme.line;
  for (const t of ticks) g.fillRect(Math.round(xOf(t)), AXIS - 5, 1, size.height);

  g.save();
  g.beginPath();
  g.rect(gutter, 0, size.width - gutter - 10, size.height);
  g.clip();
  for (const row of rows) {
    if (row.type === "spans") drawSpans(g, row);
    if (row.type === "counts") drawCounts(g, row);
    if (row.type === "memory") drawMemory(g, row);
  }
  if (state.job >= 0) drawJob(g);
  g.restore();

  g.fillStyle = theme.muted;
  g.textAlign = "center";
  const inside = (x) => x > gutter + 12 && x < size.width - 30;
  for (const t of ticks) if (inside(xOf(t))) g.fillText(showAt(t, step), xOf(t), 11);
  g.textAlign = "left";
  for (const row of rows) drawName(g, row);
  g.fillStyle = theme.line;
  g.fillRect(gutter - 1, AXIS, 1, size.height);
  drawOverview();
  drawOverlay();
}

function drawName(g, row) {
  const { theme } = state;
  const middle = row.y + row.height / 2;
  if (row.type === "head") {
    g.font = `600 ${FONT}`;
    g.fillStyle = theme.muted;
    g.fillText(`${state.folded.has(row.group) ? "▸" : "▾"} ${row.group}`, 12, middle);
    g.font = FONT;
    if (row.count > 1) g.fillText(String(row.count), 24 + g.measureText(`▾ ${row.group}`).width * 1.08, middle);
    return;
  }
  g.fillStyle = theme.text;
  const two = row.note !== "" && row.height >= 34;
  fitText(g, row.name, 24, two ? middle - 7 : middle, gutter - 34);
  if (row.note === "") return;
  g.fillStyle = theme.muted;
  fitText(g, row.note, 24, middle + 7, gutter - 34);
}

/** What may be written in a span, longest first: the end of a job's name tells more than its begin. */
function spanTexts(i, kind) {
  const stage = stages[spans.stage[i]].label;
  const circuit = data.circuits[spans.circuit[i]];
  if (spans.job[i] < 0) return circuit === undefined ? [stage] : [`${stage} · ${circuit}`, stage];
  const [name, number] = [jobName(spans.job[i]), `#${spans.partition[i]}`];
  const partition = [`${name} ${number}`, ...(name.length > 6 ? [`…${name.slice(-4)} ${number}`] : []), number];
  return kind === "device" || kind === "transfer" ? [...partition.map((p) => `${stage} · ${p}`), stage] : partition;
}

function drawSpans(g, row) {
  const { track, lane } = row;
  const { theme, from, to } = state;
  if (track.kind === "device") drawGaps(g, row);
  const height = Math.max(2, lane - (lane > 8 ? 2 : 1));
  const texts = [];
  const drawOne = (i) => {
    const { color, ink } = stages[spans.stage[i]];
    const [x, end, y] = [xOf(spans.start[i]), xOf(spanEnd(i)), row.y + 2 + spans.lane[i] * lane];
    const width = Math.max(end - x - (end - x > 4 ? 1 : 0), 1);
    g.fillStyle = color;
    if (width > 6) {
      g.beginPath();
      g.roundRect(x, y, width, height, 2.5);
      g.fill();
    } else {
      g.fillRect(x, y, width, height);
    }
    if (width > 22 && height >= 12) texts.push([i, x, y + height / 2, end, ink]);
    return x + width;
  };
  const writeTexts = () => {
    for (const [i, x, y, end, ink] of texts.splice(0)) {
      g.fillStyle = ink;
      const left = Math.max(x, gutter) + 4;
      fitOneOf(g, spanTexts(i, track.kind), left, y + 0.5, Math.min(end, size.width - 10) - left - 3);
    }
  };
  g.globalAlpha = state.job < 0 ? 1 : 0.13;
  for (const own of track.spansOf) {
    let k = firstWhere(own.length, (n) => spanEnd(own[n]) >= from);
    while (k < own.length && spans.start[own[k]] <= to) {
      const i = own[k++];
      if (!stages[spans.stage[i]].shown) continue;
      const right = drawOne(i);
      // Of what is narrower than a pixel, one is drawn a pixel: go on behind it.
      const behind = momentAt(right - 0.3);
      if (spanEnd(i) < behind) k = firstWhere(own.length, (n) => spanEnd(own[n]) > behind, k);
    }
  }
  if (state.job < 0) writeTexts();
  texts.length = 0;
  g.globalAlpha = 1;
  const visible = (i) => spans.start[i] <= to && spanEnd(i) >= from && stages[spans.stage[i]].shown;
  if (state.job >= 0) {
    spansOfJob[state.job].filter((i) => spans.track[i] === track.id && visible(i)).forEach(drawOne);
    writeTexts();
  }
  // Those that did not end well are never left out.
  for (const i of track.notOk.filter(visible)) {
    const x = xOf(spans.start[i]);
    g.strokeStyle = theme.bad;
    g.lineWidth = 2;
    g.setLineDash(spans.outcome[i] === 2 ? [4, 3] : []);
    g.strokeRect(x, row.y + 3 + spans.lane[i] * lane, Math.max(xOf(spanEnd(i)) - x - 1, 2), height - 2);
  }
  g.setLineDash([]);
}

function drawGaps(g, row) {
  const own = row.track.idle;
  g.globalAlpha = state.job < 0 ? 1 : 0.35;
  for (let k = firstWhere(own.length, (n) => own[n].start + own[n].duration >= state.from); k < own.length; k++) {
    const gap = own[k];
    if (gap.start > state.to) break;
    const [x, end] = [xOf(gap.start), xOf(gap.start + gap.duration)];
    const [y, height] = [row.y + 4, row.height - 8];
    g.fillStyle = hatching(g, reasonColor(gap.label));
    g.fillRect(x, y, Math.max(end - x, 0.6), height);
    if (end - x < 40) continue;
    const left = Math.max(x, gutter) + 6;
    const room = Math.min(end, size.width - 10) - left - 6;
    const [width, middle] = [g.measureText(gap.label).width, row.y + row.height / 2];
    if (width > room) continue;
    g.fillStyle = state.theme.panel;
    g.beginPath();
    g.roundRect(left - 3, middle - 8, width + 6, 16, 3);
    g.fill();
    g.fillStyle = state.theme.text;
    g.fillText(gap.label, left, middle + 0.5);
  }
  g.globalAlpha = 1;
}

function drawCounts(g, row) {
  const shown = row.waits.filter((c) => stages[c.stage].shown);
  const scale = (row.height - 10) / Math.max(1, peakOf(row.track, shown));
  const bottom = row.y + row.height - 2;
  g.globalAlpha = state.job < 0 ? 0.9 : 0.3;
  for (let x = gutter; x < size.width - 10; x++) {
    const moment = momentAt(x + 0.5);
    let y = bottom;
    if (moment < 0 || moment > data.wall) continue;
    for (const { stage, at, value } of shown.toReversed()) {
      const height = stepAt(at, value, moment) * scale;
      if (height === 0) continue;
      g.fillStyle = stages[stage].color;
      g.fillRect(x, y - height, 1, height);
      y -= height;
    }
  }
  g.globalAlpha = 1;
}

function drawMemory(g, row) {
  const { at, in_use: value, capacity } = row.pool;
  const { theme } = state;
  const yOf = (bytes) => row.y + row.height - 2 - (bytes / row.top) * (row.height - 6);
  const line = new Path2D();
  const first = Math.max(0, firstWhere(at.length, (k) => at[k] > state.from) - 1);
  let [pixel, low, high] = [null, 0, 0];
  let last = null;
  const flush = () => {
    if (pixel === null) return;
    line.lineTo(pixel, yOf(low)), line.lineTo(pixel, yOf(high)), line.lineTo(pixel, yOf(last));
  };
  for (let k = first; k < at.length && at[k] <= state.to; k++) {
    const x = Math.max(gutter - 1, xOf(at[k]));
    if (last === null) line.moveTo(x, yOf(value[k]));
    if (pixel !== null && x - pixel < 1) {
      [low, high] = [Math.min(low, value[k]), Math.max(high, value[k])];
    } else {
      flush();
      if (last !== null) line.lineTo(x, yOf(last));
      [pixel, low, high] = [x, value[k], value[k]];
    }
    last = value[k];
  }
  if (last === null) return;
  flush();
  const end = Math.min(xOf(data.wall), size.width);
  line.lineTo(end, yOf(last));
  const area = new Path2D(line);
  area.lineTo(end, row.y + row.height - 2);
  area.lineTo(Math.max(gutter - 1, xOf(at[first])), row.y + row.height - 2);
  g.fillStyle = `${theme.accent}2c`;
  g.fill(area);
  g.strokeStyle = theme.accent;
  g.lineWidth = 1.4;
  g.stroke(line);
  if (capacity === 0) return;
  g.strokeStyle = theme.bad;
  g.lineWidth = 1;
  g.setLineDash([5, 4]);
  g.beginPath();
  g.moveTo(gutter, yOf(capacity)), g.lineTo(size.width, yOf(capacity));
  g.stroke();
  g.setLineDash([]);
}

/** Of the selected job: the way of each partition from row to row. */
function drawJob(g) {
  const placeOf = new Map(rows.filter((row) => row.type === "spans").map((row) => [row.track.id, row]));
  const yOf = (i) => {
    const row = placeOf.get(spans.track[i]);
    return row === undefined ? null : row.y + 2 + (spans.lane[i] + 0.5) * row.lane;
  };
  const last = new Map();
  g.strokeStyle = state.theme.text;
  g.lineWidth = 1;
  g.globalAlpha = 0.55;
  for (const i of spansOfJob[state.job]) {
    const y = yOf(i);
    if (y === null || !stages[spans.stage[i]].shown) continue;
    const before = last.get(spans.partition[i]);
    last.set(spans.partition[i], i);
    if (before === undefined || spans.track[before] === spans.track[i]) continue;
    const [x0, y0, x1] = [xOf(spanEnd(before)), yOf(before), xOf(spans.start[i])];
    const bend = Math.max(10, Math.abs(x1 - x0) / 2);
    g.beginPath();
    g.moveTo(x0, y0), g.bezierCurveTo(x0 + bend, y0, x1 - bend, y, x1, y);
    g.stroke();
  }
  g.globalAlpha = 1;
}

let utilizationCurve = null;

/** How many of the devices compute, over the whole run; above it, the ends of jobs. */
function drawOverview() {
  const { theme } = state;
  const [width, height] = [size.width, 46];
  const g = prepared(overview, width, height);
  const plot = plotWidth();
  const wall = Math.max(1, data.wall);
  if (utilizationCurve?.length !== Math.ceil(plot)) {
    const idle = new Float64Array(Math.ceil(plot));
    const devices = tracks.filter((track) => track.kind === "device");
    for (const gap of devices.flatMap((track) => track.idle)) {
      const [a, b] = [(gap.start / wall) * plot, ((gap.start + gap.duration) / wall) * plot];
      for (let x = Math.max(0, Math.floor(a)); x < Math.min(b, idle.length); x++) {
        idle[x] += Math.min(b, x + 1) - Math.max(a, x);
      }
    }
    utilizationCurve = idle.map((x) => (devices.length === 0 ? 0 : Math.max(0, 1 - x / devices.length)));
  }
  g.fillStyle = theme.muted;
  g.fillText("overview", 12, 16);
  g.fillText("devices busy", 12, 30);
  g.fillStyle = theme.accent;
  g.globalAlpha = 0.55;
  utilizationCurve.forEach((busy, x) => g.fillRect(gutter + x, height - 2 - busy * 32, 1, busy * 32));
  g.globalAlpha = 1;
  for (const [k, job] of data.jobs.entries()) {
    if (job.ended === null) continue;
    g.fillStyle = job.outcome === "completed" ? theme.text : theme.bad;
    const tall = k === state.job ? 11 : 6;
    g.fillRect(gutter + (job.ended / wall) * plot, 2, 1.5, tall);
  }
  const [from, to] = [state.from, state.to].map((t) => gutter + (t / wall) * plot);
  if (state.from > 0 || state.to < wall) {
    g.fillStyle = theme.back;
    g.globalAlpha = 0.66;
    g.fillRect(gutter, 0, from - gutter, height);
    g.fillRect(to, 0, gutter + plot - to, height);
    g.globalAlpha = 1;
    g.strokeStyle = theme.accent;
    g.lineWidth = 1.5;
    g.strokeRect(from, 1, Math.max(to - from, 2), height - 2);
  }
}

/** What follows the pointer: redrawn at each move, so it has a canvas of its own. */
function drawOverlay() {
  const { theme, hover } = state;
  const g = prepared(overlay, size.width, size.height);
  if (hover === null) return;
  if (hover.range) {
    const [a, b] = hover.range;
    g.fillStyle = `${theme.accent}33`;
    g.fillRect(Math.min(a, b), AXIS, Math.abs(b - a), size.height);
  }
  if (hover.x < gutter || hover.x > size.width - 10) return;
  g.fillStyle = theme.text;
  g.globalAlpha = 0.5;
  g.fillRect(Math.round(hover.x), AXIS - 4, 1, size.height);
  g.globalAlpha = 1;
  for (const row of rows.filter((r) => r.type === "memory")) {
    const bytes = stepAt(row.pool.at, row.pool.in_use, momentAt(hover.x));
    const y = row.y + row.height - 2 - (bytes / row.top) * (row.height - 6);
    g.fillStyle = theme.accent;
    g.beginPath();
    g.arc(hover.x + 0.5, y, 3, 0, 7);
    g.fill();
  }
  if (hover.box) {
    const [x, y, width, height] = hover.box;
    g.strokeStyle = theme.text;
    g.lineWidth = 1.6;
    g.beginPath();
    g.rect(gutter, 0, size.width - gutter, size.height);
    g.clip();
    g.beginPath();
    g.roundRect(x - 1, y - 1, Math.max(width, 2) + 2, height + 2, 3);
    g.stroke();
  }
  const text = showAt(momentAt(hover.x), perPixel());
  const width = g.measureText(text).width + 12;
  const x = Math.min(Math.max(hover.x - width / 2, gutter), size.width - width - 2);
  g.fillStyle = theme.text;
  g.beginPath();
  g.roundRect(x, 2, width, 18, 4);
  g.fill();
  g.fillStyle = theme.panel;
  g.fillText(text, x + 6, 11.5);
}
