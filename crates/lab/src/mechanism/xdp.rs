//! The XDP program on the DUT's ports: on those that receive in a namespace, on both on a host.

use fwdlab_model::{Binding, Direction, Lab, XdpProgram};
use fwdlab_traffic::{CountingProgram, object_bytes};

use super::by_level::ByLevel;
use super::program::{Hook, HookPrograms, Program};
use super::question::Look;
use super::step::owned;
use super::tools::Tool;
use super::{DutPlace, bound};
use crate::LabError;

/// Outcomes of the XDP forwarder, in the order of its `enum outcome`.
pub(crate) const FORWARDER_DROPPED: u32 = 2;

/// Loads the XDP forwarder that asks the kernel's FIB for every packet.
///
/// # Errors
/// Without the privilege.
pub fn fib_forwarder() -> Result<CountingProgram, LabError> {
    let object = object_bytes!("../../bpf/fib_forwarder.bpf.o");
    Ok(CountingProgram::load(object, "forward", "outcomes")?)
}

/// Whether a lab sets programs at all.
pub(crate) fn is_bound(lab: &Lab) -> bool {
    let mut bindings = lab.bindings.values();
    bindings.any(|binding| matches!(binding, Binding::Xdp(_)))
}

/// The programs of a Linux kernel; none where the lab binds no factor to XDP programs.
pub(super) fn on_linux(lab: &Lab, direction: Direction, place: &DutPlace) -> Option<HookPrograms> {
    let by_level = ByLevel::of(bound(lab, |binding| match binding {
        Binding::Xdp(programs) => Some(programs.iter().map(of_level).collect()),
        _ => None,
    }))?;
    let ports = if place.is_namespace {
        place.receiving(direction)
    } else {
        // Drivers of many cards send what is redirected to them only where they have a program themselves.
        place.receiving(Direction::Both)
    };
    Some(HookPrograms {
        hook: Hook::Xdp,
        ports,
        by_level,
        tool: (!place.is_namespace).then_some(Tool::Iproute2),
        shown: |port| Look::Link(port.to_owned()),
        number_in: program_of,
        setting: |port| format!("the XDP program on {port}"),
    })
}

fn of_level((level, program): (&String, &XdpProgram)) -> (String, Option<Program>) {
    let program = match program {
        XdpProgram::Off => None,
        XdpProgram::Fib => Some(Program::Forwarder),
    };
    (level.clone(), program)
}

/// What shows an interface with its XDP program.
pub(crate) fn link_of(interface: &str) -> Vec<String> {
    owned(&["ip", "-o", "-d", "link", "show", "dev", interface])
}

/// What shows the number of an interface's XDP program, 0 for none, in the same form.
pub(crate) fn shown(number: u32) -> String {
    match number {
        0 => String::new(),
        number => format!("prog/xdp id {number}"),
    }
}

/// The number of an interface's XDP program, as `ip -d link` shows it.
fn program_of(link: &str) -> Option<u32> {
    let (_, behind) = link.split_once("prog/xdp")?;
    let mut words = behind.split_whitespace();
    words.find(|word| *word == "id")?;
    words.next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_program_is_read() {
        let link = "3: eth1@if2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 xdp qdisc noqueue state UP qlen 1000\\    \
                    link/ether 02:00:00:00:01:02 brd ff:ff:ff:ff:ff:ff link-netnsid 0 \\    prog/xdp id 34 name forward \
                    tag 3b185187f1855c4c jited ";
        assert_eq!(program_of(link), Some(34));
        for without in [
            "3: eth1: <UP> mtu 1500 qdisc mq",
            "",
            "prog/xdp",
            "prog/xdp id",
        ] {
            assert_eq!(program_of(without), None, "{without}");
        }
    }
}
