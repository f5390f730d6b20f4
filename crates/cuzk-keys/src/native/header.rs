//! The header: 4096 bytes, all integers little-endian.

use std::path::Path;

use cuzk_curve::{CurveId, GroupId};

use crate::{Counts, Digest, Format, KeyError, Origin, Part, Provenance};

/// The first bytes of every native key.
pub(crate) const MAGIC: [u8; 8] = *b"CUZKKEY\0";

/// The version that is written and read.
pub const VERSION: u32 = 1;

/// Size of the header and alignment of the sections: a page, and the block size that direct I/O asks for.
pub(super) const ALIGNMENT: u64 = 4096;

const HEADER_BYTES: usize = ALIGNMENT as usize;
const PROVENANCE_AT: usize = 32;
const TABLE_AT: usize = 72;
const ENTRY_BYTES: usize = 64;
const RESERVED_AT: usize = TABLE_AT + ENTRY_BYTES * PARTS.len();
const DIGEST_AT: usize = HEADER_BYTES - 32;

/// The sections in file order.
pub(super) const PARTS: [(Part, GroupId); 7] = [
    (Part::VkG1, GroupId::G1),
    (Part::VkG2, GroupId::G2),
    (Part::H, GroupId::G1),
    (Part::L, GroupId::G1),
    (Part::A, GroupId::G1),
    (Part::BG1, GroupId::G1),
    (Part::BG2, GroupId::G2),
];

/// One section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) part: Part,
    pub(super) group: GroupId,
    /// Where it starts in the file.
    pub(super) offset: u64,
    /// Points in it.
    pub(super) count: u64,
    /// Bytes of these points.
    pub(super) bytes: u64,
    /// BLAKE3 of these bytes.
    pub(super) digest: Digest,
}

impl Entry {
    /// The count as the length of a vector in memory.
    pub(super) fn len(&self) -> Result<usize, KeyError> {
        usize::try_from(self.count).map_err(|_| KeyError::OutOfMemory { part: self.part, requested: self.bytes })
    }

    /// Where the zeros after it end.
    pub(super) fn padded_end(&self) -> u64 {
        // No overflow: `layout` has computed this sum with checks.
        (self.offset + self.bytes).next_multiple_of(ALIGNMENT)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) curve: CurveId,
    pub(super) provenance: Provenance,
    pub(super) entries: [Entry; 7],
}

impl Header {
    /// The header of a key with these counts, digests still zero. `None` if its size does not fit 64 bits.
    pub(super) fn new(curve: CurveId, provenance: Provenance, counts: &Counts) -> Option<Self> {
        let ic = (counts.ic as u64).checked_add(3)?;
        let [h, l, a] = [counts.h, counts.l, counts.a].map(|n| n as u64);
        let entries = layout(curve, [ic, 3, h, l, a, counts.b_g1 as u64, counts.b_g2 as u64])?;
        Some(Self { curve, provenance, entries })
    }

    /// Size of the file in bytes.
    pub(super) fn file_bytes(&self) -> u64 {
        self.entries[PARTS.len() - 1].padded_end()
    }

    /// How many points each vector of the key has.
    pub(super) fn counts(&self, ic: usize) -> Result<Counts, KeyError> {
        let [_, _, h, l, a, b_g1, b_g2] = &self.entries;
        Ok(Counts { ic, h: h.len()?, l: l.len()?, a: a.len()?, b_g1: b_g1.len()?, b_g2: b_g2.len()? })
    }

    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &(HEADER_BYTES as u32).to_le_bytes());
        put(16, &(self.curve as u32).to_le_bytes());
        put(20, &(PARTS.len() as u32).to_le_bytes());
        put(24, &self.file_bytes().to_le_bytes());
        let (kind, payload) = encode_provenance(&self.provenance);
        put(PROVENANCE_AT, &kind.to_le_bytes());
        put(PROVENANCE_AT + 8, &payload);
        for (i, entry) in self.entries.iter().enumerate() {
            let at = TABLE_AT + i * ENTRY_BYTES;
            put(at, &(i as u32 + 1).to_le_bytes());
            put(at + 4, &(entry.group as u32).to_le_bytes());
            put(at + 8, &entry.offset.to_le_bytes());
            put(at + 16, &entry.count.to_le_bytes());
            put(at + 32, &entry.digest.0);
        }
        let digest = Digest::of(&bytes[..DIGEST_AT]);
        bytes[DIGEST_AT..].copy_from_slice(&digest.0);
        bytes
    }

    /// Reads a header; `head` is the start of the file, shorter than a header only if the file is.
    pub(super) fn parse(head: &[u8], file_bytes: u64, path: &Path) -> Result<Self, KeyError> {
        let origin = || Origin::from(path);
        if !head.starts_with(&MAGIC) {
            let found = crate::file::looks_like(head)?;
            return Err(KeyError::NotAKey { origin: origin(), expected: Format::Native, found });
        }
        let truncated =
            |expected| KeyError::Truncated { origin: origin(), part: Part::Header, expected, actual: file_bytes };
        let reader = Reader { head, path };
        // The version comes first: another one may have another header, of another size.
        if head.len() < 12 {
            return Err(truncated(12));
        }
        let version = reader.u32(8);
        if version != VERSION {
            return Err(KeyError::UnsupportedVersion { path: path.to_owned(), found: version, supported: VERSION });
        }
        if head.len() < HEADER_BYTES {
            return Err(truncated(ALIGNMENT));
        }
        let (expected, actual) = (Digest(reader.bytes(DIGEST_AT)), Digest::of(&head[..DIGEST_AT]));
        if expected != actual {
            return Err(KeyError::DigestMismatch { origin: origin(), part: Part::Header, expected, actual });
        }
        reader.require(12, "header_bytes", reader.u32(12), HEADER_BYTES as u32, "this version has 4096")?;
        let curve = CurveId::from_u32(reader.u32(16));
        let curve = curve.ok_or_else(|| reader.bad(16, "curve", reader.u32(16).into(), "no curve has this number"))?;
        reader.require(20, "section_count", reader.u32(20), PARTS.len() as u32, "this version has 7")?;
        let provenance = reader.provenance()?;
        let entries = reader.entries(curve)?;
        if let Some(at) = (RESERVED_AT..DIGEST_AT).find(|at| head[*at] != 0) {
            return Err(reader.bad(at, "reserved", head[at].into(), "reserved bytes are zero in this version"));
        }
        let header = Self { curve, provenance, entries };
        let declared = reader.u64(24);
        if declared != header.file_bytes() {
            return Err(reader.bad(24, "file_bytes", declared, "it is not where the last section ends"));
        }
        if let Some(cut) = header.entries.iter().find(|e| e.padded_end() > file_bytes) {
            let (part, expected) = (cut.part, cut.padded_end());
            return Err(KeyError::Truncated { origin: origin(), part, expected, actual: file_bytes });
        }
        if declared != file_bytes {
            return Err(KeyError::TrailingBytes { origin: origin(), expected: declared, actual: file_bytes });
        }
        Ok(header)
    }
}

/// Where sections with these counts lie. `None` on overflow.
fn layout(curve: CurveId, counts: [u64; 7]) -> Option<[Entry; 7]> {
    let mut offset = ALIGNMENT;
    let mut entries =
        PARTS.map(|(part, group)| Entry { part, group, offset: 0, count: 0, bytes: 0, digest: Digest([0; 32]) });
    for (entry, count) in entries.iter_mut().zip(counts) {
        entry.offset = offset;
        entry.count = count;
        entry.bytes = count.checked_mul(curve.affine_bytes(entry.group) as u64)?;
        offset = offset.checked_add(entry.bytes)?.checked_next_multiple_of(ALIGNMENT)?;
    }
    Some(entries)
}

fn encode_provenance(provenance: &Provenance) -> (u32, [u8; 32]) {
    match provenance {
        Provenance::Ceremony { source } => (1, source.0),
        Provenance::Imported { source: Some(source) } => (2, source.0),
        Provenance::Imported { source: None } => (3, [0; 32]),
        Provenance::LocalSetup => (4, [0; 32]),
        Provenance::DeterministicSetup { seed } => (5, *seed),
    }
}

/// Fields of a header that is long enough for all of them.
struct Reader<'a> {
    head: &'a [u8],
    path: &'a Path,
}

impl Reader<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.head[at..at + N]);
        bytes
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes(at))
    }

    fn bad(&self, at: usize, field: &'static str, found: u64, rule: &'static str) -> KeyError {
        KeyError::BadField { path: self.path.to_owned(), field, offset: at as u64, found, rule }
    }

    fn require(
        &self,
        at: usize,
        field: &'static str,
        found: u32,
        expected: u32,
        rule: &'static str,
    ) -> Result<(), KeyError> {
        if found == expected { Ok(()) } else { Err(self.bad(at, field, found.into(), rule)) }
    }

    fn provenance(&self) -> Result<Provenance, KeyError> {
        let kind = self.u32(PROVENANCE_AT);
        self.require(PROVENANCE_AT + 4, "reserved", self.u32(PROVENANCE_AT + 4), 0, "it is zero in this version")?;
        let payload: [u8; 32] = self.bytes(PROVENANCE_AT + 8);
        let provenance = match kind {
            1 => Provenance::Ceremony { source: Digest(payload) },
            2 => Provenance::Imported { source: Some(Digest(payload)) },
            3 => Provenance::Imported { source: None },
            4 => Provenance::LocalSetup,
            5 => Provenance::DeterministicSetup { seed: payload },
            _ => return Err(self.bad(PROVENANCE_AT, "provenance", kind.into(), "no provenance has this number")),
        };
        if encode_provenance(&provenance).1 != payload {
            let at = PROVENANCE_AT + 8;
            return Err(self.bad(at, "provenance_payload", self.u64(at), "this provenance has no payload"));
        }
        Ok(provenance)
    }

    fn entries(&self, curve: CurveId) -> Result<[Entry; 7], KeyError> {
        let at = |i: usize| TABLE_AT + i * ENTRY_BYTES;
        let mut counts = [0; 7];
        for (i, (count, (_, group))) in counts.iter_mut().zip(PARTS).enumerate() {
            let at = at(i);
            self.require(at, "section", self.u32(at), i as u32 + 1, "sections have fixed numbers in order")?;
            self.require(at + 4, "group", self.u32(at + 4), group as u32, "the section lies in the other group")?;
            *count = self.u64(at + 16);
            let reserved = self.u64(at + 24);
            if reserved != 0 {
                return Err(self.bad(at + 24, "reserved", reserved, "it is zero in this version"));
            }
        }
        let mut entries = layout(curve, counts)
            .ok_or_else(|| self.bad(at(0) + 16, "count", counts[0], "the sections do not fit 64 bits of file"))?;
        for (i, entry) in entries.iter_mut().enumerate() {
            let offset = self.u64(at(i) + 8);
            if offset != entry.offset {
                let rule = "sections follow each other, each at the next multiple of 4096";
                return Err(self.bad(at(i) + 8, "offset", offset, rule));
            }
            entry.digest = Digest(self.bytes(at(i) + 32));
        }
        Ok(entries)
    }
}
