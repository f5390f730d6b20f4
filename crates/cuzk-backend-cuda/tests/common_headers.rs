//! The field and curve headers that all devices share (kernels/common), compiled for the host and compared with blst and
//! halo2curves: the portable form and, with a variable for the carry flag, the carry chains that CUDA runs.

use std::{ffi::c_int, path::PathBuf, process::Command};

use cuzk_curve::{
    AffineRepr, Curve, CurveId, MontgomeryRepr,
    pairing::Engine,
    repr::{as_limbs, copy_from_bytes},
    with_curve,
};
use ff::Field;
use group::{Curve as _, Group};
use libloading::Library;
use rand::{SeedableRng, rngs::StdRng};

/// `kernels/common/check/host.cpp`, compiled for one curve and one form of the arithmetic.
struct Headers {
    library: Library,
}

impl Headers {
    fn compile(curve: CurveId, chains: bool) -> Self {
        let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../kernels/common/check/host.cpp");
        let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("common-{curve:?}-{chains}.so"));
        let mut compiler = Command::new(std::env::var_os("CXX").unwrap_or_else(|| "c++".into()));
        compiler.args(["-std=c++17", "-O1", "-shared", "-fPIC", "-w"]).arg(source).arg("-o").arg(&target);
        if curve == CurveId::Bn254 {
            compiler.arg("-DCUZK_CURVE_BN254");
        }
        if chains {
            compiler.arg("-DCUZK_EMULATE_CARRY");
        }
        let status = compiler.status().unwrap_or_else(|e| panic!("this test needs a C++ compiler: {compiler:?}: {e}"));
        assert!(status.success(), "{compiler:?}");
        // SAFETY: just compiled from a source without initializers.
        let library = unsafe { Library::new(&target) }.unwrap_or_else(|e| panic!("{}: {e}", target.display()));
        Self { library }
    }

    /// Calls a function that writes `limbs` 64-bit limbs from arrays of them, and from a number if one is given.
    fn call(&self, name: &str, limbs: usize, arguments: &[&[u64]], number: Option<c_int>) -> Vec<u64> {
        let mut out = vec![0u64; limbs];
        let (r, a) = (out.as_mut_ptr(), |i: usize| arguments[i].as_ptr());
        // SAFETY: the functions of host.cpp take these arguments, and read and write arrays of the sizes that they are given here; the
        // alignment of 4 bytes that they need is met.
        unsafe {
            match (arguments.len(), number) {
                (1, None) => (self.symbol::<unsafe extern "C" fn(*mut u64, *const u64)>(name))(r, a(0)),
                (2, None) => {
                    (self.symbol::<unsafe extern "C" fn(*mut u64, *const u64, *const u64)>(name))(r, a(0), a(1))
                }
                (2, Some(n)) => (self.symbol::<unsafe extern "C" fn(*mut u64, *const u64, *const u64, c_int)>(name))(
                    r,
                    a(0),
                    a(1),
                    n,
                ),
                (4, None) => (self
                    .symbol::<unsafe extern "C" fn(*mut u64, *const u64, *const u64, *const u64, *const u64)>(name))(
                    r,
                    a(0),
                    a(1),
                    a(2),
                    a(3),
                ),
                other => panic!("no function takes {other:?}"),
            }
        }
        out
    }

    /// # Safety
    /// * `F` is the type of the function.
    unsafe fn symbol<F: Copy>(&self, name: &str) -> F {
        // SAFETY: the caller's promise; the library outlives the call that the symbol is fetched for.
        unsafe { *self.library.get::<F>(name.as_bytes()).unwrap_or_else(|e| panic!("{name}: {e}")) }
    }
}

fn limbs<T: MontgomeryRepr>(value: T) -> Vec<u64> {
    as_limbs(&[value]).to_vec()
}

fn scalars<F: Field + MontgomeryRepr>(headers: &Headers, rng: &mut StdRng) {
    let edges = [F::ZERO, F::ONE, -F::ONE, F::ONE.double(), -F::ONE.double()];
    let mut values = edges.to_vec();
    values.extend((0..40).map(|_| F::random(&mut *rng)));
    let n = size_of::<F>() / 8;
    let op = |name: &str, arguments: &[F]| {
        let arguments: Vec<Vec<u64>> = arguments.iter().map(|x| limbs(*x)).collect();
        headers.call(&format!("check_fr_{name}"), n, &arguments.iter().map(Vec::as_slice).collect::<Vec<_>>(), None)
    };
    for (i, &a) in values.iter().enumerate() {
        assert_eq!(op("neg", &[a]), limbs(-a));
        assert_eq!(op("sqr", &[a]), limbs(a.square()));
        assert_eq!(op("inv", &[a]), limbs(a.invert().unwrap_or(F::ZERO)));
        for (j, &b) in values.iter().enumerate() {
            let (c, d) = (values[(i + j) % values.len()], values[(i * 7 + j) % values.len()]);
            assert_eq!(op("add", &[a, b]), limbs(a + b));
            assert_eq!(op("sub", &[a, b]), limbs(a - b));
            assert_eq!(op("mul", &[a, b]), limbs(a * b));
            assert_eq!(op("mul_sub", &[a, b, c, d]), limbs(a * b - c * d));
        }
    }
}

/// Every pair of a few points, with equal ones, opposite ones and infinity among them: the group operations exercise all of the
/// coordinates' field.
fn points<G: AffineRepr>(headers: &Headers, group: &str, rng: &mut StdRng) {
    let n = size_of::<G>() / 8;
    let one = {
        // Infinity plus P keeps P's coordinates and sets ZZ to 1.
        let sum = headers.call(
            &format!("check_{group}_add_mixed"),
            2 * n,
            &[&vec![0; 2 * n], &limbs(G::generator())],
            Some(0),
        );
        sum[n..3 * n / 2].to_vec()
    };
    let affine = |xyzz: &[u64]| {
        let limbs = headers.call(&format!("check_{group}_to_affine"), n, &[xyzz], None);
        copy_from_bytes::<G>(&limbs.iter().flat_map(|l| l.to_le_bytes()).collect::<Vec<_>>()).expect("a point's size")
            [0]
    };
    let call = |name: &str, arguments: &[&[u64]], number: Option<c_int>| {
        headers.call(&format!("check_{group}_{name}"), 2 * n, arguments, number)
    };
    let xyzz = |p: G| {
        if bool::from(p.is_identity()) { vec![0; 2 * n] } else { [limbs(p), one.clone(), one.clone()].concat() }
    };
    let p = G::Curve::random(&mut *rng);
    let mut all: Vec<G> =
        [G::Curve::identity(), p, -p, p.double(), G::generator().to_curve()].map(|p| p.to_affine()).to_vec();
    all.extend((0..3).map(|_| G::Curve::random(&mut *rng).to_affine()));
    for &a in &all {
        // A sum of ZZ other than 1, and still a.
        let shifted = call(
            "add",
            &[&call("add", &[&xyzz(a), &xyzz(all[5])], None), &xyzz((-all[5].to_curve()).to_affine())],
            None,
        );
        assert_eq!(affine(&shifted), a);
        for from in [xyzz(a), shifted] {
            assert_eq!(affine(&call("dbl", &[&from], None)), a.to_curve().double().to_affine());
            for &b in &all {
                assert_eq!(affine(&call("add_mixed", &[&from, &limbs(b)], Some(0))), (a.to_curve() + b).to_affine());
                assert_eq!(
                    affine(&call("add_mixed", &[&from, &limbs(b)], Some(1))),
                    (a.to_curve() - b.to_curve()).to_affine()
                );
                assert_eq!(affine(&call("add", &[&from, &xyzz(b)], None)), (a.to_curve() + b).to_affine());
            }
        }
    }
}

fn check<C: Curve>(curve: CurveId) {
    for chains in [false, true] {
        let headers = Headers::compile(curve, chains);
        let mut rng = StdRng::seed_from_u64(5);
        scalars::<C::Fr>(&headers, &mut rng);
        points::<<C as Engine>::G1Affine>(&headers, "g1", &mut rng);
        points::<<C as Engine>::G2Affine>(&headers, "g2", &mut rng);
    }
}

#[test]
fn common_headers_agree_with_blst_and_halo2curves() {
    for curve in [CurveId::Bls12_381, CurveId::Bn254] {
        with_curve!(curve, C => check::<C>(curve));
    }
}
