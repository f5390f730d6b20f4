//! The text format of Prometheus, version 0.0.4.
//!
//! Written here rather than by a client library: those that are well kept write OpenMetrics, whose counters have to
//! end in `_total`, and the names that clients know include `cuzk_proofs_completed{proof_kind}`.

use std::fmt::{self, Write};

use crate::jobs::Histogram;

/// Content type of the text.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the values of a family mean.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// It grows, and starts from zero with the process.
    Counter,
    /// It goes up and down.
    Gauge,
    /// It is counted by classes.
    Histogram,
    /// It is what clients know under this name, of a type that the name's ending does not say.
    Untyped,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Untyped => "untyped",
        })
    }
}

/// Names and values of labels.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// A text that is being written, family by family.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
    family: &'static str,
}

impl Exposition {
    /// Begins a family; samples follow. Families without samples are allowed, and stay without.
    pub(super) fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> &mut Self {
        self.family = name;
        // Texts are our own: no backslash, no line feed.
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
        self
    }

    /// A family with one sample.
    pub(super) fn single(&mut self, name: &'static str, kind: Kind, help: &str, value: f64) {
        self.family(name, kind, help).sample(&[], value);
    }

    /// A sample of the family.
    pub(super) fn sample(&mut self, labels: Labels<'_>, value: f64) {
        self.named("", labels, None, value);
    }

    /// The samples of a histogram.
    pub(super) fn histogram(&mut self, labels: Labels<'_>, histogram: &Histogram) {
        let mut so_far = 0;
        for (bound, count) in Histogram::BOUNDS.into_iter().chain([f64::INFINITY]).zip(histogram.counts) {
            so_far += count;
            self.named("_bucket", labels, Some(bound), so_far as f64);
        }
        self.named("_sum", labels, None, histogram.sum);
        self.named("_count", labels, None, histogram.count() as f64);
    }

    /// The text.
    pub(super) fn finish(self) -> String {
        self.text
    }

    fn named(&mut self, ending: &str, labels: Labels<'_>, bound: Option<f64>, value: f64) {
        let family = self.family;
        self.line(format_args!("{family}{ending}{} {}", Braces(labels, bound), Number(value)));
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a string fails only if a `Display` does, and none here does.
        let _ = writeln!(self.text, "{line}");
    }
}

/// Labels in braces, with the bound of a class as the last one.
struct Braces<'a>(Labels<'a>, Option<f64>);

impl fmt::Display for Braces<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(labels, bound) = self;
        if labels.is_empty() && bound.is_none() {
            return Ok(());
        }
        f.write_char('{')?;
        for (place, (name, value)) in labels.iter().enumerate() {
            write!(f, "{}{name}=\"{}\"", if place > 0 { "," } else { "" }, Escaped(value))?;
        }
        if let Some(bound) = bound {
            write!(f, "{}le=\"{}\"", if labels.is_empty() { "" } else { "," }, Number(*bound))?;
        }
        f.write_char('}')
    }
}

/// The value of a label, with what would end it escaped.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\\' => f.write_str("\\\\"),
            '"' => f.write_str("\\\""),
            '\n' => f.write_str("\\n"),
            other => f.write_char(other),
        })
    }
}

/// A number as the format has it. Whole numbers up to 2^53 come out exactly.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            x if x.is_nan() => f.write_str("NaN"),
            f64::INFINITY => f.write_str("+Inf"),
            f64::NEG_INFINITY => f.write_str("-Inf"),
            x => write!(f, "{x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn lines_are_as_the_format_wants_them() {
        let mut text = Exposition::default();
        text.single("a_bytes", Kind::Gauge, "Bytes.", (1_u64 << 53) as f64);
        text.family("b_total", Kind::Counter, "Things.").sample(&[("name", "a\\b\"c\nd"), ("n", "é")], 0.5);
        text.family("c", Kind::Untyped, "Numbers.").sample(&[], f64::INFINITY);
        let mut histogram = Histogram::default();
        histogram.add(Duration::from_millis(1_500));
        text.family("d_seconds", Kind::Histogram, "Times.").histogram(&[("kind", "k")], &histogram);
        let text = text.finish();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..3], ["# HELP a_bytes Bytes.", "# TYPE a_bytes gauge", "a_bytes 9007199254740992"]);
        assert_eq!(lines[5], r#"b_total{name="a\\b\"c\nd",n="é"} 0.5"#);
        assert_eq!(lines[8], "c +Inf");
        assert_eq!(lines[11], r#"d_seconds_bucket{kind="k",le="0.01"} 0"#);
        assert_eq!(lines[18], r#"d_seconds_bucket{kind="k",le="2.5"} 1"#);
        let tail = [
            r#"d_seconds_bucket{kind="k",le="+Inf"} 1"#,
            r#"d_seconds_sum{kind="k"} 1.5"#,
            r#"d_seconds_count{kind="k"} 1"#,
        ];
        assert_eq!(lines[27..], tail);
        assert!(text.ends_with('\n'));
    }
}
