//! The command line that started pkt-gen, as far as a log tells it.

use std::net::IpAddr;

/// Options of pkt-gen that take an argument, of all its versions.
const OPTIONS_WITH_ARGUMENT: &str = "aCDEFHMPRSTbcdefilmnopsw";

/// What pkt-gen was asked to do: only what its command line says, no default filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The machine it was started on, where the log names it.
    pub host: Option<String>,
    /// The words behind `pkt-gen`, quotes taken off.
    pub arguments: Vec<String>,
    /// `-f`: `tx`, `rx` and the like.
    pub function: Option<String>,
    /// `-i`.
    pub interface: Option<String>,
    /// `-l`: bytes of a packet without its frame check sequence, so that 60 is the 64-byte frame.
    pub packet_size_bytes: Option<u64>,
    /// `-n`: packets to send or to receive.
    pub packet_count: Option<u64>,
    /// `-p`: threads.
    pub threads: Option<u64>,
    /// `-R`: packets per second to send.
    pub intended_load_pps: Option<u64>,
    /// `-T`: milliseconds between samples.
    pub report_interval_ms: Option<u64>,
    /// `-s`: what the source addresses run through.
    pub source: Option<AddressRange>,
    /// `-d`: what the destination addresses run through.
    pub destination: Option<AddressRange>,
}

impl Command {
    /// How many flows the ranges ask for: every source with every destination.
    ///
    /// `None` unless both are there. pkt-gen counts the source port up, then the source address, the
    /// destination port and the destination address, each through its range.
    #[must_use]
    pub fn flows(&self) -> Option<u128> {
        let source = self.source.as_ref()?.endpoints();
        source.checked_mul(self.destination.as_ref()?.endpoints())
    }

    /// The command of a line that the bench's script writes in front of a log.
    pub(crate) fn of_line(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("CMD")?;
        let (host, command) = rest.split_once(':')?;
        let host = match host.strip_prefix(" on ") {
            Some(host) => Some(host.trim().to_owned()),
            None if host.is_empty() => None,
            None => return None,
        };
        Self::of_words(command, host)
    }

    /// The command in a line of a shell's trace: the last argument of an `ssh`.
    pub(crate) fn of_trace(line: &str) -> Option<Self> {
        let (_, command) = line.strip_prefix("+ ")?.split_once("'pkt-gen ")?;
        let (arguments, _) = command.split_once('\'')?;
        Self::of_words(&format!("pkt-gen {arguments}"), None)
    }

    fn of_words(command: &str, host: Option<String>) -> Option<Self> {
        let mut words = command
            .split_ascii_whitespace()
            .map(|word| word.trim_matches('"'));
        // Whatever runs it, `sudo` for instance, stands before it.
        words.find(|word| word.rsplit('/').next() == Some("pkt-gen"))?;
        let mut command = Self {
            host,
            arguments: words.map(str::to_owned).collect(),
            ..Self::default()
        };
        command.read_options();
        Some(command)
    }

    /// Takes the options out of the arguments, as `getopt` does.
    fn read_options(&mut self) {
        let arguments = self.arguments.clone();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let Some(letters) = argument.strip_prefix('-') else {
                continue;
            };
            let mut letters = letters.chars();
            while let Some(letter) = letters.next() {
                if OPTIONS_WITH_ARGUMENT.contains(letter) {
                    let attached = letters.as_str();
                    let value = if attached.is_empty() {
                        arguments.next().map(String::as_str)
                    } else {
                        Some(attached)
                    };
                    if let Some(value) = value {
                        self.read_option(letter, value);
                    }
                    break;
                }
            }
        }
    }

    fn read_option(&mut self, letter: char, value: &str) {
        match letter {
            'f' => self.function = Some(value.to_owned()),
            'i' => self.interface = Some(value.to_owned()),
            // A second size is the smallest of a mix.
            'l' if self.packet_size_bytes.is_none() => self.packet_size_bytes = value.parse().ok(),
            'n' => self.packet_count = value.parse().ok(),
            'p' => self.threads = value.parse().ok(),
            'R' => self.intended_load_pps = value.parse().ok(),
            'T' => self.report_interval_ms = value.parse().ok(),
            's' => self.source = AddressRange::parse(value),
            'd' => self.destination = AddressRange::parse(value),
            _ => {}
        }
    }
}

/// Addresses and ports from the first to the last, both included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressRange {
    /// The first address.
    pub first: IpAddr,
    /// The last one; of the same family and not before it.
    pub last: IpAddr,
    /// The first port, where the range names one.
    pub first_port: Option<u16>,
    /// The last port, where the range names one.
    pub last_port: Option<u16>,
}

impl AddressRange {
    /// `198.18.10.1:2000-198.18.10.20:2100`, `[2001:2::1]-[2001:2::14]`, or one address alone.
    pub fn parse(text: &str) -> Option<Self> {
        let (first, last) = match text.split_once('-') {
            Some((first, last)) => (endpoint(first)?, Some(endpoint(last)?)),
            None => (endpoint(text)?, None),
        };
        let (last, last_port) = last.unwrap_or(first);
        let range = Self {
            first: first.0,
            last,
            first_port: first.1,
            last_port,
        };
        let is_rising = range.first.is_ipv4() == range.last.is_ipv4()
            && range.first <= range.last
            && range
                .last_port
                .is_none_or(|last| range.first_port.is_none_or(|first| first <= last));
        is_rising.then_some(range)
    }

    /// How many pairs of address and port there are. Without a last port there is one port.
    #[must_use]
    pub fn endpoints(&self) -> u128 {
        let addresses = number(self.last)
            .saturating_sub(number(self.first))
            .saturating_add(1);
        let ports = match (self.first_port, self.last_port) {
            (Some(first), Some(last)) => u128::from(last.saturating_sub(first)) + 1,
            _ => 1,
        };
        addresses.saturating_mul(ports)
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

fn endpoint(text: &str) -> Option<(IpAddr, Option<u16>)> {
    let (address, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            (address, port.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((address, port)) => (address, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => Some(port.parse().ok()?),
        None => None,
    };
    Some((address.parse().ok()?, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENDER: &str = "CMD on bigone: sudo pkt-gen -N -f tx -w 2 -i ix0 -n 1000000000 -4 \
        -d 198.19.10.1:2001-198.19.10.70 -D c8:ff:bf:06:5f:ed -T 2000 -s 198.18.10.1:2001-198.18.10.71 \
        -S 00:25:90:91:14:0a -l 43";

    #[test]
    fn a_command_says_what_it_asks_for_and_no_more() {
        let sender = Command::of_line(SENDER).unwrap();
        assert_eq!(sender.host.as_deref(), Some("bigone"));
        assert_eq!(sender.function.as_deref(), Some("tx"));
        assert_eq!(sender.interface.as_deref(), Some("ix0"));
        assert_eq!(sender.packet_size_bytes, Some(43));
        assert_eq!(sender.packet_count, Some(1_000_000_000));
        assert_eq!(sender.report_interval_ms, Some(2000));
        assert_eq!((sender.threads, sender.intended_load_pps), (None, None));
        assert_eq!(sender.flows(), Some(71 * 70));

        let receiver = Command::of_line("CMD: pkt-gen -N -f rx -i igb3 -w 4").unwrap();
        assert_eq!(receiver.function.as_deref(), Some("rx"));
        assert_eq!(
            (
                receiver.host.as_ref(),
                receiver.packet_size_bytes,
                receiver.flows()
            ),
            (None, None, None)
        );
    }

    #[test]
    fn a_shells_trace_holds_the_command_in_quotes() {
        let trace = "+ /usr/bin/ssh -x -q -o 'ConnectTimeout=120' -l root 192.168.1.3 'pkt-gen -N -f rx -i igb3 -w 4'";
        let command = Command::of_trace(trace).unwrap();
        assert_eq!(
            command.arguments,
            ["-N", "-f", "rx", "-i", "igb3", "-w", "4"]
        );
        assert_eq!(Command::of_trace("+ return 1"), None);
    }

    #[test]
    fn ranges_are_of_either_family_with_ports_or_without() {
        for (text, endpoints) in [
            ("198.18.10.1:2000-198.18.10.20", Some(20)),
            ("198.18.2.1:2000-198.18.2.255:2200", Some(255 * 201)),
            ("198.19.0.11:2000", Some(1)),
            ("198.18.0.1-198.18.1.0", Some(256)),
            ("[2001:2:0:10::1]-[2001:2:0:10::14]", Some(20)),
            ("[2001:2::1]:7-[2001:2::1]:8", Some(2)),
            ("::-ffff::", None),
            ("198.18.10.20-198.18.10.1", None),
            ("198.18.10.1-[::1]", None),
            ("198.18.10.1:9-198.18.10.1:8", None),
            ("198.18.10:2000", None),
            ("", None),
        ] {
            let found = AddressRange::parse(text).map(|range| range.endpoints());
            assert_eq!(found, endpoints, "{text}");
        }
        let all = "[::]-[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]";
        assert_eq!(AddressRange::parse(all).unwrap().endpoints(), u128::MAX);
    }

    #[test]
    fn options_are_read_as_getopt_reads_them() {
        let command =
            Command::of_line("CMD: /usr/local/bin/pkt-gen -NWftx -l60 -l 40 -n x -U -R").unwrap();
        assert_eq!(command.function.as_deref(), Some("tx"));
        assert_eq!(command.packet_size_bytes, Some(60));
        assert_eq!(
            (command.packet_count, command.intended_load_pps),
            (None, None)
        );
        for line in [
            "CMD: equilibrium -d x",
            "CMDs: pkt-gen",
            "CMD pkt-gen",
            "pkt-gen -f tx",
        ] {
            assert_eq!(Command::of_line(line), None, "{line}");
        }
    }
}
