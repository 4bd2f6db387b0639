//! Sentences that more than one renderer shows; none of them holds a name that others chose.

use std::collections::BTreeMap;

use fwdlab_model::{
    Design, Direction, FrameSize, LabKind, LoadRecord, LoadRegime, StratumLoad, System, Tester,
    Traffic,
};

use crate::factorial::{FactorialRow, FactorialSection};
use crate::format;
use crate::report::{
    ComparisonSection, ControlSection, DisturbanceSection, Effect, LabSection, MethodSection,
    Report, Row,
};
use crate::sessions::RerunsSection;
use crate::text;
use crate::traffic_effects::TrafficSection;

/// `8 blocks`, or `3 of 8 blocks` while the run goes on.
pub(crate) fn blocks(report: &Report) -> String {
    let progress = report.progress;
    let planned = format::counted(progress.planned_blocks.into(), "block");
    if progress.measured_blocks == progress.planned_blocks {
        planned
    } else {
        format!("{} of {planned}", progress.measured_blocks)
    }
}

/// That the run is not finished, where it is not.
pub(crate) fn unfinished(report: &Report) -> Option<String> {
    (!report.progress.is_finished)
        .then(|| format!("This run is not finished: {} are measured.", blocks(report)))
}

/// What tells this comparison from the report's others; none for the only one. It may hold the
/// experiment's own title.
pub(crate) fn heading(report: &Report, comparison: &ComparisonSection) -> Option<String> {
    let stratum = (report.has_several_strata()).then(|| comparison.stratum.label());
    match (&comparison.title, stratum) {
        (Some(title), Some(stratum)) => Some(format!("{title}: {stratum}")),
        (Some(title), None) => Some(title.clone()),
        (None, Some(stratum)) => Some(stratum.to_owned()),
        (None, None) => None,
    }
}

/// What a variant forwards, and what a packet costs where that is known: `2.41 Mpps, 415.0 ns/packet`; none where nothing
/// was measured.
pub(crate) fn rates(row: &Row) -> Option<String> {
    let rate = format::rate(row.forwarding_rate_pps?);
    Some(match row.cost_ns {
        Some(cost_ns) => format!("{rate}, {} ns/packet", format::cost(cost_ns)),
        None => rate,
    })
}

/// The finding on one variant: verdict, effect, and what it makes of the baseline.
pub(crate) fn finding(words: &str, effect: &Effect, notes: &[String]) -> String {
    let confidence = effect.shown_interval().map_or_else(
        || "no interval with so few blocks".to_owned(),
        |interval| {
            let of = match effect.interval {
                Some(_) => "",
                None => " of the size; too few blocks for one of the direction",
            };
            let confidence = format::short(interval.confidence_percent, 1);
            format!("{confidence} % interval{of}")
        },
    );
    let shown = format::change_with_interval(effect.estimate_percent, effect.shown_interval());
    let mut finding = format!("{words}: {shown} ({confidence})");
    if let Some(difference) = effect.rate_difference_pps {
        finding.push_str(&format!(", {}", format::rate_difference(difference)));
    }
    if let Some(difference) = effect.cost_difference_ns {
        let difference = format::cost_difference(difference);
        finding.push_str(&format!(", {difference} ns/packet"));
    }
    for note in notes {
        finding.push_str("; ");
        finding.push_str(note);
    }
    finding
}

/// `±1.7 %, against a threshold of 1 %`.
pub(crate) fn half_width_against(effect: &Effect, threshold_percent: f64) -> String {
    let width = effect.half_width_percent().map_or_else(
        || "no bound at all".to_owned(),
        |half_width| {
            let decimals = format::effect_decimals(Some(half_width));
            format!("±{half_width:.decimals$} %")
        },
    );
    format!(
        "{width}, against a threshold of {} %",
        format::short(threshold_percent, 3)
    )
}

/// Why a control does not support the verdicts beside it; none where it does.
pub(crate) fn control_in_doubt(control: &ControlSection, threshold_percent: f64) -> Option<String> {
    let effect = control.row.effect.as_ref()?;
    match control.passed {
        Some(false) => Some(format!(
            "differs from its baseline by {}: this lab can show such effects falsely",
            format::effect(effect)
        )),
        _ if control.is_too_wide => Some(format!(
            "is too wide to show anything ({})",
            half_width_against(effect, threshold_percent)
        )),
        _ => None,
    }
}

/// Why nothing is found of a DUT that carried all of its load.
pub(crate) fn not_limited(words: &str) -> String {
    format!(
        "{words}: every variant forwarded all that was offered, so the rate is that of the load; only a higher load \
         can tell the variants apart"
    )
}

/// What stands in a verdict's place where one session a side was compared.
pub(crate) const WITHIN_SESSIONS: &str = "within these sessions";

/// How far sessions differ, as reruns show it.
pub(crate) fn reruns(reruns: &RerunsSection) -> String {
    format!(
        "Noise between sessions, by {}: standard deviation {} %; Student's t with {} degrees of freedom",
        format::counted(reruns.sessions as u64, "rerun"),
        format::significant(reruns.standard_deviation_percent, 2),
        format::short(reruns.degrees_of_freedom, 0)
    )
}

/// What stands below ministat's text of two sessions.
pub(crate) const MINISTAT_OF_SESSIONS: &str = "ministat treats the observations of both sides as if they came from one session: what it calls a difference may be a \
     difference between sessions.";

/// How the table and its verdicts are to be read.
pub(crate) fn reading(report: &Report, comparison: &ComparisonSection) -> String {
    let design = &report.design;
    let correction = match comparison.family_size {
        0 | 1 => String::new(),
        size => format!(
            " The words are corrected for {size} comparisons, each interval is for its own alone."
        ),
    };
    let (differences, medians) = if comparison.has_costs() {
        (
            "the differences in pps and ns/packet are",
            "forwarding rates and ns/packet",
        )
    } else {
        ("the difference in pps is", "forwarding rates")
    };
    format!(
        "Changes below {} % are treated as irrelevant; the words hold at {} % \
         confidence.{correction} The effect compares each variant with the \
         baseline inside every block, and {differences} what it makes of \
         the baseline's; the table's {medians} are medians over the blocks, \
         between which the machine itself may change.",
        format::short(design.threshold_percent, 3),
        format::short(design.confidence_percent, 2)
    )
}

/// What stands above the noise of forwarding rates.
pub(crate) const RATE_NOISE: &str = "The noise of the forwarding rates, as standard deviations. What blocks and rounds do to all variants \
     alike cancels in the effects; that of slices is what rounds are there to average.";

/// How the picture of the distributions is to be read.
pub(crate) const DISTRIBUTIONS: &str = "A dot is one trial, left or right of its variant's own median; a box reaches from the lower to the upper quartile of \
     the trials that count. Two heaps of dots, or a dot far from the others, are set-ups that behaved otherwise. What \
     slows all variants of a block alike widens every box and cancels in the effects.";

/// What stands above a table of methods.
pub(crate) const METHODS: &str = "What other methods make of the same data. The verdict follows the first; p is for the comparison \
     alone, corrected for all that are made at once: by Holm, or as the method itself does.";

/// Method, effect, p and corrected p.
pub(crate) fn method_cells(method: &MethodSection) -> [String; 4] {
    let text = match method.interval {
        Some(_) => format::change_with_interval,
        None => format::change,
    };
    [
        method.method.words().to_owned(),
        text(method.estimate_percent, method.interval),
        format::p(method.p),
        format::p(method.adjusted_p),
    ]
}

/// How main effects and interactions are to be read.
pub(crate) fn factorial_reading(factorial: &FactorialSection) -> String {
    let corrected = |rows: &[FactorialRow], what: &str| match rows.len() {
        0 | 1 => String::new(),
        number => format!(" The words of the {number} {what} are corrected together."),
    };
    format!(
        "A main effect is the change of the forwarding rate at that level against the baseline's, \
         averaged over the levels of the other factors, each counting the same. An interaction is how \
         much more, or less, is forwarded with both levels than the effects of each alone would make; \
         where one is shown, a main effect is only an average.{}{}",
        corrected(&factorial.main_effects, "main effects"),
        corrected(&factorial.interactions, "interactions"),
    )
}

/// What tells a section on effects by traffic from the report's others.
pub(crate) fn traffic_heading(section: &TrafficSection) -> String {
    let protocol = section.family.protocol();
    match &section.title {
        Some(title) => format!("{title}: {protocol} by traffic"),
        None => format!("{protocol} by traffic"),
    }
}

/// How changes with the traffic are to be read.
pub(crate) fn traffic_reading(section: &TrafficSection) -> String {
    let first = section.traffics.first();
    let first = first.map_or(String::new(), ToString::to_string);
    let corrected = match section.changes.len() {
        0 | 1 => String::new(),
        number => format!(" The words of the {number} changes are corrected together."),
    };
    format!(
        "A change is the ratio of the variant's rate to the baseline's under that traffic, against the same ratio under \
         {first}, block by block: a cost that the traffic adds to both in the same proportion cancels.{corrected}"
    )
}

/// The machine and its CPUs.
pub(crate) fn machine(lab: &LabSection) -> String {
    let cpus = format!("{} x {}", lab.cpus, lab.cpu_model);
    match &lab.machine {
        Some(machine) => format!("{machine} ({cpus})"),
        None => cpus,
    }
}

/// How often and how long it was measured.
pub(crate) fn design(report: &Report) -> String {
    let design = &report.design;
    format!(
        "{} (each a fresh set-up) of {}; slices of {} ms after {} ms of settling; {} ms of warm-up",
        blocks(report),
        format::counted(design.rounds.into(), "round"),
        design.slice_ms,
        design.settle_ms,
        design.warm_up_ms
    )
}

/// The seed of all orders.
pub(crate) fn seed(design: &Design) -> String {
    let drawn = if design.seed_was_drawn {
        " (drawn)"
    } else {
        ""
    };
    format!("{}{drawn}", design.seed)
}

/// What the tester sends, a sentence a traffic, with its name where it has one.
pub(crate) fn traffics(traffics: &[Traffic]) -> Vec<String> {
    let sentence = |traffic: &Traffic| match traffic.name {
        Some(name) => format!("{name}: {}", flows(traffic)),
        None => flows(traffic),
    };
    traffics.iter().map(sentence).collect()
}

/// The pace of each traffic, once where all have the same.
pub(crate) fn paces(traffics: &[Traffic]) -> String {
    let pace = |traffic: &Traffic| {
        let pps = traffic.load.intended_pps().unwrap_or_default();
        let burst = match traffic.burst_frames {
            1 => String::new(),
            frames => format!(", {frames} frames back to back"),
        };
        format!("{}{burst}", format::rate(pps as f64))
    };
    let paces: Vec<String> = traffics.iter().map(pace).collect();
    match paces.as_slice() {
        [first, others @ ..] if others.iter().all(|other| other == first) => {
            format!("paced at {first}")
        }
        _ => {
            let named = traffics.iter().zip(&paces).map(|(traffic, pace)| {
                let name = traffic.name.map(|name| name.to_string());
                format!("{}: {pace}", name.unwrap_or_default())
            });
            format!("paced, {}", named.collect::<Vec<_>>().join("; "))
        }
    }
}

/// What the tester sends of one traffic.
fn flows(traffic: &Traffic) -> String {
    let size = match traffic.frame_sizes[..] {
        [FrameSize { bytes: 64, .. }] => "smallest UDP packets".to_owned(),
        [FrameSize { bytes, .. }] => format!("UDP packets in frames of {bytes} bytes"),
        ref sizes => {
            let sizes: Vec<String> = sizes
                .iter()
                .map(|size| format!("{} x {}", size.share, size.bytes))
                .collect();
            format!("UDP packets in frames of {} bytes", sizes.join(", "))
        }
    };
    let families: Vec<&str> = traffic
        .families
        .iter()
        .map(|family| family.protocol())
        .collect();
    let plural = |count: u32, noun: &str| match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    };
    let mut parts = vec![
        plural(traffic.sources, "source"),
        plural(traffic.destinations, "destination"),
    ];
    for (ports, what) in [
        (traffic.source_ports, "source ports"),
        (traffic.destination_ports, "destination ports"),
    ] {
        if ports.count() > 1 {
            parts.push(format!("{} {what}", ports.count()));
        }
    }
    let both = match traffic.direction {
        Direction::Forward => "",
        Direction::Both => ", in both directions",
    };
    let tag = traffic
        .vlan
        .map(|vlan| format!(", tagged with VLAN {vlan}"));
    format!(
        "{} of {size}{} ({}), {}{both}{}",
        plural(traffic.flows(), "flow"),
        tag.unwrap_or_default(),
        parts.join(" x "),
        families.join(" and "),
        heavy_flows(traffic).map_or_else(String::new, |shares| format!("; {shares}"))
    )
}

/// What the heaviest flows have of the frames, where flows are not sent in turn: `Zipf-distributed with exponent 1.1, ...`.
#[must_use]
pub fn heavy_flows(traffic: &Traffic) -> Option<String> {
    let (zipf, shares) = (traffic.zipf?, traffic.flow_shares()?);
    let (sent, all) = (shares.flows_sent, traffic.flows());
    let sent = if sent < all {
        format!("; {sent} of {all} flows are heavy enough to be sent at all")
    } else {
        String::new()
    };
    Some(format!(
        "Zipf-distributed with exponent {zipf}: {} of the frames are of the heaviest flow, {} of the heaviest hundredth of \
         the flows{sent}",
        format::part(shares.heaviest_flow_percent),
        format::part(shares.heaviest_hundredth_percent),
    ))
}

/// The generator's own cost by stratum, where it was measured.
pub(crate) fn generator_costs(report: &Report) -> Option<String> {
    let costs: Vec<String> = report
        .lab
        .generator_cost_ns
        .iter()
        .map(|(stratum, cost_ns)| {
            format!("{} ns/packet ({})", format::cost(*cost_ns), stratum.label())
        })
        .collect();
    (!costs.is_empty()).then(|| costs.join(", "))
}

/// What the checks of the order look at.
pub(crate) fn order_checks(report: &Report) -> String {
    let level = match report.strata().count() {
        0..=2 => "half a percent (a quarter with both address families)",
        _ => "half a percent divided by the number of traffics and address families",
    };
    format!(
        "What lingers from one variant to the next shows in the slices after it, what keeps step with the rounds at one \
         place in them. Here is the variant after which slices differ most clearly from the others, and the place where \
         they do, each with the probability of such a one by chance over all orders that the plan could have drawn; it is \
         warned of where that is below {level}, so that chance alone is warned of in at most one report of a hundred. The \
         autocorrelation is that of a slice with the next one of its variant and block: it is part of the noise between \
         rounds, and no verdict rests on it."
    )
}

/// How much of the time was disturbed, by stratum; none where nothing was.
pub(crate) fn disturbed(report: &Report) -> Option<String> {
    let parts: Vec<String> = report
        .disturbance
        .iter()
        .map(|(stratum, disturbance)| {
            let percent = format::short(disturbance.percent, 1);
            format!("{percent} % ({})", stratum.label())
        })
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// How much of the time was disturbed, and what became of it; none where nothing was.
pub(crate) fn disturbed_time(report: &Report) -> Option<String> {
    let disturbed = disturbed(report)?;
    Some(format!(
        "Disturbed: {disturbed} of the slices' time, in which something else slowed the core of the \
         load CPU; {}",
        left_out(report)
    ))
}

/// Whether so much was disturbed that nothing could be left out in any block.
pub(crate) fn nothing_left_out(report: &Report) -> bool {
    let blocks = report.progress.measured_blocks as usize;
    let mut strata = report.disturbance.values();
    strata.all(|disturbance| disturbance.blocks_over_all_time.len() >= blocks)
}

/// What became of the disturbed time.
pub(crate) fn left_out(report: &Report) -> String {
    if nothing_left_out(report) {
        return "left out in no block, because too little would remain".to_owned();
    }
    let in_blocks = |blocks: fn(&DisturbanceSection) -> &Vec<u32>| {
        let disturbances = report.disturbance.iter();
        let some = disturbances.filter(|(_, disturbance)| !blocks(disturbance).is_empty());
        let some = some.map(|(stratum, disturbance)| {
            let blocks = format::counted(blocks(disturbance).len() as u64, "block");
            format!("{blocks} of {}", stratum.label())
        });
        some.collect::<Vec<String>>().join(" and ")
    };
    let all_time = in_blocks(|disturbance| &disturbance.blocks_over_all_time);
    let time_alone = in_blocks(|disturbance| &disturbance.blocks_over_time_alone);
    let mut said = "left out".to_owned();
    if !all_time.is_empty() {
        said += &format!(", but for {all_time}, of which too little would remain");
    }
    if !time_alone.is_empty() {
        said += &format!(
            ", but for {time_alone}, of which only that is left out in which other programs had the CPU"
        );
    }
    said
}

/// What the table of lost frames counts, and what a loss means under this load.
pub(crate) fn losses(report: &Report) -> String {
    let meaning = match report.regime() {
        LoadRegime::SelfClocked => {
            "A self-clocked load loses nothing while generator, DUT and sink take turns; here some \
             variant dropped frames, or let the DUT work at another time or on another CPU."
        }
        LoadRegime::Paced => {
            "Nothing lost means that the DUT kept up with the intended load; it says nothing about how \
             much more it could have forwarded."
        }
        LoadRegime::Overload => {
            "More is offered than the DUT can forward, so that losses are meant to be, and the more is \
             lost the less was forwarded."
        }
    };
    format!(
        "In the slices of all blocks. {meaning} The counters are read one after the other under load, \
         so that the columns need not add up to the frame; over whole blocks they do."
    )
}

/// What became of invalid trials.
pub(crate) const INVALID: &str = "Judged by evidence that does not use the forwarding rate, and kept. The trials of a block are compared with one \
     another, so a block with an invalid trial is left out of the results above as a whole and measured again.";

/// What the table of the DUT's events counts.
pub(crate) const DUT_EVENTS: &str = "Per packet that the DUT received, in the slices of all blocks: how often each of its mechanisms came into \
    play. What a variant changes here is what its effect comes from.";

/// What the table of the DUT's CPUs is.
pub(crate) const DUT_CPUS: &str = "In the first half of the slices of all blocks, counted on the DUT from the first frames of each load: how much each of \
    its CPUs was busy, and with interrupts alone. CPUs with next to nothing to do are left out.";

/// A CPU that is busy for less of its time is not what limits a DUT under overload.
const LIMITING_BUSY_PERCENT: f64 = 90.0;

/// That no CPU limits the DUT, where one would have to.
pub(crate) fn dut_has_time(report: &Report) -> Option<String> {
    let cpus = report.dut_cpus.iter().flat_map(|section| &section.cpus);
    let most = cpus.map(|cpu| cpu.busy_percent).fold(0.0, f64::max);
    let is_strange = report.regime() == LoadRegime::Overload && most < LIMITING_BUSY_PERCENT;
    is_strange.then(|| {
        format!(
            "No CPU was busy for more than {most:.0} % of the time, though more was offered than was forwarded: what limits \
             this DUT is something else than its CPUs, such as a port, a bus or a queue."
        )
    })
}

/// What the lines on offered load are.
pub(crate) const OFFERED_LOAD: &str = "What was offered to each variant beside what was offered to the baseline in the same blocks, and, as a \
     sensitivity, what the effect would be had it been the same: by a straight line through the block \
     effects over the blocks' ratios of offered load, both as logarithms. A slope of one is a rate that \
     follows the offered load, one of zero a rate that does not care. No verdict rests on this.";

/// What the table of all frames counts.
pub(crate) fn conservation(report: &Report) -> String {
    let mut reasons = report
        .conservation
        .values()
        .flat_map(|frames| &frames.drops);
    let has_control =
        reasons.any(|(reason, frames)| reason.contains("drop-at-ingress control") && *frames > 0);
    let control = if has_control {
        " The drop-at-ingress control drops its frames on purpose: it measures what the generator costs by itself."
    } else {
        ""
    };
    format!(
        "From the generator's start to its end in every block, settling and warm-up included.{control}"
    )
}

/// A number of frames, with that of each reason where there are any: `7 900 687 (drop-at-ingress control 7 900 687)`.
///
/// Shape: `inert` makes a reason's name fit for where it is shown.
pub(crate) fn with_reasons(
    total: u64,
    frames: &BTreeMap<String, u64>,
    inert: fn(&str) -> String,
) -> String {
    match by_reason(frames, inert) {
        reasons if reasons.is_empty() => format::count(total),
        reasons => format!("{} ({reasons})", format::count(total)),
    }
}

/// Each reason with its number of frames, where there are any.
pub(crate) fn by_reason(frames: &BTreeMap<String, u64>, inert: fn(&str) -> String) -> String {
    let counted = (frames.iter())
        .filter(|(_, count)| **count > 0)
        .map(|(reason, count)| format!("{} {}", inert(reason), format::count(*count)));
    counted.collect::<Vec<_>>().join(", ")
}

/// How the lab settled the load, where it measured what the machine can do: one sentence a stratum, and
/// why the regime is not the one that was asked for.
#[must_use]
pub fn settled_load(load: &LoadRecord) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(asked) = load.instead_of {
        let why = load.why.as_deref().unwrap_or("the lab does not allow it");
        sentences.push(format!(
            "Load: {} instead of {asked}, because {why}",
            load.regime
        ));
    }
    for (stratum, load_of) in &load.strata {
        let StratumLoad {
            baseline_capacity_pps: Some(capacity_pps),
            tester_ceiling_pps: Some(ceiling_pps),
            intended_pps: Some(intended_pps),
        } = *load_of
        else {
            continue;
        };
        if load.instead_of.is_some() {
            continue;
        }
        sentences.push(format!(
            "To be offered ({}): {}, {:.2} times the {} that the baseline forwarded at most; the tester \
             can do {}",
            stratum.label(),
            format::rate(intended_pps),
            intended_pps / capacity_pps,
            format::rate(capacity_pps),
            format::rate(ceiling_pps),
        ));
    }
    sentences
}

/// In how many facts of the DUT the variants differ, and how many only read back as something else than was asked for.
pub(crate) fn differing_facts(report: &Report) -> String {
    let facts = report.differing_facts.values();
    let alike = facts.filter(|values| common(values).is_some()).count();
    let differing = report.differing_facts.len() - alike;
    let mut text = format!(
        "The variants differ in {} of the DUT, as read from it under each of them, and in nothing else that was read: \
         settings of the kernel and its modules, rulesets, routes, and what the ports do.",
        format::counted(differing as u64, "fact")
    );
    if alike > 0 {
        text += &format!(
            " In {}, alike under all variants, the kernel made something else of what it was set to.",
            format::counted(alike as u64, "more fact")
        );
    }
    text
}

/// The value that a fact has under all variants; none where they differ.
pub(crate) fn common<K>(values: &BTreeMap<K, String>) -> Option<&String> {
    let first = values.values().next()?;
    values.values().all(|value| value == first).then_some(first)
}

/// The value of a fact in few words; a long text is left to report.json.
pub(crate) fn fact(value: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    if value.is_empty() {
        "none".to_owned()
    } else if value.contains('\n') || value.chars().count() > CHARACTERS_MAX {
        "a longer text, in report.json".to_owned()
    } else {
        text::code(value)
    }
}

/// The kernel that forwards; that of FreeBSD names its system itself.
pub(crate) fn kernel(kind: LabKind, version: &str) -> String {
    match kind {
        LabKind::Ssh(System::Freebsd) => version.to_owned(),
        LabKind::Ssh(System::Linux) | LabKind::Netns | LabKind::Router => {
            format!("Linux {version}")
        }
    }
}

/// What kind of lab it is, in few words.
pub(crate) fn lab_kind(kind: LabKind) -> &'static str {
    match kind {
        LabKind::Netns => "this machine's kernel, in network namespaces",
        LabKind::Router => "the reference router, in memory",
        LabKind::Ssh(System::Linux) => "a Linux host, by ssh",
        LabKind::Ssh(System::Freebsd) => "a FreeBSD host, by ssh",
    }
}

/// What must not be concluded.
pub(crate) fn limits(report: &Report) -> Vec<&'static str> {
    let lab = &report.lab;
    let (mut limits, losses): (Vec<&str>, &[&str]) = match lab.kind {
        LabKind::Router => (
            vec![
                "No network card and no kernel: frames are handed over in memory, so no DMA, no driver, no \
                 interrupts; what is measured is the router's own code.",
                "Forwarding rates here do not carry over to another router; which mechanism costs more, and \
                 why, often does.",
            ],
            &[],
        ),
        LabKind::Ssh(_) => (
            vec![
                "The result is that of this DUT with these cards; another machine has another balance of CPU, \
                 memory and bus.",
            ],
            match lab.tester {
                Tester::PktGen => lab.tester.losses(),
                // Those of others are against the best in this machine's own kernel.
                _ => &[],
            },
        ),
        LabKind::Netns => (
            vec![
                "No network card: veth pairs, so no DMA, no driver rings, no interrupt moderation and \
                 no receive-side scaling.",
                if lab.dut_cpu.is_none() {
                    "The result is the CPU cost of the forwarding path of this kernel on this machine, \
                     with the generator and the sink on the same core; a virtual machine adds its \
                     hypervisor."
                } else {
                    "The result is what forwarding costs on one CPU of this machine, in its kernel or in the \
                     program that a variant names, with the sink on the same CPU and the generator on another; \
                     a virtual machine adds its hypervisor."
                },
                "Forwarding rates here do not carry over to hardware; which variant costs more, and \
                 roughly how many ns/packet, often does.",
            ],
            lab.tester.losses(),
        ),
    };
    limits.extend(losses);
    limits
}

#[cfg(test)]
mod tests {
    use fwdlab_model::Stratum;

    use super::*;
    use crate::report::IntervalSection;

    #[test]
    fn a_finding_shows_the_interval_that_its_word_rests_on() {
        let interval = |low_percent, high_percent, confidence_percent| IntervalSection {
            low_percent,
            high_percent,
            confidence_percent,
        };
        let mut effect = Effect::of_ratio(0.003_f64.ln_1p(), None, None);
        assert_eq!(
            finding("undecided", &effect, &[]),
            "undecided: +0.3 % [-∞, +∞] (no interval with so few blocks)"
        );
        effect.size_interval = Some(interval(-0.4, 0.9, 93.75));
        assert_eq!(
            finding("equivalent", &effect, &[]),
            "equivalent: +0.3 % [-0.4, +0.9] (93.8 % interval of the size; too few blocks for one of the direction)"
        );
        assert_eq!(format::effect(&effect), "+0.3 % [-0.4, +0.9] (93.8 %)");
        effect.interval = Some(interval(-0.6, 1.2, 96.875));
        assert_eq!(format::effect(&effect), "+0.3 % [-0.6, +1.2]");
    }

    #[test]
    fn heavy_flows_say_what_they_have() {
        let traffic = |destinations, zipf: Option<&str>| Traffic {
            destinations,
            zipf: zipf.map(|zipf| zipf.parse().unwrap()),
            ..Traffic::default()
        };
        let sent = |traffic| traffics(&[traffic]).remove(0);
        assert_eq!(
            sent(traffic(100, None)),
            "2000 flows of smallest UDP packets (20 sources x 100 destinations), IPv4"
        );
        let tagged = Traffic {
            vlan: Some(100),
            ..traffic(100, None)
        };
        assert_eq!(
            sent(tagged),
            "2000 flows of smallest UDP packets, tagged with VLAN 100 (20 sources x 100 destinations), IPv4"
        );
        assert_eq!(
            sent(traffic(100, Some("1.1"))),
            "2000 flows of smallest UDP packets (20 sources x 100 destinations), IPv4; Zipf-distributed with exponent \
             1.1: 16.9 % of the frames are of the heaviest flow, 54.0 % of the heaviest hundredth of the flows"
        );
        assert_eq!(
            heavy_flows(&traffic(3000, Some("1.5"))).unwrap(),
            "Zipf-distributed with exponent 1.5: 38.4 % of the frames are of the heaviest flow, 97.2 % of the heaviest \
             hundredth of the flows; 13070 of 60000 flows are heavy enough to be sent at all"
        );
    }

    #[test]
    fn a_load_that_was_settled_says_by_what() {
        let stratum = StratumLoad {
            baseline_capacity_pps: Some(40e6),
            tester_ceiling_pps: Some(60e6),
            intended_pps: Some(50e6),
        };
        let mut load = LoadRecord {
            regime: LoadRegime::Overload,
            instead_of: None,
            why: None,
            strata: BTreeMap::from([(Stratum::INET, stratum)]),
        };
        assert_eq!(
            settled_load(&load),
            [
                "To be offered (IPv4): 50.0 Mpps, 1.25 times the 40.0 Mpps that the baseline forwarded at \
              most; the tester can do 60.0 Mpps"
            ]
        );
        load.regime = LoadRegime::SelfClocked;
        load.instead_of = Some(LoadRegime::Overload);
        load.why = Some("there are not CPUs enough for a tester of its own".into());
        assert_eq!(
            settled_load(&load),
            [
                "Load: self-clocked instead of overload, because there are not CPUs enough for a tester of \
              its own"
            ]
        );
    }
}
