//! What a Linux DUT is given for the tester's frames: what is asked first, and the changes that follow from the answers.

use std::collections::BTreeMap;

use fwdlab_model::{AddressFamily, Direction};

use super::losses::{self, refuse_losses};
use super::ports::{addresses_of, flags_of, has_address, is_up};
use crate::LabError;
use crate::addresses::{Prefix, addresses};
use crate::hosts::dut::OnHost;
use crate::hosts::protocol::Station;
use crate::mechanism::DutPlace;
use crate::mechanism::file::{cat, kept, write};
use crate::mechanism::question::Answers;
use crate::mechanism::routes::option;
use crate::mechanism::step::{Errand, Step, owned};
use crate::mechanism::sysctl::path_at;

/// Under which fwdlab's routes stand in a DUT's tables (`ip route show proto 196`), so that they can be told
/// from the owner's.
pub(super) const ROUTE_PROTOCOL: &str = "196";

/// Lists the interfaces that have LRO on.
const RECEIVE_OFFLOADS: [&str; 3] = [
    "sh",
    "-c",
    "for port in /sys/class/net/*; do port=${port##*/}; \
     ethtool -k \"$port\" 2>/dev/null | grep -q '^large-receive-offload: on$' && echo \"$port\"; done; :",
];

/// Deletes a route, unless it is gone already, with its device perhaps. BusyBox's `ip route flush` takes those of others too:
/// it ignores `proto` (networking/libiproute/iproute.c, `iproute_list_or_flush`), as its `delete` does not.
const DELETE: &str = "said=$(LC_ALL=C ip \"$@\" 2>&1) || case $said in \
                      *'No such process'*|*'find device'*) ;; *) echo \"$said\" >&2; exit 1 ;; esac";

const INET6_FORWARDING: &str = "net.ipv6.conf.all.forwarding";

/// Lists settings of all interfaces, as path, colon and value.
const INET6_SETTINGS: [&str; 3] = [
    "sh",
    "-c",
    "cd /proc/sys/net/ipv6/conf && grep -Hs '' \"$PWD\"/*/forwarding \"$PWD\"/*/accept_ra || :",
];

/// Lists the default routes that came with router advertisements.
const ADVERTISED_DEFAULTS: [&str; 8] =
    ["ip", "-6", "-o", "route", "show", "default", "proto", "ra"];

/// What a DUT is set up for.
pub(super) struct SetUp<'a> {
    pub(super) host: &'a OnHost,
    pub(super) families: &'a [AddressFamily],
    pub(super) generator: &'a Station,
    pub(super) sink: &'a Station,
    /// Whether its `ip` is BusyBox's.
    pub(super) is_of_busybox: bool,
}

impl SetUp<'_> {
    /// What has to be known of the DUT first.
    pub(super) fn questions(&self) -> Vec<Vec<String>> {
        let mut questions = losses::questions(self.host.ports(), self.families);
        for (path, _) in self.settings() {
            questions.push(cat(&path));
        }
        questions.push(owned(&RECEIVE_OFFLOADS));
        if self.families.contains(&AddressFamily::Inet6) {
            questions.push(owned(&INET6_SETTINGS));
            questions.push(owned(&ADVERTISED_DEFAULTS));
        }
        questions
    }

    /// What is changed, in this order.
    ///
    /// # Errors
    /// `Host` where its owner would lose something by it, and for what the DUT does not tell.
    pub(super) fn steps(&self, answers: &Answers) -> Result<Vec<Step>, LabError> {
        refuse_losses(self.host.ports(), self.families, answers)?;
        let mut steps = Vec::new();
        for interface in self.host.ports() {
            // One that its owner has left down.
            if !is_up(answers.needed(&flags_of(interface))?) {
                let set = |to| ["ip", "link", "set", "dev", interface, to];
                steps.push(Step::change(
                    format!("{interface} (down)"),
                    Errand::of(&set("down")),
                    vec![Errand::of(&set("up"))],
                ));
            }
        }
        self.keep_what_forwarding_changes(answers, &mut steps)?;
        for (path, value) in self.settings() {
            let seen = answers.needed(&cat(&path))?;
            // Writing what is there already would set others back, too: those of every interface.
            if seen != value {
                steps.push(Step {
                    errands: vec![write(&path, value)],
                    ..kept(&path, seen)
                });
            }
        }
        for &family in self.families {
            self.add_family(family, answers, &mut steps)?;
        }
        Ok(steps)
    }

    /// How everything is that the kernel changes by itself when an interface is to forward: LRO goes off, and with all
    /// of IPv6 the same setting of every interface.
    ///
    /// # Errors
    /// `Host` where the way to the DUT could be lost by it.
    fn keep_what_forwarding_changes(
        &self,
        answers: &Answers,
        steps: &mut Vec<Step>,
    ) -> Result<(), LabError> {
        let mut changed = Vec::new();
        for (path, value) in self.settings() {
            if path.ends_with("/forwarding") && answers.needed(&cat(&path))? != value {
                changed.push(path);
            }
        }
        let all_of_inet6 = path_at(&DutPlace::on_host(&self.host.of), INET6_FORWARDING);
        let is_everywhere = changed.contains(&all_of_inet6);
        for interface in answers.needed(&owned(&RECEIVE_OFFLOADS))?.lines() {
            if is_everywhere
                || changed
                    .iter()
                    .any(|path| path.contains(&format!("/{interface}/")))
            {
                steps.push(Step::change(
                    format!("large-receive-offload of {interface} (on)"),
                    // A virtual machine's may be gone by then.
                    Errand::of(&[
                        "sh",
                        "-c",
                        "[ ! -e \"/sys/class/net/$0\" ] || ethtool -K \"$0\" lro on",
                        interface,
                    ]),
                    Vec::new(),
                ));
            }
        }
        if !is_everywhere {
            return Ok(());
        }
        let settings: BTreeMap<&str, &str> = answers
            .needed(&owned(&INET6_SETTINGS))?
            .lines()
            .filter_map(|line| line.split_once(':'))
            .collect();
        for route in answers.needed(&owned(&ADVERTISED_DEFAULTS))?.lines() {
            let mut route = route.split_whitespace().skip_while(|word| *word != "dev");
            let Some(interface) = route.nth(1) else {
                continue;
            };
            let accepts = format!("/proc/sys/net/ipv6/conf/{interface}/accept_ra");
            // With 0 a program of the owner's has added it, which the kernel does not forget.
            if settings.get(accepts.as_str()) == Some(&"1") {
                return Err(answers.wrong(format!(
                    "its IPv6 default route through {interface} was learned from router advertisements, and Linux \
                     forgets it when it begins to forward; set net.ipv6.conf.{interface}.accept_ra to 2, or give it \
                     a default route of its own"
                )));
            }
        }
        for (path, value) in settings {
            if path.ends_with("/forwarding") && path != all_of_inet6 && value == "1" {
                steps.push(kept(path, value));
            }
        }
        Ok(())
    }

    /// Files of settings that frames need, and what they have to hold.
    fn settings(&self) -> Vec<(String, &'static str)> {
        let mut settings = Vec::new();
        let place = DutPlace::on_host(&self.host.of);
        let mut add = |key, value| settings.push((path_at(&place, key), value));
        for family in self.families {
            match family {
                AddressFamily::Inet => {
                    // Those of the ports alone: what holds for all would change more than itself.
                    add("net.ipv4.conf.{dut-in}.forwarding", "1");
                    add("net.ipv4.conf.all.rp_filter", "0");
                    add("net.ipv4.conf.{dut-in}.rp_filter", "0");
                    if self.host.direction == Direction::Both {
                        add("net.ipv4.conf.{dut-out}.forwarding", "1");
                        add("net.ipv4.conf.{dut-out}.rp_filter", "0");
                    }
                }
                AddressFamily::Inet6 => add(INET6_FORWARDING, "1"),
            }
        }
        settings
    }

    /// Addresses, neighbours and routes of a family.
    fn add_family(
        &self,
        family: AddressFamily,
        answers: &Answers,
        steps: &mut Vec<Step>,
    ) -> Result<(), LabError> {
        let own = addresses(family);
        let option = option(family);
        let [of_in, of_out] = self.host.ports();
        let (generator, sink) = (&*self.generator.mac, &*self.sink.mac);
        for (interface, prefix, neighbour, mac, network) in [
            (of_in, own.dut_in, own.generator, generator, own.sources),
            (of_out, own.dut_out, own.sink, sink, own.destinations),
        ] {
            let (host, address) = (prefix.0.to_string(), text_of(prefix));
            let network = text_of(network);
            let neighbour = neighbour.to_string();
            if !has_address(answers.needed(&addresses_of(interface))?, prefix) {
                let mut add = vec![
                    "ip", option, "address", "replace", &address, "dev", interface,
                ];
                // An address that is still being probed for duplicates takes no frames.
                if family == AddressFamily::Inet6 {
                    add.push("nodad");
                }
                steps.push(Step::change(
                    format!("address {address} of {interface}"),
                    // With a length, every address of that network would go, the owner's too.
                    Errand::of(&[
                        "ip", option, "address", "flush", "dev", interface, "to", &host,
                    ]),
                    vec![Errand::of(&add)],
                ));
            }
            let of_neighbour = |words: &[&str]| {
                let mut all = vec!["ip", option, "neigh"];
                all.extend(words);
                all.extend(["dev", interface, "nud", "permanent"]);
                Errand::of(&all)
            };
            let set_neighbour = if self.is_of_busybox {
                Errand::of(&["arp", "-i", interface, "-s", &neighbour, mac])
            } else {
                of_neighbour(&["replace", &neighbour, "lladdr", mac])
            };
            steps.push(Step::change(
                format!("neighbour {neighbour} of {interface}"),
                of_neighbour(&["flush", "to", &neighbour]),
                vec![set_neighbour],
            ));
            let route = [
                &network,
                "via",
                &neighbour,
                "dev",
                interface,
                "proto",
                ROUTE_PROTOCOL,
            ];
            let of_route = |words: &[&str]| Errand::of(&[words, &route].concat());
            let delete = of_route(&["sh", "-c", DELETE, "sh", option, "route", "delete"]);
            steps.push(Step::change(
                format!("route to {network}"),
                delete.clone(),
                // Deleted first, so that it may be done twice: a route of the owner's own is no reason to have none of ours.
                vec![delete, of_route(&["ip", option, "route", "add"])],
            ));
        }
        Ok(())
    }
}

fn text_of((network, length): Prefix) -> String {
    format!("{network}/{length}")
}
