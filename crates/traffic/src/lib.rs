#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod counter_sink;
mod error;
mod expected;
mod frames;
mod generator;
mod generator_program;
mod interface;
mod interface_counters;
mod interlock;
mod memory;
mod pacer;
mod receivers;
mod running;
mod schedule;
mod scrutiny;
mod senders;
mod sink;
mod socket_generator;
mod tester;
mod turn;
mod xdp;

pub use counter_sink::CounterSink;
pub use error::TrafficError;
pub use frames::{FRAME_SIZE_MAX, Frames, Link};
pub use generator::{Generator, Pace, RunningGenerator};
pub use interface::{
    InterfaceExpectation, InterfaceGenerator, InterfaceLoad, InterfaceSink, SentFrames, Way,
    is_card,
};
pub use interface_counters::{InterfaceCounters, InterfaceCounts};
pub use interlock::{
    Needed, Network, PUBLIC_ADDRESSES, Route, SSH_PORT, TcpConnection, established, is_ssh_server,
    master_of, refuse_needed, ssh_connection,
};
pub use memory::{GeneratorCounts, MemoryGenerator, MemorySink, MemorySinkCounts, WRITE_BACK};
pub use receivers::Receivers;
pub use scrutiny::Scrutiny;
pub use sink::{Sink, SinkCounts};
pub use socket_generator::{RunningSocketGenerator, SocketGenerator, SocketPort};
pub use tester::{Receiver, RunningSender, Sender, SenderPort, ebpf_refusal};
pub use turn::SLOTS_MAX;
pub use xdp::{CountingProgram, XdpProgram, load_patiently};

/// A program that lets every frame through; drivers of many cards send what is redirected to a port only where the port
/// has a program itself.
///
/// # Errors
/// Without the privilege to load it.
pub fn pass_program() -> Result<XdpProgram, TrafficError> {
    pass_program_of("pass")
}

/// The same for frames in several pieces, or not.
pub(crate) fn pass_program_of(name: &'static str) -> Result<XdpProgram, TrafficError> {
    XdpProgram::load(object_bytes!("../bpf/pass.bpf.o"), name)
}

/// The drop-at-ingress control: ends and counts every frame on the interface it is attached to.
///
/// # Errors
/// Without the privilege to load it.
pub fn drop_control() -> Result<CountingProgram, TrafficError> {
    let object = object_bytes!("../bpf/drop.bpf.o");
    CountingProgram::load(object, "drop", "dropped")
}
