//! Programs that not every Linux host has: what an experiment needs of them, and what is lost without each.

use std::collections::BTreeMap;

use fwdlab_model::{AddressFamily, Binding, LabKind, Resolved, System, Variant};

use super::question::{Answers, Question};
use super::step::owned;

/// A program that a host may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// `ip`, where it is not BusyBox's.
    Iproute2,
    /// `ethtool`.
    Ethtool,
    /// `nft`.
    Nft,
    /// `tc`, where it is not BusyBox's.
    Tc,
}

impl Tool {
    pub(crate) const ALL: [Self; 4] = [Self::Iproute2, Self::Ethtool, Self::Nft, Self::Tc];

    /// What messages call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Iproute2 => "iproute2's ip",
            Self::Ethtool => "ethtool",
            Self::Nft => "nft",
            Self::Tc => "iproute2's tc",
        }
    }

    /// A command that succeeds where it is there: BusyBox's applets know no version.
    pub(crate) fn probe(self) -> Vec<String> {
        owned(match self {
            Self::Iproute2 => &["ip", "-V"],
            Self::Ethtool => &["ethtool", "--version"],
            Self::Nft => &["nft", "--version"],
            Self::Tc => &["tc", "-V"],
        })
    }

    /// The packages of Debian and of OpenWrt that have it.
    const fn packages(self) -> [&'static str; 2] {
        match self {
            Self::Iproute2 => ["iproute2", "ip-full"],
            Self::Ethtool => ["ethtool", "ethtool-full"],
            Self::Nft => ["nftables", "nftables"],
            Self::Tc => ["iproute2", "tc-full"],
        }
    }

    /// A command by which it shows that it does its work there, with placeholders for the DUT's ports; it changes nothing.
    pub(crate) const fn trial(self) -> &'static str {
        match self {
            Self::Iproute2 => "ip -batch /dev/null",
            Self::Ethtool => "ethtool -k {dut-in}",
            Self::Nft => "nft list ruleset",
            Self::Tc => "tc filter show dev {dut-in} ingress",
        }
    }

    /// What to do where it is missing.
    pub(crate) fn remedy(self) -> String {
        let [debian, openwrt] = self.packages();
        let name = self.name();
        format!("install {name} (apt-get install {debian}; the package {openwrt} of OpenWrt)")
    }

    /// What is wrong with a host without it, and what to do.
    pub(crate) fn missing(self) -> String {
        format!("{} is not installed; {}", self.name(), self.remedy())
    }

    /// What is wrong with a host without it that is to do more, and what to do.
    fn missing_for(self, purposes: &[impl AsRef<str>]) -> String {
        let purposes: Vec<&str> = purposes.iter().map(AsRef::as_ref).collect();
        let need = if purposes.len() == 1 { "needs" } else { "need" };
        format!(
            "{} is not installed, but {} {need} it; {}",
            self.name(),
            purposes.join(" and "),
            self.remedy()
        )
    }

    /// What is wrong with a host that answers so; none where it has it.
    pub(crate) fn lacking(self, answers: &Answers) -> Option<String> {
        let is_there = answers.get(&self.probe()).is_some();
        (!is_there).then(|| self.missing())
    }

    /// What asks for it.
    pub(crate) fn question(self) -> Question {
        Question::maybe(self.probe())
    }

    /// What the binding of a factor begins with that needs it: a key of its table, or the owner's program.
    pub(crate) const fn bound_by(self) -> &'static [&'static str] {
        match self {
            Self::Iproute2 => &["routes", "xdp"],
            Self::Ethtool => &["ethtool"],
            Self::Nft => &["nft"],
            Self::Tc => &["tc"],
        }
    }

    /// The facts of a DUT that are not read without it.
    pub(crate) const fn facts(self) -> &'static str {
        match self {
            Self::Iproute2 => "XDP programs, and by whom routes were made",
            Self::Ethtool => {
                "offloads, rings, channels, coalescing, pause frames, drivers, flow rules and receive hashes"
            }
            Self::Nft => "the nft ruleset",
            Self::Tc => "tc filters",
        }
    }

    /// What is lost without it.
    pub(crate) fn lost(self) -> String {
        let lost = match self {
            Self::Iproute2 => {
                "inet6 cannot be measured, factors bound by routes or xdp cannot be set"
            }
            Self::Ethtool => {
                "factors bound by ethtool cannot be set, drop_counters are not read, LRO that the kernel switches off \
                 for forwarding is not switched on again"
            }
            Self::Nft => "factors bound by nft cannot be set",
            Self::Tc => "factors bound by tc cannot be set",
        };
        format!("{lost}, and these facts are not compared: {}", self.facts())
    }
}

/// A program that an experiment needs on its DUT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolNeed {
    /// The program.
    pub tool: Tool,
    /// What for.
    pub what_for: String,
    /// The factor that only variants set which need it; none where the whole experiment does.
    pub factor: Option<String>,
}

/// What is wrong with a host that lacks all programs of some needs, and what to do; none where there are no needs.
pub(crate) fn missing(needs: &[ToolNeed]) -> Option<String> {
    let by_tool = by_tool(needs).into_iter();
    let missing: Vec<String> = by_tool
        .map(|(tool, purposes)| tool.missing_for(&purposes))
        .collect();
    (!missing.is_empty()).then(|| missing.join("; "))
}

/// Of the needs of an experiment, those of a variant that a host which answers so lacks, each with the variant's level. A
/// level that asks for no program needs none.
pub(crate) fn missing_of(
    variant: &Variant,
    needs: &[ToolNeed],
    answers: &Answers,
) -> Vec<ToolNeed> {
    let of_variant = |need: &ToolNeed| {
        let level = variant.levels.get(need.factor.as_ref()?)?;
        let answer = answers.printed.get(&need.tool.probe())?;
        answer.is_none().then(|| ToolNeed {
            what_for: format!("{} at level {:?}", need.what_for, level.to_string()),
            ..need.clone()
        })
    };
    needs.iter().filter_map(of_variant).collect()
}

/// The programs that an experiment needs on its DUT beyond those of every Linux host, one for each purpose. None on other
/// labs than those of Linux hosts.
#[must_use]
pub fn tools_needed(resolved: &Resolved) -> Vec<ToolNeed> {
    let lab = &resolved.lab;
    if lab.kind != LabKind::Ssh(System::Linux) {
        return Vec::new();
    }
    let factors = resolved.factors.iter();
    let needs = factors.filter_map(|factor| {
        Some(ToolNeed {
            tool: of_binding(lab.bindings.get(&factor.name)?)?,
            what_for: format!("factor {:?}", factor.name),
            factor: Some(factor.name.clone()),
        })
    });
    let mut needs: Vec<ToolNeed> = needs.collect();
    let mut add = |tool, what_for: &str| {
        needs.push(ToolNeed {
            tool,
            what_for: what_for.to_owned(),
            factor: None,
        });
    };
    if resolved.families().contains(&AddressFamily::Inet6) {
        add(Tool::Iproute2, "inet6");
    }
    let dut = lab.hosts.as_ref().map(|hosts| &hosts.dut);
    if dut.is_some_and(|dut| !dut.drop_counters.is_empty()) {
        add(Tool::Ethtool, "drop_counters of [dut]");
    }
    needs.sort_by_key(|need| need.tool);
    needs
}

const fn of_binding(binding: &Binding) -> Option<Tool> {
    match binding {
        Binding::Nft(_) => Some(Tool::Nft),
        Binding::Ethtool { .. } => Some(Tool::Ethtool),
        Binding::Tc(_) => Some(Tool::Tc),
        // What reads an XDP program back is its number, which BusyBox does not show.
        Binding::Routes | Binding::Xdp(_) => Some(Tool::Iproute2),
        _ => None,
    }
}

/// What programs are needed for, by their names, each once.
#[must_use]
pub fn by_tool(needs: &[ToolNeed]) -> BTreeMap<Tool, Vec<&str>> {
    let mut purposes: BTreeMap<Tool, Vec<&str>> = BTreeMap::new();
    for need in needs {
        purposes.entry(need.tool).or_default().push(&need.what_for);
    }
    purposes
}

#[cfg(test)]
mod tests {
    use fwdlab_model::Level;

    use super::*;

    #[test]
    fn what_an_experiment_needs_is_named_with_its_purpose() {
        let mut resolved = crate::doctor::control_experiment(
            &fwdlab_model::Lab::netns("here"),
            fwdlab_model::Load::SelfClocked,
            8,
            true,
        );
        let factor = resolved.factors[0].clone();
        for (name, binding) in [
            ("routes", Binding::Routes),
            ("marker", Binding::Kernel(BTreeMap::new())),
        ] {
            let mut factor = factor.clone();
            factor.name = name.to_owned();
            resolved.factors.push(factor);
            resolved.lab.bindings.insert(name.to_owned(), binding);
        }
        // One that no factor of the experiment uses.
        resolved
            .lab
            .bindings
            .insert("tc".to_owned(), Binding::Tc(BTreeMap::new()));
        assert!(tools_needed(&resolved).is_empty());
        resolved.lab.kind = LabKind::Ssh(System::Linux);
        resolved.traffics[0].families = vec![AddressFamily::Inet, AddressFamily::Inet6];
        let needs = tools_needed(&resolved);
        let ruleset = format!("factor {:?}", factor.name);
        let expected = [
            (Tool::Iproute2, vec!["factor \"routes\"", "inet6"]),
            (Tool::Nft, vec![&*ruleset]),
        ];
        assert_eq!(by_tool(&needs), BTreeMap::from(expected));
        assert_eq!(
            missing(&needs).unwrap(),
            format!(
                "iproute2's ip is not installed, but factor \"routes\" and inet6 need it; install iproute2's ip \
                 (apt-get install iproute2; the package ip-full of OpenWrt); nft is not installed, but {ruleset} needs \
                 it; install nft (apt-get install nftables; the package nftables of OpenWrt)"
            )
        );
        assert_eq!(missing(&[]), None);
    }

    #[test]
    fn what_a_variant_lacks_is_named_with_its_levels() {
        let need = |tool, factor: &str| ToolNeed {
            tool,
            what_for: format!("factor {factor:?}"),
            factor: Some(factor.to_owned()),
        };
        let needs = [
            need(Tool::Nft, "filter"),
            need(Tool::Tc, "shaping"),
            need(Tool::Iproute2, "routes"),
        ];
        let levels = [("filter", "on"), ("shaping", ""), ("marker", "a")];
        let levels =
            levels.map(|(factor, level)| (factor.to_owned(), Level::Text(level.to_owned())));
        let lab = fwdlab_model::Lab::netns("here");
        let load = fwdlab_model::Load::SelfClocked;
        let resolved = crate::doctor::control_experiment(&lab, load, 8, true);
        let variant = Variant {
            levels: BTreeMap::from(levels),
            ..resolved.variants[0].clone()
        };
        let mut answers = Answers::of("router", [(Tool::Iproute2.probe(), "iproute2")]);
        // The filter's level asked for nothing.
        answers.printed.insert(Tool::Tc.probe(), None);
        let lacking = missing_of(&variant, &needs, &answers);
        let lacking: Vec<&str> = lacking.iter().map(|need| &*need.what_for).collect();
        assert_eq!(lacking, ["factor \"shaping\" at level \"\""]);
    }

    // BusyBox, networking/ip.c and networking/tc.c: options are not asked for a version.
    #[test]
    fn an_applet_of_busybox_is_none_of_them() {
        testkit::require_tool!("busybox", "ip", "ethtool", "nft", "tc");
        let folder = tempfile::tempdir().unwrap();
        testkit::install_applets(folder.path());
        for tool in Tool::ALL {
            let is_there = |path: std::ffi::OsString| {
                let words = ["-c".to_owned(), tool.probe().join(" ")];
                let mut command = std::process::Command::new("sh");
                command
                    .args(words)
                    .env("PATH", path)
                    .output()
                    .unwrap()
                    .status
                    .success()
            };
            let usual = std::env::var_os("PATH").unwrap();
            assert!(is_there(usual), "{tool:?}");
            assert!(!is_there(folder.path().into()), "{tool:?}");
        }
    }
}
