// Puts it together. `#from=SECONDS&to=SECONDS&job=NAME&theme=dark` in the address chooses what is shown at first.

function start() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  setTheme(wanted.get("theme"));
  load(JSON.parse(byId("data").textContent));

  document.title = `${data.title} – cuzk timeline`;
  byId("title").textContent = data.title;
  if (data.started_unix_ms !== null) byId("when").textContent = new Date(data.started_unix_ms).toLocaleString();
  showTiles();
  showDevices();
  showStages();
  showLegend();
  showJobs();
  layOut();
  listenToPointer();
  listenToOverview();
  listenToKeys();

  const seconds = (name, other) => {
    const value = parseFloat(wanted.get(name)) * 1e9;
    return Number.isFinite(value) ? value : other;
  };
  show(seconds("from", 0), seconds("to", data.wall));
  const job = data.jobs.findIndex((_, k) => jobName(k) === wanted.get("job"));
  if (job >= 0) selectJob(job);

  listenToSize();
  draw();
  document.documentElement.dataset.ready = "true";
}

start();
