//! From elements in memory to rows, and back.

use std::arch::x86_64::*;

/// Turns eight rows of eight words into eight columns; its own inverse.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn transpose(r: &[__m512i; 8]) -> [__m512i; 8] {
    // Pairs of rows: words (0, 2, 4, 6) and (1, 3, 5, 7), then 128-bit quarters of four and of eight rows.
    let columns = |t: [__m512i; 4]| {
        let low = [_mm512_shuffle_i64x2::<0x88>(t[0], t[1]), _mm512_shuffle_i64x2::<0x88>(t[2], t[3])];
        let high = [_mm512_shuffle_i64x2::<0xdd>(t[0], t[1]), _mm512_shuffle_i64x2::<0xdd>(t[2], t[3])];
        [
            _mm512_shuffle_i64x2::<0x88>(low[0], low[1]),
            _mm512_shuffle_i64x2::<0x88>(high[0], high[1]),
            _mm512_shuffle_i64x2::<0xdd>(low[0], low[1]),
            _mm512_shuffle_i64x2::<0xdd>(high[0], high[1]),
        ]
    };
    let even = columns([
        _mm512_unpacklo_epi64(r[0], r[1]),
        _mm512_unpacklo_epi64(r[2], r[3]),
        _mm512_unpacklo_epi64(r[4], r[5]),
        _mm512_unpacklo_epi64(r[6], r[7]),
    ]);
    let odd = columns([
        _mm512_unpackhi_epi64(r[0], r[1]),
        _mm512_unpackhi_epi64(r[2], r[3]),
        _mm512_unpackhi_epi64(r[4], r[5]),
        _mm512_unpackhi_epi64(r[6], r[7]),
    ]);
    [even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]]
}

/// Reads four words from each of eight places: word i of all of them in vector i.
///
/// # Safety
/// * 32 bytes may be read from every pointer.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn load_words(at: &[*const u64; 8]) -> [__m512i; 4] {
    // SAFETY: the caller's obligation.
    let pair = |i: usize| unsafe {
        let low = _mm512_castsi256_si512(_mm256_loadu_si256(at[i].cast()));
        _mm512_inserti64x4::<1>(low, _mm256_loadu_si256(at[i + 4].cast()))
    };
    let (r0, r1, r2, r3) = (pair(0), pair(1), pair(2), pair(3));
    let (t0, t1) = (_mm512_unpacklo_epi64(r0, r1), _mm512_unpackhi_epi64(r0, r1));
    let (t2, t3) = (_mm512_unpacklo_epi64(r2, r3), _mm512_unpackhi_epi64(r2, r3));
    let first = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
    let second = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    [
        _mm512_permutex2var_epi64(t0, first, t2),
        _mm512_permutex2var_epi64(t1, first, t3),
        _mm512_permutex2var_epi64(t0, second, t2),
        _mm512_permutex2var_epi64(t1, second, t3),
    ]
}

/// The inverse of [`load_words`].
///
/// # Safety
/// * 32 bytes may be written at every pointer.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn store_words(words: &[__m512i; 4], at: &[*mut u64; 8]) {
    let (even_low, odd_low) = (_mm512_unpacklo_epi64(words[0], words[1]), _mm512_unpackhi_epi64(words[0], words[1]));
    let (even_high, odd_high) = (_mm512_unpacklo_epi64(words[2], words[3]), _mm512_unpackhi_epi64(words[2], words[3]));
    let first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    let second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    let put = |rows: __m512i, lane: usize| {
        // SAFETY: the caller's obligation.
        unsafe {
            _mm256_storeu_si256(at[lane].cast(), _mm512_castsi512_si256(rows));
            _mm256_storeu_si256(at[lane + 2].cast(), _mm512_extracti64x4_epi64::<1>(rows));
        }
    };
    put(_mm512_permutex2var_epi64(even_low, first, even_high), 0);
    put(_mm512_permutex2var_epi64(odd_low, first, odd_high), 1);
    put(_mm512_permutex2var_epi64(even_low, second, even_high), 4);
    put(_mm512_permutex2var_epi64(odd_low, second, odd_high), 5);
}
