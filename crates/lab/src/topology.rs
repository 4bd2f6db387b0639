//! The cables: tester and DUT in namespaces of their own, joined by two veth pairs.
//!
//! ```text
//!  tester namespace                        DUT namespace
//!  generator -> tester-out ==== veth ==== dut-in
//!                                            | forwarding
//!  sink      <- tester-in  ==== veth ==== dut-out
//! ```
//!
//! Where frames go in both directions, each cable has a generator's and a sink's end.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use fwdlab_model::{AddressFamily, Direction, Traffic, XdpMode};
use fwdlab_sys::{NetworkNamespace, Sysfs, XdpSlot};
use fwdlab_traffic::Frames;

use crate::LabError;
use crate::addresses::{
    DUT_IN_MAC, DUT_OUT_MAC, Prefix, SINK_MAC, TESTER_IN_MAC, TESTER_OUT_MAC, addresses, frames,
    frames_back,
};
use crate::kernel_file::{read, write};
use crate::netlink::{InterfaceState, LinkSettings, Netlink, RouteChange};

/// The tester's interface towards the DUT: where the generator sends.
pub const TESTER_OUT: &str = "tester-out";
/// The tester's interface behind the DUT: where the sink counts.
pub const TESTER_IN: &str = "tester-in";
/// The DUT's receiving interface.
pub const DUT_IN: &str = "dut-in";
/// The DUT's sending interface.
pub const DUT_OUT: &str = "dut-out";

/// Tester and DUT, cabled and forwarding; gone when this value goes.
pub struct Topology {
    tester: NetworkNamespace,
    dut: NetworkNamespace,
    tester_netlink: Netlink,
    dut_netlink: Netlink,
    tester_out: u32,
    tester_in: u32,
    dut_in: u32,
    dut_out: u32,
    /// `/sys` as the DUT has it, once it was asked for.
    dut_sysfs: Option<Sysfs>,
    /// Threads that poll for other labs' interfaces of the same names.
    foreign_polling_threads: Vec<u32>,
    /// What the CPUs' backlogs had dropped before.
    backlog_drops_before: u64,
}

/// The reason under which frames are counted that found another CPU's backlog full.
const BACKLOG: &str = "CPU backlog";

/// How the kernel names the threads that poll for the DUT's interfaces.
const POLLING_THREADS: &str = "napi/dut-";

impl Topology {
    /// Makes both namespaces, the cables, addresses, permanent neighbours and routes, and turns
    /// forwarding on.
    ///
    /// # Errors
    /// Without the privilege, or when the kernel lacks a part.
    pub fn build() -> Result<Self, LabError> {
        let tester = NetworkNamespace::create("tester")?;
        let dut = NetworkNamespace::create("dut")?;
        let mut tester_netlink = Netlink::open(&tester)?;
        let mut dut_netlink = Netlink::open(&dut)?;

        // No address of their own for the tester's interfaces, so that they send nothing of theirs.
        write_in(&tester, "net/ipv6/conf/default/disable_ipv6", "1")?;
        for (setting, value) in [
            ("net/ipv4/ip_forward", "1"),
            ("net/ipv6/conf/all/forwarding", "1"),
            ("net/ipv6/conf/default/forwarding", "1"),
            ("net/ipv6/conf/default/accept_ra", "0"),
            ("net/ipv4/conf/default/rp_filter", "0"),
            ("net/ipv4/conf/all/rp_filter", "0"),
        ] {
            write_in(&dut, setting, value)?;
        }

        for (here, there) in [
            ((TESTER_OUT, TESTER_OUT_MAC), (DUT_IN, DUT_IN_MAC)),
            ((TESTER_IN, TESTER_IN_MAC), (DUT_OUT, DUT_OUT_MAC)),
        ] {
            tester_netlink.add_veth(here, there, &dut)?;
        }
        let tester_out = tester_netlink.index(TESTER_OUT)?;
        let tester_in = tester_netlink.index(TESTER_IN)?;
        let dut_in = dut_netlink.index(DUT_IN)?;
        let dut_out = dut_netlink.index(DUT_OUT)?;
        // A veth takes redirected frames only when it polls, which GRO makes it do.
        dut.run(|| fwdlab_sys::enable_gro(DUT_IN))??;
        tester.run(|| fwdlab_sys::enable_gro(TESTER_IN))??;
        // On a cable a tag is in the frame, and not beside it, where XDP programs do not see it.
        for port in [DUT_IN, DUT_OUT] {
            dut.run(|| fwdlab_sys::set_features(port, &["tx-vlan-hw-insert"], false))??;
        }
        for index in [tester_out, tester_in] {
            tester_netlink.set_up(index)?;
        }
        let mut topology = Self {
            tester,
            dut,
            tester_netlink,
            dut_netlink,
            tester_out,
            tester_in,
            dut_in,
            dut_out,
            dut_sysfs: None,
            foreign_polling_threads: fwdlab_sys::kernel_threads(POLLING_THREADS)?,
            backlog_drops_before: backlog_drops()?,
        };
        topology.set_up_dut()?;
        Ok(topology)
    }

    /// Sets the DUT's ports up, and gives them their addresses, neighbours and routes; what is there stays.
    ///
    /// A forwarder in user space may have taken some of that away: the kernel forgets a port's neighbours when its MAC address is
    /// set, be it to what it was, which DPDK does at its start.
    pub(crate) fn set_up_dut(&mut self) -> Result<(), LabError> {
        for index in [self.dut_in, self.dut_out] {
            self.dut_netlink.set_up(index)?;
        }
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            self.address(family)?;
        }
        Ok(())
    }

    fn address(&mut self, family: AddressFamily) -> Result<(), LabError> {
        let addresses = addresses(family);
        let netlink = &mut self.dut_netlink;
        netlink.set_address(self.dut_in, addresses.dut_in)?;
        netlink.set_address(self.dut_out, addresses.dut_out)?;
        netlink.add_connected_route(self.dut_in, addresses.dut_in)?;
        netlink.add_connected_route(self.dut_out, addresses.dut_out)?;
        netlink.set_neighbour(self.dut_in, addresses.generator, TESTER_OUT_MAC)?;
        netlink.set_neighbour(self.dut_out, addresses.sink, SINK_MAC)?;
        netlink.set_route(addresses.sources, addresses.generator)?;
        netlink.set_route(addresses.destinations, addresses.sink)
    }

    /// Has the DUT's receiving interface poll for what a socket sends, as it does for redirected
    /// frames, so that its settings matter (GRO, threads). A veth does so only for frames that may be
    /// aggregated, which it takes a sender's TCP segmentation as a sign against.
    pub(crate) fn take_frames_of_sockets_in_polls(&self) -> Result<(), LabError> {
        self.tester.run(|| {
            let features = fwdlab_sys::features(TESTER_OUT)?;
            let names = features.iter().map(|feature| feature.name.as_str());
            let segmentation: Vec<_> = names.filter(|name| name.starts_with("tx-tcp")).collect();
            fwdlab_sys::set_features(TESTER_OUT, &segmentation, false)
        })??;
        Ok(())
    }

    /// Has the other ends of the cables take redirected frames too, so that they can go back.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn carry_both_directions(&self) -> Result<(), LabError> {
        self.dut.run(|| fwdlab_sys::enable_gro(DUT_OUT))??;
        Ok(self.tester.run(|| fwdlab_sys::enable_gro(TESTER_OUT))??)
    }

    /// The tester's namespace.
    #[must_use]
    pub fn tester(&self) -> &NetworkNamespace {
        &self.tester
    }

    /// The DUT's namespace.
    #[must_use]
    pub fn dut(&self) -> &NetworkNamespace {
        &self.dut
    }

    /// The index of the interface where the generator sends, in the tester's namespace.
    #[must_use]
    pub fn generator_interface(&self) -> u32 {
        self.tester_out
    }

    /// The index of the interface where it sends the frames that go back.
    #[must_use]
    pub fn generator_interface_back(&self) -> u32 {
        self.tester_in
    }

    /// The frames of one family that the generator is to send.
    ///
    /// # Errors
    /// When the traffic is more than the generator can do, or its addresses are not all routed.
    pub fn frames(&self, family: AddressFamily, traffic: &Traffic) -> Result<Frames, LabError> {
        frames(family, traffic)
    }

    /// The frames that go back: from the destinations of others to their sources, over the same
    /// cables.
    #[must_use]
    pub fn frames_back(&self, frames: &Frames) -> Frames {
        frames_back(frames, TESTER_IN_MAC)
    }

    /// The kernel's number of the XDP program on one of the DUT's interfaces; 0 for none.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub(crate) fn dut_xdp_program(&mut self, interface: &str) -> Result<u32, LabError> {
        Ok(self.dut_interface(interface)?.xdp_program)
    }

    /// Frames that have come to the end of the generator's cables so far: the DUT received them, or its port's ring was full.
    ///
    /// A frame that finds the ring full counts as dropped at both ends. What the DUT's port alone counts as dropped, it has
    /// received before: the ring of an AF_XDP socket or the backlog of another CPU was full.
    ///
    /// # Source
    /// Linux: `veth_get_stats64` in `drivers/net/veth.c`.
    pub(crate) fn arrived_frames(&mut self, direction: Direction) -> Result<u64, LabError> {
        let [mut arrived, _] = self.dut_packets(direction)?;
        arrived += (self.tester_netlink)
            .interface_state(self.tester_out)?
            .tx_dropped;
        if direction == Direction::Both {
            arrived += (self.tester_netlink)
                .interface_state(self.tester_in)?
                .tx_dropped;
        }
        Ok(arrived)
    }

    /// Frames lost so far on each cable, in each direction of the traffic, and where a CPU hands
    /// frames over to another (RPS).
    ///
    /// A veth counts a redirected frame that finds its peer's ring full at both ends. What it counts
    /// at one end only is, at the sending end, a frame of the kernel's own path, and at the receiving
    /// end one that an XDP program there could not redirect. The generator's cable has no such sender,
    /// the sink's no such receiver, so the larger of the two counts is the number of frames.
    ///
    /// A frame that finds another CPU's backlog full is counted at the receiving end too. The backlogs
    /// are the machine's, so that what others lose there meanwhile is counted here as well.
    pub(crate) fn cable_drops(
        &mut self,
        direction: Direction,
    ) -> Result<Vec<(String, u64)>, LabError> {
        let tester_out = self.tester_netlink.interface_state(self.tester_out)?;
        let dut_in = self.dut_netlink.interface_state(self.dut_in)?;
        let dut_out = self.dut_netlink.interface_state(self.dut_out)?;
        let tester_in = self.tester_netlink.interface_state(self.tester_in)?;
        let backlog = backlog_drops()?.saturating_sub(self.backlog_drops_before);
        let mut backlog_left = backlog;
        let mut drops = |from, sent: &InterfaceState, to, received: &InterfaceState| {
            let beyond = received.rx_dropped.saturating_sub(sent.tx_dropped);
            let by_backlog = beyond.min(backlog_left);
            backlog_left -= by_backlog;
            let frames = sent.tx_dropped.max(received.rx_dropped - by_backlog);
            (cable(from, to), frames)
        };
        let mut cables = vec![
            drops(TESTER_OUT, &tester_out, DUT_IN, &dut_in),
            drops(DUT_OUT, &dut_out, TESTER_IN, &tester_in),
        ];
        if direction == Direction::Both {
            cables.push(drops(TESTER_IN, &tester_in, DUT_OUT, &dut_out));
            cables.push(drops(DUT_IN, &dut_in, TESTER_OUT, &tester_out));
        }
        cables.push((BACKLOG.to_owned(), backlog));
        Ok(cables)
    }

    /// Frames that came in at the DUT, and frames that it sent, at the ports that the load passes.
    pub(crate) fn dut_packets(&mut self, direction: Direction) -> Result<[u64; 2], LabError> {
        let [dut_in, dut_out] =
            [self.dut_in, self.dut_out].map(|port| self.dut_netlink.interface_state(port));
        let (dut_in, dut_out) = (dut_in?, dut_out?);
        Ok(match direction {
            Direction::Forward => [dut_in.rx_packets, dut_out.tx_packets],
            Direction::Both => [
                dut_in.rx_packets + dut_out.rx_packets,
                dut_in.tx_packets + dut_out.tx_packets,
            ],
        })
    }

    /// Frames that came in at the DUT for another station, and were dropped because of that.
    pub(crate) fn misaddressed_frames(&mut self) -> Result<u64, LabError> {
        let dut_in = self.dut_netlink.interface_state(self.dut_in)?;
        Ok(dut_in.rx_otherhost_dropped)
    }

    /// Adds or deletes routes of the DUT through the next hop that leads to the sink.
    pub(crate) fn change_dut_routes(
        &mut self,
        family: AddressFamily,
        change: RouteChange,
        prefixes: impl Iterator<Item = Prefix>,
    ) -> Result<(), LabError> {
        let gateway = addresses(family).sink;
        self.dut_netlink.change_routes(change, gateway, prefixes)
    }

    /// How many static routes the DUT has for a family.
    pub(crate) fn count_dut_routes(&mut self, family: AddressFamily) -> Result<u32, LabError> {
        self.dut_netlink.count_static_routes(match family {
            AddressFamily::Inet => netlink_packet_route::AddressFamily::Inet,
            AddressFamily::Inet6 => netlink_packet_route::AddressFamily::Inet6,
        })
    }

    /// Has the DUT forward in threads on a CPU of its own, instead of on the CPU of whoever sends.
    pub(crate) fn forward_on(&mut self, cpu: u32, direction: Direction) -> Result<(), LabError> {
        for interface in receiving(direction) {
            let file = format!("/sys/class/net/{interface}/threaded");
            self.write_dut_file(Path::new(&file), "1")?;
        }
        self.pin_polling_threads(cpu)
    }

    /// Has the DUT receive on the CPU of the thread that sends, as it does before [`forward_on`](Self::forward_on).
    pub(crate) fn forward_in_place(&mut self, direction: Direction) -> Result<(), LabError> {
        for interface in receiving(direction) {
            let file = format!("/sys/class/net/{interface}/threaded");
            self.write_dut_file(Path::new(&file), "0")?;
        }
        Ok(())
    }

    /// Frames inside the DUT by the counters of its ports: those that came in, less those that went out or found no room on
    /// the cable there. Only differences of it mean anything, and those at moments when no frame is under way.
    ///
    /// A frame that finds the ring of an AF_XDP socket full counts as received and as dropped on the cable; it did not come
    /// in.
    ///
    /// # Source
    /// Linux: `veth_xdp_rcv`, `veth_rq_stats_desc` in `drivers/net/veth.c`.
    pub(crate) fn frames_inside(&mut self, direction: Direction) -> Result<i64, LabError> {
        let [received, sent] = self.dut_packets(direction)?;
        let mut inside = received.cast_signed() - sent.cast_signed();
        for port in receiving(direction) {
            let statistics = self.dut.run(|| fwdlab_sys::statistics(port))??;
            let refused = statistics
                .iter()
                .filter(|(name, _)| name.starts_with("rx_queue_") && name.ends_with("_drops"))
                // Those are frames that an XDP program has dropped.
                .filter(|(name, _)| !name.ends_with("xdp_drops"));
            let refused: u64 = refused.map(|(_, frames)| frames).sum();
            inside -= refused.cast_signed();
        }
        for port in forwarding(direction) {
            inside -= self.dut_interface(port)?.tx_dropped.cast_signed();
        }
        Ok(inside)
    }

    fn dut_interface(&mut self, name: &str) -> Result<InterfaceState, LabError> {
        self.dut_netlink.interface_state(self.dut_index(name))
    }

    fn dut_index(&self, name: &str) -> u32 {
        if name == DUT_OUT {
            self.dut_out
        } else {
            self.dut_in
        }
    }

    /// How one of the DUT's interfaces is set.
    pub(crate) fn dut_link_settings(&mut self, interface: &str) -> Result<LinkSettings, LabError> {
        self.dut_netlink.link_settings(self.dut_index(interface))
    }

    /// Sets one of the DUT's interfaces so.
    pub(crate) fn set_dut_link(
        &mut self,
        interface: &str,
        settings: &LinkSettings,
    ) -> Result<(), LabError> {
        let index = self.dut_index(interface);
        self.dut_netlink.set_link(index, settings)
    }

    /// Takes the XDP program off one of the DUT's interfaces, be it in the driver or behind it.
    pub(crate) fn remove_dut_xdp_program(&self, interface: &str) -> Result<(), LabError> {
        self.dut.run(|| {
            [XdpMode::Native, XdpMode::Generic]
                .into_iter()
                .try_for_each(|mode| XdpSlot::open(interface, mode)?.empty())
        })??;
        Ok(())
    }

    /// Lets the threads that poll for the DUT's interfaces run on one CPU only.
    pub(crate) fn pin_polling_threads(&self, cpu: u32) -> Result<(), LabError> {
        for thread in fwdlab_sys::kernel_threads(POLLING_THREADS)? {
            if !self.foreign_polling_threads.contains(&thread) {
                fwdlab_sys::pin_thread(thread, cpu)?;
            }
        }
        Ok(())
    }

    /// A file of the DUT's kernel below `/sys` or `/proc`.
    pub(crate) fn read_dut_file(&mut self, path: &Path) -> Result<String, LabError> {
        match below_sys(path) {
            Some(below) => fs::read_to_string(self.dut_sysfs()?.path(below))
                .map_err(|source| LabError::file("reading", path, source)),
            None => self.dut.run(|| read(path))?,
        }
    }

    /// Writes a file of the DUT's kernel below `/sys` or `/proc`.
    pub(crate) fn write_dut_file(&mut self, path: &Path, value: &str) -> Result<(), LabError> {
        let Some(below) = below_sys(path) else {
            return self.dut.run(|| write(path, value))?;
        };
        OpenOptions::new()
            .write(true)
            .open(self.dut_sysfs()?.path(below))
            .and_then(|mut opened| opened.write_all(value.as_bytes()))
            .map_err(|source| LabError::file("writing", path, source))
    }

    fn dut_sysfs(&mut self) -> Result<&Sysfs, LabError> {
        match &mut self.dut_sysfs {
            Some(sysfs) => Ok(sysfs),
            none => Ok(none.insert(Sysfs::open(&self.dut)?)),
        }
    }
}

/// Under which the frames are counted that are lost between two ends of a cable.
pub(crate) fn cable(from: &str, to: &str) -> String {
    format!("between {from} and {to}")
}

/// The DUT's interfaces where the generator's frames come in.
pub(crate) fn receiving(direction: Direction) -> &'static [&'static str] {
    match direction {
        Direction::Forward => &[DUT_IN],
        Direction::Both => &[DUT_IN, DUT_OUT],
    }
}

/// The DUT's interfaces where they go out.
fn forwarding(direction: Direction) -> &'static [&'static str] {
    match direction {
        Direction::Forward => &[DUT_OUT],
        Direction::Both => &[DUT_OUT, DUT_IN],
    }
}

/// The tester's interfaces where the DUT's frames come out, in the order of the directions.
pub(crate) fn counting(direction: Direction) -> &'static [&'static str] {
    match direction {
        Direction::Forward => &[TESTER_IN],
        Direction::Both => &[TESTER_IN, TESTER_OUT],
    }
}

/// The part of a path below `/sys`; none where it is elsewhere.
fn below_sys(path: &Path) -> Option<&str> {
    path.strip_prefix("/sys").ok()?.to_str()
}

/// What the backlogs of all CPUs have dropped since the machine's start.
fn backlog_drops() -> Result<u64, LabError> {
    let path = Path::new("/proc/net/softnet_stat");
    let text = read(path)?;
    softnet_drops(&text).ok_or_else(|| {
        let why = "not a table of hexadecimal numbers";
        LabError::file("reading", path, io::Error::other(why))
    })
}

/// The second column of `softnet_stat`, summed over the CPUs' lines.
fn softnet_drops(text: &str) -> Option<u64> {
    let dropped = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    text.lines().map(dropped).sum()
}

fn write_in(namespace: &NetworkNamespace, setting: &str, value: &str) -> Result<(), LabError> {
    namespace.run(|| write(&Path::new("/proc/sys").join(setting), value))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drops_of_all_backlogs_are_summed() {
        let text = "27651c70 0000000a 0000000b 00000000\n03aefb32 00000010 00000001 00000000\n";
        assert_eq!(softnet_drops(text), Some(26));
        assert_eq!(softnet_drops("27651c70\n"), None);
        assert_eq!(softnet_drops("27651c70 x\n"), None);
    }
}
