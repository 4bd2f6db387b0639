//! XDP programs of the owner's, on this machine's kernel: attached by the lab, or by a command of theirs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use aya::Ebpf;
use aya::programs::Xdp;
use fwdlab_lab::{LabError, LabEvent};
use fwdlab_model::binding::OwnXdpProgram;
use fwdlab_model::{
    AddressFamily, Apply, Binding, CommandBinding, DutInterface, EbpfProgram, GlobalValue,
    InvalidReason, XdpMode, XdpProgram,
};

use crate::mechanisms::observe;
use crate::rig::{
    FAMILIES, ebpf_program, evidence_against, experiment, measure, run_in, test_object, upload,
};

const FAMILY: [AddressFamily; 1] = [AddressFamily::Inet];

pub(crate) fn router(program: &str) -> EbpfProgram {
    ebpf_program(test_object("xdp_router.bpf.o"), Some(program))
}

fn native(program: EbpfProgram) -> XdpProgram {
    own(program, XdpMode::Native)
}

pub(crate) const fn own(program: EbpfProgram, mode: XdpMode) -> XdpProgram {
    XdpProgram::Own(OwnXdpProgram {
        program,
        mode,
        interfaces: None,
    })
}

pub(crate) fn xdp<const N: usize>(levels: [(&str, XdpProgram); N]) -> Binding {
    let levels = levels.map(|(level, program)| (level.to_owned(), program));
    Binding::Xdp(levels.into())
}

/// A file of a map's contents.
fn contents(folder: &Path, name: &str, text: &str) -> BTreeMap<String, fwdlab_model::Upload> {
    let path = folder.join(format!("{name}.json"));
    fs::write(&path, text).unwrap();
    BTreeMap::from([(name.to_owned(), upload(path))])
}

#[test]
fn own_xdp_programs_forward_with_what_is_set_in_them_and_what_they_drop_is_counted() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let folder = tempfile::tempdir().unwrap();
    let mut table = "[".to_owned();
    for key in 0..10_000 {
        let separator = if key == 0 { "" } else { "," };
        write!(table, "{separator}{{\"key\":{key},\"value\":{key}}}").unwrap();
    }
    table.push(']');
    let looks_up = EbpfProgram {
        // Keys 0 and 2, 1 and 3.
        globals: [
            ("lookups".to_owned(), GlobalValue::Integer(4)),
            ("expected".to_owned(), GlobalValue::Array(vec![2, 4])),
        ]
        .into(),
        maps: contents(folder.path(), "table", &table),
        ..router("looks_up")
    };
    let by_port = EbpfProgram {
        maps: contents(
            folder.path(),
            "ports",
            r#"[{"key":["0x01",0,0,0],"value":"{dut-out}"},{"key":3,"value":"{dut-out}"}]"#,
        ),
        // The object has room for 2.
        max_entries: [("ports".to_owned(), 4)].into(),
        ..router("by_port")
    };
    let stages = ["plain", "plain"].map(str::to_owned).to_vec();
    let in_stages = EbpfProgram {
        tail_calls: BTreeMap::from([("stages".to_owned(), stages)]),
        ..router("first_stage")
    };
    let levels = [
        ("kernel", XdpProgram::Off),
        ("plain", native(router("plain"))),
        ("looks_up", native(looks_up)),
        ("by_port", native(by_port)),
        ("first_stage", native(in_stages)),
        ("sheds", native(router("sheds"))),
        ("generic", own(router("plain"), XdpMode::Generic)),
        ("loses", own(router("sheds"), XdpMode::Generic)),
    ];
    let names = levels.clone().map(|(name, _)| name);
    let resolved = experiment(&FAMILIES, xdp(levels), &names);
    let (outcome, seen) = observe(&resolved, &["ip", "-d", "link", "show", "dev", "dut-in"]);
    for trial in &outcome.trials {
        assert_eq!(
            evidence_against(trial),
            Vec::<&InvalidReason>::new(),
            "{trial:?}"
        );
        let dropped = trial.dut.drops.get("XDP program");
        let sheds = trial.variant.as_str() == "sheds";
        assert_eq!(
            dropped.is_some_and(|frames| *frames > 0),
            sheds,
            "{trial:?}"
        );
    }
    for conservation in outcome.block.conservation.values() {
        assert_eq!(conservation.unaccounted_frames, 0, "{conservation:?}");
        let lost = conservation.drops.get("lost in an XDP program");
        assert!(lost.is_some_and(|frames| *frames > 0), "{conservation:?}");
    }
    for (variant, link) in &seen {
        let name = match variant.as_str() {
            "kernel" => "",
            "generic" => "plain",
            "loses" => "sheds",
            name => &name.replace('-', "_"),
        };
        let shown = format!(" name {name} ");
        assert_eq!(
            link.contains(&shown),
            variant != "kernel",
            "{variant}: {link}"
        );
        let is_generic = ["generic", "loses"].contains(&variant.as_str());
        assert_eq!(link.contains("xdpgeneric"), is_generic, "{link}");
    }
}

#[test]
fn a_map_is_pinned_while_its_program_is_attached_and_holds_only_that_slice() {
    testkit::require_root!();
    const PIN: &str = "/sys/fs/bpf/fwdlab_test_frames";
    testkit::require_bpf_file_system!();
    let counts = ebpf_program(test_object("xdp_pinned.bpf.o"), None);
    let resolved = experiment(
        &FAMILY,
        xdp([("none", XdpProgram::Off), ("counts", native(counts))]),
        &["none", "counts"],
    );
    let mut seen = Vec::new();
    let outcome = measure(&resolved, &mut |event| {
        if let LabEvent::Slice(slice) = event {
            seen.push((slice.variant.as_str().to_owned(), Path::new(PIN).exists()));
        }
    })
    .unwrap();
    for trial in &outcome.trials {
        assert_eq!(evidence_against(trial), Vec::<&InvalidReason>::new());
    }
    assert_eq!(seen.len(), 4);
    for (variant, is_pinned) in &seen {
        assert_eq!(*is_pinned, variant == "counts", "{seen:?}");
    }
    assert!(!Path::new(PIN).exists());
    let aside = fs::read_dir("/sys/fs/bpf").unwrap();
    let aside = aside.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy()
            .starts_with(&format!("fwdlab-{}-", std::process::id()))
    });
    assert_eq!(aside.count(), 0);

    // What is another's is refused, and stays.
    fs::create_dir(PIN).unwrap();
    let refused = measure(&resolved, &mut |_| ());
    let stays = Path::new(PIN).exists();
    fs::remove_dir(PIN).unwrap();
    let refused = refused.unwrap_err();
    assert!(matches!(refused, LabError::Pinned { .. }), "{refused}");
    assert!(stays);
}

#[test]
fn a_program_that_rewrites_wrongly_is_no_variant_and_the_bytes_are_named() {
    testkit::require_root!();
    let resolved = experiment(
        &FAMILIES,
        xdp([
            ("kernel", XdpProgram::Off),
            ("spoils", native(router("spoils"))),
        ]),
        &["kernel", "spoils"],
    );
    let error = measure(&resolved, &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains("spoils"), "{error}");
    assert!(
        error.contains("expected 3f") && error.contains("40"),
        "{error}"
    );
}

fn command(apply: &[&str], undo: &[&str]) -> Binding {
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    Binding::Command(CommandBinding {
        apply: Apply::ByLevel(BTreeMap::from([
            ("kernel".to_owned(), words(&["true"])),
            ("own".to_owned(), words(apply)),
        ])),
        undo: words(undo),
        check: None,
    })
}

#[test]
fn a_command_may_attach_an_xdp_program_by_itself() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let object = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("bpf/fib_forwarder.bpf.o");
    let object = object.to_str().unwrap();
    let off = ["ip", "link", "set", "dev", "{dut-in}", "xdp", "off"];
    let on = [
        "ip", "link", "set", "dev", "{dut-in}", "xdpdrv", "obj", object, "sec", "xdp",
    ];
    let resolved = experiment(&FAMILIES, command(&on, &off), &["kernel", "own"]);
    let (outcome, seen) = observe(&resolved, &["ip", "-d", "link", "show", "dev", "dut-in"]);
    for trial in &outcome.trials {
        assert_eq!(evidence_against(trial), Vec::<&InvalidReason>::new());
    }
    for (variant, link) in &seen {
        assert_eq!(link.contains(" name forward "), variant == "own", "{link}");
    }
    // The last variant that was proved stands when the generator's cost is measured.
    let costs = outcome.block.generator_cost_ns.values();
    assert_eq!(costs.len(), 2);

    let stays = experiment(&FAMILY, command(&on, &["true"]), &["kernel", "own"]);
    let error = measure(&stays, &mut |_| ()).unwrap_err();
    assert!(matches!(error, LabError::XdpStays { .. }), "{error}");
}

#[test]
fn a_program_is_on_the_ports_that_its_level_names() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let both = XdpProgram::Own(OwnXdpProgram {
        program: router("plain"),
        mode: XdpMode::Native,
        interfaces: Some(vec![DutInterface::DutIn, DutInterface::DutOut]),
    });
    let levels = [
        ("kernel", XdpProgram::Off),
        ("one", native(router("plain"))),
        ("both", both),
    ];
    let resolved = experiment(&FAMILY, xdp(levels), &["kernel", "one", "both"]);
    let (outcome, seen) = observe(&resolved, &["ip", "-d", "link", "show", "dev", "dut-out"]);
    for trial in &outcome.trials {
        assert_eq!(evidence_against(trial), Vec::<&InvalidReason>::new());
    }
    for (variant, link) in &seen {
        assert_eq!(
            link.contains("prog/xdp"),
            variant == "both",
            "{variant}: {link}"
        );
    }
}

#[test]
fn a_program_for_frames_in_several_pieces_leaves_a_port_that_has_such() {
    testkit::require_root!();
    testkit::require_tool!("ip");
    let namespace = fwdlab_sys::NetworkNamespace::create("pieces").unwrap();
    let veth = "ip link add jumbo mtu 9000 type veth peer name other mtu 9000";
    run_in(&namespace, &veth.split(' ').collect::<Vec<_>>());
    let leaves = || {
        let mut object = Ebpf::load_file(test_object("xdp_router.bpf.o")).unwrap();
        let program: &mut Xdp = object.program_mut("by_port").unwrap().try_into().unwrap();
        program.load().unwrap();
        let mut program =
            fwdlab_traffic::XdpProgram::of(object, "by_port".to_owned(), XdpMode::Native, true);
        program.attach("jumbo").unwrap();
        program.detach().unwrap();
        assert!(!program.is_attached());
    };
    namespace.run(leaves).unwrap();
}
