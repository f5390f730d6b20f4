//! A strict reader of Prometheus' text format 0.0.4, written from its description
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>): it also refuses what scrapers forgive, such as
//! families in pieces, samples without a type, repeated samples and histograms that do not add up.

use std::collections::{BTreeMap, BTreeSet};

/// Names and values of labels.
pub(super) type Labels = BTreeMap<String, String>;

/// A family: its type and its samples.
#[derive(Debug, Default)]
pub(super) struct Family {
    pub(super) kind: String,
    /// By the whole name, which a histogram has endings to, and by labels.
    pub(super) samples: BTreeMap<(String, Labels), f64>,
}

impl Family {
    /// The sample without an ending that has exactly these labels.
    pub(super) fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        self.samples.get(&(name.to_owned(), labels)).copied()
    }
}

fn is_name(name: &str, colon: bool) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_' || colon && c == ':';
    name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit())
}

/// The labels of `{…}` and what follows.
fn labels(text: &str) -> Result<(Labels, &str), String> {
    let mut labels = Labels::new();
    let Some(mut rest) = text.strip_prefix('{') else { return Ok((labels, text)) };
    loop {
        let (name, value) = rest.split_once("=\"").ok_or(format!("no label: {rest}"))?;
        if !is_name(name, false) {
            return Err(format!("not the name of a label: {name:?}"));
        }
        let mut unescaped = String::new();
        let mut chars = value.char_indices();
        let end = loop {
            match chars.next().ok_or("a label does not end")? {
                (at, '"') => break at,
                (_, '\\') => match chars.next().ok_or("a label ends within an escape")?.1 {
                    'n' => unescaped.push('\n'),
                    c @ ('\\' | '"') => unescaped.push(c),
                    c => return Err(format!("unknown escape: {c:?}")),
                },
                (_, c) => unescaped.push(c),
            }
        };
        if labels.insert(name.to_owned(), unescaped).is_some() {
            return Err(format!("the label {name} occurs twice"));
        }
        rest = &value[end + 1..];
        match rest.chars().next() {
            Some(',') => rest = &rest[1..],
            Some('}') => return Ok((labels, &rest[1..])),
            _ => return Err(format!("neither , nor }} after a label: {rest}")),
        }
    }
}

fn number(text: &str) -> Result<f64, String> {
    match text {
        "+Inf" => Ok(f64::INFINITY),
        "-Inf" => Ok(f64::NEG_INFINITY),
        "NaN" => Ok(f64::NAN),
        _ if text.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c)) => {
            text.parse().map_err(|_| format!("not a number: {text}"))
        }
        _ => Err(format!("not a number: {text}")),
    }
}

/// Reads a text, or says what is wrong with it.
pub(super) fn read(text: &str) -> Result<BTreeMap<String, Family>, String> {
    let body = text.strip_suffix('\n').ok_or("the last line does not end")?;
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in body.split('\n') {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').ok_or(format!("no help: {line}"))?;
            if !is_name(name, true) || help.is_empty() {
                return Err(format!("a bad line: {line}"));
            }
            if families.insert(name.to_owned(), Family::default()).is_some() {
                return Err(format!("{name} occurs twice"));
            }
            current = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').ok_or(format!("no type: {line}"))?;
            let family = families.get_mut(name).filter(|_| name == current).ok_or(format!("no help before: {line}"))?;
            if !family.kind.is_empty() || !["counter", "gauge", "histogram", "untyped"].contains(&kind) {
                return Err(format!("a bad type: {line}"));
            }
            family.kind = kind.to_owned();
        } else {
            let end = line.find(['{', ' ']).ok_or(format!("no value: {line}"))?;
            let (name, rest) = line.split_at(end);
            let (labels, rest) = labels(rest)?;
            let value = number(rest.strip_prefix(' ').ok_or(format!("no value: {line}"))?)?;
            let family = families.get_mut(&current).ok_or(format!("no family: {line}"))?;
            let ending = name.strip_prefix(&current).ok_or(format!("not of {current}: {line}"))?;
            let allowed: &[&str] = match family.kind.as_str() {
                "" => return Err(format!("no type before: {line}")),
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            if !allowed.contains(&ending) || !is_name(name, true) {
                return Err(format!("not a sample of {current}: {line}"));
            }
            if family.kind == "counter" && (value.is_nan() || value < 0.0) {
                return Err(format!("a negative counter: {line}"));
            }
            if family.samples.insert((name.to_owned(), labels), value).is_some() {
                return Err(format!("a repeated sample: {line}"));
            }
        }
    }
    let mut histograms = families.iter().filter(|(_, family)| family.kind == "histogram");
    histograms.try_for_each(|(name, family)| adds_up(name, family))?;
    Ok(families)
}

/// For each set of labels: classes that grow up to the count, which is there as the sum is.
fn adds_up(name: &str, family: &Family) -> Result<(), String> {
    let mut classes: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    let mut others: BTreeSet<Labels> = BTreeSet::new();
    for ((sample, labels), value) in &family.samples {
        let mut labels = labels.clone();
        if sample.ends_with("_bucket") {
            let bound = number(&labels.remove("le").ok_or(format!("{name}: a class without a bound"))?)?;
            classes.entry(labels).or_default().push((bound, *value));
        } else {
            others.insert(labels);
        }
    }
    if others != classes.keys().cloned().collect() {
        return Err(format!("{name}: sums and classes have different labels"));
    }
    for (labels, mut of) in classes {
        of.sort_by(|a, b| a.0.total_cmp(&b.0));
        let grows = of.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        let count = family.samples.get(&(format!("{name}_count"), labels.clone()));
        let sum = family.samples.get(&(format!("{name}_sum"), labels.clone()));
        if !grows || of.last().map(|(bound, n)| (*bound, n)) != count.map(|n| (f64::INFINITY, n)) || sum.is_none() {
            return Err(format!("{name}: does not add up for {labels:?}"));
        }
    }
    Ok(())
}

#[test]
fn the_reader_is_strict() {
    let head = "# HELP a Help.\n# TYPE a gauge\n";
    let good = format!("{head}a 1\na{{b=\"x\\\"\\\\\\n\",c=\"\"}} +Inf\n");
    assert_eq!(read(&good).unwrap()["a"].value("a", &[("b", "x\"\\\n"), ("c", "")]), Some(f64::INFINITY));
    let wrong = [
        "a 1\n".to_owned(),
        head.trim_end().to_owned(),
        format!("{head}a 1"),
        format!("{head}a 1\na 2\n"),
        format!("{head}b 1\n"),
        format!("{head}a  1\n"),
        format!("{head}a inf\n"),
        format!("{head}a{{}} 1\n"),
        format!("{head}a{{b=\"x\"}}1\n"),
        format!("{head}a{{b=\"\\x\"}} 1\n"),
        format!("{head}a{{b=\"x\",b=\"y\"}} 1\n"),
        format!("{head}a{{1=\"x\"}} 1\n"),
        format!("{head}\na 1\n"),
        format!("{head}{head}"),
        format!("{head}# HELP b B.\n# TYPE b gauge\na 1\n"),
        "# TYPE a gauge\na 1\n".to_owned(),
        "# HELP a Help.\na 1\n".to_owned(),
        "# HELP a Help.\n# TYPE a counter\na -1\n".to_owned(),
        "# HELP a Help.\n# TYPE a histogram\na_bucket{le=\"1\"} 1\na_sum 1\na_count 1\n".to_owned(),
        "# HELP a Help.\n# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n"
            .to_owned(),
        "# HELP a Help.\n# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_count 1\n".to_owned(),
    ];
    for text in wrong {
        assert!(read(&text).is_err(), "{text}");
    }
}
