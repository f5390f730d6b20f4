// The data, with the indices that drawing and searching need.

// Hues of Okabe and Ito by what is kept busy: orange the host, yellow and brown buses, green transforms, a ramp of
// blues the sums in G1, purple the one in G2; greys and dull hues wait. Neighbours on a row differ in lightness, too.
const STAGE_COLORS = {
  "queue": "#8a94a3", "wait for permit": "#b79f5b", "device queue": "#5f86ad", "wait for lock": "#a97fa8",
  "witness": "#e69f00", "send": "#c9b458", "key load": "#8c6d31", "upload": "#e3d12b",
  "evaluate": "#79d0bd", "quotient": "#009e73",
  "msm h": "#1d5bb8", "msm l": "#4585d6", "msm a": "#76a9e6", "msm b_g1": "#a9cbf2", "msm b_g2": "#b07cc6",
  "kernels": "#4585d6", "finish": "#d55e00", "verify": "#eda47a",
};
const OTHER_COLORS = ["#7c8b2f", "#3fb0c4", "#c46a8d", "#6f6fc9", "#a0785a"];

const others = new Map();

/** The colour of a stage. Those without one of their own get one when they are first seen. */
function stageColor(label) {
  if (Object.hasOwn(STAGE_COLORS, label)) return STAGE_COLORS[label];
  if (!others.has(label)) others.set(label, OTHER_COLORS[others.size % OTHER_COLORS.length]);
  return others.get(label);
}

/** What can be read on a colour. */
function inkOn(color) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16));
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#10161e" : "#ffffff";
}

// Reasons of idle time: the hatching's colour. What points to a fault is red, what points to a limit is amber.
const REASON_COLORS = {
  "no work": "#98a4b3", "no synthesized partition": "#e69f00", "transfer": "#cbb81d", "key load": "#8c6d31",
  "waiting for memory": "#cf6f9f", "repeating alone": "#cf6f9f", "waiting for the lock": "#a97fa8",
  "quarantined": "#d8323f", "retired": "#d8323f",
  "left to other devices": "#5f86ad", "unexplained": "#ff00aa",
};
const reasonColor = (label) => REASON_COLORS[label] ?? "#7c8b2f";

const state = {
  from: 0, to: 1, // what is shown
  zero: 0, // the moment that is written as 0
  job: -1, // which is selected
  folded: new Set(), // groups whose rows are not shown
  hidden: new Set(), // stages that are not shown, by label
  pointer: null, // where it is, if it is over the chart
  held: false, // whether something is being dragged
  hover: null,
  theme: {},
};

let data = null;
let stages = []; // with their colours, and whether they are shown
let spans = null; // columns
let tracks = []; // in each, for each lane, the spans in order: disjoint, so that ends are in order, too
let spansOfJob = []; // of each job the spans, in order
const peaks = new Map();

/** Takes the data: those of a whole run once, those of a run that goes on again and again. */
function load(next) {
  const selected = state.job < 0 ? null : data.jobs[state.job].id;
  data = next;
  spans = data.spans;
  stages = data.stages.map((stage) => {
    const color = stageColor(stage.label);
    return { ...stage, color, ink: inkOn(color), get shown() { return !state.hidden.has(stage.label); } };
  });
  tracks = data.tracks.map((track, id) => ({
    ...track, id, idle: [], notOk: [], spansOf: Array.from({ length: Math.max(1, track.lanes) }, () => []),
  }));
  spansOfJob = data.jobs.map(() => []);
  for (let i = 0; i < spans.start.length; i++) {
    const track = tracks[spans.track[i]];
    track?.spansOf[spans.lane[i]].push(i);
    if (spans.outcome[i] === 1 || spans.outcome[i] === 2) track?.notOk.push(i);
    if (spans.job[i] >= 0) spansOfJob[spans.job[i]].push(i);
  }
  data.idle.forEach((gap) => tracks[gap.track].idle.push(gap));
  peaks.clear();
  utilizationCurve = null;
  state.job = selected === null ? -1 : data.jobs.findIndex((job) => job.id === selected);
}

const jobName = (job) => (job < 0 ? "" : data.jobs[job].name ?? `job ${data.jobs[job].id}`);

/** The place of the first item, not before `low`, from which on `test` holds. */
function firstWhere(length, test, low = 0) {
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (test(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

const spanEnd = (i) => spans.start[i] + spans.duration[i];

/** The span of a lane at a moment, or within `reach` of it; -1 if there is none. */
function spanAt(lane, moment, reach) {
  const at = firstWhere(lane.length, (k) => spanEnd(lane[k]) > moment);
  if (at < lane.length && spans.start[lane[at]] <= moment) return lane[at];
  if (at < lane.length && spans.start[lane[at]] <= moment + reach) return lane[at];
  if (at > 0 && spanEnd(lane[at - 1]) >= moment - reach) return lane[at - 1];
  return -1;
}

function gapAt(track, moment) {
  const gap = track.idle[firstWhere(track.idle.length, (k) => track.idle[k].start + track.idle[k].duration > moment)];
  return gap && gap.start <= moment ? gap : null;
}

/** For each stage on a track how many spans lie at a moment, as steps: for tracks on which partitions wait. */
function countsOf(track) {
  const changes = new Map();
  for (const i of track.spansOf.flat()) {
    const stage = spans.stage[i];
    if (!changes.has(stage)) changes.set(stage, []);
    changes.get(stage).push([spans.start[i], 1], [spanEnd(i), -1]);
  }
  return [...changes.keys()].sort((a, b) => a - b).map((stage) => {
    const sorted = changes.get(stage).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    let count = 0;
    const [at, value] = [[], []];
    for (const [moment, change] of sorted) {
      count += change;
      if (at.at(-1) === moment) value[value.length - 1] = count;
      else { at.push(moment); value.push(count); }
    }
    return { stage, at, value };
  });
}

/** The largest sum of several counts. Each set of stages is computed once. */
function peakOf(track, counts) {
  const key = [track.id, ...counts.map((c) => c.stage)].join();
  if (!peaks.has(key)) {
    const sumAt = (moment) => counts.reduce((sum, c) => sum + stepAt(c.at, c.value, moment), 0);
    peaks.set(key, counts.flatMap((c) => c.at).reduce((most, moment) => Math.max(most, sumAt(moment)), 0));
  }
  return peaks.get(key);
}

/** The value of steps at a moment; before the first, 0. */
function stepAt(at, value, moment) {
  const next = firstWhere(at.length, (k) => at[k] > moment);
  return next > 0 ? value[next - 1] : 0;
}

/** From when to when anything is known of a job. */
function extentOfJob(job) {
  const [own, { submitted, ended }] = [spansOfJob[job], data.jobs[job]];
  const known = [submitted, ended].filter((x) => x !== null);
  for (const i of own) known.push(spans.start[i], spanEnd(i));
  return [known.reduce((a, b) => Math.min(a, b), Infinity), known.reduce((a, b) => Math.max(a, b), -Infinity)];
}
