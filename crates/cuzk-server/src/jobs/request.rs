//! A request as the journal keeps it, and what identifies its input.

use std::{io, mem, sync::Weak};

use cuzk_proto::v1::{Priority, ProofKind, SubmitProofRequest};
use prost::Message;

use super::inner::Inner;
use crate::prover::{Rejection, RequestSource};

/// Field 10 of `SubmitProofRequest`, length-delimited.
const VANILLA_PROOF: u8 = 10 << 3 | 2;
/// Field 11, length-delimited.
const VANILLA_PROOFS: u8 = 11 << 3 | 2;
/// Longer names are refused: they are kept as long as the job.
const MAX_REQUEST_ID: usize = 256;

/// A request whose input is identified.
pub(crate) struct Prepared {
    pub(crate) request: SubmitProofRequest,
    /// Its fields but those that are not input and the large ones, encoded.
    fields: Vec<u8>,
    /// Tag and length of each large field.
    heads: Vec<Vec<u8>>,
    /// BLAKE3 of the canonical encoding: `fields`, then the large fields. Neither the caller's name for the work nor
    /// its urgency is in it.
    pub(crate) digest: [u8; 32],
}

impl Prepared {
    /// Takes as long as hashing the request does.
    pub(crate) fn new(mut request: SubmitProofRequest) -> Result<Self, Rejection> {
        if request.request_id.len() > MAX_REQUEST_ID {
            let len = request.request_id.len();
            return Err(Rejection::Invalid(format!("request_id: {len} bytes, {MAX_REQUEST_ID} are allowed")));
        }
        if Priority::try_from(request.priority).is_err() {
            return Err(Rejection::Invalid(format!("priority: there is no number {}", request.priority)));
        }
        let request_id = mem::take(&mut request.request_id);
        let (priority, deadline_ms) = (mem::take(&mut request.priority), mem::take(&mut request.deadline_ms));
        let (proof, proofs) = (mem::take(&mut request.vanilla_proof), mem::take(&mut request.vanilla_proofs));
        let fields = request.encode_to_vec();
        let request = SubmitProofRequest {
            request_id,
            priority,
            deadline_ms,
            vanilla_proof: proof,
            vanilla_proofs: proofs,
            ..request
        };
        let heads = large(&request).map(|(tag, bytes)| head(tag, bytes.len())).collect();
        let mut prepared = Self { request, fields, heads, digest: [0; 32] };
        let mut hasher = blake3::Hasher::new();
        for part in prepared.parts() {
            hasher.update(part);
        }
        prepared.digest = hasher.finalize().into();
        Ok(prepared)
    }

    /// The canonical encoding, in parts, so that the large fields are not copied.
    pub(crate) fn parts(&self) -> Vec<&[u8]> {
        let large = self.heads.iter().zip(large(&self.request)).flat_map(|(head, (_, bytes))| [&head[..], bytes]);
        std::iter::once(&self.fields[..]).chain(large).collect()
    }

    /// How urgent it is; its kind's own if it does not say.
    pub(crate) fn priority(&self) -> Priority {
        match (self.request.priority(), self.request.proof_kind()) {
            (Priority::Unspecified, ProofKind::WinningPost) => Priority::Critical,
            (Priority::Unspecified, ProofKind::WindowPostPartition) => Priority::High,
            (Priority::Unspecified, _) => Priority::Normal,
            (given, _) => given,
        }
    }
}

fn large(request: &SubmitProofRequest) -> impl Iterator<Item = (u8, &[u8])> {
    let one = (!request.vanilla_proof.is_empty()).then_some((VANILLA_PROOF, &request.vanilla_proof[..]));
    one.into_iter().chain(request.vanilla_proofs.iter().map(|proof| (VANILLA_PROOFS, &proof[..])))
}

/// Tag and length, as protocol buffers write them.
fn head(tag: u8, len: usize) -> Vec<u8> {
    let mut head = vec![tag];
    let mut rest = len;
    while rest >= 0x80 {
        head.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    head.push(rest as u8);
    head
}

/// A request in the journal.
pub(crate) struct Kept {
    pub(crate) jobs: Weak<Inner>,
    pub(crate) job: String,
    pub(crate) request_id: String,
    pub(crate) priority: Priority,
    pub(crate) digest: [u8; 32],
}

impl RequestSource for Kept {
    fn read(&self) -> io::Result<SubmitProofRequest> {
        let jobs = self.jobs.upgrade().ok_or_else(|| io::Error::other("the journal is closed"))?;
        let bytes = jobs.journal.request(&self.job).map_err(io::Error::other)?;
        if blake3::hash(&bytes) != self.digest {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the request in the journal is damaged"));
        }
        let mut request = SubmitProofRequest::decode(&bytes[..]).map_err(io::Error::other)?;
        request.request_id.clone_from(&self.request_id);
        request.set_priority(self.priority);
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> SubmitProofRequest {
        SubmitProofRequest {
            request_id: "porep-1000-7".to_owned(),
            proof_kind: ProofKind::PorepSealCommit.into(),
            sector_size: 2048,
            vanilla_proof: vec![7; 300],
            vanilla_proofs: vec![vec![1; 127], Vec::new(), vec![2; 20_000]],
            comm_d_new: vec![5; 32],
            ..SubmitProofRequest::default()
        }
    }

    #[test]
    fn the_parts_are_an_encoding_of_the_input() {
        let prepared = Prepared::new(request()).unwrap();
        let bytes = prepared.parts().concat();
        assert_eq!(blake3::hash(&bytes), prepared.digest);
        let decoded = SubmitProofRequest::decode(&bytes[..]).unwrap();
        assert_eq!(decoded, SubmitProofRequest { request_id: String::new(), ..request() });
    }

    #[test]
    fn the_digest_is_of_the_input_alone() {
        let digest = |request| Prepared::new(request).unwrap().digest;
        let named = SubmitProofRequest { request_id: "other".to_owned(), priority: 3, deadline_ms: 9, ..request() };
        assert_eq!(digest(named), digest(request()));
        let joined = SubmitProofRequest { vanilla_proofs: vec![vec![1; 127], vec![2; 20_000]], ..request() };
        let moved = SubmitProofRequest { partition_index: 1, ..request() };
        assert_ne!(digest(joined), digest(request()));
        assert_ne!(digest(moved), digest(request()));
    }
}
