//! The `[traffic]` table, or every `[[traffic]]`: what the tester sends, and how much of it.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::DeValue;

use crate::addresses::AddressRange;
use crate::diagnostic::{Span, list};
use crate::document::{Reading, Table, Value};
use crate::files::shown;
use crate::hosts::Hosts;
use crate::kind::LabKind;
use crate::lab_file::{LabFile, no_turns};
use crate::load::Load;
use crate::resolved::{Direction, FirstAddresses, FrameSize, PortRange, Traffic};
use crate::stratum::{Stratum, TrafficName, TrafficNameError};
use crate::traffic_check::{OTHER_ADDRESSES, TrafficFault};
use crate::traffic_text::TrafficTextError;
use crate::words::AddressFamily;
use crate::zipf::Zipf;

pub(crate) const TRAFFIC_KEYS: &[&str] = &[
    "name",
    "families",
    "frame_size",
    "sources",
    "destinations",
    "inet",
    "inet6",
    "source_ports",
    "destination_ports",
    "zipf",
    "vlan",
    "direction",
    "load",
    "burst",
];
/// Each is measured in every block, one after the other.
pub(crate) const TRAFFICS_MAX: usize = 16;
pub(crate) const RANGE_KEYS: &[&str] = &["sources", "destinations"];
pub(crate) const FRAME_SIZE_KEYS: &[&str] = &["bytes", "share"];
pub(crate) const LOAD_KEYS: &[&str] = &["pps", "line_rate_percent"];

/// Words for a load without a number.
pub(crate) const LOADS: &[(&str, LoadChoice)] = &[
    ("lab", LoadChoice::Lab),
    ("self-clocked", LoadChoice::Load(Load::SelfClocked)),
    ("overload", LoadChoice::Load(Load::Overload)),
];
pub(crate) const DIRECTIONS: &[(&str, Direction)] =
    &[("forward", Direction::Forward), ("both", Direction::Both)];

/// From the smallest Ethernet frame to the largest without a tag or jumbo frames, FCS included
/// (IEEE 802.3).
pub const FRAME_SIZE: RangeInclusive<u16> = 64..=1518;
/// Numbers of a VLAN: 0 would be a tag with a priority alone, and 4095 is reserved (IEEE 802.1Q).
pub const VLAN: RangeInclusive<u16> = 1..=4094;
/// What a VLAN tag adds to a frame (IEEE 802.1Q).
pub const VLAN_TAG_BYTES: u16 = 4;
pub(crate) const SHARE: RangeInclusive<u16> = 1..=1000;
pub(crate) const FRAME_SIZES_MAX: usize = 16;
/// The word for [`IMIX`].
pub(crate) const IMIX_WORD: &str = "imix";
/// The simple Internet mix: IP packets of 40, 576 and 1500 bytes in 7:4:1, as Ethernet frames.
///
/// # Source
/// Spirent, "Test Methodology Journal: IMIX (Internet Mix)", 2006, on which RFC 6985 builds; the
/// frame of 58 bytes that 40 would make is padded to 64.
const IMIX: [(u16, u16); 3] = [(64, 7), (594, 4), (1518, 1)];

/// The sizes of [`IMIX`].
pub(crate) fn imix() -> Vec<FrameSize> {
    IMIX.map(|(bytes, share)| FrameSize { bytes, share }).into()
}

/// Preamble, start of frame and the gap between frames (IEEE 802.3).
pub const WIRE_OVERHEAD_BYTES: f64 = 20.0;
/// Flows of an experiment at most, as many as there are ports: enough to fill the caches of any DUT.
pub const FLOWS_MAX: u32 = 65_536;
pub(crate) const PORT: RangeInclusive<u16> = 1..=65_535;
/// At less, a short slice holds too few frames to be a measurement.
pub(crate) const INTENDED_LOAD_PPS: RangeInclusive<u64> = 1_000..=1_000_000_000;
pub(crate) const LINE_RATE_PERCENT: RangeInclusive<f64> = 0.001..=100.0;
/// More than any generator sends: 400 Gbit/s of smallest frames are 595 million.
pub const PPS_MAX: u64 = *INTENDED_LOAD_PPS.end();
/// Frames that a paced generator may send back to back.
pub const BURST_FRAMES: RangeInclusive<u32> = 1..=1024;

/// What is asked of the generator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadChoice {
    /// What the lab declares.
    Lab,
    /// That load.
    Load(Load),
    /// So much of what the lab's links carry.
    LineRatePercent(f64),
}

impl LoadChoice {
    fn is_paced(self) -> bool {
        matches!(
            self,
            Self::Load(Load::Paced { .. }) | Self::LineRatePercent(_)
        )
    }
}

/// A `[traffic]` or one of several `[[traffic]]`, before the lab has had its say about the load.
#[derive(Debug)]
pub(crate) struct TrafficEntry {
    span: Span,
    /// Whether it has a name, be it one that could not be read.
    is_named: bool,
    traffic: Traffic,
    /// Where a VLAN is given.
    vlan: Option<Span>,
    /// Where a burst is given.
    burst: Option<Span>,
    /// Its place is the whole file where no load is given.
    load: Spanned<LoadChoice>,
}

impl Default for TrafficEntry {
    fn default() -> Self {
        Self {
            span: 0..0,
            is_named: false,
            traffic: Traffic::default(),
            vlan: None,
            burst: None,
            load: Spanned::new(0..0, LoadChoice::Lab),
        }
    }
}

/// What an experiment file says of traffic: one without a name, or several with names, which differ neither in their
/// direction nor, once the lab has had its say, in their load regime.
pub(crate) fn traffics(reading: &mut Reading<'_>, file: &Table<'_>) -> Vec<TrafficEntry> {
    let tables = file.one_or_several(reading, "traffic", TRAFFIC_KEYS);
    if tables.len() > TRAFFICS_MAX {
        let message = format!("there are {} traffics", tables.len());
        reading
            .error(tables[TRAFFICS_MAX].span.clone(), message)
            .with_help(format!(
                "an experiment measures {TRAFFICS_MAX} of them at most"
            ));
    }
    let tables = tables.iter().take(TRAFFICS_MAX);
    let entries: Vec<_> = tables
        .map(|table| TrafficEntry::read(reading, table))
        .collect();
    if entries.is_empty() {
        if let Some(value) = file
            .value("traffic")
            .filter(|value| value.get_ref().is_array())
        {
            reading
                .error(value.span(), "`traffic` is an empty list")
                .with_help("leave it out for the usual traffic");
        }
        return vec![TrafficEntry::default()];
    }
    for (number, entry) in entries.iter().enumerate() {
        let (before, span) = (&entries[..number], || entry.span.clone());
        match entry.name() {
            None if entries.len() > 1 && !entry.is_named => {
                reading
                    .error(span(), "this traffic has no name")
                    .with_help("several traffics need names: name = \"imix\"");
            }
            Some(name) if before.iter().any(|other| other.name() == Some(name)) => {
                let message = format!("two traffics have the name {:?}", name.as_str());
                reading.error(span(), message);
            }
            _ => {}
        }
        if entry.traffic.direction != entries[0].traffic.direction {
            reading
                .error(
                    span(),
                    "this traffic has another `direction` than the first",
                )
                .with_help("measure both directions in an experiment of its own");
        }
    }
    entries
}

/// The traffics in a lab, without those of which it cannot say how much they are, which is an error. `takes_turns` says
/// whether what forwards there may be self-clocked.
pub(crate) fn settle(
    reading: &mut Reading<'_>,
    entries: Vec<TrafficEntry>,
    lab: &LabFile,
    takes_turns: bool,
    slice_ms: u32,
) -> Vec<Traffic> {
    let mut settled: Vec<Traffic> = Vec::with_capacity(entries.len());
    for entry in entries {
        let span = entry.load_span();
        let burst = entry.burst.clone();
        let Some(traffic) = entry.settle(reading, lab) else {
            continue;
        };
        if let Some(burst) = burst {
            check_burst(reading, burst, &traffic, slice_ms);
        }
        let regime = traffic.load.regime();
        if traffic.load == Load::SelfClocked && !takes_turns {
            let message = "a forwarder in user space cannot be measured self-clocked: it runs on another CPU, and does \
                           not take turns with the generator";
            reading
                .error(span.clone(), message)
                .with_help("write load = { pps = N } in [traffic], so that all variants have one load, or load = \"overload\"");
        }
        if let Some(first) = settled.first()
            && first.load.regime() != regime
        {
            let message = format!(
                "this traffic is {regime}, and the first {}",
                first.load.regime()
            );
            reading.error(span, message).with_help(
                "an experiment has one load regime, since each needs CPUs of its own: measure the others in experiments \
                 of their own",
            );
        }
        settled.push(traffic);
    }
    settled
}

impl TrafficEntry {
    pub(crate) fn name(&self) -> Option<TrafficName> {
        self.traffic.name
    }

    pub(crate) fn strata(&self) -> impl Iterator<Item = Stratum> {
        self.traffic.strata()
    }

    /// Where its frames' VLAN is given.
    pub(crate) fn vlan_span(&self) -> Option<Span> {
        self.vlan.clone()
    }

    /// Where its load is given, or else its table.
    fn load_span(&self) -> Span {
        match self.load.span() {
            span if span.is_empty() => self.span.clone(),
            span => span,
        }
    }

    /// Reads the table, notes every error in it and goes on with defaults in its place.
    fn read(reading: &mut Reading<'_>, table: &Table<'_>) -> Self {
        let Self {
            mut traffic,
            mut load,
            ..
        } = Self::default();
        if let Some(value) = table.value("name")
            && let Some(name) = reading.line(value, &table.what("name"))
        {
            match name.get_ref().parse() {
                Ok(name) => traffic.name = Some(name),
                Err(TrafficNameError) => {
                    let message = format!("{:?} is no name of a traffic", name.get_ref());
                    reading
                        .error(name.span(), message)
                        .with_help(TrafficNameError.to_string());
                }
            }
        }
        if let Some(value) = table.value("families")
            && let Some(families) = families(reading, value, &table.what("families"))
        {
            traffic.families = families;
        }
        if let Some(value) = table.value("frame_size")
            && let Some(sizes) = frame_sizes(reading, value, &table.what("frame_size"))
        {
            traffic.frame_sizes = sizes;
            for &family in &traffic.families {
                note(reading, value.span(), traffic.check_frame_sizes(family));
            }
        }
        read_addresses(reading, table, &mut traffic);
        let mut ports = |key| {
            let value = table.value(key)?;
            port_range(reading, value, &table.what(key))
        };
        if let Some(range) = ports("source_ports") {
            traffic.source_ports = range;
        }
        if let Some(range) = ports("destination_ports") {
            traffic.destination_ports = range;
        }
        check_flows(reading, table, &traffic);
        if let Some(value) = table.value("zipf") {
            traffic.zipf = Zipf::read(reading, value, &table.what("zipf"));
        }
        if let Some(value) = table.value("vlan") {
            traffic.vlan = reading.integer(value, &table.what("vlan"), VLAN);
        }
        if let Some(value) = table.value("direction")
            && let Some(direction) = reading.word(value, &table.what("direction"), DIRECTIONS)
        {
            traffic.direction = direction;
        }
        let mut is_load_read = true;
        if let Some(value) = table.value("load") {
            match load_of(reading, value, &table.what("load")) {
                Some(read) => load = Spanned::new(value.span(), read),
                None => is_load_read = false,
            }
        }
        if let Some(value) = table.value("burst") {
            let burst = reading.integer(value, &table.what("burst"), BURST_FRAMES);
            traffic.burst_frames = burst.unwrap_or(traffic.burst_frames);
            if burst.is_some() && is_load_read && !load.get_ref().is_paced() {
                reading
                    .error(
                        value.span(),
                        format!("{} needs a paced load", table.what("burst")),
                    )
                    .with_help("give one, for example load = { pps = 100000 }, or leave it out");
            }
        }
        let span = table.span.clone();
        Self {
            span,
            is_named: table.value("name").is_some(),
            traffic,
            vlan: table.value("vlan").map(Spanned::span),
            burst: table.value("burst").map(Spanned::span),
            load,
        }
    }

    /// The traffic in a lab; none, and an error, where the lab cannot say how much that is.
    fn settle(self, reading: &mut Reading<'_>, lab: &LabFile) -> Option<Traffic> {
        let Self {
            span,
            mut traffic,
            vlan,
            load,
            ..
        } = self;
        traffic.load = match *load.get_ref() {
            LoadChoice::Lab => lab.load,
            LoadChoice::Load(load) => load,
            LoadChoice::LineRatePercent(percent) => {
                let pps = line_rate_pps(reading, &traffic, percent, &load.span(), lab)?;
                Load::Paced { pps }
            }
        };
        if traffic.load == Load::SelfClocked && lab.lab.kind.is_remote() {
            no_turns(reading, load.span());
        }
        if let Some(span) = vlan
            && lab.lab.kind != LabKind::Netns
        {
            let message = format!(
                "a lab of kind {} sends no frames with a VLAN tag",
                lab.lab.kind
            );
            reading
                .error(span, message)
                .with_help("leave `vlan` out, or measure in a lab of kind \"netns\"");
        }
        let hosts = lab.lab.hosts.as_ref();
        let cpus = hosts.map_or(0, Hosts::cpus_a_port_max);
        if cpus > traffic.flows() as usize {
            let message = format!(
                "{} has more CPUs send from one port ({cpus}) than there are flows ({})",
                shown(&lab.source.path),
                traffic.flows()
            );
            reading.error(span, message).with_help(
                "every flow is sent by one CPU: name fewer `cpus` there, or more sources, destinations or ports in \
                 [traffic]",
            );
        }
        Some(traffic)
    }
}

/// Warns of a burst that is a large part of a slice: a slice has whole bursts, and may lack one.
fn check_burst(reading: &mut Reading<'_>, span: Span, traffic: &Traffic, slice_ms: u32) {
    let Some(pps) = traffic.load.intended_pps() else {
        return;
    };
    let frames = pps.saturating_mul(slice_ms.into()) / 1000;
    let burst = u64::from(traffic.burst_frames);
    if burst == 1 || burst * 100 <= frames {
        return;
    }
    let message =
        format!("a burst of {burst} frames is more than 1 % of the {frames} frames of a slice");
    reading.warning(span, message).with_help(
        "a slice holds whole bursts, and a trial that is offered less than 99 % of the intended load is invalid: choose a \
         smaller `burst`, a longer `slice_ms` or a higher pace",
    );
}

/// How many frames per second are that part of the lab's line rate.
fn line_rate_pps(
    reading: &mut Reading<'_>,
    traffic: &Traffic,
    percent: f64,
    span: &Span,
    lab: &LabFile,
) -> Option<u64> {
    let Some(link_gbps) = lab.lab.link_gbps else {
        let message = format!(
            "{} does not say how fast its links are",
            shown(&lab.source.path)
        );
        reading
            .error(span.clone(), message)
            .with_help("give `link_gbps` there, or ask for a number: load = { pps = 100000 }");
        return None;
    };
    let bits = (traffic.mean_frame_bytes() + WIRE_OVERHEAD_BYTES) * 8.0;
    // Links are full duplex: each direction has all of its own.
    let directions = f64::from(traffic.directions());
    let pps = (link_gbps * 1e9 / bits * percent / 100.0 * directions).round();
    let bounds = (*INTENDED_LOAD_PPS.start(), *INTENDED_LOAD_PPS.end());
    if pps < bounds.0 as f64 || pps > bounds.1 as f64 {
        let message = format!("{percent} % of {link_gbps} Gbit/s are {pps:.0} frames per second");
        reading
            .error(span.clone(), message)
            .with_help(format!("allowed: {} to {}", bounds.0, bounds.1));
        return None;
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a whole number inside the bounds"
    )]
    Some(pps as u64)
}

impl Traffic {
    /// Bytes of a frame, FCS and VLAN tag included, in the mean over the sizes as they are sent; where both
    /// families are, that of the larger frames.
    #[must_use]
    pub fn mean_frame_bytes(&self) -> f64 {
        let families = self.families.iter();
        let smallest = families.map(|family| family.smallest_frame_bytes()).max();
        let smallest = smallest.unwrap_or(*FRAME_SIZE.start());
        let (bytes, frames) =
            self.frame_sizes
                .iter()
                .fold((0_u32, 0_u32), |(bytes, frames), size| {
                    let share = u32::from(size.share);
                    (
                        bytes + u32::from(size.bytes.max(smallest)) * share,
                        frames + share,
                    )
                });
        let tag = self.vlan.map_or(0, |_| VLAN_TAG_BYTES);
        f64::from(bytes) / f64::from(frames) + f64::from(tag)
    }
}

fn families(
    reading: &mut Reading<'_>,
    value: &Value<'_>,
    what: &str,
) -> Option<Vec<AddressFamily>> {
    let words = [AddressFamily::Inet, AddressFamily::Inet6].map(|family| (family.as_str(), family));
    let allowed = || list(words.iter().map(|(word, _)| *word));
    let items = reading.list(value, what)?;
    if items.is_empty() {
        reading
            .error(value.span(), format!("{what} is empty"))
            .with_help(format!("allowed: {}", allowed()));
    }
    let mut families = Vec::new();
    for item in items {
        let Some(family) = reading.word(item, &format!("a word of {what}"), &words) else {
            continue;
        };
        if families.contains(&family) {
            reading.error(
                item.span(),
                format!("{:?} is listed twice", family.as_str()),
            );
        } else {
            families.push(family);
        }
    }
    Some(families)
}

/// A size, the Internet mix, or sizes with their shares.
fn frame_sizes(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<Vec<FrameSize>> {
    match value.get_ref() {
        DeValue::Integer(_) => {
            let bytes = reading.integer(value, what, FRAME_SIZE)?;
            Some(vec![FrameSize { bytes, share: 1 }])
        }
        DeValue::String(word) if word == IMIX_WORD => Some(imix()),
        DeValue::Array(items) => {
            if items.is_empty() || items.len() > FRAME_SIZES_MAX {
                let message = format!("{what} lists {} sizes", items.len());
                reading
                    .error(value.span(), message)
                    .with_help(format!("give 1 to {FRAME_SIZES_MAX} of them"));
                return None;
            }
            let mut sizes: Vec<FrameSize> = Vec::new();
            for item in items {
                let Some(size) = frame_size(reading, item, what) else {
                    continue;
                };
                if sizes.iter().any(|other| other.bytes == size.bytes) {
                    let message = format!("frames of {} bytes are listed twice", size.bytes);
                    reading.error(item.span(), message);
                } else {
                    sizes.push(size);
                }
            }
            (!sizes.is_empty()).then_some(sizes)
        }
        _ => {
            let (smallest, largest) = (FRAME_SIZE.start(), FRAME_SIZE.end());
            let expected =
                format!("a whole number from {smallest} to {largest}, {IMIX_WORD:?} or a list");
            reading.expected(value, what, &expected).with_help(
                "a list is written [{ bytes = 64, share = 3 }, { bytes = 1518, share = 1 }]",
            );
            None
        }
    }
}

fn frame_size(reading: &mut Reading<'_>, item: &Value<'_>, what: &str) -> Option<FrameSize> {
    let table = reading.table(item, &format!("a size of {what}"), FRAME_SIZE_KEYS)?;
    let bytes = table
        .required(reading, "bytes")
        .and_then(|value| reading.integer(value, &table.what("bytes"), FRAME_SIZE));
    let share = table
        .required(reading, "share")
        .and_then(|value| reading.integer(value, &table.what("share"), SHARE));
    Some(FrameSize {
        bytes: bytes?,
        share: share?,
    })
}

/// The counts of addresses and, where a family has a table of its own, its ranges.
fn read_addresses(reading: &mut Reading<'_>, table: &Table<'_>, traffic: &mut Traffic) {
    let mut of_families = Vec::new();
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let Some(value) = table.value(family.as_str()) else {
            continue;
        };
        let Some(ranges) = FamilyRanges::read(reading, value, family) else {
            continue;
        };
        if !traffic.families.contains(&family) {
            reading
                .warning(value.span(), format!("{family} is not measured"))
                .with_help(format!("add {:?} to `families`", family.as_str()));
            continue;
        }
        let first = |range: &Option<Spanned<AddressRange>>| {
            range.as_ref().map(|range| range.get_ref().first())
        };
        let first = FirstAddresses {
            source: first(&ranges.sources),
            destination: first(&ranges.destinations),
        };
        if first.source.is_some() || first.destination.is_some() {
            traffic.first_addresses.insert(family, first);
        }
        of_families.push(ranges);
    }
    let mut count = |key, pick: fn(&FamilyRanges) -> &Option<Spanned<AddressRange>>| {
        let given = table.value(key).and_then(|value| {
            let addresses = reading.integer(value, &table.what(key), 1..=FLOWS_MAX)?;
            Some(Count {
                table: table.name(),
                addresses: Spanned::new(value.span(), addresses),
            })
        });
        let of_ranges = of_families.iter().filter_map(|ranges| {
            let range = pick(ranges).as_ref()?;
            Some(Count {
                table: &ranges.table,
                addresses: Spanned::new(range.span(), range.get_ref().count()),
            })
        });
        agreed(reading, key, given.into_iter().chain(of_ranges))
    };
    let sources = count("sources", |ranges| &ranges.sources);
    let destinations = count("destinations", |ranges| &ranges.destinations);
    traffic.sources = sources.unwrap_or(traffic.sources);
    traffic.destinations = destinations.unwrap_or(traffic.destinations);
    for ranges in of_families.iter().filter(|ranges| ranges.is_whole) {
        ranges.check_apart(reading, traffic);
    }
}

/// The ranges of one family.
struct FamilyRanges {
    family: AddressFamily,
    /// Its table, as messages name it.
    table: String,
    /// Whether all that is given could be read.
    is_whole: bool,
    sources: Option<Spanned<AddressRange>>,
    destinations: Option<Spanned<AddressRange>>,
}

impl FamilyRanges {
    fn read(reading: &mut Reading<'_>, value: &Value<'_>, family: AddressFamily) -> Option<Self> {
        let name = format!("[traffic.{family}]");
        let table = reading.table(value, &name, RANGE_KEYS)?;
        let mut range = |key| address_range(reading, table.value(key)?, &table.what(key), family);
        let (sources, destinations) = (range("sources"), range("destinations"));
        let is_read = |key, range: &Option<_>| table.value(key).is_some() == range.is_some();
        Some(Self {
            family,
            table: name,
            is_whole: is_read("sources", &sources) && is_read("destinations", &destinations),
            sources,
            destinations,
        })
    }

    /// Notes an address at both ends, where one of them may be the usual ones.
    fn check_apart(&self, reading: &mut Reading<'_>, traffic: &Traffic) {
        let Some(given) = self.destinations.as_ref().or(self.sources.as_ref()) else {
            return;
        };
        let count = |range: &Option<Spanned<AddressRange>>, agreed| {
            range
                .as_ref()
                .map_or(agreed, |range| range.get_ref().count())
        };
        let own = Traffic {
            sources: count(&self.sources, traffic.sources),
            destinations: count(&self.destinations, traffic.destinations),
            ..traffic.clone()
        };
        note(reading, given.span(), own.check_apart(self.family));
    }
}

/// A number of addresses, and in which table it is given.
struct Count<'n> {
    table: &'n str,
    addresses: Spanned<u32>,
}

/// The number in which all agree; all families send the same flows.
fn agreed<'n>(
    reading: &mut Reading<'_>,
    key: &str,
    counts: impl IntoIterator<Item = Count<'n>>,
) -> Option<u32> {
    let mut counts = counts.into_iter();
    let first = counts.next()?;
    let expected = *first.addresses.get_ref();
    for other in counts {
        let addresses = *other.addresses.get_ref();
        if addresses != expected {
            let message = format!(
                "{addresses} {key} in {} are not the {expected} of {}",
                other.table, first.table
            );
            reading
                .error(other.addresses.span(), message)
                .with_help("both families send as many flows; give one number everywhere");
        }
    }
    Some(expected)
}

/// Notes what is wrong with a traffic.
fn note(reading: &mut Reading<'_>, span: Span, checked: Result<(), TrafficFault>) {
    if let Err(fault) = checked {
        reading
            .error(span, fault.to_string())
            .with_help(fault.advice());
    }
}

fn address_range(
    reading: &mut Reading<'_>,
    value: &Value<'_>,
    what: &str,
    family: AddressFamily,
) -> Option<Spanned<AddressRange>> {
    let text = value.get_ref().as_str().unwrap_or_default();
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let address = |text: &str| {
        let address: IpAddr = text.trim().parse().ok()?;
        (address.is_ipv4() == (family == AddressFamily::Inet)).then_some(address)
    };
    let (Some(first), Some(last)) = (address(first), address(last)) else {
        let example = match family {
            AddressFamily::Inet => "198.18.10.1-198.18.10.20",
            AddressFamily::Inet6 => "2001:2:0:10::1-2001:2:0:10::14",
        };
        let expected = format!("{} addresses like {example:?}", family.protocol());
        reading.expected(value, what, &expected);
        return None;
    };
    let Some(distance) = number(last).checked_sub(number(first)) else {
        reading.error(value.span(), format!("{what} ends before it begins"));
        return None;
    };
    let count = distance.saturating_add(1);
    let range = u32::try_from(count)
        .ok()
        .filter(|count| *count <= FLOWS_MAX)
        .and_then(|count| AddressRange::new(first, count).ok());
    let Some(range) = range else {
        reading
            .error(value.span(), format!("{what} holds {count} addresses"))
            .with_help(format!("there are at most {FLOWS_MAX} flows"));
        return None;
    };
    if let Err(refusal) = range.check_forwarded() {
        reading
            .error(value.span(), refusal.to_string())
            .with_help(OTHER_ADDRESSES);
    }
    Some(Spanned::new(value.span(), range))
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// A port, or `"first-last"`.
fn port_range(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<PortRange> {
    if let DeValue::Integer(_) = value.get_ref() {
        let port = reading.integer(value, what, PORT)?;
        return Some(PortRange {
            first: port,
            last: port,
        });
    }
    let text = value.get_ref().as_str().unwrap_or_default();
    match text.parse() {
        Ok(range) => Some(range),
        Err(TrafficTextError::EndsBeforeItBegins) => {
            reading.error(value.span(), format!("{what} ends before it begins"));
            None
        }
        Err(_) => {
            let (lowest, highest) = (PORT.start(), PORT.end());
            let expected =
                format!("a port from {lowest} to {highest}, or a range like \"1024-1033\"");
            reading.expected(value, what, &expected);
            None
        }
    }
}

fn check_flows(reading: &mut Reading<'_>, table: &Table<'_>, traffic: &Traffic) {
    let place = [
        "destinations",
        "sources",
        "inet",
        "inet6",
        "destination_ports",
        "source_ports",
    ]
    .iter()
    .find_map(|key| table.value(key));
    let span = place.map_or(table.span.clone(), Spanned::span);
    note(reading, span, traffic.check_flows());
}

fn load_of(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<LoadChoice> {
    match value.get_ref() {
        DeValue::String(_) => reading.word(value, what, LOADS),
        DeValue::Table(_) => {
            let table = reading.table(value, "`load`", LOAD_KEYS)?;
            match (table.value("pps"), table.value("line_rate_percent")) {
                (Some(_), None) => table
                    .integer(reading, "pps", INTENDED_LOAD_PPS)
                    .map(|pps| LoadChoice::Load(Load::Paced { pps })),
                (None, Some(_)) => table
                    .number(reading, "line_rate_percent", LINE_RATE_PERCENT)
                    .map(LoadChoice::LineRatePercent),
                (Some(_), Some(_)) => {
                    reading.error(value.span(), "`load` is given twice, in two units");
                    None
                }
                (None, None) => {
                    let is_misspelt = LOAD_KEYS.iter().any(|key| table.is_misspelt(key));
                    if !is_misspelt {
                        reading
                            .error(value.span(), "`load` has no number")
                            .with_help(format!("give one of: {}", LOAD_KEYS.join(", ")));
                    }
                    None
                }
            }
        }
        _ => {
            let words = list(LOADS.iter().map(|(word, _)| *word));
            let expected = format!("one of {words}, or a table with a number");
            reading
                .expected(value, what, &expected)
                .with_help("\"self-clocked\" measures the cost of a packet")
                .with_help("{ pps = 100000 } asks for 100000 frames per second");
            None
        }
    }
}
