//! Fixtures, and a constraint system that owes nothing to the one under test.
#![allow(dead_code, unreachable_pub, reason = "each test binary compiles this module and uses its own part of it")]

use std::{fs, path::PathBuf};

use bellpepper_core::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar as Fr;
use cuzk_filecoin::{
    FilecoinError, SectorSize, Statement, UpdateStatement, WindowPostVersion, WindowStatement, WinningStatement,
    parse_c1, parse_vanilla_list,
};
use ff::{Field, PrimeField};
use serde_json::Value;

/// A file below the fixtures' folder.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/filecoin").join(name)
}

pub fn read(name: &str) -> Vec<u8> {
    fs::read(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub fn json(name: &str) -> Value {
    serde_json::from_slice(&read(name)).unwrap()
}

/// A field of `meta.json`, 32 bytes in hexadecimal.
pub fn bytes32(meta: &Value, key: &str) -> [u8; 32] {
    let text = meta[key].as_str().unwrap_or_else(|| panic!("{key}"));
    hex::decode(text).unwrap().try_into().unwrap()
}

pub fn vanilla(name: &str) -> Vec<Vec<u8>> {
    parse_vanilla_list(&read(name)).unwrap()
}

pub fn size_of(folder: &str) -> SectorSize {
    match folder.split('/').next() {
        Some("2kib") => SectorSize::KiB2,
        Some("8mib") => SectorSize::MiB8,
        _ => panic!("{folder}"),
    }
}

pub fn winning(folder: &str, vanilla: &[Vec<u8>]) -> Result<WinningStatement, FilecoinError> {
    let meta = json(&format!("{folder}/meta.json"));
    WinningStatement::new(size_of(folder), bytes32(&meta, "prover_id"), bytes32(&meta, "randomness"), vanilla)
}

pub fn window(
    folder: &str,
    version: WindowPostVersion,
    first_partition: u32,
    vanilla: &[Vec<u8>],
) -> Result<WindowStatement, FilecoinError> {
    let meta = json(&format!("{folder}/meta.json"));
    WindowStatement::new(
        size_of(folder),
        version,
        bytes32(&meta, "prover_id"),
        bytes32(&meta, "randomness"),
        first_partition,
        vanilla,
    )
}

pub fn update(folder: &str, vanilla: &[Vec<u8>]) -> Result<UpdateStatement, FilecoinError> {
    let meta = json(&format!("{folder}/meta.json"));
    UpdateStatement::new(
        size_of(folder),
        bytes32(&meta, "comm_r_old"),
        bytes32(&meta, "comm_r_new"),
        bytes32(&meta, "comm_d_new"),
        vanilla,
    )
}

/// All sectors of both window partitions.
pub fn window_vanilla(folder: &str) -> Vec<Vec<u8>> {
    let mut all = vanilla(&format!("{folder}/vanilla-p0.json"));
    all.extend(vanilla(&format!("{folder}/vanilla-p1.json")));
    all
}

/// The whole statement of a fixture folder, such as `2kib/porep`.
pub fn statement(folder: &str) -> Statement {
    match folder.split('/').nth(1) {
        Some("porep") => parse_c1(&read(&format!("{folder}/c1.json"))).unwrap().into(),
        Some("winning") => {
            let vanilla = vanilla(&format!("{folder}/vanilla.json"));
            winning(folder, &vanilla).unwrap().into()
        }
        Some("window") => {
            let vanilla = window_vanilla(folder);
            let version = WindowPostVersion::default();
            window(folder, version, 0, &vanilla).unwrap().into()
        }
        Some("update") => {
            let vanilla = vanilla(&format!("{folder}/vanilla.json"));
            update(folder, &vanilla).unwrap().into()
        }
        _ => panic!("{folder}"),
    }
}

/// `public_inputs.json`, by partition.
pub fn public_inputs(folder: &str) -> Vec<Vec<Fr>> {
    let json = json(&format!("{folder}/public_inputs.json"));
    let scalar = |text: &Value| {
        let bytes: [u8; 32] = hex::decode(text.as_str().unwrap()).unwrap().try_into().unwrap();
        Fr::from_repr(bytes).unwrap()
    };
    json.as_array()
        .unwrap()
        .iter()
        .map(|partition| partition.as_array().unwrap().iter().map(scalar).collect())
        .collect()
}

/// Evaluates every constraint as it comes and stores everything densely.
pub struct Dense {
    pub inputs: Vec<Fr>,
    pub aux: Vec<Fr>,
    /// A·w, B·w, C·w.
    pub products: [Vec<Fr>; 3],
    /// Whether an auxiliary variable occurs in A, in B.
    pub aux_density: [Vec<bool>; 2],
    /// Whether an input occurs in A, in B.
    pub input_density: [Vec<bool>; 2],
}

impl Dense {
    pub fn synthesize(circuit: impl Circuit<Fr>) -> Self {
        let mut cs = <Self as ConstraintSystem<Fr>>::new();
        cs.alloc_input(|| "ONE", || Ok(Fr::ONE)).unwrap();
        circuit.synthesize(&mut cs).unwrap();
        for i in 0..cs.inputs.len() {
            let input = Variable(Index::Input(i));
            cs.enforce(|| "input", |lc| lc + input, |lc| lc, |lc| lc);
        }
        cs
    }

    fn product(&mut self, matrix: usize, lc: &LinearCombination<Fr>) {
        let mut sum = Fr::ZERO;
        for (variable, coefficient) in lc.iter() {
            if coefficient.is_zero_vartime() {
                continue;
            }
            let (value, densities, i) = match variable.get_unchecked() {
                Index::Input(i) => (self.inputs[i], &mut self.input_density, i),
                Index::Aux(i) => (self.aux[i], &mut self.aux_density, i),
            };
            sum += value * coefficient;
            if let Some(density) = densities.get_mut(matrix) {
                density[i] = true;
            }
        }
        self.products[matrix].push(sum);
    }
}

impl ConstraintSystem<Fr> for Dense {
    type Root = Self;

    fn new() -> Self {
        Self {
            inputs: Vec::new(),
            aux: Vec::new(),
            products: Default::default(),
            aux_density: Default::default(),
            input_density: Default::default(),
        }
    }

    fn alloc<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Fr, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.aux.push(value()?);
        self.aux_density.iter_mut().for_each(|d| d.push(false));
        Ok(Variable(Index::Aux(self.aux.len() - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Fr, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.inputs.push(value()?);
        self.input_density.iter_mut().for_each(|d| d.push(false));
        Ok(Variable(Index::Input(self.inputs.len() - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Fr>) -> LinearCombination<Fr>,
        LB: FnOnce(LinearCombination<Fr>) -> LinearCombination<Fr>,
        LC: FnOnce(LinearCombination<Fr>) -> LinearCombination<Fr>,
    {
        self.product(0, &a(LinearCombination::zero()));
        self.product(1, &b(LinearCombination::zero()));
        self.product(2, &c(LinearCombination::zero()));
    }

    fn push_namespace<NR, N>(&mut self, _: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}
