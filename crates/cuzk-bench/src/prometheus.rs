//! Reading Prometheus' text format, as far as a client of our own metrics needs it.

/// A sample: name, labels, value.
#[derive(Clone, Debug, PartialEq)]
struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

/// What a server's metrics say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Metrics(Vec<Sample>);

impl Metrics {
    /// Reads what is well-formed, and skips the rest: a bench is no judge of formats.
    pub(crate) fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(sample).collect())
    }

    /// The value of a metric without labels.
    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|s| s.name == name && s.labels.is_empty()).map(|s| s.value)
    }

    /// The value of the sample in which a label has this value.
    pub(crate) fn labelled(&self, name: &str, label: &str, value: &str) -> Option<f64> {
        let has = |s: &&Sample| s.name == name && s.labels.iter().any(|(k, v)| k == label && v == value);
        self.0.iter().find(has).map(|s| s.value)
    }
}

fn sample(line: &str) -> Option<Sample> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':')).filter(|end| *end > 0)?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(after) = rest.strip_prefix('{') {
        rest = after.trim_start();
        loop {
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            }
            let (label, after) = rest.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            labels.push((label.trim().to_owned(), value));
            rest = after.trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
    }
    // After the value a time may follow.
    let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Sample { name: name.to_owned(), labels, value })
}

/// A quoted text after its opening quote, and what follows the closing one.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_with_their_labels() {
        let metrics = Metrics::parse(
            "# HELP a A.\n# TYPE a gauge\na 1.5\n\
             b{device=\"0\",name=\"an \\\"odd\\\" \\\\ one, }\\n\"} 2e3 1700000000\n\
             b{device=\"1\",} +Inf\nprocess_resident_memory_bytes 1.2345e+07\nbroken{x=\"1\nnot a sample\n{} 1\n\n",
        );
        assert_eq!(metrics.0.len(), 4);
        assert_eq!(metrics.get("a"), Some(1.5));
        assert_eq!(metrics.get("b"), None, "it has labels");
        assert_eq!(metrics.labelled("b", "device", "0"), Some(2000.0));
        assert_eq!(metrics.labelled("b", "name", "an \"odd\" \\ one, }\n"), Some(2000.0));
        assert_eq!(metrics.labelled("b", "device", "1"), Some(f64::INFINITY));
        assert_eq!(metrics.get("process_resident_memory_bytes"), Some(12_345_000.0));
        assert_eq!(metrics.labelled("b", "device", "2"), None);
    }
}
