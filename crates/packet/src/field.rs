//! Fixed fields of a header, in network byte order.
//!
//! All of them panic when the field lies outside of the bytes: the views check
//! the length of a header once, before any field is touched.

pub(crate) fn octets<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut octets = [0; N];
    octets.copy_from_slice(&bytes[offset..offset + N]);
    octets
}

pub(crate) fn set_octets(bytes: &mut [u8], offset: usize, octets: &[u8]) {
    bytes[offset..offset + octets.len()].copy_from_slice(octets);
}

pub(crate) fn word(bytes: &[u8], offset: usize) -> u16 {
    u16::from_be_bytes(octets(bytes, offset))
}

pub(crate) fn set_word(bytes: &mut [u8], offset: usize, word: u16) {
    set_octets(bytes, offset, &word.to_be_bytes());
}
