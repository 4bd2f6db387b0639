#![doc = include_str!("../README.md")]
// Unsafe is allowed here and nowhere else; every block says why it is sound.
