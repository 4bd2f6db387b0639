#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod addresses;
pub mod binding;
mod bindings;
pub mod change;
mod destination;
pub mod diagnostic;
mod digest;
mod document;
mod dut_reading;
mod experiment;
mod factor;
mod files;
mod forwarder;
mod forwarder_check;
mod hosts;
pub mod imported;
pub mod kind;
mod knob;
mod lab_file;
mod load;
mod mechanism;
pub mod one_or_several;
mod placeholder;
pub mod plan;
pub mod profile;
pub mod record;
mod references;
pub mod resolve;
pub mod resolved;
pub mod schema;
mod schema_parts;
mod session;
pub mod stratum;
mod tester_reading;
mod toml_text;
mod traffic;
mod traffic_check;
mod traffic_text;
mod variants;
mod vlan_check;
pub mod words;
mod written_record;
mod zipf;

pub use addresses::{AddressRange, NeverForwarded, RangeError, masked};
pub use binding::{
    Apply, Binding, CommandBinding, DutInterface, EbpfProgram, GlobalValue, OwnTcProgram,
    OwnXdpProgram, PacketFilter, TcAttach, TcHook, Upload, Values, XdpMode, XdpProgram,
};
pub use change::{Change, ChangeError, ChangeOption, CommandText, Conditions, change_options};
pub use destination::check_destination;
pub use diagnostic::{Diagnostic, Diagnostics, Severity, Source, Span, nearest};
pub use digest::{sha256, sha256_of};
pub use dut_reading::{CpuTimes, DutReading};
pub use experiment::{CONFIDENCE_PERCENT, THRESHOLD_PERCENT};
pub use files::{Files, Read};
pub use forwarder::{Forwarder, Forwards, Ready};
pub use hosts::{
    DutHost, GeneratorHost, HostTesterKind, Hosts, REBOOT_S_MAX, ReceiverHost, TesterHost,
    check_interface,
};
pub use kind::{LabKind, System};
pub use knob::{Knob, KnobLevels};
pub use load::Load;
pub use mechanism::devices;
pub use placeholder::with_interfaces;
pub use plan::{NextSlice, Plan, PlannedBlock, PlannedSlice, SliceSource, StratumOrder};
pub use profile::{
    CpuSamples, ProfileEvery, ProfileFault, ProfileRecord, ProfileStacks, Profiling,
};
pub use record::{
    AccountSource, BlockRecord, Competitor, Conservation, Contention, CpuSpeed, InvalidReason,
    RateBasis, Record, SCHEMA_VERSION, SliceLoad, SliceRecord, TrialRecord, Verification,
};
pub use resolve::{Loaded, load, load_lab, ruleset_source};
pub use resolved::{
    CPU_THRESHOLD_PERCENT, Comparison, Design, Direction, Factor, FirstAddresses, FrameSize, Lab,
    Notify, Order, PortRange, Reference, ReferenceData, Resolved, RouterLab, RouterTester, Traffic,
    Variant,
};
pub use session::{
    Environment, LabNoise, LoadRecord, Placement, QueuePlacement, SessionRecord, StratumLoad,
    Tester,
};
pub use stratum::{Stratum, TrafficName};
pub use tester_reading::TesterReading;
pub use toml_text::quoted;
pub use traffic::{
    BURST_FRAMES, FLOWS_MAX, FRAME_SIZE, LoadChoice, PPS_MAX, VLAN, VLAN_TAG_BYTES,
    WIRE_OVERHEAD_BYTES,
};
pub use traffic_check::{FlowEnd, TrafficFault};
pub use traffic_text::{FrameSizes, TrafficTextError, parse_address};
pub use words::{AddressFamily, Level, LoadRegime, VariantName};
pub use zipf::{FlowShares, SCHEDULE_FRAMES, Zipf, ZipfError};
