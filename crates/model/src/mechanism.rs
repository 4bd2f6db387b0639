//! A `[bind]` of the lab file: by which mechanism a factor is set on the DUT.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::DeValue;

use crate::diagnostic::{Span, nearest, suggest};
use crate::document::{Reading, Table, Value};
use crate::knob::Knob;
use crate::placeholder;
use crate::resolved::{
    Apply, CommandBinding, DutInterface, LEVEL, LabKind, PacketFilter, XdpProgram,
};

/// The mechanisms; a binding has one of them.
pub(crate) const MECHANISMS: &[&str] = &[
    "sysctl", "nft", "pf", "ipfw", "ipf", "xdp", "ethtool", "sysfs", "module", "routes", "knob",
    "loader", "cmdline", "kernel", "configs", "image", "command",
];

/// What the levels of a mechanism are made of, and so how a binding and its levels are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Levels {
    /// Values of a name, which is all of the binding.
    Values,
    /// Values of a name that stands under this key of the binding's table.
    ValuesOf(&'static str),
    /// On or off, of a name that stands under this key of the binding's table.
    SwitchOf(&'static str),
    /// A file or a folder for each level.
    Files,
    /// A word of the mechanism for each level.
    Words,
    /// Numbers.
    Numbers,
    /// A program for each level.
    Programs,
}

/// What a mechanism sets, in a few words, and what its levels are made of.
pub(crate) fn levels_of(mechanism: &str) -> (&'static str, Levels) {
    match mechanism {
        "sysctl" => ("a sysctl", Levels::Values),
        "nft" => ("rulesets of nftables", Levels::Files),
        "pf" => ("rulesets of FreeBSD's pf", Levels::Files),
        "ipfw" => ("rulesets of FreeBSD's ipfw", Levels::Files),
        "ipf" => ("rulesets of FreeBSD's IP Filter", Levels::Files),
        "xdp" => ("the XDP program: off or fib", Levels::Words),
        "ethtool" => ("a feature of the interfaces", Levels::SwitchOf("feature")),
        "sysfs" => (
            "a file of the interfaces in sysfs",
            Levels::ValuesOf("file"),
        ),
        "module" => ("a parameter of a kernel module", Levels::Values),
        "routes" => ("the number of routes", Levels::Numbers),
        "knob" => ("a knob of the reference router", Levels::Values),
        "loader" => ("a tunable of FreeBSD's loader", Levels::Values),
        "cmdline" => ("parameters of the kernel's command line", Levels::Words),
        "kernel" => ("the kernel", Levels::Words),
        "configs" => ("folders of files for the DUT", Levels::Files),
        "image" => ("images of nanobsd", Levels::Files),
        "command" => (
            "a setting made by commands, each in quotes",
            Levels::Programs,
        ),
        _ => ("the setting", Levels::Values),
    }
}
pub(crate) const BINDING_KEYS: &[&str] = &[
    "sysctl", "nft", "pf", "ipfw", "ipf", "xdp", "ethtool", "sysfs", "module", "routes", "knob",
    "loader", "cmdline", "kernel", "configs", "image", "command", "values",
];
pub(crate) const ETHTOOL_KEYS: &[&str] = &["feature", "interfaces"];
pub(crate) const SYSFS_KEYS: &[&str] = &["file", "interfaces"];
pub(crate) const COMMAND_KEYS: &[&str] = &["do", "undo", "check"];

pub(crate) const XDP_PROGRAMS: &[(&str, XdpProgram)] =
    &[("off", XdpProgram::Off), ("fib", XdpProgram::Fib)];
pub(crate) const PACKET_FILTERS: &[(&str, PacketFilter)] = &[
    ("pf", PacketFilter::Pf),
    ("ipfw", PacketFilter::Ipfw),
    ("ipf", PacketFilter::Ipf),
];
pub(crate) const INTERFACES: &[(&str, DutInterface)] = &[
    ("dut-in", DutInterface::DutIn),
    ("dut-out", DutInterface::DutOut),
];
/// How a factor is set, before its rulesets are read.
#[derive(Debug)]
pub(crate) enum Mechanism {
    /// A key, and the value of each level where the levels are not the values.
    Sysctl(Spanned<String>, Option<BTreeMap<String, String>>),
    /// For each level the ruleset's file, relative to the lab file; empty is no ruleset.
    Nft(BTreeMap<String, Spanned<String>>),
    /// For each level the file of a packet filter of FreeBSD, as for nftables.
    Ruleset(PacketFilter, BTreeMap<String, Spanned<String>>),
    /// For each level the program.
    Xdp(BTreeMap<String, XdpProgram>),
    /// A feature of interfaces.
    Ethtool(String, Vec<DutInterface>),
    /// A file below interfaces' directories, and the value of each level as for a sysctl.
    Sysfs(String, Vec<DutInterface>, Option<BTreeMap<String, String>>),
    /// A module and a parameter of it, and the value of each level as for a sysctl.
    Module(String, String, Option<BTreeMap<String, String>>),
    /// The level is a number of routes.
    Routes,
    /// The user's own programs.
    Command(CommandBinding),
    /// A knob of the reference router.
    Knob(Knob),
    /// A tunable, and the value of each level as for a sysctl.
    Loader(String, Option<BTreeMap<String, String>>),
    /// For each level the parameters that are added to the kernel's command line; may be none.
    CommandLine(BTreeMap<String, String>),
    /// For each level the kernel or boot environment.
    Kernel(BTreeMap<String, String>),
    /// For each level a folder of files that are copied to the DUT, relative to the lab file.
    Configs(BTreeMap<String, Spanned<String>>),
    /// For each level the file of an image, relative to the lab file; empty is the owner's system.
    Image(BTreeMap<String, Spanned<String>>),
}

/// The mechanisms that a kind of lab has; all where the kind is not known.
fn mechanisms(kind: Option<LabKind>) -> &'static [&'static str] {
    match kind {
        None => MECHANISMS,
        Some(LabKind::Netns) => &[
            "sysctl", "nft", "xdp", "ethtool", "sysfs", "routes", "command",
        ],
        Some(LabKind::Router) => &["routes", "knob"],
        Some(LabKind::FreebsdSsh) => &[
            "sysctl", "pf", "ipfw", "ipf", "loader", "kernel", "configs", "image", "command",
        ],
        Some(LabKind::LinuxSsh) => &[
            "sysctl", "nft", "xdp", "ethtool", "sysfs", "module", "routes", "cmdline", "kernel",
            "command",
        ],
    }
}

impl Mechanism {
    /// Reads `[bind."factor"]` of a lab; none where that is an error.
    ///
    /// Shape: without a kind the lab's is an error already, and no mechanism is held to it.
    pub(crate) fn read(
        reading: &mut Reading<'_>,
        kind: Option<LabKind>,
        factor: &str,
        value: &Value<'_>,
    ) -> Option<Self> {
        let name = format!("[bind.{factor:?}]");
        let table = reading.table(value, &name, BINDING_KEYS)?;
        let given: Vec<&str> = MECHANISMS
            .iter()
            .copied()
            .filter(|key| table.value(key).is_some())
            .collect();
        if given.is_empty() && MECHANISMS.iter().any(|key| table.is_misspelt(key)) {
            return None;
        }
        let &[key] = given.as_slice() else {
            let message = if given.is_empty() {
                format!("{name} has no mechanism")
            } else {
                format!("{name} has more than one mechanism ({})", given.join(", "))
            };
            reading
                .error(table.span, message)
                .with_help(format!("give one of: {}", mechanisms(kind).join(", ")));
            return None;
        };
        let what = table.what(key);
        let value = table.value(key)?;
        if let Some(kind) = kind.filter(|_| !mechanisms(kind).contains(&key)) {
            reading
                .error(
                    value.span(),
                    format!("a lab of kind {kind} sets nothing by `{key}`"),
                )
                .with_help(format!(
                    "give one of: {}",
                    mechanisms(Some(kind)).join(", ")
                ));
            return None;
        }
        let values = values(reading, &table, key);
        match key {
            "sysctl" => {
                let sysctl = reading.line(value, &what)?;
                let is_name = match kind {
                    None => true,
                    Some(LabKind::FreebsdSsh) => {
                        is_freebsd_name(reading, sysctl.span(), sysctl.get_ref(), "sysctl")
                    }
                    Some(kind) => is_sysctl(reading, sysctl.span(), sysctl.get_ref(), kind),
                };
                is_name.then_some(Self::Sysctl(sysctl, values))
            }
            "loader" => {
                let tunable = reading.line(value, &what)?;
                is_freebsd_name(reading, tunable.span(), tunable.get_ref(), "loader tunable")
                    .then_some(Self::Loader(tunable.into_inner(), values))
            }
            "module" => {
                let parameter = reading.line(value, &what)?;
                let (module, parameter) = module_parameter(reading, &parameter)?;
                Some(Self::Module(module, parameter, values))
            }
            "cmdline" => Some(Self::CommandLine(levels(
                reading,
                value,
                &what,
                boot_parameters,
            ))),
            "kernel" => Some(Self::Kernel(levels(reading, value, &what, kernel))),
            "knob" => {
                let knobs = Knob::ALL.map(|knob| (knob.name(), knob));
                reading.word(value, &what, &knobs).map(Self::Knob)
            }
            "nft" => Some(Self::Nft(levels(reading, value, &what, file_or_none))),
            "pf" | "ipfw" | "ipf" => {
                let (_, filter) = PACKET_FILTERS.iter().find(|(name, _)| *name == key)?;
                let files = levels(reading, value, &what, file_or_none);
                Some(Self::Ruleset(*filter, files))
            }
            "configs" => Some(Self::Configs(levels(
                reading,
                value,
                &what,
                |reading, value, what| reading.line(value, what),
            ))),
            "image" => Some(Self::Image(levels(reading, value, &what, file_or_none))),
            "xdp" => Some(Self::Xdp(levels(
                reading,
                value,
                &what,
                |reading, value, what| reading.word(value, what, XDP_PROGRAMS),
            ))),
            "ethtool" => ethtool(reading, value, &what),
            "sysfs" => {
                let (file, interfaces) = sysfs(reading, value, &what)?;
                Some(Self::Sysfs(file, interfaces, values))
            }
            "routes" => {
                if value.get_ref().as_bool() == Some(true) {
                    return Some(Self::Routes);
                }
                reading
                    .expected(value, &what, "true")
                    .with_help("the level is the number of routes");
                None
            }
            _ => command(reading, value, &what).map(Self::Command),
        }
    }
}

/// The file of a ruleset or an image; empty text is none, so this is not the text of one line.
fn file_or_none(
    reading: &mut Reading<'_>,
    value: &Value<'_>,
    what: &str,
) -> Option<Spanned<String>> {
    match value.get_ref().as_str() {
        Some("") => Some(Spanned::new(value.span(), String::new())),
        _ => reading.line(value, what),
    }
}

/// A table from levels to what each of them means to a mechanism.
fn levels<T>(
    reading: &mut Reading<'_>,
    value: &Value<'_>,
    what: &str,
    mut read: impl FnMut(&mut Reading<'_>, &Value<'_>, &str) -> Option<T>,
) -> BTreeMap<String, T> {
    let mut levels = BTreeMap::new();
    for (level, value) in reading.entries(value, what) {
        let level = *level.get_ref();
        if let Some(meaning) = read(reading, value, &format!("level {level:?}")) {
            levels.insert(level.to_owned(), meaning);
        }
    }
    levels
}

/// The `values` beside a mechanism that writes values.
fn values(
    reading: &mut Reading<'_>,
    table: &Table<'_>,
    mechanism: &str,
) -> Option<BTreeMap<String, String>> {
    let value = table.value("values")?;
    if !matches!(mechanism, "sysctl" | "sysfs" | "module" | "loader") {
        reading
            .error(value.span(), format!("`{mechanism}` takes no `values`"))
            .with_help(
                "`values` go with sysctl, sysfs, module and loader, whose levels may be words",
            );
        return None;
    }
    let what = table.what("values");
    Some(levels(reading, value, &what, |reading, value, what| {
        let written = match value.get_ref() {
            DeValue::Integer(_) => reading
                .integer(value, what, i64::MIN..=i64::MAX)?
                .to_string(),
            DeValue::String(_) => reading.line(value, what)?.into_inner(),
            _ => {
                reading.expected(value, what, "one line of text or a whole number");
                return None;
            }
        };
        Some(written)
    }))
}

fn ethtool(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<Mechanism> {
    let table = reading.table(value, what, ETHTOOL_KEYS)?;
    let interfaces = interfaces(reading, &table);
    let feature = table.required_line(reading, "feature")?;
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let name = feature.get_ref();
    if name.starts_with('-') || !name.bytes().all(is_plain) {
        reading
            .error(
                feature.span(),
                format!("{name:?} is no feature of an interface"),
            )
            .with_help(
                "features are named as `ethtool -k` lists them, for example \"rx-gro-list\"",
            );
        return None;
    }
    Some(Mechanism::Ethtool(feature.into_inner(), interfaces?))
}

fn sysfs(
    reading: &mut Reading<'_>,
    value: &Value<'_>,
    what: &str,
) -> Option<(String, Vec<DutInterface>)> {
    let table = reading.table(value, what, SYSFS_KEYS)?;
    let interfaces = interfaces(reading, &table);
    let file = table.required_line(reading, "file")?;
    if !file.get_ref().split('/').all(is_path_part) {
        reading
            .error(
                file.span(),
                format!("{:?} is not below an interface's directory", file.get_ref()),
            )
            .with_help("give a path like \"threaded\" or \"queues/rx-0/rps_cpus\", without `..`");
        return None;
    }
    Some((file.into_inner(), interfaces?))
}

fn is_path_part(part: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !part.is_empty() && !part.starts_with('.') && part.bytes().all(is_plain)
}

/// Some of the DUT's interfaces; all where none are named.
fn interfaces(reading: &mut Reading<'_>, table: &Table<'_>) -> Option<Vec<DutInterface>> {
    let Some(value) = table.value("interfaces") else {
        return Some(INTERFACES.iter().map(|(_, interface)| *interface).collect());
    };
    let what = table.what("interfaces");
    let items = reading.list(value, &what)?;
    if items.is_empty() {
        reading
            .error(value.span(), format!("{what} is empty"))
            .with_help("leave it out to set both of the DUT's interfaces");
        return None;
    }
    let mut interfaces = Vec::new();
    for item in items {
        let Some(interface) = reading.word(item, &format!("a word of {what}"), INTERFACES) else {
            continue;
        };
        if interfaces.contains(&interface) {
            reading.error(item.span(), format!("{what} names one twice"));
        } else {
            interfaces.push(interface);
        }
    }
    Some(interfaces)
}

fn command(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<CommandBinding> {
    let table = reading.table(value, what, COMMAND_KEYS)?;
    let apply = table
        .required(reading, "do")
        .and_then(|value| apply(reading, value, &table.what("do")));
    let undo = table
        .required(reading, "undo")
        .and_then(|value| program(reading, value, &table.what("undo")));
    let check = table
        .value("check")
        .and_then(|value| program(reading, value, &table.what("check")));
    Some(CommandBinding {
        apply: apply?,
        undo: undo?,
        check,
    })
}

/// The program that sets a level: one for all of them, or a table with one for each.
fn apply(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<Apply> {
    if value.get_ref().is_table() {
        let programs = levels(reading, value, what, program);
        return Some(Apply::ByLevel(programs));
    }
    let words = program(reading, value, what)?;
    if !words.iter().any(|word| word.contains(LEVEL)) {
        reading
            .error(
                value.span(),
                format!("{what} does the same for every level"),
            )
            .with_help(format!("`{LEVEL}` in an argument stands for the level"))
            .with_help("or write a table with a list for each level");
    }
    Some(Apply::Template(words))
}

/// A program on the DUT and its arguments, in which placeholders may stand.
fn program(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<Vec<String>> {
    let arguments = arguments(reading, value, what)?;
    let items = value.get_ref().as_array().into_iter().flatten();
    for (argument, item) in arguments.iter().zip(items) {
        for place in placeholder::unknown(argument, placeholder::OF_COMMANDS) {
            let written = &argument[place];
            let diagnostic = reading.error(item.span(), format!("unknown placeholder {written}"));
            placeholder::explain(diagnostic, written, placeholder::OF_COMMANDS);
        }
    }
    Some(arguments)
}

/// A program and its arguments; no shell sees them.
pub(crate) fn arguments(
    reading: &mut Reading<'_>,
    value: &Value<'_>,
    what: &str,
) -> Option<Vec<String>> {
    let Some(items) = value.get_ref().as_array() else {
        reading
            .expected(value, what, "a list of a program and its arguments")
            .with_help("no shell takes it apart: write [\"ip\", \"link\", \"show\"]");
        return None;
    };
    let mut arguments = Vec::new();
    for item in items {
        let text = item.get_ref().as_str().filter(|text| !text.contains('\0'));
        let Some(text) = text else {
            reading.expected(item, &format!("an argument of {what}"), "text");
            return None;
        };
        arguments.push(text.to_owned());
    }
    let program = arguments.first().map_or("", String::as_str);
    if program.is_empty() || program.contains(LEVEL) {
        reading
            .error(value.span(), format!("{what} names no program"))
            .with_help(format!("the program comes first, without {LEVEL} in it"));
        return None;
    }
    Some(arguments)
}

/// Whether a key names a file under `/proc/sys` and can name nothing else: any of a whole host, those of the
/// network alone of a namespace, which has its own of them.
fn is_sysctl(reading: &mut Reading<'_>, span: Span, key: &str, kind: LabKind) -> bool {
    let parts: Vec<&str> = key.split('.').collect();
    let wrong = if parts.len() < 2 {
        Some("keys have at least two parts, with a dot in between".to_owned())
    } else if parts[0] != "net" && !kind.is_remote() {
        Some("only keys under `net.` belong to the DUT's own namespace".to_owned())
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

fn is_sysctl_part(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    placeholder::OF_INTERFACES.contains(&part) || (!part.is_empty() && part.bytes().all(plain))
}

/// `module.parameter`, both as they stand below `/sys/module`.
fn module_parameter(reading: &mut Reading<'_>, name: &Spanned<String>) -> Option<(String, String)> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let is_name = |part: &str| !part.is_empty() && part.bytes().all(is_plain);
    match name.get_ref().split_once('.') {
        Some((module, parameter)) if is_name(module) && is_name(parameter) => {
            Some((module.replace('-', "_"), parameter.to_owned()))
        }
        _ => {
            let message = format!("{:?} is no parameter of a module", name.get_ref());
            reading.error(name.span(), message).with_help(
                "write module.parameter, as `modinfo -p MODULE` lists them: \"ixgbe.max_vfs\"",
            );
            None
        }
    }
}

/// Parameters of a kernel's command line, with blanks in between: nothing that a boot loader takes for its own.
fn boot_parameters(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<String> {
    // Empty text is no parameter more, so this is not the text of one line.
    if value.get_ref().as_str() == Some("") {
        return Some(String::new());
    }
    let line = reading.line(value, what)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-=,:/@+*^~[] ".contains(&byte);
    if line.get_ref().bytes().all(is_plain) {
        return Some(line.into_inner());
    }
    reading
        .error(
            line.span(),
            format!("{:?} are no parameters of a kernel", line.get_ref()),
        )
        .with_help(
            "parameters are made of letters, digits and `._-=,:/@+*^~[]`, with blanks in between: \
             \"mitigations=off nosmt\"",
        );
    None
}

/// The name of a kernel or boot environment: no path, and nothing that a program takes for an option.
fn kernel(reading: &mut Reading<'_>, value: &Value<'_>, what: &str) -> Option<String> {
    let name = reading.line(value, what)?;
    // Releases of kernels that were built by hand often end in a plus.
    if !name.get_ref().starts_with('-') && is_path_part(&name.get_ref().replace('+', "")) {
        return Some(name.into_inner());
    }
    reading
        .error(
            name.span(),
            format!("{:?} is no name of a kernel", name.get_ref()),
        )
        .with_help(
            "names are made of letters, digits, `.`, `_`, `+` and `-`, the first neither `.` nor `-`",
        );
    None
}

/// Whether a name is one that FreeBSD's kernel may have, `{0,1}` for several devices in it included.
fn is_freebsd_name(reading: &mut Reading<'_>, span: Span, name: &str, what: &str) -> bool {
    let is_plain = |part: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-%".contains(&byte);
        !part.is_empty() && !part.starts_with('-') && part.bytes().all(plain)
    };
    let is_part = |part: &str| match in_braces(part) {
        Some(devices) => devices.split(',').all(is_plain),
        None => is_plain(part),
    };
    let wrong = if let Some(part) = name.split('.').find(|part| !is_part(part)) {
        Some(format!(
            "{part:?} is not made of letters, digits, `_`, `-` and `%`, nor a list of such in braces"
        ))
    } else if name.split('.').filter_map(in_braces).count() > 1 {
        Some("one pair of braces is all that a name may have".to_owned())
    } else if placeholder::unknown(name, &[]).next().is_some() {
        Some("the DUT's interfaces have no placeholders in a name of FreeBSD".to_owned())
    } else {
        None
    };
    if let Some(wrong) = &wrong {
        reading
            .error(span, format!("{name:?} is not a {what} of FreeBSD"))
            .with_help(wrong)
            .with_help("write \"dev.ix.{0,1}.iflib.tx_abdicate\" for the devices 0 and 1");
    }
    wrong.is_none()
}

/// What stands between braces around a whole part of a name.
fn in_braces(part: &str) -> Option<&str> {
    part.strip_prefix('{')?.strip_suffix('}')
}

/// The names that a sysctl's or a tunable's name with several devices in braces (`dev.ix.{0,1}.x`) stands
/// for; itself where it has none.
#[must_use]
pub fn devices(name: &str) -> Vec<String> {
    let parts: Vec<&str> = name.split('.').collect();
    let Some(place) = parts.iter().position(|part| in_braces(part).is_some()) else {
        return vec![name.to_owned()];
    };
    let devices = in_braces(parts[place]).unwrap_or_default().split(',');
    let named = |device| {
        let mut parts = parts.clone();
        parts[place] = device;
        parts.join(".")
    };
    devices.map(named).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::diagnostic::{Diagnostics, Source};
    use crate::lab_file::LabFile;

    use super::{BINDING_KEYS, LabKind, MECHANISMS, devices, mechanisms};

    fn errors(binding: &str) -> String {
        errors_in("netns", binding)
    }

    fn errors_in(kind: &str, binding: &str) -> String {
        let source = Arc::new(Source {
            path: "x.toml".into(),
            text: format!("kind = {kind:?}\n[bind.f]\n{binding}\n"),
            is_quotable: true,
        });
        let mut diagnostics = Diagnostics::default();
        LabFile::parse(&source, &mut diagnostics);
        diagnostics.render(false)
    }

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

    #[test]
    fn a_file_cannot_leave_the_directory_of_its_interface() {
        for (file, allowed) in [
            ("threaded", true),
            ("queues/rx-0/rps_cpus", true),
            ("..", false),
            ("../eth0/threaded", false),
            ("queues/../../eth0/threaded", false),
            ("/sys/class/net/eth0/threaded", false),
            ("queues//rps_cpus", false),
            ("queues/", false),
            (".hidden", false),
            ("a b", false),
        ] {
            let errors = errors(&format!("sysfs = {{ file = {file:?} }}"));
            assert_eq!(errors.is_empty(), allowed, "{file}\n{errors}");
        }
    }

    #[test]
    fn names_of_freebsd_are_names_and_nothing_else() {
        for (name, allowed) in [
            ("net.inet.ip.redirect", true),
            ("dev.ix.{0,1}.iflib.tx_reclaim_thresh", true),
            ("dev.ix.{0}.iflib.tx_abdicate", true),
            ("dev.ix.0.%driver", true),
            ("if_ix_load", true),
            ("", false),
            ("dev..x", false),
            ("dev.ix.{}.x", false),
            ("dev.ix.{0,}.x", false),
            ("dev.ix.{0,1}.queue.{0,1}", false),
            ("dev.ix{0,1}.x", false),
            ("dev.ix.{dut-in}.x", false),
            ("dev.ix.0.x=1", false),
            ("dev.ix.0.x;reboot", false),
            ("dev.ix.$(reboot).x", false),
            ("-a", false),
            ("a b", false),
        ] {
            for mechanism in ["sysctl", "loader"] {
                let errors = errors_in("freebsd-ssh", &format!("{mechanism} = {name:?}"));
                assert_eq!(errors.is_empty(), allowed, "{mechanism} {name}\n{errors}");
            }
        }
    }

    #[test]
    fn a_kernel_is_no_path_and_no_option() {
        for (name, allowed) in [
            ("n277567D33658", true),
            ("15.0-RELEASE_p1", true),
            ("", false),
            ("-r", false),
            ("..", false),
            ("/boot/kernel", false),
            ("a b", false),
        ] {
            let errors = errors_in("freebsd-ssh", &format!("kernel = {{ 0 = {name:?} }}"));
            assert_eq!(errors.is_empty(), allowed, "{name}\n{errors}");
        }
    }

    #[test]
    fn every_mechanism_is_some_labs() {
        let kinds = [
            LabKind::Netns,
            LabKind::Router,
            LabKind::FreebsdSsh,
            LabKind::LinuxSsh,
        ];
        for mechanism in MECHANISMS {
            let mut kinds = kinds.into_iter();
            assert!(
                kinds.any(|kind| mechanisms(Some(kind)).contains(mechanism)),
                "{mechanism}"
            );
        }
        let mut keys = MECHANISMS.to_vec();
        keys.push("values");
        assert_eq!(BINDING_KEYS, keys);
    }

    #[test]
    fn a_name_in_braces_stands_for_several() {
        assert_eq!(
            devices("dev.ix.{0,1}.iflib.tx_abdicate"),
            ["dev.ix.0.iflib.tx_abdicate", "dev.ix.1.iflib.tx_abdicate"]
        );
        assert_eq!(devices("net.inet.ip.redirect"), ["net.inet.ip.redirect"]);
    }

    #[test]
    fn a_feature_cannot_be_an_option() {
        for (feature, allowed) in [
            ("gro", true),
            ("rx-udp-gro-forwarding", true),
            ("--help", false),
            ("gro off", false),
            ("GRO", false),
        ] {
            let errors = errors(&format!("ethtool = {{ feature = {feature:?} }}"));
            assert_eq!(errors.is_empty(), allowed, "{feature}\n{errors}");
        }
    }
}
