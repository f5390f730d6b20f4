//! What the journal keeps of a job beside its request, as protocol buffers, so that later versions may add fields.

use std::time::Duration;

use cuzk_journal::Outcome;
use cuzk_proto::v1::{Priority, ProofKind};
use prost::Message;

use super::{Ending, JobState, clock::SinceBoot};
use crate::prover::{Summary, Times};

/// Bytes of an error that are kept.
const MAX_ERROR: usize = 1024;

/// What is known of a job when it is accepted, which is now when this is [made](Meta::new).
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Meta {
    #[prost(enumeration = "ProofKind", tag = "1")]
    kind: i32,
    #[prost(enumeration = "Priority", tag = "2")]
    priority: i32,
    #[prost(string, tag = "3")]
    circuit: String,
    #[prost(uint32, tag = "4")]
    partitions: u32,
    #[prost(string, tag = "5")]
    pub(crate) client: String,
    /// Milliseconds since 1970; 0: none.
    #[prost(uint64, tag = "6")]
    pub(crate) deadline_at_ms: u64,
    /// The boot of the machine in which it was accepted; empty: unknown.
    #[prost(string, tag = "7")]
    boot: String,
    /// Acceptance in milliseconds since that boot.
    #[prost(uint64, tag = "8")]
    accepted_since_boot_ms: u64,
}

impl Meta {
    pub(crate) fn new(
        kind: ProofKind,
        priority: Priority,
        summary: &Summary,
        client: &str,
        deadline_at_ms: Option<u64>,
    ) -> Self {
        let accepted = SinceBoot::now();
        Self {
            kind: kind.into(),
            priority: priority.into(),
            circuit: summary.circuit.clone(),
            partitions: summary.partitions,
            client: client.to_owned(),
            deadline_at_ms: deadline_at_ms.unwrap_or(0),
            boot: accepted.boot,
            accepted_since_boot_ms: accepted.ms,
        }
    }

    pub(crate) fn proof_kind(&self) -> ProofKind {
        self.kind()
    }

    /// Never unspecified.
    pub(crate) fn urgency(&self) -> Priority {
        match self.priority() {
            Priority::Unspecified => Priority::Normal,
            given => given,
        }
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary { circuit: self.circuit.clone(), partitions: self.partitions }
    }

    pub(crate) fn deadline_at_ms(&self) -> Option<u64> {
        (self.deadline_at_ms != 0).then_some(self.deadline_at_ms)
    }

    /// When it was accepted, by the clock that nobody sets.
    pub(crate) fn accepted_since_boot(&self) -> SinceBoot {
        SinceBoot { boot: self.boot.clone(), ms: self.accepted_since_boot_ms }
    }

    /// The most bytes that the end of such a job takes.
    pub(crate) fn result_room(partitions: u32) -> u64 {
        192 * u64::from(partitions) + 2 * MAX_ERROR as u64
    }
}

/// How a job ended.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct End {
    /// 1 completed, 2 failed, 3 cancelled.
    #[prost(uint32, tag = "1")]
    state: u32,
    #[prost(bytes = "vec", tag = "2")]
    proof: Vec<u8>,
    #[prost(string, tag = "3")]
    device: String,
    #[prost(string, tag = "4")]
    error: String,
    /// Microseconds of each part of [`Times`].
    #[prost(uint64, repeated, tag = "5")]
    times: Vec<u64>,
    /// Microseconds from acceptance to the first synthesis.
    #[prost(uint64, tag = "6")]
    queue: u64,
    /// Microseconds from acceptance to the end.
    #[prost(uint64, tag = "7")]
    total: u64,
}

impl End {
    pub(crate) fn new(ending: &Ending, queue: Duration, total: Duration) -> Self {
        let end = Self { queue: micros(queue), total: micros(total), ..Self::default() };
        match ending {
            Ending::Completed { proof, device, times } => Self {
                state: 1,
                proof: proof.clone(),
                device: device.clone(),
                times: [times.queue, times.key, times.synthesis, times.device, times.finish].map(micros).to_vec(),
                ..end
            },
            Ending::Failed(error) => {
                let kept = error.char_indices().take_while(|(at, c)| at + c.len_utf8() <= MAX_ERROR);
                Self { state: 2, error: kept.map(|(_, c)| c).collect(), ..end }
            }
            Ending::Cancelled => Self { state: 3, ..end },
        }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        match self.state {
            1 => Outcome::Completed(self.encode_to_vec()),
            _ => Outcome::Failed(self.encode_to_vec()),
        }
    }

    pub(crate) fn ending(self) -> Ending {
        let time = |i: usize| Duration::from_micros(self.times.get(i).copied().unwrap_or(0));
        let times = Times { queue: time(0), key: time(1), synthesis: time(2), device: time(3), finish: time(4) };
        match self.state {
            1 => Ending::Completed { proof: self.proof, device: self.device, times },
            3 => Ending::Cancelled,
            _ => Ending::Failed(self.error),
        }
    }

    pub(crate) fn queue(&self) -> Duration {
        Duration::from_micros(self.queue)
    }

    pub(crate) fn total(&self) -> Duration {
        Duration::from_micros(self.total)
    }
}

impl Ending {
    /// The state of a job that ended so.
    pub fn state(&self) -> JobState {
        match self {
            Self::Completed { .. } => JobState::Completed,
            Self::Failed(_) => JobState::Failed,
            Self::Cancelled => JobState::Cancelled,
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_kept_as_they_are() {
        let times = Times { queue: Duration::from_micros(5), device: Duration::from_secs(3), ..Times::default() };
        for ending in [
            Ending::Completed { proof: vec![9; 1920], device: "cpu: x".to_owned(), times },
            Ending::Failed("partition 3: out of memory".to_owned()),
            Ending::Cancelled,
        ] {
            let end = End::new(&ending, Duration::from_millis(2), Duration::from_millis(7));
            let (Outcome::Completed(bytes) | Outcome::Failed(bytes)) = end.outcome();
            let end = End::decode(&bytes[..]).unwrap();
            assert_eq!((end.queue(), end.total()), (Duration::from_millis(2), Duration::from_millis(7)));
            assert_eq!(end.ending(), ending);
        }
    }

    #[test]
    fn an_end_fits_the_room_that_is_set_aside() {
        let long = Ending::Failed("é".repeat(5000));
        let End { error, .. } = End::new(&long, Duration::MAX, Duration::MAX);
        assert_eq!(error, "é".repeat(512));
        let proof = Ending::Completed { proof: vec![0; 1920], device: "d".repeat(500), times: Times::default() };
        for ending in [long, proof] {
            let len = End::new(&ending, Duration::MAX, Duration::MAX).encoded_len() as u64;
            assert!(len <= Meta::result_room(10), "{len} bytes");
        }
    }
}
