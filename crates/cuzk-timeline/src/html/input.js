// Zooming, panning, pointing and keys.

let pending = false;

/** Draws once before the next frame, however often it is asked for. */
function requestDraw() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => {
    pending = false;
    draw();
  });
}

/** Shows a range, moved into the run. The narrowest is 100 ns wide. */
function show(from, to) {
  const wall = Math.max(1, data.wall);
  const length = Math.min(Math.max(to - from, Math.min(100, wall)), wall);
  state.from = Math.min(Math.max(0, from), wall - length);
  state.to = state.from + length;
  requestDraw();
}

/** Shows a range with a margin on both sides, as a part of its length. */
const zoomTo = (from, to, margin) => show(from - (to - from) * margin, to + (to - from) * margin);
const zoomToJob = (job) => zoomTo(...extentOfJob(job), 0.03);

function zoomAt(x, factor) {
  const moment = momentAt(x);
  const length = Math.min((state.to - state.from) * factor, Math.max(1, data.wall));
  const share = (moment - state.from) / (state.to - state.from);
  show(moment - share * length, moment + (1 - share) * length);
}

const zoomMiddle = (factor) => zoomAt(gutter + plotWidth() / 2, factor);
const pan = (share) => show(state.from + (state.to - state.from) * share, state.to + (state.to - state.from) * share);

/** What lies at a place of the chart: a span, a gap, counts of waits, or memory. */
function find(x, y) {
  const row = rowAt(y);
  if (row === null || x < gutter) return { row };
  const moment = momentAt(x);
  if (row.type === "spans") {
    const lane = Math.floor((y - row.y - 2) / row.lane);
    const own = row.track.spansOf[Math.min(Math.max(lane, 0), row.track.spansOf.length - 1)];
    const gap = gapAt(row.track, moment);
    const span = spanAt(own, moment, gap === null ? 2 * perPixel() : 0);
    if (span >= 0 && stages[spans.stage[span]].shown) {
      const from = xOf(spans.start[span]);
      const box = [from, row.y + 2 + spans.lane[span] * row.lane, xOf(spanEnd(span)) - from, row.lane - 2];
      return { row, span, box };
    }
    if (gap !== null) {
      const from = xOf(gap.start);
      return { row, gap, box: [from, row.y + 4, xOf(gap.start + gap.duration) - from, row.height - 8] };
    }
  }
  return { row, moment };
}

function describe(found) {
  const { row, span, gap, moment } = found;
  const head = (color, text, length) => element("div", { className: "head" },
    color === null ? null : element("span", { className: "swatch", style: { background: color } }), text,
    length === null ? null : element("span", { className: "length" }, length));
  const pair = ([name, value]) => [element("dt", {}, name), element("dd", {}, value)];
  const list = (items) => element("dl", {}, ...items.flatMap(pair));
  if (span !== undefined) {
    const stage = stages[spans.stage[span]];
    const items = [];
    if (spans.job[span] >= 0) {
      const all = data.jobs[spans.job[span]].partitions;
      items.push(["job", jobName(spans.job[span])]);
      items.push(["partition", all === null ? `#${spans.partition[span]}` : `#${spans.partition[span]} of ${all}`]);
      if (spans.attempt[span] > 0) items.push(["attempt", `${spans.attempt[span]} (the first is 0)`]);
    }
    if (spans.circuit[span] >= 0) items.push(["circuit", data.circuits[spans.circuit[span]]]);
    const step = Math.max(1, spans.duration[span] / 1000);
    items.push(["from, to", `${showAt(spans.start[span], step)} – ${showAt(spanEnd(span), step)}`]);
    const bytes = spans.bytes[span];
    if (bytes > 0) {
      const rate = bytes / (spans.duration[span] / 1e9);
      const moved = stage.class === "transfer" && Number.isFinite(rate);
      items.push(["bytes", moved ? `${showBytes(bytes)} (${showBytes(rate)}/s)` : showBytes(bytes)]);
    }
    const outcome = [null, "failed", "cancelled", "still running"][spans.outcome[span]];
    if (outcome !== null) items.push(["outcome", outcome]);
    items.push(["on", row.name]);
    return [head(stage.color, stage.label, showTime(spans.duration[span])), list(items)];
  }
  if (gap !== undefined) {
    const reason = gap.detail.startsWith(`${gap.label}: `) ? gap.detail.slice(gap.label.length + 2) : "";
    const step = Math.max(1, gap.duration / 1000);
    const [from, to] = [gap.start, gap.start + gap.duration].map((t) => showAt(t, step));
    const items = [["device", row.name], ["from, to", `${from} – ${to}`]];
    if (reason !== "") items.unshift(["reason", reason]);
    return [head(hatchedCss(reasonColor(gap.label)), `idle: ${gap.label}`, showTime(gap.duration)), list(items)];
  }
  if (row?.type === "counts" && moment !== undefined) {
    const items = row.waits
      .map(({ stage, at, value }) => [stages[stage].label, stepAt(at, value, moment)])
      .filter(([, count]) => count > 0)
      .map(([label, count]) => [label, String(count)]);
    return items.length === 0 ? null : [head(null, "partitions that wait", null), list(items)];
  }
  if (row?.type === "memory" && moment !== undefined) {
    const bytes = stepAt(row.pool.at, row.pool.in_use, moment);
    const capacity = row.pool.capacity;
    const items = capacity === 0 ? [] : [["capacity", showBytes(capacity)], ["in use", showPercent(bytes / capacity)],
      ["free", showBytes(Math.max(0, capacity - bytes))]];
    return [head(state.theme.accent, `${row.name} memory`, showBytes(bytes)), list(items)];
  }
  return null;
}

function showTip(found, clientX, clientY) {
  const tip = byId("tip");
  const content = describe(found);
  tip.hidden = content === null;
  if (content === null) return;
  tip.replaceChildren(...content);
  const box = tip.getBoundingClientRect();
  const left = clientX + 16 + box.width < window.innerWidth ? clientX + 16 : clientX - 16 - box.width;
  const top = clientY + 18 + box.height < window.innerHeight ? clientY + 18 : clientY - 14 - box.height;
  Object.assign(tip.style, { left: `${Math.max(4, left)}px`, top: `${Math.max(4, top)}px` });
}

function placeOf(event) {
  const box = chart.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

/** Shows what is under the pointer, which may be something else after the data have changed. */
function showPointed() {
  if (state.pointer === null) return;
  const { clientX, clientY } = state.pointer;
  const [x, y] = placeOf(state.pointer);
  const found = find(x, y);
  state.hover = { x, box: found.box };
  const clickable = found.span !== undefined || found.row?.type === "head";
  chart.style.cursor = clickable ? "pointer" : x < gutter ? "default" : "";
  showTip(found, clientX, clientY);
  drawOverlay();
}

function listenToPointer() {
  let drag = null;
  chart.onpointerdown = (event) => {
    if (event.button !== 0) return;
    const [x, y] = placeOf(event);
    drag = { x, y, from: state.from, to: state.to, range: event.shiftKey, moved: false };
    state.held = true;
    chart.setPointerCapture(event.pointerId);
  };
  chart.onpointermove = (event) => {
    const [x, y] = placeOf(event);
    if (drag !== null) {
      drag.moved ||= Math.hypot(x - drag.x, y - drag.y) > 3;
      if (drag.moved && drag.x >= gutter) {
        chart.classList.add("dragging");
        byId("tip").hidden = true;
        state.hover = { x, range: drag.range ? [drag.x, x] : null };
        if (drag.range) return drawOverlay();
        const shift = (drag.x - x) * ((drag.to - drag.from) / plotWidth());
        return show(drag.from + shift, drag.to + shift);
      }
    }
    state.pointer = { clientX: event.clientX, clientY: event.clientY };
    showPointed();
  };
  chart.onpointerup = (event) => {
    const [x, y] = placeOf(event);
    const done = drag;
    drag = null;
    state.held = false;
    chart.classList.remove("dragging");
    if (done === null) return;
    if (done.moved) {
      if (done.range) show(...[momentAt(done.x), momentAt(x)].sort((a, b) => a - b));
      state.hover = { x };
      return requestDraw();
    }
    const { row, span } = find(x, y);
    if (row?.type === "head" && (x < gutter || span === undefined)) return fold(row.group);
    if (span !== undefined) selectJob(spans.job[span] === state.job ? -1 : spans.job[span]);
  };
  chart.onpointercancel = () => {
    drag = null;
    state.held = false;
  };
  chart.onpointerleave = () => {
    state.pointer = null;
    state.hover = null;
    byId("tip").hidden = true;
    drawOverlay();
  };
  chart.ondblclick = (event) => {
    const { span, gap } = find(...placeOf(event));
    if (span !== undefined) zoomTo(spans.start[span], spanEnd(span), 1);
    else if (gap !== undefined) zoomTo(gap.start, gap.start + gap.duration, 1);
  };
  chart.addEventListener("wheel", (event) => {
    const [x] = placeOf(event);
    if (x < gutter) return; // scrolls the page
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    const sideways = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((sideways * lines) / plotWidth());
    else zoomAt(x, 1.0018 ** (event.deltaY * lines));
  }, { passive: false });
}

function fold(group) {
  if (!state.folded.delete(group)) state.folded.add(group);
  layOut();
  requestDraw();
}

/** Dragging in the overview moves what is shown, or, from outside of it, chooses it anew. */
function listenToOverview() {
  let drag = null;
  const momentOf = (event) => {
    const x = event.clientX - overview.getBoundingClientRect().left;
    return Math.min(1, Math.max(0, (x - gutter) / plotWidth())) * Math.max(1, data.wall);
  };
  overview.onpointerdown = (event) => {
    const at = momentOf(event);
    const whole = state.from <= 0 && state.to >= data.wall;
    drag = { at, from: state.from, to: state.to, move: !whole && at >= state.from && at <= state.to };
    state.held = true;
    overview.setPointerCapture(event.pointerId);
  };
  overview.onpointermove = (event) => {
    if (drag === null) return;
    const at = momentOf(event);
    if (drag.move) show(drag.from + at - drag.at, drag.to + at - drag.at);
    else if (Math.abs(at - drag.at) > data.wall / 500) show(Math.min(at, drag.at), Math.max(at, drag.at));
  };
  overview.onpointerup = () => {
    drag = null;
    state.held = false;
  };
  overview.onpointercancel = overview.onpointerup;
  overview.ondblclick = () => show(0, data.wall);
}

function chooseJob(step) {
  const count = data.jobs.length;
  if (count > 0) selectJob(state.job < 0 ? (step > 0 ? 0 : count - 1) : (state.job + step + count) % count);
}

function toggleTheme() {
  setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  requestDraw();
}

/** Draws whenever the width changes. A narrow screen has less room for names. */
function listenToSize() {
  const resize = () => {
    if (size.width === chart.clientWidth) return;
    size.width = chart.clientWidth;
    gutter = size.width < 640 ? 116 : 192;
    requestDraw(); // not at once: drawing changes the height, which is observed, too
  };
  new ResizeObserver(resize).observe(chart);
  resize();
}

function listenToKeys() {
  const actions = {
    "ArrowLeft": () => pan(-0.15), "ArrowRight": () => pan(0.15),
    "ArrowUp": () => zoomMiddle(0.7), "ArrowDown": () => zoomMiddle(1.4),
    "+": () => zoomMiddle(0.7), "=": () => zoomMiddle(0.7), "-": () => zoomMiddle(1.4), "0": () => show(0, data.wall),
    "n": () => chooseJob(1), "p": () => chooseJob(-1), "Escape": () => selectJob(-1),
    "z": () => state.job >= 0 && zoomToJob(state.job), "t": toggleTheme, "?": () => byId("keys").showModal(),
  };
  document.addEventListener("keydown", (event) => {
    const chord = event.ctrlKey || event.metaKey || event.altKey;
    const busy = chord || byId("keys").open || event.target.tagName === "SELECT";
    const arrows = event.key.startsWith("Arrow") && !chart.contains(event.target) && event.target !== document.body;
    const action = actions[event.key];
    if (busy || arrows || action === undefined) return;
    event.preventDefault();
    action();
  });
  byId("zoom-in").onclick = () => zoomMiddle(0.5);
  byId("zoom-out").onclick = () => zoomMiddle(2);
  byId("fit").onclick = () => show(0, data.wall);
  byId("job").onchange = (event) => selectJob(Number(event.target.value));
  byId("theme").onclick = toggleTheme;
  byId("help").onclick = () => byId("keys").showModal();
}
