//! The native form: what is written is read back, and what is damaged is refused with its line.

mod made_up;

use cuzk_timeline::{ReadError, Timeline};

fn lines(timeline: &Timeline) -> Vec<String> {
    let mut bytes = Vec::new();
    timeline.write(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

fn read(lines: &[String]) -> Result<Timeline, ReadError> {
    Timeline::read(lines.join("\n").as_bytes())
}

/// Lines of a small run, with one of them (by its key) replaced; and the number of that line.
fn with(key: &str, replacement: &str) -> (Vec<String>, u64) {
    let mut lines = lines(&made_up::made_up_run(1, 2));
    let begin = format!("{{\"{key}\":");
    let place = lines.iter().position(|l| l.starts_with(&begin)).unwrap_or_else(|| panic!("no {key}"));
    lines[place] = replacement.to_owned();
    (lines, place as u64 + 1)
}

#[test]
fn a_timeline_survives_its_file() {
    let mut timeline = made_up::made_up_run(12, 10);
    timeline.started_unix_ms = Some(1_795_000_000_000);
    timeline.title = "a \"title\"\nof two lines".to_owned();
    assert_eq!(read(&lines(&timeline)).unwrap(), timeline);
    assert_eq!(read(&lines(&Timeline::default())).unwrap(), Timeline::default());
}

#[test]
fn a_file_that_was_cut_off_is_refused_wherever_it_was() {
    let lines = lines(&made_up::made_up_run(1, 1));
    for length in 0..lines.len() {
        let error = read(&lines[..length]).unwrap_err();
        assert!(matches!(error, ReadError::Truncated { lines } if lines == length as u64), "{length}: {error}");
    }
    let whole = lines.join("\n");
    let cut = Timeline::read(&whole.as_bytes()[..whole.len() - 2]).unwrap_err();
    assert!(!matches!(cut, ReadError::Truncated { .. }), "the cut is in a line: {cut}");
}

#[test]
fn a_missing_or_repeated_record_is_noticed() {
    let lines = lines(&made_up::made_up_run(1, 1));
    let span = lines.iter().position(|l| l.starts_with("{\"span\"")).unwrap();
    let mut missing = lines.clone();
    missing.remove(span);
    let found = lines.len() as u64 - 3;
    let error = read(&missing).unwrap_err();
    assert!(matches!(error, ReadError::Count { stated, found: f, .. } if stated == found + 1 && f == found), "{error}");
    let mut more = lines.clone();
    more.push(lines[span].clone());
    let error = read(&more).unwrap_err();
    assert!(matches!(error, ReadError::AfterEnd { line } if line == lines.len() as u64 + 1), "{error}");
}

#[test]
fn damaged_lines_are_named() {
    let (lines, at) = with("span", r#"{"span":{"track":0}}"#);
    assert!(matches!(read(&lines), Err(ReadError::Record { line, .. }) if line == at));

    let (lines, at) = with("mark", "\u{1}");
    let error = read(&lines).unwrap_err();
    assert!(error.to_string().starts_with(&format!("line {at}: ")), "{error}");

    let span = |track: u32, stage: &str, start: u64, end: u64| {
        let rest = r#""partition":null,"circuit":null,"bytes":0,"outcome":"ok""#;
        format!(r#"{{"span":{{"track":{track},"stage":{stage},"start":{start},"end":{end},{rest}}}}}"#)
    };
    let (lines, at) = with("span", &span(99, "\"witness\"", 0, 1));
    let error = read(&lines).unwrap_err();
    assert!(
        matches!(error, ReadError::Unknown { line, what: "track", number: 99, known: 18 } if line == at),
        "{error}"
    );

    let (lines, at) = with("span", &span(0, r#"{"custom":0}"#, 0, 1));
    let error = read(&lines).unwrap_err();
    assert!(matches!(error, ReadError::Unknown { line, what: "custom stage", known: 0, .. } if line == at), "{error}");

    let (lines, at) = with("span", &span(0, "\"witness\"", 7, 6));
    let error = read(&lines).unwrap_err();
    assert!(matches!(error, ReadError::Reversed { line, start: 7, end: 6 } if line == at), "{error}");

    let (lines, at) = with("sample", r#"{"sample":{"pool":4,"at":0,"in_use":1}}"#);
    let error = read(&lines).unwrap_err();
    // Each pool is followed by its samples: only the first one is known there.
    assert!(matches!(error, ReadError::Unknown { line, what: "pool", number: 4, known: 1 } if line == at), "{error}");

    let (lines, at) = with("sample", r#"{"sample":{"pool":0,"at":99000000000000,"in_use":1}}"#);
    let error = read(&lines).unwrap_err();
    assert!(
        matches!(error, ReadError::SampleOrder { line, last: 99_000_000_000_000, .. } if line == at + 1),
        "{error}"
    );
}

#[test]
fn what_could_not_be_read_back_is_not_written() {
    let timeline = Timeline { title: "x".repeat(1 << 20), ..Timeline::default() };
    let error = timeline.write(std::io::sink()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("a cuzk_timeline of 10"), "{error}");
}

#[test]
fn what_is_no_timeline_is_told_so() {
    assert!(matches!(Timeline::read(&b""[..]), Err(ReadError::Truncated { lines: 0 })));
    assert!(matches!(Timeline::read(&b"{\"traceEvents\":[]}"[..]), Err(ReadError::Header { .. })));
    assert!(matches!(Timeline::read(&b"\x7fELF\x00\xff"[..]), Err(ReadError::Header { .. })));
    let (lines, _) = with("cuzk_timeline", r#"{"cuzk_timeline":{"version":7}}"#);
    assert!(matches!(read(&lines), Err(ReadError::Version { found: 7, supported: 1 })));
    let (lines, _) = with("cuzk_timeline", r#"{"cuzk_timeline":{"version":1}}"#);
    assert!(matches!(read(&lines), Err(ReadError::Header { .. })));
    let long = vec![b'x'; 2 << 20];
    assert!(matches!(Timeline::read(&long[..]), Err(ReadError::LineTooLong { line: 1, .. })));
}
