//! Which port of a DUT is cabled to which of a tester: what is known of both hosts, which ports to set down to find out,
//! what follows from the links that drop, and the lab file that says so. Pure: whoever reaches the hosts looks and acts.

mod facts;
mod lab_file;
mod layout;
mod search;

pub use self::facts::{End, HostFacts, Port, Side};
pub use self::lab_file::{lab_file, speed};
pub use self::layout::Layout;
pub use self::search::{Cable, Cabling, Proof, Search};

pub(crate) use self::facts::natural;
