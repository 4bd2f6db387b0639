#![doc = include_str!("../README.md")]
// Unsafe is allowed in this crate and in no other; every block says why it is sound.

mod af_xdp;
mod boot_time;
mod bpf_map;
mod caller;
mod cpu;
mod cpu_time;
mod cycle_counter;
mod descendants;
mod descriptor_ring;
mod detached_mount;
pub mod durable;
mod error;
mod ethtool;
mod input;
mod interface;
mod interrupt;
mod kernel_readers;
mod mapping;
mod memory_file;
mod mp_ring;
mod namespace;
mod netlink;
mod packet_ring;
mod packet_socket;
pub mod parallel;
mod peer;
mod prefetch;
mod process;
mod slots;
mod stack_sampler;
mod sync;
mod thread;
mod user_namespace;
mod waiting;
mod xdp_slot;

pub use af_xdp::XdpSocket;
pub use boot_time::{BootTime, BothClocks};
pub use bpf_map::MapEntries;
pub use caller::{create_folder, give_to_caller};
pub use cpu::{PinnedThread, online_cpus, pin_this_thread, prefer_this_thread};
pub use cpu_time::{
    RunDelay, is_runnable, last_cpu, process_cpu_time, process_ids, process_name_and_cpus,
    run_time, thread_cpu_time, threads_kept_on, threads_of,
};
pub use cycle_counter::cycle_counter;
pub use descendants::{Descendants, STARTED_MARK};
pub use descriptor_ring::{DeviceRing, DriverRing, descriptor_ring};
pub use detached_mount::{Sysfs, tracepoint_format};
pub use error::SysError;
pub use ethtool::{Feature, enable_gro, features, set_features, statistics, transmit_queues};
pub use input::{Bounded, Input, Refusal, check_inside};
pub use interface::{Interface, addresses, interface, interface_names};
pub use interrupt::{Interrupts, WakeUp, enable_wake_ups, watch_interrupts};
pub use kernel_readers::wait_for_network_polls;
pub use memory_file::memory_file;
pub use mp_ring::{Drainer, Enqueued, Finished, MultiProducerRing};
pub use namespace::{
    NamespaceEntrance, NetworkNamespace, leftover_namespaces, remove_leftovers, remove_namespace,
    run_in_namespace,
};
pub use netlink::{Netlink, netlink_attribute, netlink_attributes};
pub use packet_ring::{ReceiveRing, TransmitRing};
pub use packet_socket::{PacketSocket, interface_index};
pub use peer::peer_process;
pub use prefetch::prefetch_read;
pub use process::{
    Process, bind_to_this_thread, kernel_threads, kill_process_group, may_run_on, pin_thread,
    start_on, terminate_process_group,
};
pub use stack_sampler::{
    Sampled, SampledEvent, SamplerSwitch, Samples, StackSample, StackSampler, monotonic_ns,
    this_thread,
};
pub use thread::{start_thread, start_thread_in};
pub use user_namespace::{NoUserNamespace, enter_user_namespace, is_in_user_namespace};
pub use waiting::read_waiting;
pub use xdp_slot::{XdpParking, XdpSlot};

/// Whether this process runs as the machine's root, not as that of a user namespace.
#[must_use]
pub fn is_root() -> bool {
    user_id() == 0 && !is_in_user_namespace()
}

/// This process's effective user id.
#[must_use]
pub fn user_id() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// Makes durable whatever was written to the file system that holds `file`.
///
/// # Errors
/// What the system says.
pub fn sync_filesystem(file: &std::fs::File) -> std::io::Result<()> {
    Ok(nix::unistd::syncfs(file)?)
}
