//! Plans of what lies where, on a device that takes memory exactly as it says: what is predicted is what is seen, and
//! it never exceeds the cap.

mod common;

use blstrs::Scalar;
use common::Squarings;
use cuzk_backend::{AssignmentShape, Device, MatrixShape, noop::Noop};
use cuzk_curve::{Bls12, CurveId};
use cuzk_groth16::{
    Budget, CircuitShape, DeviceCircuit, DeviceKey, Placement, ProveError, Randomness, ResidencyError, ResidencyPlan,
    Stage, prove_start, setup_deterministic,
};
use cuzk_keys::{ProvingKey, Section};
use cuzk_r1cs::{R1cs, RecordingCs, WitnessCs};
use ff::Field;
use proptest::prelude::*;

/// The sizes of a circuit like Filecoin's with so many constraints.
fn shape(n: u64) -> CircuitShape {
    let matrix = |n_nonzeros| MatrixShape {
        curve: CurveId::Bls12_381,
        n_rows: n,
        n_nonzeros,
        n_coefficients: 4000,
        row_offset_bytes: 4,
        coefficient_bytes: 2,
    };
    CircuitShape {
        a: matrix(n * 5 / 2),
        b: matrix(n),
        n_inputs: 40,
        n_variables: n,
        log_n: n.next_power_of_two().ilog2(),
        a_dense: n - n / 200,
        b_dense: n / 4,
    }
}

fn witness(circuit: &CircuitShape) -> AssignmentShape {
    let n_variables = circuit.n_variables;
    AssignmentShape { curve: CurveId::Bls12_381, n_variables, n_ones: n_variables / 2, n_wide: n_variables / 60 }
}

fn noop() -> Device {
    Device::new(Noop::new(0))
}

fn plan(circuit: &CircuitShape, device_bytes: u64, pinned_bytes: u64) -> Result<ResidencyPlan, ResidencyError> {
    let budget = Budget { device_bytes, pinned_bytes, multiples: false };
    ResidencyPlan::new(&noop(), &budget, circuit, &witness(circuit))
}

fn streamed(plan: &ResidencyPlan) -> Vec<Section> {
    let streamed = plan.sections().iter().filter(|s| s.placement == Placement::Streamed);
    streamed.map(|s| s.section).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_predicted_never_exceeds_the_cap(n in 100u64..1 << 24, of_all in 0u64..1500, pinned in 0u64..1500) {
        let circuit = shape(n);
        let whole = plan(&circuit, u64::MAX, u64::MAX).unwrap();
        let all = whole.predicted_peak();
        let (device_bytes, pinned_bytes) = (all / 1000 * of_all, all / 1000 * pinned);
        match plan(&circuit, device_bytes, pinned_bytes) {
            Ok(plan) => {
                prop_assert!(plan.predicted_peak() <= device_bytes && plan.pinned_bytes() <= pinned_bytes);
                prop_assert!(plan.stages().iter().all(|(_, bytes)| *bytes <= device_bytes));
            }
            Err(ResidencyError::Device { needed, capacity, parts, .. }) => {
                prop_assert!(needed > capacity && capacity == device_bytes);
                prop_assert_eq!(parts.iter().map(|p| p.bytes).sum::<u64>(), needed);
            }
            Err(ResidencyError::Pinned { needed, capacity, parts }) => {
                prop_assert!(needed > capacity && capacity == pinned_bytes);
                prop_assert_eq!(parts.iter().map(|p| p.bytes).sum::<u64>(), needed);
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_larger_cap_is_never_worse(n in 100u64..1 << 24, of_all in 100u64..1100, more in 0u64..500) {
        let circuit = shape(n);
        let all = plan(&circuit, u64::MAX, u64::MAX).unwrap().predicted_peak();
        let Ok(small) = plan(&circuit, all / 1000 * of_all, u64::MAX) else { return Ok(()) };
        let large = plan(&circuit, all / 1000 * (of_all + more), u64::MAX).unwrap();
        prop_assert!(large.streaming_cost() <= small.streaming_cost(), "{small}\n{large}");
        prop_assert_eq!(large.streaming_cost() == 0, streamed(&large).is_empty());
    }
}

#[test]
fn with_room_nothing_is_streamed_and_with_ever_less_g1_goes_before_g2() {
    let circuit = shape(1 << 22);
    let whole = plan(&circuit, u64::MAX, 0).unwrap_err();
    assert!(matches!(whole, ResidencyError::Pinned { .. }), "results need pinned memory, too: {whole}");
    let whole = plan(&circuit, u64::MAX, 1 << 20).unwrap();
    assert!(streamed(&whole).is_empty());
    assert!(whole.to_string().contains("because the whole key fits"), "{whole}");
    // The smallest section that makes enough room; h, whose scalars are dense, rather late, and G2 last.
    let less = |mib: u64| plan(&circuit, whole.predicted_peak() - (mib << 20), u64::MAX).unwrap();
    assert_eq!(streamed(&less(200)), [Section::BG1], "{}", less(200));
    assert_eq!(streamed(&less(300)), [Section::A], "{}", less(300));
    assert!(less(300).to_string().contains("a: streamed from pinned memory"), "{}", less(300));
    let little: Vec<Section> = streamed(&less(1300));
    assert!(little.contains(&Section::H) && !little.contains(&Section::BG2), "{}", less(1300));
    let error = plan(&circuit, whole.predicted_peak() / 8, u64::MAX).unwrap_err();
    let text = error.to_string();
    for part in ["matrices", "densities", "assignment", "evaluation vectors", "workspace", "the cap is"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn multiples_are_for_h_and_only_where_they_slow_nothing_down() {
    let circuit = shape(1 << 20);
    let with = |device_bytes| {
        let budget = Budget { device_bytes, pinned_bytes: u64::MAX, multiples: true };
        ResidencyPlan::new(&noop(), &budget, &circuit, &witness(&circuit)).unwrap()
    };
    let multiples = |plan: &ResidencyPlan| plan.sections().map(|s| s.spec.multiples);
    assert_eq!(multiples(&with(1 << 40)), [16, 1, 1, 1, 1]);
    let alone = plan(&circuit, u64::MAX, u64::MAX).unwrap().predicted_peak();
    assert_eq!(multiples(&with(alone)), [1; 5]);
    let h = ((1u64 << 20) - 1) * 96;
    assert_eq!(multiples(&with(alone + 2 * h)), [2, 1, 1, 1, 1]);
    let plan = with(alone + 4 * h);
    assert_eq!(multiples(&plan), [4, 1, 1, 1, 1]);
    assert!(plan.to_string().contains("with 4 multiples of each point") && plan.predicted_peak() <= alone + 4 * h);
}

#[test]
fn a_device_that_keeps_no_multiples_gets_a_plan_without() {
    let (device, circuit) = (common::device(), shape(1000));
    let budget = Budget { multiples: true, ..Budget::free(&device.memory().unwrap()) };
    let plan = ResidencyPlan::new(&device, &budget, &circuit, &witness(&circuit)).unwrap();
    assert!(streamed(&plan).is_empty() && plan.sections().iter().all(|s| s.spec.multiples == 1));
}

/// A small circuit with its key and the sizes of a plan.
fn small() -> (R1cs<Scalar>, ProvingKey<Bls12>, cuzk_r1cs::Assignment<Scalar>) {
    let circuit = Squarings::new(0x1234_5678, 3000);
    let r1cs = RecordingCs::record(circuit).unwrap();
    let key = setup_deterministic::<Bls12>(&common::device().stream().unwrap(), &r1cs, [7; 32]).unwrap();
    (r1cs, key, WitnessCs::generate(circuit).unwrap())
}

#[test]
fn a_device_takes_what_was_predicted() {
    let (r1cs, key, assignment) = small();
    let circuit = CircuitShape::of(&r1cs);
    let ones = assignment.ones().iter().map(|w| u64::from(w.count_ones())).sum();
    let exact = AssignmentShape {
        curve: CurveId::Bls12_381,
        n_variables: circuit.n_variables,
        n_ones: ones,
        n_wide: assignment.wide_scalars().len() as u64,
    };
    let plan = |cap| {
        let budget = Budget { device_bytes: cap, pinned_bytes: 1 << 30, multiples: false };
        ResidencyPlan::new(&noop(), &budget, &circuit, &exact)
    };
    let all = plan(1 << 30).unwrap().predicted_peak();
    let mut seen = Vec::new();
    for cap in (1..=40).map(|part| all / 32 * part) {
        let Ok(plan) = plan(cap) else { continue };
        let device = Device::new(Noop::with_pools(0, cap, plan.pinned_bytes()));
        let on_device = DeviceCircuit::load(&device, &r1cs).unwrap();
        let device_key = DeviceKey::load_with(&device, &key, &plan, &mut |_, _| {}).unwrap();
        let loaded = device.memory().unwrap();
        let randomness = Randomness::insecure(Scalar::ONE, Scalar::ONE);
        let pending = prove_start(&device.stream().unwrap(), &on_device, &device_key, &assignment, randomness);
        let pending = pending.unwrap_or_else(|e| panic!("cap {cap}: {e}\n{plan}"));
        let after = device.memory().unwrap();
        assert_eq!(after.device.peak, plan.predicted_peak(), "cap {cap}:\n{plan}");
        assert_eq!(after.pinned.peak, plan.pinned_bytes(), "cap {cap}:\n{plan}");
        // The witness crosses, and what is streamed.
        let streamed: u64 =
            plan.sections().iter().filter(|s| s.placement == Placement::Streamed).map(|s| s.bytes).sum();
        assert_eq!(after.uploaded - loaded.uploaded, exact.bytes() + streamed, "cap {cap}");
        drop(pending);
        seen.push(self::streamed(&plan).len());
    }
    assert!(seen.contains(&0) && seen.iter().any(|n| *n > 1), "streamed sections by cap: {seen:?}");
}

#[test]
fn a_plan_for_another_key_is_refused() {
    let (_, key, _) = small();
    let plan = plan(&shape(5000), u64::MAX, u64::MAX).unwrap();
    match DeviceKey::load_with(&Device::new(Noop::new(1 << 30)), &key, &plan, &mut |_, _| {}) {
        Err(ProveError::KeyMismatch { section: Section::H, expected, actual }) => {
            assert_eq!((expected, actual), (8191, key.h.len() as u64));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn another_assignment_has_its_own_prediction() {
    let circuit = shape(1 << 20);
    let whole = plan(&circuit, 1 << 40, 1 << 30).unwrap();
    let wide = whole.with_assignment(&noop(), &circuit.any_assignment()).unwrap();
    let at = |plan: &ResidencyPlan| plan.stages().iter().find(|(s, _)| *s == Stage::Upload).unwrap().1;
    assert_eq!(at(&wide) - at(&whole), 32 * (circuit.n_variables - witness(&circuit).n_wide));
    let tight = plan(&circuit, whole.predicted_peak(), 1 << 30).unwrap();
    let endless = AssignmentShape { n_wide: 1 << 30, ..circuit.any_assignment() };
    assert!(matches!(tight.with_assignment(&noop(), &endless), Err(ResidencyError::Device { .. })));
}
