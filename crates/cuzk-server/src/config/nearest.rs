//! What somebody may have meant.

/// Longer words are no misspelt keys.
const LONGEST: usize = 80;

/// The candidate that takes the fewest insertions, deletions, substitutions and swaps of neighbours, unless that is
/// more than a third of the word. A key that stands in another section is near.
pub(super) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let last = |name: &str| name.rsplit('.').next().map(str::to_owned);
    let distance = |candidate: &str| {
        let whole = distance(word, candidate);
        let elsewhere = last(word).zip(last(candidate)).is_some_and(|(a, b)| a == b);
        if elsewhere { whole.min(1) } else { whole }
    };
    let best = candidates.into_iter().map(|candidate| (distance(candidate), candidate)).min()?;
    (best.0 <= word.chars().count().div_ceil(3)).then_some(best.1)
}

/// Optimal string alignment distance.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let above = &rows[i - 1];
            let mut least = (above[j] + 1).min(row[j - 1] + 1).min(above[j - 1] + usize::from(a[i - 1] != b[j - 1]));
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_textbook() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("listen", "listen"), 0);
    }

    #[test]
    fn the_nearest_is_near() {
        let names = ["daemon.listen", "daemon.status_listen", "gpus.devices"];
        assert_eq!(nearest("daemon.lisetn", names), Some("daemon.listen"));
        assert_eq!(nearest("gpu.device", names), Some("gpus.devices"));
        assert_eq!(nearest("backend.devices", names), Some("gpus.devices"));
        assert_eq!(nearest("something.else", names), None);
        assert_eq!(nearest("x", []), None);
    }
}
