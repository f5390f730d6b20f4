//! Texts for callers: without what says more of this machine than its callers need to know.
//!
//! * Paths. A word with a slash or a backslash in it is taken for one, whatever it begins with, except for a few that
//!   are no paths (`MB/s`, `3/10`, `I/O`); it is better to hide too much. In quotes, the whole quotation is hidden, so
//!   a path with blanks in it has to be quoted, as `Debug` does. The name of a file alone stays: it says what is
//!   missing, and not where.
//! * The numbers that a prover gives to jobs. Callers know another name for theirs.
//!
//! Whatever is said to callers of a job passes here once, before it is kept, so that nothing that is kept has to be
//! looked through again; the log has the text as it was.

use std::borrow::Cow;

use crate::prover::{Look, Prover};

/// A look at a prover, with its own words made fit for callers.
pub(crate) fn look(prover: &dyn Prover) -> Look {
    let mut look = prover.look();
    let clean = |text: &mut String| {
        if let Cow::Owned(shown) = for_callers(text) {
            *text = shown;
        }
    };
    clean(&mut look.workers);
    look.unable.iter_mut().for_each(clean);
    for device in &mut look.devices {
        clean(&mut device.health);
        device.idle_reason.iter_mut().for_each(clean);
    }
    look
}

/// What stands in place of a path.
const HIDDEN: &str = "(a path)";

/// Words with a slash that are no paths, in lower case.
const NO_PATHS: [&str; 6] = ["and/or", "i/o", "n/a", "tcp/ip", "http/1.1", "http/2"];

/// A text without paths and without a prover's numbers of jobs; borrowed if nothing had to be hidden.
pub(crate) fn for_callers(text: &str) -> Cow<'_, str> {
    let text = &text[..text.floor_char_boundary(LONGEST)];
    match without_paths(text) {
        Cow::Borrowed(text) => without_numbers(text),
        Cow::Owned(text) => Cow::Owned(without_numbers(&text).into_owned()),
    }
}

/// Bytes of a text that are looked through; the rest is cut off.
const LONGEST: usize = 4096;

fn is_separator(c: char) -> bool {
    matches!(c, '/' | '\\')
}

/// Between words that touch.
fn is_soft_break(c: char) -> bool {
    "()[]{}<>,;=|\"'`".contains(c)
}

/// Ends a sentence, or a word in it.
fn is_end(c: char) -> bool {
    c.is_whitespace() || ".,;:!?)]}>".contains(c)
}

/// Whether a word, or a part of one, is a path.
fn is_path(word: &str) -> bool {
    let word = word.trim_end_matches(is_end);
    let Some((left, right)) = word.split_once(is_separator) else { return false };
    let lower = word.to_ascii_lowercase();
    let rate = matches!(right, "s" | "min" | "h") && !left.is_empty() && left.chars().all(char::is_alphanumeric);
    let ratio = left.ends_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || matches!(c, '/' | '.'));
    let says_nothing = word.chars().all(|c| is_separator(c) || matches!(c, '.' | '~'));
    !(rate || ratio || says_nothing || NO_PATHS.contains(&lower.as_str()))
}

/// Where the path in a word begins and ends, if there is one.
fn path_in(word: &str) -> Option<(usize, usize)> {
    let mut begin = 0;
    for piece in word.split_inclusive(is_soft_break) {
        if is_path(piece.trim_end_matches(is_soft_break)) {
            // To the end of the word: brackets and commas may be the path's own. What ends a sentence is not.
            let path = word[begin..].trim_end_matches(|c| is_end(c) || is_soft_break(c));
            return Some((begin, begin + path.len()));
        }
        begin += piece.len();
    }
    None
}

/// The end of a quotation, behind its last mark, if one begins here.
fn quotation(text: &str) -> Option<usize> {
    let mark = text.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        let next = text[at + c.len_utf8()..].chars().next();
        // An apostrophe is no end of a quotation, and a path may end in a backslash.
        if c == mark && next.is_none_or(|next| is_end(next) || is_soft_break(next)) && (!escaped || next.is_none()) {
            return Some(at + 1);
        }
        escaped = c == '\\' && !escaped;
    }
    None
}

fn without_paths(text: &str) -> Cow<'_, str> {
    if !text.contains(is_separator) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    let mut hidden = false;
    let mut rest = text;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        let begins = before.is_none_or(|c: char| c.is_whitespace() || is_soft_break(c) || c == ':');
        let taken = if let Some(end) = quotation(rest).filter(|_| begins) {
            let inner = &rest[1..end - 1];
            if inner.split(char::is_whitespace).any(|word| path_in(word).is_some()) {
                hidden = true;
                shown.extend([&rest[..1], HIDDEN, &rest[end - 1..end]]);
            } else {
                shown += &rest[..end];
            }
            end
        } else if first.is_whitespace() {
            shown.push(first);
            first.len_utf8()
        } else {
            let end = end_of_word(rest);
            let word = &rest[..end];
            match path_in(word) {
                Some((from, to)) => {
                    hidden = true;
                    shown.extend([&word[..from], HIDDEN, &word[to..]]);
                }
                None => shown += word,
            }
            end
        };
        before = rest[..taken].chars().next_back();
        rest = &rest[taken..];
    }
    if hidden { Cow::Owned(shown) } else { Cow::Borrowed(text) }
}

/// To the next blank, or the next quotation.
fn end_of_word(text: &str) -> usize {
    let mut before: Option<char> = None;
    for (at, c) in text.char_indices() {
        let quoted = || before.is_some_and(|b| is_soft_break(b) || b == ':') && quotation(&text[at..]).is_some();
        if c.is_whitespace() || (at > 0 && quoted()) {
            return at;
        }
        before = Some(c);
    }
    text.len()
}

/// `partition 3 of job 17` becomes `partition 3`, and `job 17` becomes `the job`. Names of ours have more than digits.
fn without_numbers(text: &str) -> Cow<'_, str> {
    const JOB: &str = "job ";
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(JOB) {
        let (head, tail) = rest.split_at(at);
        let number = &tail[JOB.len()..];
        let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        let alone = !head.ends_with(word) && !number[digits..].starts_with(word);
        if digits == 0 || !alone {
            shown.extend([head, JOB]);
            rest = number;
            continue;
        }
        match head.strip_suffix(" of ") {
            Some(head) => shown += head,
            None => shown.extend([head, "the job"]),
        }
        rest = &number[digits..];
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    shown += rest;
    if shown == text { Cow::Borrowed(text) } else { Cow::Owned(shown) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_path_stays() {
        for text in [
            "vanilla_proof: missing field `Phase1Out` at line 1 column 2",
            "a / b",
            "200 MB/s, 3/10 partitions and/or 0.4/1; I/O error; 5 proofs/min.",
            "there is no key for porep-32g: v28-stacked-proof.params is missing",
            "the sector's data is not what the client's proof says",
            "\"10 MB/s\"",
            "C: and D:",
            "",
        ] {
            assert!(matches!(for_callers(text), Cow::Borrowed(same) if same == text), "{text}: {}", for_callers(text));
        }
    }

    #[test]
    fn paths_stay_here() {
        for (text, shown) in [
            ("no key at /data/zk/params/v28.params: not found", "no key at (a path): not found"),
            ("\"/etc/x y\" and '~/z'.", "\"(a path)\" and '(a path)'."),
            ("open(./plugins/libcuda.so)", "open((a path))"),
            ("see file:///a/b, path=/c.", "see (a path), path=(a path)."),
            ("keys/foo.params: No such file", "(a path): No such file"),
            ("cannot read keys\\foo.params", "cannot read (a path)"),
            ("C:\\keys\\foo.params, \\\\server\\share", "(a path), (a path)"),
            ("\"C:\\\\keys\\\\foo.params\" is gone", "\"(a path)\" is gone"),
            ("io(\"/a b/c\"): the sector's /d/e", "io(\"(a path)\"): the sector's (a path)"),
            ("{path:\"/x y/z\",n:3}", "{path:\"(a path)\",n:3}"),
            ("panicked at crates/x/src/lib.rs:3:5:", "panicked at (a path):"),
            ("unterminated \"/a/b", "unterminated \"(a path)"),
        ] {
            assert_eq!(for_callers(text), shown);
        }
    }

    #[test]
    fn numbers_of_jobs_stay_here() {
        for (text, shown) in [
            ("partition 3 of job 17: device fault", "partition 3: device fault"),
            ("job 17 failed, job 18", "the job failed, the job"),
            ("partition 3 of job 17 /a/b", "partition 3 (a path)"),
        ] {
            assert_eq!(for_callers(text), shown);
        }
        for text in ["job 0a1b2c3d-17 goes on", "job 12345678-5", "no job 5x", "subjob 5", "job five", "job"] {
            assert!(matches!(for_callers(text), Cow::Borrowed(_)), "{text}");
        }
    }

    /// Part of every component of a path below, and of nothing else.
    const MARK: &str = "Zq";

    const ROOTS: &[&str] =
        &["/", "./", "../", "~/", "~user/", "", "file:///", "unix:///", "C:\\", "\\\\", "C:/", "..\\"];

    fn component(odd: &'static str) -> impl Strategy<Value = String> {
        let odd: Vec<char> = odd.chars().collect();
        let tail = prop::collection::vec(
            prop_oneof![4 => "[a-z0-9_.-]", 1 => prop::sample::select(odd).prop_map(String::from)],
            0..8,
        );
        tail.prop_map(|tail| format!("{MARK}{}x", tail.concat()))
    }

    /// A path of several components, by this machine's rules or others'.
    fn path(odd: &'static str) -> impl Strategy<Value = String> {
        // The first one is plain: a relative path cannot begin with what ends a word.
        let components = (component("é"), prop::collection::vec(component(odd), 1..4));
        (prop::sample::select(ROOTS), components).prop_map(|(root, (first, rest))| {
            let separator = if root.contains('\\') { "\\" } else { "/" };
            format!("{root}{first}{separator}{}", rest.join(separator))
        })
    }

    proptest! {
        #[test]
        fn no_part_of_a_path_is_shown(
            bare in path("é(),;=+@%#~[]{}&!"),
            quoted in path("é(),;= +@%#~[]{}&!'"),
            frame in 0..8,
        ) {
            let debug = format!("{quoted:?}");
            let (text, left) = match frame {
                0 => (format!("no key at {bare}: not found"), "no key at"),
                1 => (format!("open({bare}): not found"), "open("),
                2 => (format!("cannot copy {bare} to {debug}, it seems"), "it seems"),
                3 => (format!("path={bare}, error=2"), "error=2"),
                4 => (format!("{bare}:12:5: expected a value"), "expected a value"),
                5 => (format!("Os {{ path: {debug}, code: 2 }}"), "code: 2"),
                6 => (format!("cannot open {debug}"), "cannot open"),
                _ => (format!("the sector's {bare}"), "the sector's"),
            };
            let shown = for_callers(&text);
            prop_assert!(!shown.contains(MARK), "{} of {}", shown, text);
            prop_assert!(shown.contains(HIDDEN) && shown.contains(left), "{} of {}", shown, text);
            prop_assert_eq!(&for_callers(&shown), &shown);
        }

        #[test]
        fn any_text_is_dealt_with(text in "\\PC{0,60}", number in any::<u64>()) {
            let shown = for_callers(&text);
            prop_assert!(text.contains(is_separator) || text.contains("job ") || shown == text);
            let numbered = format!("{text} partition 2 of job {number}");
            prop_assert!(for_callers(&numbered).ends_with(" partition 2"), "{}", numbered);
        }
    }
}
