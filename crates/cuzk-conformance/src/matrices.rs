//! Matrices times assignments.

use cuzk_backend::{AssignmentView, CoefficientIndices, DeviceAssignment, MatrixView, RowOffsets};
use cuzk_curve::{Curve, CurveId, ScalarRepr, repr};
use rand::Rng;

use crate::{
    Suite,
    oracle::{rng, scalars, witness},
    suite::{Bench, done},
};

/// An assignment in packed form.
pub(crate) struct Packed<F> {
    pub(crate) values: Vec<F>,
    pub(crate) ones: Vec<u64>,
    pub(crate) wide: Vec<u64>,
    pub(crate) rank: Vec<u32>,
    pub(crate) wide_scalars: Vec<F>,
}

impl<F: ScalarRepr> Packed<F> {
    /// Packs values, the first of which must be one.
    pub(crate) fn new(values: Vec<F>) -> Self {
        let words = values.len().div_ceil(64);
        let mut packed =
            Self { ones: vec![0; words], wide: vec![0; words], rank: vec![0; words], wide_scalars: Vec::new(), values };
        for (v, value) in packed.values.iter().enumerate() {
            let (word, bit) = (v / 64, 1 << (v % 64));
            if v % 64 == 0 {
                packed.rank[word] = packed.wide_scalars.len() as u32;
            }
            if *value == F::ONE {
                packed.ones[word] |= bit;
            } else if *value != F::ZERO {
                packed.wide[word] |= bit;
                packed.wide_scalars.push(*value);
            }
        }
        packed
    }

    /// A witness of `n` variables with every kind of value.
    pub(crate) fn random(n: usize, seed: u64) -> Self {
        let mut values = witness::<F>(n, seed);
        values[0] = F::ONE;
        let packed = Self::new(values);
        let ones: u32 = packed.ones.iter().map(|w| w.count_ones()).sum();
        let zeros = n - ones as usize - packed.wide_scalars.len();
        assert!(n < 64 || (ones > 1 && zeros > 0 && !packed.wide_scalars.is_empty()), "a trivial assignment");
        packed
    }

    pub(crate) fn view(&self, curve: CurveId) -> AssignmentView<'_> {
        AssignmentView {
            curve,
            n_variables: self.values.len() as u64,
            ones: &self.ones,
            wide: &self.wide,
            rank: &self.rank,
            wide_scalars: repr::as_bytes(&self.wide_scalars),
        }
    }

    pub(crate) fn upload(&self, bench: &Bench, curve: CurveId) -> DeviceAssignment {
        done("upload_assignment", bench.stream.upload_assignment(&self.view(curve)))
    }
}

/// A sparse matrix row by row: variables and coefficients by number, in no order, some variables more than once.
struct Sparse<F> {
    rows: Vec<Vec<(u32, u32)>>,
    n_columns: usize,
    dictionary: Vec<F>,
}

impl<F: ScalarRepr> Sparse<F> {
    fn random(n_rows: usize, n_columns: usize, entries: usize, seed: u64) -> Self {
        let mut rng = rng(seed);
        let mut dictionary = vec![F::ONE, -F::ONE, F::from(2), -F::from(1 << 20)];
        dictionary.extend(scalars::<F>(entries, seed));
        dictionary.truncate(entries);
        let rows = (0..n_rows)
            .map(|row| {
                // Empty rows, short ones, and a long one.
                let terms = match row % 5 {
                    _ if row == n_rows / 2 => 700,
                    0 => 0,
                    1 => 1,
                    _ => rng.gen_range(0..12),
                };
                let term = |rng: &mut rand_chacha::ChaCha20Rng| {
                    // Mostly 1 and -1, as in circuits.
                    let coefficient = if rng.r#gen() { rng.gen_range(0..2) } else { rng.gen_range(0..entries as u32) };
                    (rng.gen_range(0..n_columns as u32), coefficient)
                };
                (0..terms).map(|_| term(&mut rng)).collect()
            })
            .collect();
        Self { rows, n_columns, dictionary }
    }

    fn times(&self, values: &[F]) -> Vec<F> {
        let term =
            |(column, coefficient): &(u32, u32)| values[*column as usize] * self.dictionary[*coefficient as usize];
        self.rows.iter().map(|row| row.iter().map(term).sum()).collect()
    }

    fn offsets(&self) -> Vec<u64> {
        let mut offsets = vec![0];
        for row in &self.rows {
            offsets.push(offsets[offsets.len() - 1] + row.len() as u64);
        }
        offsets
    }

    /// Loads it in these widths and compares the product, with zeros behind it.
    fn check(&self, bench: &Bench, curve: CurveId, offsets: RowOffsets<'_>, coefficients: CoefficientIndices<'_>) {
        let columns: Vec<u32> = self.rows.iter().flatten().map(|(column, _)| *column).collect();
        let matrix = done(
            "load_matrix",
            bench.device.load_matrix(&MatrixView {
                curve,
                n_columns: self.n_columns as u64,
                row_offsets: offsets,
                columns: &columns,
                coefficients,
                dictionary: repr::as_bytes(&self.dictionary),
            }),
        );
        assert_eq!((matrix.n_rows(), matrix.n_columns()), (self.rows.len() as u64, self.n_columns as u64));
        for seed in 0..2 {
            let packed = Packed::<F>::random(self.n_columns, seed);
            let assignment = packed.upload(bench, curve);
            let n_rows = self.rows.len();
            let mut expected = self.times(&packed.values);
            assert!(n_rows < 2 || expected.iter().any(|x| *x != F::ZERO), "a trivial product");
            expected.extend([F::ZERO; 5]);
            let guard = F::from(77);
            expected.push(guard);
            let out = bench.upload(&vec![guard; n_rows + 6]);
            for _ in 0..2 {
                done("evaluate", bench.stream.evaluate(&matrix, &assignment, &out, n_rows as u64 + 5));
                let got = bench.download(&out, vec![F::ZERO; n_rows + 6]);
                assert!(got == expected, "{n_rows} rows of {} columns", self.n_columns);
            }
        }
    }
}

fn narrow(x: &[u64]) -> Vec<u32> {
    x.iter().map(|x| u32::try_from(*x).expect("a small matrix")).collect()
}

fn coefficients<F, I: TryFrom<u32>>(matrix: &Sparse<F>) -> Vec<I> {
    let narrow = |(_, coefficient): &(u32, u32)| I::try_from(*coefficient).ok().expect("a small dictionary");
    matrix.rows.iter().flatten().map(narrow).collect()
}

/// Random matrices of several shapes.
pub fn equal_a_naive_product<C: Curve>(suite: &Suite) {
    let bench = suite.bench();
    for (n_rows, n_columns) in [(0, 1), (1, 1), (2, 64), (63, 65), (1000, 200), (200, 1000), (5000, 4097)] {
        let matrix = Sparse::<C::Fr>::random(n_rows, n_columns, 40, n_rows as u64);
        let (offsets, indices) = (narrow(&matrix.offsets()), coefficients::<_, u8>(&matrix));
        matrix.check(&bench, C::ID, RowOffsets::U32(&offsets), CoefficientIndices::U8(&indices));
    }
}

/// Every width of offsets with every width of coefficient indices, with a dictionary that fits and with one that needs it.
pub fn of_every_width<C: Curve>(suite: &Suite) {
    let bench = suite.bench();
    for entries in [2, 300, 70_000] {
        let matrix = Sparse::<C::Fr>::random(300, 300, entries, 7);
        let wide = matrix.offsets();
        let offsets = narrow(&wide);
        for row_offsets in [RowOffsets::U32(&offsets), RowOffsets::U64(&wide)] {
            if entries <= 1 << 8 {
                matrix.check(&bench, C::ID, row_offsets, CoefficientIndices::U8(&coefficients(&matrix)));
            }
            if entries <= 1 << 16 {
                matrix.check(&bench, C::ID, row_offsets, CoefficientIndices::U16(&coefficients(&matrix)));
            }
            matrix.check(&bench, C::ID, row_offsets, CoefficientIndices::U32(&coefficients(&matrix)));
        }
    }
}
