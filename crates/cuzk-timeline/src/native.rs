//! The native form: JSON lines, to keep a timeline and convert it later.
//!
//! The first line is a header `{"cuzk_timeline":{"version":1,…}}`, then each line is one record, `{"track":…}`,
//! `{"circuit":…}`, `{"custom_stage":…}`, `{"pool":…}`, `{"sample":…}`, `{"span":…}`, `{"gap":…}` or `{"mark":…}`, and
//! the last one is `{"records":n}` with their number, so that a file that was cut off is found out. Tracks, stages and
//! pools are numbered in the order of their lines.

use std::io::{self, BufRead, Read, Write};

use serde::{Deserialize, Serialize};

use crate::{
    CircuitId, CustomStage, Dropped, IdleGap, JobMark, Nanos, PoolUse, Sample, Span, Stage, StageId, Timeline, Track,
    TrackId,
};

/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;

/// No record of ours is nearly as long; bounds what a file that is not ours can make [`Timeline::read`] hold.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// Why a file is not read as a timeline. Lines are counted from 1.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("line {line}: {source}")]
    Io {
        /// At which line.
        line: u64,
        /// What the system says.
        source: io::Error,
    },
    /// A line is longer than any record.
    #[error("line {line} is longer than {limit} bytes")]
    LineTooLong {
        /// Which.
        line: u64,
        /// The limit.
        limit: u64,
    },
    /// A line is no record.
    #[error("line {line}: {source}")]
    Record {
        /// Which.
        line: u64,
        /// What is wrong with it, and in which column.
        source: serde_json::Error,
    },
    /// The first line is not a timeline's header.
    #[error("not a timeline: line 1 does not begin with a header: {source}")]
    Header {
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The version is another one.
    #[error("version {found} of the format, but this program reads version {supported}")]
    Version {
        /// The file's.
        found: u64,
        /// Ours.
        supported: u32,
    },
    /// A number refers to something that no line before introduced.
    #[error("line {line}: {what} {number}, but only {known} are known")]
    Unknown {
        /// Which line.
        line: u64,
        /// What it refers to: a track, a custom stage, a pool.
        what: &'static str,
        /// Its number, from 0.
        number: u64,
        /// How many there are.
        known: usize,
    },
    /// Something ends before it starts.
    #[error("line {line}: end {end} is before start {start}")]
    Reversed {
        /// Which line.
        line: u64,
        /// Begin, in nanoseconds.
        start: u64,
        /// End, in nanoseconds.
        end: u64,
    },
    /// The samples of a pool go back in time.
    #[error("line {line}: a sample at {at} follows one at {last} of the same pool")]
    SampleOrder {
        /// Which line.
        line: u64,
        /// Its time, in nanoseconds.
        at: u64,
        /// The time of the one before.
        last: u64,
    },
    /// The file ends without its last line.
    #[error("cut off after line {lines}: the number of records is missing")]
    Truncated {
        /// How many lines there are.
        lines: u64,
    },
    /// The last line states another number of records.
    #[error("line {line} states {stated} records, but there are {found}")]
    Count {
        /// Which line.
        line: u64,
        /// What it states.
        stated: u64,
        /// What there is.
        found: u64,
    },
    /// Something follows the last line.
    #[error("line {line} follows the end of the records")]
    AfterEnd {
        /// Which line.
        line: u64,
    },
}

#[derive(Serialize, Deserialize)]
struct Header {
    version: u64,
    title: String,
    started_unix_ms: Option<u64>,
    start: Nanos,
    end: Nanos,
    dropped: Dropped,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum FirstLine {
    CuzkTimeline(serde_json::Value),
}

/// Only to tell another version from a damaged header.
#[derive(Deserialize)]
struct VersionOnly {
    version: u64,
}

#[derive(Serialize, Deserialize)]
struct Circuit {
    id: CircuitId,
    name: String,
}

#[derive(Serialize, Deserialize)]
struct PoolSample {
    pool: u32,
    #[serde(flatten)]
    sample: Sample,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Track(Track),
    Circuit(Circuit),
    CustomStage(CustomStage),
    Pool(PoolUse),
    Sample(PoolSample),
    Span(Span),
    Gap(IdleGap),
    Mark(JobMark),
    Records(u64),
}

/// Writes lines of one key each, and counts them.
struct Lines<W> {
    out: W,
    count: u64,
    text: Vec<u8>,
}

impl<W: Write> Lines<W> {
    fn line(&mut self, key: &str, value: &impl Serialize) -> io::Result<()> {
        self.text.clear();
        write!(self.text, "{{\"{key}\":")?;
        serde_json::to_writer(&mut self.text, value)?;
        self.text.extend_from_slice(b"}\n");
        let length = self.text.len() as u64;
        if length >= MAX_LINE_BYTES {
            let what = format!("a {key} of {length} bytes, but lines of {MAX_LINE_BYTES} and more are not read back");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        self.count += 1;
        self.out.write_all(&self.text)
    }
}

impl Timeline {
    /// Writes the native form. `out` should be buffered.
    ///
    /// # Errors
    /// Whatever `out` fails with; [`InvalidInput`](io::ErrorKind::InvalidInput) if a text is as long as no recorder
    /// keeps it (1 MiB).
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut lines = Lines { out, count: 0, text: Vec::new() };
        let header = Header {
            version: VERSION.into(),
            title: self.title.clone(),
            started_unix_ms: self.started_unix_ms,
            start: self.start,
            end: self.end,
            dropped: self.dropped,
        };
        lines.line("cuzk_timeline", &header)?;
        self.tracks.iter().try_for_each(|track| lines.line("track", track))?;
        for (id, name) in &self.circuits {
            lines.line("circuit", &Circuit { id: *id, name: name.clone() })?;
        }
        self.custom_stages.iter().try_for_each(|stage| lines.line("custom_stage", stage))?;
        for (number, pool) in (0..).zip(&self.pools) {
            lines.line("pool", pool)?;
            for sample in &pool.samples {
                lines.line("sample", &PoolSample { pool: number, sample: *sample })?;
            }
        }
        self.spans.iter().try_for_each(|span| lines.line("span", span))?;
        self.gaps.iter().try_for_each(|gap| lines.line("gap", gap))?;
        self.marks.iter().try_for_each(|mark| lines.line("mark", mark))?;
        let records = lines.count - 1;
        lines.line("records", &records)?;
        lines.out.flush()
    }

    /// Reads the native form. Memory is bounded by the size of the input.
    ///
    /// # Errors
    /// [`ReadError`], with the line.
    pub fn read(mut input: impl BufRead) -> Result<Self, ReadError> {
        let mut line = 0;
        let mut text = Vec::new();
        let header: Header = match next_line(&mut input, &mut line, &mut text)? {
            false => return Err(ReadError::Truncated { lines: 0 }),
            true => read_header(&text)?,
        };
        check_order(line, header.start, header.end)?;
        let mut timeline = Self {
            title: header.title,
            started_unix_ms: header.started_unix_ms,
            start: header.start,
            end: header.end,
            dropped: header.dropped,
            ..Self::default()
        };
        let mut found = 0;
        while next_line(&mut input, &mut line, &mut text)? {
            match serde_json::from_slice(&text).map_err(|source| ReadError::Record { line, source })? {
                Line::Records(stated) if stated != found => return Err(ReadError::Count { line, stated, found }),
                Line::Records(_) if next_line(&mut input, &mut line, &mut text)? => {
                    return Err(ReadError::AfterEnd { line });
                }
                Line::Records(_) => return Ok(timeline),
                record => timeline.take(record, line)?,
            }
            found += 1;
        }
        Err(ReadError::Truncated { lines: line })
    }

    /// Adds a record, after checking it.
    fn take(&mut self, record: Line, line: u64) -> Result<(), ReadError> {
        match record {
            Line::Track(track) => self.tracks.push(track),
            Line::Circuit(Circuit { id, name }) => _ = self.circuits.insert(id, name),
            Line::CustomStage(stage) => self.custom_stages.push(stage),
            Line::Pool(pool) => self.pools.push(PoolUse { samples: Vec::new(), ..pool }),
            Line::Sample(PoolSample { pool, sample }) => {
                let known = self.pools.len();
                let unknown = ReadError::Unknown { line, what: "pool", number: pool.into(), known };
                let samples = &mut self.pools.get_mut(pool as usize).ok_or(unknown)?.samples;
                if let Some(last) = samples.last().filter(|last| last.at > sample.at) {
                    return Err(ReadError::SampleOrder { line, at: sample.at.0, last: last.at.0 });
                }
                samples.push(sample);
            }
            Line::Span(span) => {
                self.check_track(line, span.track)?;
                if let Stage::Custom(StageId(number)) = span.stage {
                    let known = self.custom_stages.len();
                    check_known(line, "custom stage", number, known)?;
                }
                check_order(line, span.start, span.end)?;
                self.spans.push(span);
            }
            Line::Gap(gap) => {
                self.check_track(line, gap.track)?;
                check_order(line, gap.start, gap.end)?;
                self.gaps.push(gap);
            }
            Line::Mark(mark) => self.marks.push(mark),
            Line::Records(_) => {}
        }
        Ok(())
    }

    fn check_track(&self, line: u64, track: TrackId) -> Result<(), ReadError> {
        check_known(line, "track", track.0, self.tracks.len())
    }
}

fn check_known(line: u64, what: &'static str, number: u32, known: usize) -> Result<(), ReadError> {
    if (number as usize) < known {
        Ok(())
    } else {
        Err(ReadError::Unknown { line, what, number: number.into(), known })
    }
}

fn check_order(line: u64, start: Nanos, end: Nanos) -> Result<(), ReadError> {
    if start <= end { Ok(()) } else { Err(ReadError::Reversed { line, start: start.0, end: end.0 }) }
}

fn read_header(text: &[u8]) -> Result<Header, ReadError> {
    let header = |source| ReadError::Header { source };
    let FirstLine::CuzkTimeline(value) = serde_json::from_slice(text).map_err(header)?;
    let VersionOnly { version: found } = VersionOnly::deserialize(&value).map_err(header)?;
    if found != u64::from(VERSION) {
        return Err(ReadError::Version { found, supported: VERSION });
    }
    Header::deserialize(value).map_err(header)
}

/// Reads the next line that is not blank into `text`; `false` at the end.
fn next_line(input: &mut impl BufRead, line: &mut u64, text: &mut Vec<u8>) -> Result<bool, ReadError> {
    loop {
        text.clear();
        *line += 1;
        let read = input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', text);
        let read = read.map_err(|source| ReadError::Io { line: *line, source })?;
        if read as u64 == MAX_LINE_BYTES && text.last() != Some(&b'\n') {
            return Err(ReadError::LineTooLong { line: *line, limit: MAX_LINE_BYTES });
        }
        if read == 0 {
            *line -= 1;
            return Ok(false);
        }
        if !text.trim_ascii().is_empty() {
            return Ok(true);
        }
    }
}
