//! The waterfall in a real browser: what is drawn, what the pointer and the keys do, and that nothing fails on the way.

use std::{env, fs, process::Command};

use cuzk_timeline::{
    CircuitId, IdleReason, JobEvent, JobId, JobMark, Limits, Nanos, PartitionRef, Pool, Recorder, Span, Stage,
    Timeline, TrackKind,
};
use serde_json::Value;

/// Ten seconds: four idle, six of kernels. The only job has a name that would like to be markup.
fn ten_seconds() -> Timeline {
    let s = Nanos::from_secs_f64;
    let recorder = Recorder::new("ten seconds", Limits::default());
    let gpu = recorder.add_track("GPU 0", TrackKind::Device);
    recorder.name_circuit(CircuitId(0), "porep-32g");
    let starved = IdleReason::NoSynthesizedPartition { synthesizing: 3, because: None };
    recorder.device_state(gpu, s(0.0), Some(starved));
    recorder.device_state(gpu, s(4.0), None);
    let name = "</script><img src=x onerror=\"document.title='broken out'\">".to_owned();
    let submitted = JobEvent::Submitted { name, circuit: Some(CircuitId(0)), partitions: 1 };
    recorder.mark(JobMark { job: JobId(0), at: s(0.0), event: submitted });
    recorder.mark(JobMark { job: JobId(0), at: s(10.0), event: JobEvent::Completed });
    let partition = Some(PartitionRef { job: JobId(0), index: 0, attempt: 0 });
    let kernels = Span::new(gpu, Stage::Kernels, s(4.0), s(10.0));
    recorder.span(Span { partition, circuit: Some(CircuitId(0)), bytes: 3 << 29, ..kernels });
    recorder.set_capacity(Pool::Host, 4 << 30);
    recorder.memory(Pool::Host, s(0.0), 1 << 30);
    recorder.snapshot(s(10.0))
}

/// Acts as a person would and writes down what is to be seen.
const PERSON: &str = include_str!("browser_person.html");

/// Opens the page with some more script in it, and gives what that wrote into an element `pre`.
fn visit(timeline: &Timeline, person: &str) -> Value {
    let mut page = Vec::new();
    timeline.write_html(&mut page).unwrap();
    // Modules run in the order of the document: the person comes after the page's own.
    let page = String::from_utf8(page).unwrap().replacen("</body>", &format!("{person}</body>"), 1);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    fs::write(&file, page).unwrap();
    let browser = env::var("CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
    let output = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000"])
        .args(["--virtual-time-budget=8000", "--dump-dom"])
        .arg(format!("file://{}#theme=light", file.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let seen = dom.split_once("<pre>").and_then(|(_, rest)| rest.split_once("</pre>")).map(|(json, _)| json.to_owned());
    let seen = seen.unwrap_or_else(|| panic!("the person did not come to an end:\n{dom:.2000}"));
    serde_json::from_str(&seen.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")).unwrap()
}

#[test]
#[ignore = "needs Chromium, by the name in CHROMIUM or as `chromium`: `cargo xtask services` runs it"]
fn the_page_of_a_run() {
    let seen = visit(&ten_seconds(), PERSON);
    let text = |value: &Value| value.as_str().unwrap().to_owned();

    assert_eq!(seen["errors"], serde_json::json!([]), "{seen}");
    assert_eq!((&seen["ready"], &seen["images"]), (&"true".into(), &0.into()));
    assert_eq!(seen["title"], "ten seconds – cuzk timeline");
    assert_eq!(seen["span"][0], "#4585d6", "kernels are drawn in their colour");
    for part in ["kernels", "6.00 s", "</script><img src=x", "#0 of 1", "porep-32g", "1.5 GiB", "GPU 0"] {
        assert!(text(&seen["span"][1]).contains(part), "{part}: {seen}");
    }
    for part in ["idle: no synthesized partition", "4.00 s", "3 in synthesis"] {
        assert!(text(&seen["gap"]).contains(part), "{part}: {seen}");
    }
    for part in ["host memory", "1.0 GiB", "25.0 %", "3.0 GiB"] {
        assert!(text(&seen["memory"]).contains(part), "{part}: {seen}");
    }
    assert_eq!(seen["selected"][0], false);
    assert!(text(&seen["selected"][1]).contains("</script><img src=x"), "{seen}");
    assert_eq!(seen["unselected"], true);
    assert!(text(&seen["zoomed"]).contains("kernels"), "the wheel zooms to the right end: {seen}");
    assert!(text(&seen["all"]).contains("idle"), "0 shows all again: {seen}");
    assert!(text(&seen["dragged"]).contains("kernels"), "shift and dragging zoom to 5 s and later: {seen}");
    assert!(text(&seen["panned"]).contains("idle"), "dragging half of five seconds leads to 2.5 s: {seen}");
    assert_eq!(seen["clicked"], false, "a click selects the job");
    assert_eq!((&seen["unfolded"], &seen["folded"]), (&0.into(), &38.into()), "a click on a head folds its rows");
    assert_ne!(seen["hidden"][0], "#4585d6", "the legend hides a stage");
    assert_eq!(seen["hidden"][1], "");
    assert_eq!(seen["theme"], "dark");
}

#[test]
#[ignore = "needs Chromium, by the name in CHROMIUM or as `chromium`: `cargo xtask services` runs it"]
fn the_page_of_nothing() {
    let seen = visit(&Timeline::default(), PERSON);
    assert_eq!((&seen["errors"], &seen["ready"]), (&serde_json::json!([]), &"true".into()));
    assert_eq!((&seen["span"][1], &seen["gap"], &seen["theme"]), (&"".into(), &"".into(), &"dark".into()));
}
