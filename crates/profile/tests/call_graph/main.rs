//! The reader of call graphs, through what it shows: what it refuses, what it tells of a cut text, and
//! the part of the public archive that lies in the shared data.

mod corpus;
mod print;
mod properties;
mod refused;
mod truncated;
