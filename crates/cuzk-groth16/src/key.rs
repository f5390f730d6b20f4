//! A proving key on a device.

use std::sync::Arc;

use cuzk_backend::{Bases, BasesSpec, Device, Residency};
use cuzk_curve::Curve;
use cuzk_keys::{KeySource, Section, VerifyingKey};
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
    /// Copies a key to a device, all of it into the device's memory and chunk by chunk: the host holds one chunk of it
    /// at a time. For keys that surely fit; [`DeviceKey::load_with`] goes by a plan.
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
            let spec = spec(section);
            let count = source.count(section);
            let mut loader = device.bases_loader(spec)?;
            let chunk = CHUNK.min(count);
            let mut g1 = vec![C::G1Affine::identity(); if section == Section::BG2 { 0 } else { chunk }];
            let mut g2 = vec![C::G2Affine::identity(); if section == Section::BG2 { chunk } else { 0 }];
            for start in (0..count).step_by(CHUNK) {
                let len = chunk.min(count - start);
                if section == Section::BG2 {
                    source.read_g2(section, start, &mut g2[..len])?;
                    loader.write(&g2[..len])?;
                } else {
                    source.read_g1(section, start, &mut g1[..len])?;
                    loader.write(&g1[..len])?;
                }
                done += len as u64;
                progress(done, total);
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
