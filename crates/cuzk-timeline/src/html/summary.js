// The numbers above the waterfall of a whole run.

function showTiles() {
  const { jobs, devices, pools, wall, dropped } = data.summary;
  const notes = [`${jobs.partitions} partitions`];
  if (jobs.failed > 0) notes.unshift(`${jobs.failed} failed`);
  if (jobs.cancelled > 0) notes.unshift(`${jobs.cancelled} cancelled`);
  // Where the record begins late, more jobs end in it than are submitted in it.
  const of = jobs.completed + jobs.failed + jobs.cancelled <= jobs.submitted ? `of ${jobs.submitted}` : "";
  const perJob = jobs.wall_per_job === null ? "–" : showTime(jobs.wall_per_job);
  const latency = jobs.latency.count === 0 ? "–" : showTime(jobs.latency.mean);
  const mean = devices.reduce((sum, d) => sum + d.utilization, 0) / Math.max(1, devices.length);
  const meterOf = (d) => ({ name: d.name, share: d.utilization, number: showPercent(d.utilization) });
  const busy = meters(devices.slice(0, 8).map(meterOf));
  const lost = dropped.spans + dropped.gaps + dropped.samples + dropped.marks;
  const made = [
    tile("Jobs completed", String(jobs.completed), of, notes.join(" · ")),
    tile("Throughput", perJob, "a job", `${THREE(jobs.per_hour)} jobs an hour`),
    tile("Latency", latency, "mean", `95 % within ${showTime(jobs.latency.p95)}`),
    tile("Wall clock", showTime(wall), "", lost > 0 ? `${lost} older records not kept` : "the record is complete"),
  ];
  if (devices.length > 0) made.push(tile("Devices busy", showPercent(mean), devices.length > 1 ? "mean" : "", busy));
  if (pools.length > 0) {
    const items = pools.slice(0, 8).map((p, k) => ({
      name: data.pools[k].name,
      share: p.capacity > 0 ? p.peak / p.capacity : 0,
      number: p.capacity > 0 ? `${showBytes(p.peak)} of ${showBytes(p.capacity)}` : showBytes(p.peak),
      full: p.capacity > 0 && p.peak > p.capacity,
    }));
    made.push(tile("Peak memory", null, "", meters(items), { className: "tile wide" }));
  }
  byId("tiles").append(...made);
}

/** For each device its time as one bar, and its idle time by reason; a reason leads to its longest gap. */
function showDevices() {
  const own = tracks.filter((track) => track.kind === "device");
  byId("devices").append(element("h2", {}, "Where the time of the devices went"));
  if (own.length === 0) byId("devices").append(element("div", { className: "muted" }, "No device is in this record."));
  const gaps = (time) => (time.count === 1 ? "1 gap" : `${time.count} gaps, longest ${showTime(time.max)}`);
  data.summary.devices.forEach((device, k) => {
    const wall = Math.max(1, data.summary.wall);
    const part = (share, background) => element("i", { style: { width: `${share * 100}%`, background } });
    const parts = device.idle.map((idle) => part(idle.time.total / wall, hatchedCss(reasonColor(idle.reason))));
    const cells = device.idle.flatMap(({ reason, time }) => [
      element("span", { className: "swatch", style: { background: hatchedCss(reasonColor(reason)) } }),
      element("button", { title: "Show the longest", onclick: () => showLongest(own[k], reason) }, reason),
      element("span", { className: "number muted" }, gaps(time)),
      element("span", { className: "number" }, showTime(time.total)),
      element("span", { className: "number" }, showPercent(time.total / wall)),
    ]);
    const head = element("div", { className: "head" }, element("span", {}, device.name),
      element("span", {}, `${showPercent(device.utilization)} busy`));
    byId("devices").append(element("div", { className: "device" }, head,
      element("div", { className: "bar" }, part(device.utilization, "var(--accent)"), ...parts),
      element("div", { className: "reasons" }, ...cells)));
  });
}

function showLongest(track, reason) {
  const gaps = track.idle.filter((gap) => gap.label === reason);
  const longest = gaps.reduce((a, b) => (b.duration > a.duration ? b : a));
  zoomTo(longest.start, longest.start + longest.duration, 0.35);
  chart.scrollIntoView({ block: "nearest" });
}

/** Mean, 95th percentile and maximum of a stage on a logarithmic scale that all stages share. */
function spread(time, lowest, highest) {
  const x = (ns) => 2 + (96 * Math.log(Math.max(ns, lowest) / lowest)) / Math.max(1e-9, Math.log(highest / lowest));
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 100 10");
  svg.setAttribute("preserveAspectRatio", "none");
  const rect = (from, to, y, height, opacity) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const all = { x: from, y, width: Math.max(0.8, to - from), height, fill: "currentColor", opacity };
    for (const [key, value] of Object.entries(all)) made.setAttribute(key, value);
    svg.append(made);
  };
  rect(x(time.mean), x(time.p95), 2.5, 5, 0.35);
  rect(x(time.p95), x(time.max), 4.5, 1, 0.5);
  rect(x(time.mean) - 0.4, x(time.mean) + 0.4, 0.5, 9, 1);
  return svg;
}

function showStages() {
  const own = data.summary.stages;
  byId("stages").append(element("h2", {}, "Stages"));
  const titles = ["stage", "count", "mean", "p95", "max", "total", "bytes", "spread"];
  const head = element("tr", {}, ...titles.map((title) => element("th", {}, title)));
  const positive = own.map((s) => s.time.mean).filter((x) => x > 0);
  const lowest = Math.max(1, positive.reduce((a, b) => Math.min(a, b), Infinity));
  const highest = Math.max(lowest * 2, own.reduce((a, s) => Math.max(a, s.time.max), 0));
  const body = own.map(({ label, time, bytes, not_ok }) => {
    const color = stages.find((stage) => stage.label === label)?.color ?? "gray";
    const failed = not_ok === 0 ? null : element("span", { className: "bad" }, `  ${not_ok} failed`);
    const times = [time.mean, time.p95, time.max, time.total].map(showTime);
    const numbers = [String(time.count), ...times, bytes > 0 ? showBytes(bytes) : ""];
    const title = "mean, 95th percentile and maximum, logarithmic";
    return element("tr", {},
      element("td", {}, element("span", { className: "swatch", style: { background: color } }), label, failed),
      ...numbers.map((text) => element("td", {}, text)),
      element("td", { className: "spread", title }, spread(time, lowest, highest)));
  });
  byId("stages").append(element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)));
}
