// How numbers are written, and elements made. Texts become text nodes, never markup.

const THREE = (x) => (x < 10 ? x.toFixed(2) : x < 100 ? x.toFixed(1) : x.toFixed(0));

/** A length of time in nanoseconds. */
function showTime(ns) {
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  if (ns < 1e6) return `${THREE(ns / 1e3)} µs`;
  if (ns < 1e9) return `${THREE(ns / 1e6)} ms`;
  if (ns < 120e9) return `${THREE(ns / 1e9)} s`;
  const seconds = Math.round(ns / 1e9);
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  return `${Math.floor(seconds / 3600)} h ${String(Math.floor(seconds / 60) % 60).padStart(2, "0")} min`;
}

/** A moment in nanoseconds, as exactly as `step` asks: 1:23.45. */
function showMoment(ns, step) {
  const sign = ns < 0 ? "−" : "";
  const decimals = Math.max(0, Math.min(9, Math.ceil(9 - Math.log10(Math.max(step, 1)) - 1e-9)));
  const unit = 10 ** (9 - decimals);
  const whole = Math.round(Math.abs(ns) / unit) * unit;
  const seconds = ((whole / 1e9) % 60).toFixed(decimals);
  const [hours, minutes] = [Math.floor(whole / 3600e9), Math.floor(whole / 60e9) % 60];
  const two = (text) => (text.indexOf(".") === 1 || text.length === 1 ? `0${text}` : text);
  if (hours > 0) return `${sign}${hours}:${two(String(minutes))}:${two(seconds)}`;
  return whole >= 60e9 ? `${sign}${minutes}:${two(seconds)}` : `${sign}${seconds} s`;
}

function showBytes(bytes) {
  const units = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];
  const found = units.find(([, size]) => bytes >= size);
  return found ? `${(bytes / found[1]).toFixed(1)} ${found[0]}` : `${bytes} B`;
}

const showPercent = (share) => `${(100 * share).toFixed(1)} %`;

/** An element with properties and children; a child that is a string becomes a text node, `null` is left out. */
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "style") Object.assign(made.style, value);
    else if (key.includes("-")) made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

const byId = (id) => document.getElementById(id);
