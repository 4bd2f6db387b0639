//! What of a lab its variables, its configuration sets and its drawing say.

use std::net::IpAddr;

use fwdlab_archive::Place;
use fwdlab_model::REBOOT_S_MAX;
use fwdlab_pkt_gen::AddressRange;

use super::account::Account;
use super::drawing::Drawing;
use super::expand::{Environment, Value};
use super::lab_file::{Key, LabParts};
use super::ports::{self, Found, Network, Side};
use super::toml::one_line;
use super::{Note, Source};

/// The scripts look so often whether the DUT is there, and count to `REBOOT_TIMEOUT`.
const REBOOT_LOOK_S: u32 = 5;
/// What a second sender is called; only examples of the archive have one.
const SECOND: &[&str] = &["SENDER_ADMIN_2", "SENDER_2_ADMIN"];
/// The MAC addresses of the DUT's ports, and the variables of the ends that these face.
const MACS: [&str; 2] = ["DUT_LAB_IF_MAC_SENDER_SIDE", "DUT_LAB_IF_MAC_RECEIVER_SIDE"];
const ENDS: [(&str, &str); 2] = [
    ("SENDER_LAB_IP", "SENDER_LAB_NET"),
    ("RECEIVER_LAB_IP", "RECEIVER_LAB_NET"),
];

/// The first of some variables that is set to something, with its name.
fn first<'e>(
    environment: &'e Environment,
    names: &[&'static str],
) -> Option<(&'static str, &'e Value)> {
    names
        .iter()
        .find_map(|name| Some((*name, environment.value(name)?)))
}

pub(super) fn lab_parts(
    source: &Source,
    environment: &Environment,
    drawing: &Drawing,
    account: &mut Account,
) -> LabParts {
    let mut key = |names: &[&'static str], what: &str, purpose: &str| {
        let found = first(environment, names);
        if let Some((name, value)) = found {
            account.uses(name, value, purpose);
        }
        let name = found.map_or(names[0], |(name, _)| name);
        Key::of(found.map(|(_, value)| value), name, what)
    };
    let ssh = "what ssh is told";
    let dut = key(&["DUT_ADMIN"], ssh, "host of [dut]");
    let sender = key(&["SENDER_ADMIN"], ssh, "host of [tester]");
    let sender_port = key(
        &["SENDER_LAB_IF"],
        "the interface where the generator sends",
        "out of [tester]",
    );
    let is_apart = environment.value("RECEIVER_ADMIN").is_some_and(|receiver| {
        let sender = environment.value("SENDER_ADMIN");
        sender.is_none_or(|sender| sender.text != receiver.text)
    });
    let table = if is_apart { "[receiver]" } else { "[tester]" };
    let receiver = key(&["RECEIVER_ADMIN"], ssh, &format!("host of {table}"));
    let receiver = is_apart.then_some(receiver);
    let receiver_port = key(
        &["RECEIVER_LAB_IF"],
        "the interface where the sink counts",
        &format!("in of {table}"),
    );
    let generator = first(environment, SECOND).is_some().then(|| {
        let host = key(SECOND, ssh, "host of [[generator]]");
        let names = &["SENDER_LAB_2_IF", "SENDER_LAB_IF_2", "SENDER_2_LAB_IF"];
        let port = key(
            names,
            "the interface where it sends",
            "out of [[generator]]",
        );
        (host, port)
    });

    let (ports, hints) = dut_ports(source, environment, drawing, account);
    LabParts {
        description: description(source, drawing, &dut, &sender),
        link_gbps: link_gbps(environment, account),
        dut,
        ports,
        hints,
        reboot_s_max: reboot_s_max(environment, account),
        sender,
        sender_port,
        receiver,
        receiver_port,
        generator,
    }
}

/// The DUT's ports, and what to look for where they are not known.
fn dut_ports(
    source: &Source,
    environment: &Environment,
    drawing: &Drawing,
    account: &mut Account,
) -> ([Found; 2], [String; 2]) {
    let plain = |name: &str| environment.value(name).filter(|value| !value.is_open);
    let side = |index: usize| {
        let (address, flows) = ENDS[index];
        let range =
            plain(flows).and_then(|value| AddressRange::parse(value.text.trim_matches('"')));
        Side {
            address: plain(address).and_then(|value| value.text.parse::<IpAddr>().ok()),
            flows: range.map(|range| range.first),
            mac: plain(MACS[index]).map(|value| value.text.as_str()),
        }
    };
    let sides = [side(0), side(1)];
    let mut sets = Vec::new();
    for set in &source.sets {
        let network = Network::of(&set.files);
        let notes = network.not_read.iter().map(|not_read| {
            let place = Place::line(&set.path.join(&not_read.path), not_read.line);
            Note::at(place, one_line(&not_read.what))
        });
        account.notes.extend(notes);
        sets.push((set.name.as_str(), network));
    }
    let ports = ports::ports(&sets, drawing, sides[0], sides[1]);
    let mut hints = [String::new(), String::new()];
    for (index, key) in ["in", "out"].into_iter().enumerate() {
        let (address, _) = ENDS[index];
        let purpose = format!("{key} of [dut]: the port in its net");
        if let Some(value) = plain(address) {
            account.uses(address, value, purpose);
        }
        let mac = plain(MACS[index]);
        let is_used = source.sets.is_empty() || ports[index].interface().is_none();
        if let Some(value) = mac.filter(|_| is_used) {
            account.uses(
                MACS[index],
                value,
                format!("{key} of [dut]: the port with it"),
            );
        }
        let net = sides[index]
            .address
            .map(|address| format!("in the net of {address}"));
        let by_mac = mac.map(|value| format!("with the MAC address {}", one_line(&value.text)));
        let which = by_mac.or(net).unwrap_or_else(|| {
            let end = ["generator", "sink"][index];
            format!("that faces the {end}")
        });
        hints[index] = format!("the DUT's interface {which}; `ifconfig` there lists it");
        if let Found::Known {
            interface,
            drawn: Some(drawn),
            ..
        } = &ports[index]
        {
            let text = format!(
                "{key} of [dut]: {interface}, by the sets, where the drawing has {}",
                drawn.interface
            );
            let place = Place::line(&source.config, drawn.line);
            account.notes.push(Note::at(place, text));
        }
    }
    (ports, hints)
}

/// What the machines are, in one line.
fn description(source: &Source, drawing: &Drawing, dut: &Key, sender: &Key) -> String {
    let spaced = |name: &String| one_line(&name.replace('_', " "));
    let [platform, nic] = match &source.platform {
        Some([platform, nic]) => [Some(spaced(platform)), Some(spaced(nic))],
        None => [None, None],
    };
    let drawn = drawing.machine.as_deref().map(one_line);
    let machine = drawn
        .filter(|name| Some(name.as_str()) != dut.known())
        .or(platform);
    let dut = dut.known().map(|host| format!("DUT {}", one_line(host)));
    let sender = sender
        .known()
        .map(|host| format!("tester {}", one_line(host)));
    let parts: Vec<String> = [machine, nic, dut, sender].into_iter().flatten().collect();
    if parts.is_empty() {
        return "a lab of FreeBSD hosts".into();
    }
    parts.join(", ")
}

/// `REBOOT_TIMEOUT` in seconds, inside what a lab file takes.
fn reboot_s_max(environment: &Environment, account: &mut Account) -> Option<u32> {
    let name = "REBOOT_TIMEOUT";
    let value = environment.value(name)?;
    let Some(looks) = value.text.parse::<u32>().ok().filter(|_| !value.is_open) else {
        account.refuses(name, value, "no number, and not taken");
        return None;
    };
    let asked_s = looks.saturating_mul(REBOOT_LOOK_S);
    let seconds = asked_s.clamp(*REBOOT_S_MAX.start(), *REBOOT_S_MAX.end());
    let purpose = format!("reboot_s_max of [dut]: {seconds} s, {REBOOT_LOOK_S} s each");
    account.uses(name, value, purpose);
    if seconds != asked_s {
        let text = format!("{name}: {asked_s} s, of which a lab file takes {seconds}");
        account.notes.push(Note::at(value.place.clone(), text));
    }
    Some(seconds)
}

/// The words of the sender's command, without `sudo`.
fn sender_words(value: &Value) -> Vec<&str> {
    let words = value.text.split_whitespace();
    words.skip_while(|word| *word == "sudo").collect()
}

/// The links' speed: equilibrium is told it in Mbit/s.
fn link_gbps(environment: &Environment, account: &mut Account) -> Option<String> {
    let name = "SENDER_START_CMD";
    let value = environment.value(name)?;
    let words = sender_words(value);
    if !words.first()?.starts_with("equilibrium") {
        return None;
    }
    let at = words.iter().position(|word| *word == "-l")?;
    let mbps: u32 = words.get(at + 1)?.parse().ok()?;
    if !(1..=1_600_000).contains(&mbps) {
        return None;
    }
    account.uses(name, value, "link_gbps: its -l");
    Some(format!("{}", f64::from(mbps) / 1000.0))
}

/// Says where a lab of fwdlab's does something else than these commands.
pub(super) fn note_commands(environment: &Environment, account: &mut Account) {
    let mut note = |name: &str, text: &str| {
        if let Some(value) = environment.value(name) {
            account
                .notes
                .push(Note::at(value.place.clone(), format!("{name}: {text}")));
        }
    };
    for name in ["SENDER_START_CMD", "SENDER_2_START_CMD"] {
        let Some(value) = environment.value(name) else {
            continue;
        };
        let words = sender_words(value);
        let program = words.first().copied().unwrap_or_default();
        if program.starts_with("equilibrium") {
            let text = "equilibrium searches for the highest rate without loss; the experiment measures what is \
                        forwarded under overload instead";
            note(name, text);
        } else if program != "pkt-gen" {
            note(name, "no pkt-gen; the lab sends by pkt-gen");
        } else if words.contains(&"-R") {
            note(
                name,
                "holds a load back (-R); the experiment offers all there is",
            );
        }
    }
    let text = "sends other flows than the first sender; generators of a lab all send the same";
    for name in ["SENDER_LAB_NET_2", "SENDER_2_LAB_NET", "SENDER_LAB_2_NET"] {
        note(name, text);
    }
    note(
        "REF_ADMIN",
        "the far end of a tunnel; a lab has none, so set it up before a run, and its files with it",
    );
}
