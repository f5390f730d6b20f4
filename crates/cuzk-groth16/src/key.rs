//! A proving key on a device.

use std::{
    sync::{Arc, mpsc},
    thread,
};

use cuzk_backend::{Bases, BasesLoader, BasesSpec, Device, Residency};
use cuzk_curve::{AffineRepr, Curve};
use cuzk_keys::{KeyError, KeySource, Section, VerifyingKey};
use group::prime::PrimeCurveAffine;

use crate::{DeviceCircuit, PreparedVerifyingKey, ProveError, ResidencyPlan};

/// Points read from the key at once: 2^18 of G1 are 24 MiB, of G2 48.
const CHUNK: usize = 1 << 18;

/// A proving key whose points are on a device.
#[derive(Debug)]
pub struct DeviceKey<C: Curve> {
    pub(crate) verifying: Arc<VerifyingHalf<C>>,
    pub(crate) h: Bases,
    pub(crate) l: Bases,
    pub(crate) a: Bases,
    pub(crate) b_g1: Bases,
    pub(crate) b_g2: Bases,
}

/// What assembling and verifying a proof needs of a key; shared with the proofs in flight.
#[derive(Debug)]
pub(crate) struct VerifyingHalf<C: Curve> {
    pub(crate) vk: VerifyingKey<C>,
    pub(crate) prepared: PreparedVerifyingKey<C>,
}

impl<C: Curve> DeviceKey<C> {
    /// Copies a key to a device, all of it into the device's memory and chunk by chunk: the host holds two chunks of it
    /// at a time, one that is read and one that travels. For keys that surely fit; [`DeviceKey::load_with`] goes by a
    /// plan.
    ///
    /// # Errors
    /// The key cannot be read or its verifying key is malformed; the device has no room, or fails.
    pub fn load(device: &Device, source: &dyn KeySource<C>) -> Result<Self, ProveError> {
        let spec = |section: Section| BasesSpec {
            curve: C::ID,
            group: section.group(),
            count: source.count(section) as u64,
            residency: Residency::Device,
            multiples: 1,
        };
        Self::load_sections(device, source, &spec, &mut |_, _| {})
    }

    /// As [`DeviceKey::load`], each section where the plan says, with a callback that is told after each chunk how many
    /// points of how many have been loaded.
    ///
    /// # Errors
    /// As [`DeviceKey::load`]; [`ProveError::KeyMismatch`] or [`ProveError::InputMismatch`] if the plan is for another
    /// circuit.
    pub fn load_with(
        device: &Device,
        source: &dyn KeySource<C>,
        plan: &ResidencyPlan,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, ProveError> {
        plan.circuit().check_counts(&source.counts())?;
        let [h, l, a, b_g1, b_g2] = plan.sections().map(|s| s.spec);
        let spec = |section: Section| match section {
            Section::H => h,
            Section::L => l,
            Section::A => a,
            Section::BG1 => b_g1,
            Section::BG2 => b_g2,
        };
        Self::load_sections(device, source, &spec, progress)
    }

    fn load_sections(
        device: &Device,
        source: &dyn KeySource<C>,
        spec: &dyn Fn(Section) -> BasesSpec,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, ProveError> {
        let vk = source.vk().clone();
        let prepared = PreparedVerifyingKey::new(&vk).map_err(ProveError::BadKey)?;
        let total = Section::ALL.into_iter().map(|section| source.count(section) as u64).sum();
        let mut done = 0;
        let mut load = |section: Section| -> Result<Bases, ProveError> {
            let count = source.count(section);
            let mut loader = device.bases_loader(spec(section))?;
            let mut loaded = |points: usize| {
                done += points as u64;
                progress(done, total);
            };
            if section == Section::BG2 {
                let read = |start, out: &mut [C::G2Affine]| source.read_g2(section, start, out);
                copy(count, C::G2Affine::identity(), read, &mut loader, &mut loaded)?;
            } else {
                let read = |start, out: &mut [C::G1Affine]| source.read_g1(section, start, out);
                copy(count, C::G1Affine::identity(), read, &mut loader, &mut loaded)?;
            }
            Ok(loader.finish()?)
        };
        Ok(Self {
            h: load(Section::H)?,
            l: load(Section::L)?,
            a: load(Section::A)?,
            b_g1: load(Section::BG1)?,
            b_g2: load(Section::BG2)?,
            verifying: Arc::new(VerifyingHalf { vk, prepared }),
        })
    }

    /// The verifying key.
    pub fn vk(&self) -> &VerifyingKey<C> {
        &self.verifying.vk
    }

    /// The verifying key, ready for pairings.
    pub fn prepared_vk(&self) -> &PreparedVerifyingKey<C> {
        &self.verifying.prepared
    }

    /// Whether this is a key of this circuit, as far as the numbers of points say.
    ///
    /// # Errors
    /// [`ProveError::KeyMismatch`] or [`ProveError::InputMismatch`] with both numbers.
    pub fn check_fits(&self, circuit: &DeviceCircuit) -> Result<(), ProveError> {
        let aux = circuit.n_variables - circuit.n_inputs;
        let b = circuit.b_density.count(0, circuit.n_variables);
        for (section, bases, expected) in [
            (Section::H, &self.h, (1 << circuit.log_n) - 1),
            (Section::L, &self.l, aux),
            (Section::A, &self.a, circuit.a_density.count(0, circuit.n_variables)),
            (Section::BG1, &self.b_g1, b),
            (Section::BG2, &self.b_g2, b),
        ] {
            let actual = bases.spec().count;
            if actual != expected {
                return Err(ProveError::KeyMismatch { section, expected, actual });
            }
        }
        let expected = circuit.n_inputs as usize;
        if self.vk().ic.len() != expected {
            return Err(ProveError::InputMismatch { expected, actual: self.vk().ic.len() });
        }
        Ok(())
    }
}

/// Copies `count` points to a device. The next chunk is read, by a thread of its own, while one travels: either takes
/// seconds for a large key.
fn copy<A: AffineRepr>(
    count: usize,
    filler: A,
    read: impl Fn(usize, &mut [A]) -> Result<(), KeyError> + Send,
    loader: &mut BasesLoader,
    loaded: &mut dyn FnMut(usize),
) -> Result<(), ProveError> {
    let chunk = CHUNK.min(count);
    let (give_back, empty) = mpsc::channel();
    let (fill, filled) = mpsc::channel();
    for _ in 0..2 {
        // The receiver is there.
        let _sent = give_back.send(vec![filler; chunk]);
    }
    thread::scope(|scope| {
        scope.spawn(move || {
            for start in (0..count).step_by(CHUNK) {
                // Nobody gives back or takes any more once copying has failed.
                let Ok(mut points) = empty.recv() else { return };
                points.truncate(count - start);
                let read = read(start, &mut points).map(|()| points);
                let failed = read.is_err();
                if fill.send(read).is_err() || failed {
                    return;
                }
            }
        });
        for read in &filled {
            let points = read?;
            loader.write(&points)?;
            loaded(points.len());
            // The reader may have read all there is.
            let _sent = give_back.send(points);
        }
        drop(give_back);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use cuzk_backend::noop::Noop;
    use cuzk_curve::{Bls12, CurveId, GroupId};

    use super::*;

    type Point = <Bls12 as pairing::Engine>::G1Affine;

    const COUNT: usize = 2 * CHUNK + 5;

    /// Copies to a list of `room` points; what was read and loaded, in order.
    fn copied(room: u64, fails_at: usize) -> (Result<(), ProveError>, Vec<usize>) {
        let device = Device::new(Noop::new(1 << 30));
        let (curve, group) = (CurveId::Bls12_381, GroupId::G1);
        let spec = BasesSpec { curve, group, count: room, residency: Residency::Device, multiples: 1 };
        let mut loader = device.bases_loader(spec).unwrap();
        let read = |start: usize, out: &mut [Point]| {
            assert_eq!(out.len(), CHUNK.min(COUNT - start));
            if start >= fails_at {
                return Err(KeyError::NotAFile { path: "key".into(), found: "a pipe" });
            }
            Ok(())
        };
        let mut loaded = Vec::new();
        let result = copy(COUNT, Point::identity(), read, &mut loader, &mut |points| loaded.push(points));
        (result, loaded)
    }

    #[test]
    fn chunks_are_copied_in_order() {
        let (result, loaded) = copied(COUNT as u64, usize::MAX);
        assert!(result.is_ok());
        assert_eq!(loaded, [CHUNK, CHUNK, 5]);
    }

    #[test]
    fn what_fails_on_either_side_ends_it() {
        for (fails_at, before) in [(0, 0), (CHUNK, 1), (2 * CHUNK, 2)] {
            let (result, loaded) = copied(COUNT as u64, fails_at);
            assert!(matches!(result, Err(ProveError::Key(_))), "{result:?}");
            assert_eq!(loaded.len(), before);
        }
        // The device takes fewer than there are.
        for (room, before) in [(1, 0), (CHUNK as u64, 1)] {
            let (result, loaded) = copied(room, usize::MAX);
            assert!(matches!(result, Err(ProveError::Backend(_))), "{result:?}");
            assert_eq!(loaded.len(), before);
        }
    }
}
