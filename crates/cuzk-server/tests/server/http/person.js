// Acts as a person would, and reports what is to be seen.
const byId = (id) => document.getElementById(id);
const SECTIONS = ["tiles", "devices", "pools", "queue", "unfinished", "recent", "errors", "foot"];
const sections = () => Object.fromEntries(SECTIONS.map((id) => [id, byId(id).innerText]));
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** Waits until something is so. If it takes too long, the report is to show that. */
async function until(test) {
  for (let tries = 0; tries < 200; tries++) {
    const seen = test();
    if (seen) return seen;
    await pause(100);
  }
  return null;
}

const report = (step, seen) => fetch("/report", {
  method: "POST", headers: { "content-type": "application/json" },
  body: JSON.stringify({ step, sections: sections(), errors: failures, ...seen }),
});

const chart = byId("chart");

/** The last pixel of a colour: within the lowest span that is drawn in it. */
function lastOf(color) {
  const base = byId("base");
  const context = base.getContext("2d");
  const ratio = devicePixelRatio;
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16));
  const { data, width } = context.getImageData(0, 0, base.width, base.height);
  for (let i = data.length - 4; i >= 0; i -= 4) {
    if (data[i] === r && data[i + 1] === g && data[i + 2] === b) {
      const at = i / 4;
      return { x: (at % width) / ratio, y: Math.floor(at / width) / ratio };
    }
  }
  return null;
}

function hover({ x, y }) {
  const box = chart.getBoundingClientRect();
  const place = { clientX: box.left + x - 1, clientY: box.top + y - 3, bubbles: true };
  chart.dispatchEvent(new PointerEvent("pointermove", place));
  return byId("tip").hidden ? "" : byId("tip").innerText;
}

const done = () => Number(/(\d+) of 10/.exec(byId("unfinished").innerText)?.[1] ?? -1);

await until(() => document.documentElement.dataset.ready === "true");
const state = byId("state").textContent;
await report("empty", { title: document.title, state, connection: byId("connection").textContent });

await until(() => byId("unfinished").innerText.includes("running"));
const witness = await until(() => lastOf("#e69f00"));
const tip = witness === null ? "" : hover(witness);
const before = done();
await report("running", { done: before, synthesis: witness === null ? null : "#e69f00", tip });

await until(() => done() > before);
const link = document.querySelector("#unfinished button.link");
link.focus();
link.click();
await report("updated", { done: done(), inspected: !byId("inspector").hidden });

await until(() => byId("recent").innerText.includes("failed"));
await report("failed", {});
await until(() => byId("recent").innerText.includes("completed"));
await report("completed", {});

document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "t", bubbles: true }));
const lost = (await until(() => byId("lost")))?.innerText;
await until(() => byId("restarted"));
await pause(1500);
await report("restarted", {
  lost, notices: byId("notices").innerText, theme: document.documentElement.dataset.theme,
  images: document.images.length, title: document.title,
});
