//! A sysctl: of the DUT's own namespace, of a Linux host or of a FreeBSD host.

use std::collections::BTreeMap;

use crate::binding::Binding;
use crate::diagnostic::{Span, nearest, suggest};
use crate::document::Reading;
use crate::kind::{LabKind, System};
use crate::placeholder::{self, with_interfaces};
use crate::schema_parts::line;

use super::name::{devices, in_braces, is_freebsd_name};
use super::{Binder, Description, Given, Levels, Meanings, Mechanism};

pub(super) const SYSCTL: Description = Description {
    key: "sysctl",
    what: "a sysctl",
    levels: Levels::Values,
    kinds: &[
        LabKind::Netns,
        LabKind::Ssh(System::Freebsd),
        LabKind::Ssh(System::Linux),
    ],
    takes_values: true,
    table: None,
    read,
    schema,
};

fn schema() -> serde_json::Value {
    line(
        "A sysctl; {dut-in} and {dut-out} stand for the DUT's interfaces, on FreeBSD {0,1} \
         for several devices.",
    )
}

/// A key, the value of each level where the levels are not the values, and as what values read back.
#[derive(Debug)]
struct Sysctl {
    key: String,
    values: Option<Meanings<String>>,
    reads_back: BTreeMap<String, String>,
}

impl Mechanism for Sysctl {
    fn bind(&self, binder: &mut Binder<'_, '_>) -> Binding {
        let values = binder.values(self.values.as_ref(), "a sysctl");
        binder.refuse_alike(&values, &self.reads_back);
        Binding::Sysctl {
            key: self.key.clone(),
            values,
            reads_back: self.reads_back.clone(),
        }
    }

    fn sets(&self, ports: Option<[&str; 2]>) -> Vec<String> {
        kernel_variables(&self.key, ports)
    }
}

/// What a kernel's variable is called on the DUT: one name for each device or interface that it is of.
pub(super) fn kernel_variables(name: &str, ports: Option<[&str; 2]>) -> Vec<String> {
    match ports {
        Some([interface_in, interface_out]) => {
            devices(&with_interfaces(name, interface_in, interface_out))
        }
        None => devices(name),
    }
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Box<dyn Mechanism>> {
    let sysctl = reading.line(given.value, given.what)?;
    let is_name = match given.kind {
        None => true,
        Some(LabKind::Ssh(System::Freebsd)) => {
            is_freebsd_name(reading, sysctl.span(), sysctl.get_ref(), "sysctl")
        }
        Some(kind) => is_sysctl(reading, sysctl.span(), sysctl.get_ref(), kind),
    };
    is_name.then(|| -> Box<dyn Mechanism> {
        Box::new(Sysctl {
            key: sysctl.into_inner(),
            values: given.values,
            reads_back: given.reads_back,
        })
    })
}

/// Whether a key names a file under `/proc/sys` and can name nothing else: any of a whole host, those of the
/// network alone of a namespace, which has its own of them.
fn is_sysctl(reading: &mut Reading<'_>, span: Span, key: &str, kind: LabKind) -> bool {
    let parts: Vec<&str> = key.split('.').collect();
    let wrong = if parts.len() < 2 {
        Some("keys have at least two parts, with a dot in between".to_owned())
    } else if parts[0] != "net" && !kind.is_remote() {
        Some("only keys under `net.` belong to the DUT's own namespace".to_owned())
    } else if kind == LabKind::Ssh(System::Linux) && changes_more(key) {
        Some(
            "the kernel changes settings and addresses of interfaces with it, which could not be put back; set the key of \
             one interface, such as net.ipv4.conf.{dut-in}.forwarding"
                .to_owned(),
        )
    } else {
        parts.iter().find(|part| !is_sysctl_part(part)).map(|part| {
            format!(
                "{part:?} is not made of letters, digits, `_` and `-`, nor one of {}",
                placeholder::OF_INTERFACES.join(", ")
            )
        })
    };
    if let Some(wrong) = &wrong {
        let diagnostic = reading.error(span, format!("{key:?} is not a sysctl that a lab may set"));
        diagnostic.with_help(wrong);
        if let Some(part) = parts.iter().find(|part| in_braces(part).is_some()) {
            let known = placeholder::OF_INTERFACES.iter().copied();
            suggest(diagnostic, nearest(part, known));
        }
    }
    wrong.is_none()
}

/// Whether Linux changes more than the key itself when it is written.
///
/// # Source
/// Linux: `inet_forward_change` in `net/ipv4/devinet.c`; `addrconf_fixup_forwarding`, `addrconf_disable_ipv6`,
/// `addrconf_fixup_linkdown`, `addrconf_disable_policy` and `addrconf_sysctl_addr_gen_mode` in `net/ipv6/addrconf.c`.
fn changes_more(key: &str) -> bool {
    const SPREAD: [&str; 6] = [
        "net.ipv4.ip_forward",
        "net.ipv4.conf.all.forwarding",
        "net.ipv6.conf.all.forwarding",
        "net.ipv6.conf.all.ignore_routes_with_linkdown",
        "net.ipv6.conf.all.disable_policy",
        "net.ipv6.conf.all.addr_gen_mode",
    ];
    SPREAD.contains(&key) || (key.starts_with("net.ipv6.conf.") && key.ends_with(".disable_ipv6"))
}

fn is_sysctl_part(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    placeholder::OF_INTERFACES.contains(&part) || (!part.is_empty() && part.bytes().all(plain))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{errors, errors_in};

    #[test]
    fn a_sysctl_cannot_leave_the_network_part_of_the_tree() {
        for (key, allowed) in [
            ("net.ipv4.conf.all.rp_filter", true),
            ("net.ipv4.conf.{dut-in}.rp_filter", true),
            ("net.ipv6.conf.{dut-out}.forwarding", true),
            ("net", false),
            ("net.", false),
            ("network.x", false),
            ("kernel.panic", false),
            ("net...kernel.panic", false),
            ("net.../kernel/panic", false),
            ("net/ipv4/ip_forward", false),
            ("net.ipv4.{other}.x", false),
            ("net.ipv4.conf.{dut-inn}.rp_filter", false),
            ("net.ipv4.conf.a b", false),
        ] {
            let errors = errors(&format!("sysctl = {key:?}"));
            assert_eq!(errors.is_empty(), allowed, "{key}\n{errors}");
        }
    }

    #[test]
    fn a_sysctl_of_a_host_may_be_any_but_no_path() {
        for (key, allowed) in [
            ("net.ipv4.conf.{dut-in}.rp_filter", true),
            ("kernel.sched_rt_runtime_us", true),
            ("vm.dirty_ratio", true),
            ("net.ipv4.conf.{dut-in}.forwarding", true),
            ("net.ipv4.ip_forward", false),
            ("net.ipv6.conf.all.disable_ipv6", false),
            ("net.ipv6.conf.{dut-in}.disable_ipv6", false),
            ("net", false),
            ("kernel..panic", false),
            ("kernel.../../sys/x", false),
            ("kernel/panic", false),
            ("kernel.a b", false),
        ] {
            let tables = "[dut]\nhost = \"a\"\nin = \"a\"\nout = \"b\"\n[tester]\nhost = \"b\"\nin = \"a\"\nout = \"b\"";
            let errors = errors_in("linux-ssh", &format!("sysctl = {key:?}\n{tables}"));
            assert_eq!(errors.is_empty(), allowed, "{key}\n{errors}");
        }
    }
}
