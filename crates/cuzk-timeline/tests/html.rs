//! The waterfall as a text: complete, self-contained, and safe against names. What it looks like: see `browser.rs`.

mod made_up;

use cuzk_timeline::{
    IdleReason, JobEvent, JobId, JobMark, Limits, Nanos, Recorder, Span, Stage, StageClass, Timeline, TrackKind,
    Waterfall,
};
use serde_json::Value;

fn page(timeline: &Timeline) -> String {
    let mut bytes = Vec::new();
    timeline.write_html(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// The JSON between the tags, as a browser would cut it out: to the first end tag.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(json).unwrap()
}

#[test]
fn no_name_becomes_markup() {
    const HOSTILE: &str = "</script><script>alert(1)</script><!-- <b>@@data@@ \" ' \\ \u{2028}";
    let recorder = Recorder::new(HOSTILE, Limits::default());
    let gpu = recorder.add_track(HOSTILE, TrackKind::Device);
    recorder.name_circuit(cuzk_timeline::CircuitId(0), HOSTILE);
    let stage = recorder.custom_stage(HOSTILE, StageClass::Compute);
    recorder.span(Span::new(gpu, stage, Nanos(0), Nanos(5)));
    let other = IdleReason::Other { label: HOSTILE.to_owned(), detail: HOSTILE.to_owned() };
    recorder.device_state(gpu, Nanos(5), Some(other));
    let submitted = JobEvent::Submitted { name: HOSTILE.to_owned(), circuit: None, partitions: 1 };
    recorder.mark(JobMark { job: JobId(0), at: Nanos(0), event: submitted });
    recorder.mark(JobMark { job: JobId(0), at: Nanos(9), event: JobEvent::Failed { cause: HOSTILE.to_owned() } });

    let hostile = page(&recorder.snapshot(Nanos(9)));
    let harmless = page(&Timeline::default());
    for tag in ["<script", "</script", "<!--", "<b>"] {
        assert_eq!(hostile.matches(tag).count(), harmless.matches(tag).count(), "{tag}");
    }
    let data = data(&hostile);
    for text in [
        &data["title"],
        &data["tracks"][0]["name"],
        &data["circuits"][0],
        &data["stages"][0]["label"],
        &data["idle"][0]["label"],
        &data["jobs"][0]["name"],
        &data["jobs"][0]["cause"],
        &data["summary"]["devices"][0]["name"],
    ] {
        assert_eq!(text, HOSTILE);
    }
}

#[test]
fn the_page_asks_nothing_of_a_network() {
    let page = page(&made_up::made_up_run(2, 10));
    assert!(page.contains("default-src 'none'"), "its policy forbids it");
    let namespace = "http://www.w3.org/2000/svg";
    let program = page.replace(namespace, "");
    for way in [
        "http:",
        "https:",
        "src=",
        "href=",
        "url(",
        "@import",
        "fetch(",
        "XMLHttpRequest",
        "import(",
        "innerHTML",
        "eval(",
    ] {
        assert!(!program.contains(way), "{way}");
    }
    assert!(!page.contains("@@"), "everything was put in");
}

#[test]
fn the_data_is_the_timeline() {
    let timeline = made_up::made_up_run(3, 10);
    let data = data(&page(&timeline));
    let columns = data["spans"].as_object().unwrap();
    assert_eq!(columns.len(), 11);
    for (name, column) in columns {
        assert_eq!(column.as_array().unwrap().len(), timeline.spans.len(), "{name}");
    }
    let starts: Vec<i64> = data["spans"]["start"].as_array().unwrap().iter().map(|x| x.as_i64().unwrap()).collect();
    assert!(starts.is_sorted());
    assert_eq!(data["wall"], timeline.wall().0);
    let details: Vec<_> = data["idle"].as_array().unwrap().iter().map(|gap| gap["detail"].as_str().unwrap()).collect();
    assert!(details.contains(&"key load: porep-32g to device 0 memory"), "circuits by name: {details:?}");
    assert!(details.contains(&"transfer: partition 0 of porep-1000-4711"), "jobs by name: {details:?}");
    assert_eq!(data["jobs"].as_array().unwrap().len(), 3);
    assert_eq!(data["pools"][0]["at"].as_array().unwrap().len(), timeline.pools[0].samples.len());
    assert!(data["stages"].as_array().unwrap().iter().any(|s| s["label"] == "msm h" && s["class"] == "compute"));
}

#[test]
fn times_are_relative_to_the_start_of_a_part() {
    let recorder = Recorder::new("part", Limits::default());
    let gpu = recorder.add_track("GPU", TrackKind::Device);
    recorder.span(Span::new(gpu, Stage::Kernels, Nanos(10), Nanos(30)));
    let data = data(&page(&recorder.snapshot(Nanos(50)).between(Nanos(20), Nanos(40))));
    assert_eq!((&data["spans"]["start"][0], &data["spans"]["duration"][0]), (&(-10).into(), &20.into()));
    assert_eq!((&data["wall"], &data["idle"][0]["start"]), (&20.into(), &10.into()));
}

#[test]
fn pages_of_others_get_the_same_data_and_what_is_promised() {
    let timeline = made_up::made_up_run(2, 10);
    let mut alone = Vec::new();
    timeline.write_page_data(&mut alone).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&alone).unwrap(), data(&page(&timeline)));
    let program = Waterfall::PROGRAM.concat();
    let calls = ["load", "layOut", "draw", "setTheme", "listenToPointer", "listenToOverview", "listenToKeys"];
    for function in calls.into_iter().chain(["listenToSize"]) {
        assert!(program.contains(&format!("\nfunction {function}(")), "{function}");
    }
    let own = ["theme", "help"];
    let ids = program.split("byId(\"").skip(1).filter_map(|rest| rest.split('"').next());
    for id in ids.filter(|id| !own.contains(id)) {
        assert!(Waterfall::MARKUP.contains(&format!("id=\"{id}\"")), "the program looks for {id}");
    }
}
