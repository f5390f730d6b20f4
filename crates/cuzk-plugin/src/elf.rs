//! Whether an ELF file is complete.
//!
//! The system's loader maps segments without comparing them with the file's size: a page that lies wholly behind the
//! end of the file is mapped all the same, and the first access to it ends the process (`SIGBUS`). So this is found
//! out before.
//!
//! Only completeness is judged. Whether the file is a library of this system is the loader's to say, in its own words.
//!
//! Reference: System V ABI, "Object Files" and "Program Loading",
//! <https://refspecs.linuxfoundation.org/elf/gabi4+/contents.html>.

use std::io::{self, Read, Seek, SeekFrom};

/// `e_ident`: magic, class, byte order.
const IDENT: usize = 16;
/// `Elf64_Ehdr`.
const HEADER: usize = 64;
/// `Elf64_Phdr`.
const PROGRAM_HEADER: usize = 56;
/// The `p_type` of a segment that is mapped.
const PT_LOAD: u32 = 1;

/// A part of the file that the file does not have to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// Which part.
    pub(crate) place: String,
    /// The offset at which it ends, in bytes; `u64::MAX` if it ends at none that can be counted.
    pub(crate) end: u64,
}

/// The first part of an ELF file (64 bit, little-endian) that ends behind the file's `size` in bytes: of header,
/// program headers, mapped segments, section headers. Linkers write the section headers last, so that a file which
/// was cut anywhere lacks a part of them at least. Nothing is missing from files of other formats.
pub(crate) fn missing<R: Read + Seek>(file: &mut R, size: u64) -> io::Result<Option<Missing>> {
    let mut header = [0; HEADER];
    let present = HEADER.min(usize::try_from(size).unwrap_or(HEADER));
    file.read_exact(&mut header[..present])?;
    if !header.starts_with(b"\x7fELF") {
        return Ok(None);
    }
    let behind = |place: &str, offset: u64, len: u64| {
        let end = offset.saturating_add(len);
        (end > size).then(|| Missing { place: place.to_owned(), end })
    };
    if let Some(missing) = behind("the ELF identification", 0, IDENT as u64) {
        return Ok(Some(missing));
    }
    let (class, order) = (header[4], header[5]);
    if (class, order) != (2, 1) {
        return Ok(None);
    }
    if let Some(missing) = behind("the ELF header", 0, HEADER as u64) {
        return Ok(Some(missing));
    }
    let (program_headers, section_headers) = (u64_at(&header, 32), u64_at(&header, 40));
    let [program_header, segments, section_header, sections] = [54, 56, 58, 60].map(|at| u16_at(&header, at));
    // Loaders refuse entries of any other size.
    if usize::from(program_header) == PROGRAM_HEADER {
        let len = u64::from(segments) * PROGRAM_HEADER as u64;
        if let Some(missing) = behind("the table of program headers", program_headers, len) {
            return Ok(Some(missing));
        }
        let mut table = vec![[0; PROGRAM_HEADER]; segments.into()];
        file.seek(SeekFrom::Start(program_headers))?;
        file.read_exact(table.as_flattened_mut())?;
        for (i, segment) in table.iter().enumerate().filter(|(_, segment)| u32_at(segment, 0) == PT_LOAD) {
            let (offset, len) = (u64_at(segment, 8), u64_at(segment, 32));
            if let Some(missing) = behind(&format!("segment {i}"), offset, len) {
                return Ok(Some(missing));
            }
        }
    }
    // Without an offset there is no table; with one and a count of 0, the count is in its first entry.
    let len = u64::from(section_header) * u64::from(sections.max(1));
    Ok(if section_headers == 0 { None } else { behind("the table of section headers", section_headers, len) })
}

fn bytes_at<const N: usize, const M: usize>(bytes: &[u8; N], at: usize) -> [u8; M] {
    std::array::from_fn(|i| bytes[at + i])
}

fn u16_at<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_le_bytes(bytes_at(bytes, at))
}

fn u32_at<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_le_bytes(bytes_at(bytes, at))
}

fn u64_at<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    u64::from_le_bytes(bytes_at(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Header, two program headers (not mapped, mapped), 8 bytes of the segment, one section header: 248 bytes.
    fn image() -> Vec<u8> {
        let mut image = vec![0; 248];
        image[..6].copy_from_slice(b"\x7fELF\x02\x01");
        put(&mut image, 32, &64u64.to_le_bytes());
        put(&mut image, 40, &184u64.to_le_bytes());
        for (at, value) in [(54, 56u16), (56, 2), (58, 64), (60, 1)] {
            put(&mut image, at, &value.to_le_bytes());
        }
        // The first describes bytes that no file has, but they are not mapped.
        put(&mut image, 64, &0x6474_e551u32.to_le_bytes());
        put(&mut image, 64 + 8, &u64::MAX.to_le_bytes());
        put(&mut image, 120, &PT_LOAD.to_le_bytes());
        put(&mut image, 120 + 8, &176u64.to_le_bytes());
        put(&mut image, 120 + 32, &8u64.to_le_bytes());
        image
    }

    fn put(image: &mut [u8], at: usize, value: &[u8]) {
        image[at..at + value.len()].copy_from_slice(value);
    }

    fn judge(image: &[u8]) -> Option<(String, u64)> {
        missing(&mut io::Cursor::new(image), image.len() as u64).unwrap().map(|m| (m.place, m.end))
    }

    #[test]
    fn every_cut_names_the_first_part_that_is_missing() {
        let image = image();
        for len in 0..=image.len() {
            let expected = match len {
                0..4 => None,
                4..16 => Some(("the ELF identification", 16)),
                16..64 => Some(("the ELF header", 64)),
                64..176 => Some(("the table of program headers", 176)),
                176..184 => Some(("segment 1", 184)),
                184..248 => Some(("the table of section headers", 248)),
                _ => None,
            };
            assert_eq!(judge(&image[..len]), expected.map(|(place, end)| (place.to_owned(), end)), "{len} bytes");
        }
    }

    #[test]
    fn no_number_of_the_file_is_trusted() {
        for (at, place) in [
            (32, "the table of program headers"),
            (40, "the table of section headers"),
            (120 + 8, "segment 1"),
            (120 + 32, "segment 1"),
        ] {
            let mut image = image();
            put(&mut image, at, &u64::MAX.to_le_bytes());
            assert_eq!(judge(&image), Some((place.to_owned(), u64::MAX)), "at {at}");
        }
        let mut many = image();
        put(&mut many, 56, &u16::MAX.to_le_bytes());
        assert_eq!(judge(&many), Some(("the table of program headers".to_owned(), 64 + 65535 * 56)));
        // A count that is in the first section header: there is one at least.
        let mut counted = image();
        put(&mut counted, 60, &0u16.to_le_bytes());
        assert_eq!(judge(&counted), None);
        assert_eq!(judge(&counted[..247]), Some(("the table of section headers".to_owned(), 248)));
    }

    #[test]
    fn what_is_not_mapped_here_is_left_to_the_system() {
        for (at, value) in [(0, b'M'), (4, 1), (5, 2)] {
            let mut image = image();
            image[at] = value;
            assert_eq!(judge(&image[..100]), None, "byte {at} is {value}");
        }
        // Without section headers, and with program headers of a size that loaders refuse.
        let mut stripped = image();
        put(&mut stripped, 40, &0u64.to_le_bytes());
        assert_eq!(judge(&stripped[..184]), None);
        put(&mut stripped, 54, &32u16.to_le_bytes());
        assert_eq!(judge(&stripped[..100]), None);
    }
}
