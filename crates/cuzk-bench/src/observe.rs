//! What the daemon says of itself before and after a measurement.

use std::collections::BTreeMap;

use cuzk_proto::{
    Client,
    v1::{GetStatusResponse, srs_status::Tier},
};
use serde_json::{Value, json};

use crate::{
    failure::{Class, Failure},
    prometheus::Metrics,
    stop::{CLOSING, Stop},
};

/// The daemon at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) status: GetStatusResponse,
    pub(crate) metrics: Metrics,
}

impl Look {
    pub(crate) async fn take(client: &Client) -> Result<Self, Failure> {
        let (status, metrics) = tokio::try_join!(client.status(), client.metrics())?;
        Ok(Self { status, metrics: Metrics::parse(&metrics) })
    }

    /// How near to a device the key of a circuit is: hot (there), warm (in the host's memory) or cold.
    pub(crate) fn key_tier(&self, circuit: &str) -> &'static str {
        let tier = self.status.loaded_srs.iter().filter(|key| key.circuit_id == circuit).map(|key| key.tier()).min();
        match tier {
            Some(Tier::Hot) => "hot",
            Some(Tier::Warm) => "warm",
            Some(Tier::Cold) | None => "cold",
        }
    }

    pub(crate) fn key_digest(&self, circuit: &str) -> Option<String> {
        let keys = self.status.loaded_srs.iter();
        keys.filter(|key| key.circuit_id == circuit && !key.key_digest.is_empty()).map(|k| k.key_digest.clone()).next()
    }

    /// The most memory of the process that was ever resident, in bytes.
    fn peak_rss(&self) -> Option<f64> {
        let peak = ["process_resident_memory_peak_bytes", "process_resident_memory_max_bytes"];
        peak.iter().find_map(|name| self.metrics.get(name))
    }

    /// Memory of the process that is resident, in bytes.
    fn rss(&self) -> Option<f64> {
        self.metrics.get("process_resident_memory_bytes")
    }

    /// Seconds since the daemon's start, and how many of them a device computed.
    fn busy(&self, device: &str) -> Option<(f64, f64)> {
        let uptime = self.metrics.get("cuzk_uptime_seconds")?;
        Some((uptime, uptime * self.metrics.labelled("cuzk_device_busy_ratio", "device", device)?))
    }
}

/// What the daemon did between two looks at it.
#[derive(Debug)]
pub(crate) struct Observation {
    before: Look,
    /// Or why there is none: a daemon that does not answer any more takes nothing from what was measured.
    after: Result<Look, Failure>,
}

impl Observation {
    /// Looks at the daemon a last time, and not for long if the measurement was cut.
    pub(crate) async fn end(before: Look, client: &Client, cut: bool, stop: &Stop) -> Self {
        let after = if cut {
            let late = |_| Failure::new(Class::Device, format!("no answer within {CLOSING:.0?}"));
            tokio::time::timeout(CLOSING, Look::take(client)).await.map_err(late).flatten()
        } else {
            stop.unless(Look::take(client)).await
        };
        Self { before, after }
    }

    /// The last that is known of the daemon.
    fn last(&self) -> &Look {
        self.after.as_ref().unwrap_or(&self.before)
    }

    /// Why the daemon could not be looked at in the end.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let failure = self.after.as_ref().err()?;
        Some(Failure::new(failure.class, format!("the daemon at the end: {}", failure.message)))
    }

    /// The most memory of the daemon that was ever resident, in bytes.
    pub(crate) fn peak_rss(&self) -> Option<f64> {
        self.after.as_ref().ok()?.peak_rss()
    }

    fn rss_after(&self) -> Option<f64> {
        self.after.as_ref().ok()?.rss()
    }

    /// How much of the time between the looks each device computed, from 0 to 1.
    pub(crate) fn utilization(&self) -> BTreeMap<u32, f64> {
        let of = |ordinal: u32| {
            let name = ordinal.to_string();
            let (from, busy_from) = self.before.busy(&name)?;
            let (to, busy_to) = self.after.as_ref().ok()?.busy(&name)?;
            (to > from).then(|| ((busy_to - busy_from) / (to - from)).clamp(0.0, 1.0))
        };
        self.last().status.gpus.iter().filter_map(|gpu| Some((gpu.ordinal, of(gpu.ordinal)?))).collect()
    }

    /// The daemon and its devices.
    pub(crate) fn json(&self) -> Value {
        let utilization = self.utilization();
        let devices: Vec<Value> = self
            .last()
            .status
            .gpus
            .iter()
            .map(|gpu| {
                json!({
                    "ordinal": gpu.ordinal, "name": gpu.name, "backend": gpu.backend, "uuid": gpu.uuid,
                    "driver": gpu.driver, "health": gpu.health, "memory_bytes": gpu.vram_total_bytes,
                    "utilization": utilization.get(&gpu.ordinal),
                })
            })
            .collect();
        json!({
            "version": self.last().status.version,
            "rss_before_bytes": whole(self.before.rss()),
            "rss_after_bytes": whole(self.rss_after()),
            "peak_rss_bytes": whole(self.peak_rss()),
            "devices": devices,
            "not_seen_at_the_end": self.after.as_ref().err().map(|failure| &failure.message),
        })
    }

    /// The key of a circuit: which one, and how near to a device it was at the start.
    pub(crate) fn key_json(&self, circuit: &str) -> Value {
        let tier = self.before.key_tier(circuit);
        let digest = self.last().key_digest(circuit);
        json!({ "circuit": circuit, "digest": digest, "at_start": tier, "cold": tier == "cold" })
    }

    /// Lines for a person.
    pub(crate) fn text(&self) -> String {
        let told = |rss: Option<f64>| whole(rss).map_or_else(|| "not told".to_owned(), bytes);
        let (before, after, peak) = (told(self.before.rss()), told(self.rss_after()), told(self.peak_rss()));
        let version = &self.last().status.version;
        let mut lines = vec![format!("daemon       {version}, RSS {before} before, {after} after, peak RSS {peak}")];
        let utilization = self.utilization();
        for gpu in &self.last().status.gpus {
            let driver = if gpu.driver.is_empty() { String::new() } else { format!(", driver {}", gpu.driver) };
            let busy = utilization
                .get(&gpu.ordinal)
                .map_or_else(|| "utilization not told".to_owned(), |busy| format!("{:.1} % busy", busy * 100.0));
            lines.push(format!("device {:<6}{}: {}{driver}, {busy}", gpu.ordinal, gpu.backend, gpu.name));
        }
        lines.join("\n")
    }

    /// A line on the key of a circuit.
    pub(crate) fn key_text(&self, circuit: &str) -> String {
        let digest = self.last().key_digest(circuit).unwrap_or_else(|| "not told".to_owned());
        format!("key          {circuit}, {} at the start, digest {digest}", self.before.key_tier(circuit))
    }
}

/// Bytes, which a metric tells as any other number.
fn whole(bytes: Option<f64>) -> Option<u64> {
    bytes.map(|bytes| bytes as u64)
}

/// Bytes for a person.
pub(crate) fn bytes(n: u64) -> String {
    cuzk_units::show_bytes(n)
}

#[cfg(test)]
mod tests {
    use cuzk_proto::v1::{GpuStatus, SrsStatus};

    use super::*;

    fn look(uptime: f64, ratio: f64, tier: Tier) -> Look {
        let key = SrsStatus { circuit_id: "porep-2k".into(), tier: tier.into(), ..SrsStatus::default() };
        let gpu = GpuStatus { name: "Fake".into(), backend: "fake".into(), ..GpuStatus::default() };
        let status = GetStatusResponse { gpus: vec![gpu], loaded_srs: vec![key], ..GetStatusResponse::default() };
        let text = format!("cuzk_uptime_seconds {uptime}\ncuzk_device_busy_ratio{{device=\"0\"}} {ratio}\n");
        Look { status, metrics: Metrics::parse(&text) }
    }

    #[test]
    fn utilization_is_of_the_time_between_the_looks() {
        // 100 s with 10 busy, then 50 s with 40 busy: 50 of 150.
        let between =
            Observation { before: look(100.0, 0.1, Tier::Warm), after: Ok(look(150.0, 50.0 / 150.0, Tier::Hot)) };
        assert!((between.utilization()[&0] - 0.8).abs() < 1e-9);
        let key = between.key_json("porep-2k");
        assert_eq!((key["at_start"].as_str(), key["cold"].as_bool()), (Some("warm"), Some(false)));
        assert!(between.json()["peak_rss_bytes"].is_null(), "what is not told is not invented");
        assert!(between.text().contains("fake: Fake, 80.0 % busy"));
        assert_eq!(between.key_json("snap-2k")["at_start"], "cold");
        let mut silent = between;
        silent.after = Ok(Look { metrics: Metrics::default(), ..look(150.0, 0.5, Tier::Hot) });
        assert!(silent.utilization().is_empty() && silent.failure().is_none());
        silent.after = Err(Failure::new(Class::Device, "gone"));
        let json = silent.json();
        assert_eq!((&json["not_seen_at_the_end"], &json["devices"][0]["name"]), (&"gone".into(), &"Fake".into()));
        assert!(silent.utilization().is_empty() && json["rss_after_bytes"].is_null());
        assert_eq!(silent.failure().unwrap().class, Class::Device);
    }
}
