//! The grammar: a decimal number and a unit, read exactly.

/// A text that is not the quantity that was asked for. Whoever asked knows the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// No number, or no unit that is known.
    #[error("expected {expected}")]
    Form {
        /// What it must be.
        expected: &'static str,
    },
    /// More than can be counted.
    #[error("expected at most {most} {unit}")]
    Range {
        /// The most.
        most: u64,
        /// Of which unit.
        unit: &'static str,
    },
}

/// A kind of quantity.
pub(crate) struct Grammar {
    /// Names of units and how many of the smallest they are.
    pub(crate) units: &'static [(&'static str, u64)],
    /// What a number without a unit counts.
    pub(crate) bare: u64,
    /// For errors: what is read.
    pub(crate) expected: &'static str,
    /// For errors: the smallest unit.
    pub(crate) smallest: &'static str,
}

impl Grammar {
    /// ⌊number·unit⌋, in the smallest unit.
    pub(crate) fn read(&self, text: &str) -> Result<u64, QuantityError> {
        let form = QuantityError::Form { expected: self.expected };
        let range = QuantityError::Range { most: u64::MAX, unit: self.smallest };
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, name) = text.split_at(end);
        let name = name.trim_start();
        let unit = if name.is_empty() {
            self.bare
        } else {
            self.units.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).ok_or(form)?.1
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(form);
        }
        // Only digits are left, so that a failure is a number that is too large.
        let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().map_err(|_| range)? };
        // From the last digit to the first, with what the digits behind it make: ⌊(d·unit + rest) / 10⌋. Rounding down
        // at each step is rounding down once, since d·unit is an integer.
        let part = fraction.bytes().rev().fold(0, |rest, digit| (u64::from(digit - b'0') * unit + rest) / 10);
        whole.checked_mul(unit).and_then(|n| n.checked_add(part)).ok_or(range)
    }
}
