//! What contradicts what in a README.
