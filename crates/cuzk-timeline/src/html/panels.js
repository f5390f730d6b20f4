// Tiles, meters, the legend, and what is known of the selected job.

function tile(name, value, unit, note, properties = {}) {
  const small = unit === "" ? null : element("small", {}, ` ${unit}`);
  const below = typeof note === "string" ? element("div", { className: "note" }, note) : note;
  return element("div", { className: "tile", ...properties }, element("div", { className: "name" }, name),
    value === null ? null : element("div", { className: "value" }, value, small), below);
}

/** Rows of a name, a bar and a number. */
function meters(items) {
  const cells = items.flatMap(({ name, share, number, full }) => {
    const filled = element("i", { style: { width: `${Math.min(1, share) * 100}%` } });
    const meter = element("div", { className: full ? "meter full" : "meter" }, filled);
    return [element("span", {}, name), meter, element("span", { className: "number" }, number)];
  });
  return element("div", { className: "meters" }, ...cells);
}

const hatchedCss = (color) => `repeating-linear-gradient(135deg, ${color}e0 0 2px, ${color}40 2px 5px)`;

function showLegend() {
  const labels = stages.map((stage) => stage.label);
  const chips = stages.map((stage) => {
    const toggle = (event) => {
      if (event.shiftKey) {
        const only = labels.every((label) => !state.hidden.has(label) === (label === stage.label));
        state.hidden = new Set(only ? [] : labels.filter((label) => label !== stage.label));
      } else if (!state.hidden.delete(stage.label)) {
        state.hidden.add(stage.label);
      }
      chips.forEach((chip, n) => chip.setAttribute("aria-pressed", !state.hidden.has(labels[n])));
      requestDraw();
    };
    const swatch = element("span", { className: "swatch", style: { background: stage.color } });
    return element("button", { className: "chip", "aria-pressed": stage.shown, onclick: toggle }, swatch, stage.label);
  });
  byId("legend").replaceChildren(...chips);
}

function showJobs() {
  const options = data.jobs.map((_, job) => element("option", { value: job }, jobName(job)));
  byId("job").replaceChildren(element("option", { value: -1 }, `all ${data.jobs.length} jobs`), ...options);
  byId("job").value = String(state.job);
}

function selectJob(job) {
  state.job = job;
  byId("job").value = String(job);
  const panel = byId("inspector");
  panel.hidden = job < 0;
  panel.replaceChildren();
  if (job >= 0) {
    const { circuit, partitions, submitted, ended, outcome, cause } = data.jobs[job];
    const field = (name, value) => element("div", {}, element("div", { className: "name" }, name), value);
    const total = (kind) => {
      const own = spansOfJob[job].filter((i) => stages[spans.stage[i]].class === kind);
      return own.length === 0 ? "–" : showTime(own.reduce((sum, i) => sum + spans.duration[i], 0));
    };
    const state = element("span", { className: outcome === "failed" ? "bad" : "" }, outcome ?? "under way");
    panel.append(...[
      field("job", element("b", {}, jobName(job))),
      field("circuit", circuit === null ? "–" : data.circuits[circuit]),
      field("partitions", partitions === null ? "–" : String(partitions)),
      field("submitted", submitted === null ? "before the record" : showAt(submitted, 1e7)),
      field("latency", submitted === null || ended === null ? "–" : showTime(ended - submitted)),
      field("on devices", total("compute")),
      field("on the host", total("host")),
      field("transfers", total("transfer")),
      field("outcome", state),
      element("span", { className: "grow" }),
      element("button", { onclick: () => zoomToJob(job) }, "Zoom to job"),
      element("button", { onclick: () => selectJob(-1) }, "Close"),
      cause === null ? null : element("div", { className: "cause bad" }, cause),
    ].filter((child) => child !== null));
  }
  requestDraw();
}
