//! How fast activities are beside each other.
//!
//! An activity that moves `d` bytes a second when alone, on a machine whose memory moves `B`, beside others that would
//! move `D - d`, runs at
//! ```text
//!     min(1, cores of the machine / cores wanted by all) / (1 + s · (D - d) / B)
//! ```
//! of its full speed. The second factor is the growth of memory latency with load, linear in it; `s` says how much an
//! activity depends on it. An activity without cores (kernels on a device) is not slowed by the first factor.

/// What an activity asks of the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    pub(super) cores: f64,
    /// Bytes a second at full speed.
    pub(super) traffic: f64,
    pub(super) sensitivity: f64,
}

/// What there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Supply {
    pub(super) cores: f64,
    pub(super) bandwidth: f64,
}

/// What all activities ask for together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    cores: f64,
    traffic: f64,
    supply: Supply,
}

impl Load {
    pub(super) fn of(supply: Supply, demands: impl Iterator<Item = Demand>) -> Self {
        let none = Self { cores: 0.0, traffic: 0.0, supply };
        demands.fold(none, |l, d| Self { cores: l.cores + d.cores, traffic: l.traffic + d.traffic, supply })
    }

    /// Speed of one of the activities, 1 when alone.
    pub(super) fn speed(&self, own: Demand) -> f64 {
        let share = if own.cores > 0.0 { (self.supply.cores / self.cores).min(1.0) } else { 1.0 };
        let others = (self.traffic - own.traffic).max(0.0);
        share / (1.0 + own.sensitivity * others / self.supply.bandwidth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUPPLY: Supply = Supply { cores: 8.0, bandwidth: 100.0 };
    const DEMAND: Demand = Demand { cores: 4.0, traffic: 50.0, sensitivity: 0.5 };

    #[test]
    fn alone_it_runs_at_full_speed() {
        assert_eq!(Load::of(SUPPLY, [DEMAND].into_iter()).speed(DEMAND), 1.0);
    }

    #[test]
    fn cores_and_bandwidth_are_shared() {
        let load = Load::of(SUPPLY, [DEMAND; 4].into_iter());
        // Half the cores it wants, and others that want 150 of 100.
        assert_eq!(load.speed(DEMAND), 0.5 / 1.75);
        let kernel = Demand { cores: 0.0, traffic: 0.0, sensitivity: 1.0 };
        assert_eq!(load.speed(kernel), 1.0 / 3.0);
    }
}
