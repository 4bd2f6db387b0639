//! The way to the DUT in its namespace: what mechanisms ask and do, carried out in this process.

use std::path::Path;

use fwdlab_model::{CommandBinding, Forwarder, Level, Placement};
use fwdlab_sys::Descendants;
use fwdlab_traffic::TrafficError;

use super::dut::{OWN_XDP, Standing};
use super::dut_settings::DutSettings;
use super::forwarder::RunningForwarder;
use crate::addresses::{SINK_MAC, TESTER_OUT_MAC};
use crate::counters::Drops;
use crate::journal::{Journal, Started, Undo};
use crate::mechanism::nft::Generation;
use crate::mechanism::object::OwnObject;
use crate::mechanism::program::{Attachment, Hook, Program};
use crate::mechanism::question::{Answers, Look, Question};
use crate::mechanism::step::{Action, owned};
use crate::mechanism::transport::{Noticed, Transport, Watch, Watched};
use crate::mechanism::{ethtool, sysctl, sysfs, xdp};
use crate::netlink::RouteMonitor;
use crate::topology::{DUT_IN, DUT_OUT, receiving};
use crate::{Asks, LabError, Moved, Topology, kept_log, program};

/// The file that moves an interface's polling into a thread.
const THREADED: &str = "/threaded";

/// The file that names the CPUs on which the kernel takes on the frames of a queue.
const RPS_CPUS: &str = "/rps_cpus";

/// The way to the DUT: files, netlink and eBPF of this process, and programs in the namespace.
pub(super) struct InProcess<'a> {
    pub(super) standing: &'a mut Standing,
    pub(super) topology: &'a mut Topology,
}

impl Transport for InProcess<'_> {
    fn ask(&mut self, questions: &[Question], _: Asks) -> Result<Answers, LabError> {
        let mut answers = Answers {
            host: self.topology.dut().name().to_owned(),
            ..Answers::default()
        };
        for question in questions {
            match question {
                Question::Needed(look) => {
                    let answer = self.look(look)?.trim().to_owned();
                    answers.printed.insert(look.words(), Some(answer));
                }
                Question::Maybe(look) => {
                    let answer = match self.look(look) {
                        Ok(answer) => Some(answer.trim().to_owned()),
                        Err(error) => {
                            let why = match look {
                                Look::File(path) => self.unreadable(path)?,
                                _ => error.to_string(),
                            };
                            answers.reasons.insert(look.words(), why);
                            None
                        }
                    };
                    answers.printed.insert(look.words(), answer);
                }
                Question::Complaint(errand) => {
                    let run = || program::run(&errand.words, &errand.input);
                    let complaint = match self.topology.dut().run(run)? {
                        Err(LabError::Command { stderr, .. }) => Some(stderr),
                        done => done.map(|_| None)?,
                    };
                    answers.complaints.insert(errand.clone(), complaint);
                }
                Question::Attachable(attachment) => {
                    let why = self.not_attachable(attachment);
                    let why = why.map(|why| (attachment.hook, why));
                    answers.not_attachable.extend(why);
                }
                Question::Attached(hook) => {
                    if self.standing.attached.contains_key(hook)
                        && let Some(loaded) = self.standing.programs.of(*hook)
                    {
                        let number = self.topology.dut().run(move || loaded.number())??;
                        answers
                            .attached
                            .extend(number.map(|number| (*hook, number)));
                    }
                }
                Question::ImageWriter => {
                    let why = "no image can be written to a namespace";
                    answers.no_image_writer = Some(why.to_owned());
                }
            }
        }
        Ok(answers)
    }

    fn carry_out(&mut self, journal: &mut Journal, actions: Vec<Action>) -> Result<bool, LabError> {
        let is_forward = |action: &Action| matches!(action, Action::Forward { .. });
        let (forward, others): (Vec<_>, Vec<_>) = actions.into_iter().partition(is_forward);
        // When one has ended, what it has changed is put back, which must undo nothing of this variant. The next one starts
        // last, so that this variant is what is put back behind it.
        if !forward.is_empty() {
            self.end_forwarder(journal)?;
        }
        for action in others.into_iter().chain(forward) {
            match action {
                Action::Run(errand) => {
                    let run = || program::run(&errand.words, &errand.input);
                    self.topology.dut().run(run)??;
                }
                Action::Write { path, value } => self.write(&path, &value)?,
                Action::Routes {
                    family,
                    change,
                    prefixes,
                } => {
                    // Its notifications would slow the change, and tell nothing.
                    self.standing.routes = None;
                    let prefixes = prefixes.into_iter();
                    self.topology.change_dut_routes(family, change, prefixes)?;
                }
                Action::Feature {
                    interface,
                    feature,
                    is_on,
                } => self.switch(&interface, &feature, is_on)?,
                Action::Attach(attachment) => self.attach(journal, attachment)?,
                Action::Forward { level, forwarder } => {
                    if let Some(forwarder) = forwarder {
                        self.start_forwarder(journal, level, &forwarder)?;
                    }
                }
                Action::Own {
                    factor,
                    level,
                    programs,
                } => self.run_own(journal, factor, level, &programs)?,
            }
        }
        Ok(false)
    }

    fn drops(&mut self) -> Result<Drops, LabError> {
        let mut drops = self.standing.programs.drops()?;
        let frames = self.standing.own_xdp_drops + self.dropped_since_attached()?;
        drops.insert(OWN_XDP.to_owned(), frames);
        Ok(drops)
    }

    fn watch(&mut self, watch: &Watch) -> Result<(), LabError> {
        match (watch.of, &mut self.standing.generation) {
            (Watched::Generation, Some(generation)) => generation.note()?,
            (Watched::Generation, none) => *none = Some(Generation::open(self.topology.dut())?),
            (Watched::Routes, _) => {
                let monitor = RouteMonitor::open(self.topology.dut(), self.standing.family)?;
                self.standing.routes = Some(monitor);
            }
        }
        Ok(())
    }

    fn noticed(&mut self, watch: &Watch) -> Result<Noticed, LabError> {
        let change = match watch.of {
            Watched::Generation => match &mut self.standing.generation {
                Some(generation) => {
                    let (noted, seen) = (generation.noted(), generation.ask()?);
                    (noted != seen).then(|| (noted.to_string(), seen.to_string()))
                }
                None => return Ok(Noticed::NotWatched),
            },
            Watched::Routes => match &mut self.standing.routes {
                Some(monitor) => {
                    let has_changed = monitor.saw_a_change()?;
                    has_changed.then(|| ("unchanged".to_owned(), "changed".to_owned()))
                }
                None => return Ok(Noticed::NotWatched),
            },
        };
        Ok(match change {
            Some((asked, seen)) => Noticed::Change(Moved::of(&watch.setting, asked, seen)),
            None => Noticed::NoChange,
        })
    }
}

impl InProcess<'_> {
    fn look(&mut self, look: &Look) -> Result<String, LabError> {
        match look {
            Look::Command(words) => self.topology.dut().run(|| program::run(words, ""))?,
            Look::OwnProgram(words) => self.topology.dut().run(|| program::run_bound(words))?,
            Look::File(path) => self.topology.read_dut_file(Path::new(path)),
            Look::Features(interface) => {
                let features = || fwdlab_sys::features(interface);
                Ok(ethtool::listed(&self.topology.dut().run(features)??))
            }
            Look::Link(interface) => {
                let number = self.topology.dut_xdp_program(interface)?;
                Ok(xdp::shown(number))
            }
            Look::Routes(family) => Ok(self.topology.count_dut_routes(*family)?.to_string()),
        }
    }

    fn unreadable(&self, path: &str) -> Result<String, LabError> {
        let why = sysctl::unreadable_in(self.topology.dut(), Path::new(path))?;
        Ok(why.unwrap_or_else(|| format!("this kernel has no readable {path}")))
    }

    fn not_attachable(&mut self, attachment: &Attachment) -> Option<String> {
        if attachment.hook == Hook::Xdp && !self.standing.loads_programs {
            let why = "this process may load no XDP program; run fwdlab as root (sudo)";
            return Some(why.to_owned());
        }
        let program = attachment.program.as_ref()?;
        match self.standing.load(program) {
            Ok(_) => None,
            Err(LabError::Traffic(error @ TrafficError::Verifier { .. })) => {
                let why = error.to_string();
                let log = error.into_verifier_log()?;
                Some(kept_log::kept(why, &kept_log::of_verifier(&log), &log))
            }
            Err(error) => Some(error.to_string()),
        }
    }

    /// Why this lab cannot have something done; none where it can. `has_forwarder` says whether the variant has a forwarder
    /// in user space.
    pub(super) fn impossible(
        &mut self,
        action: &Action,
        has_forwarder: bool,
    ) -> Result<Option<String>, LabError> {
        match action {
            Action::Write { path, value } => {
                let is_threaded = path.ends_with(THREADED);
                let cpu = self.standing.placement.forwarding_cpu();
                let has_kernel_poll = match is_threaded {
                    true => value != "0",
                    false => path.ends_with(RPS_CPUS) && sysfs::has_cpu(value, cpu),
                };
                if has_forwarder && has_kernel_poll {
                    return Ok(Some(format!(
                        "a forwarder in user space has CPU {cpu} to itself, where {path} = {value} has the kernel poll"
                    )));
                }
                if is_threaded && value != "1" && !has_forwarder && self.forwards_in_thread(path) {
                    return Ok(Some(format!(
                        "with a CPU of its own the DUT forwards in a thread, which {path} = {value} would end"
                    )));
                }
                if fwdlab_sys::is_root() || !path.starts_with("/sys/") {
                    return Ok(None);
                }
                // Some files are root's even where the interface is not, and so are the kernel's threads.
                let file = Path::new(path);
                let stands = self.topology.read_dut_file(file)?;
                let written = self.topology.write_dut_file(file, stands.trim());
                Ok((written.is_err() || is_threaded)
                    .then(|| format!("{path} is for root to set; run fwdlab as root (sudo)")))
            }
            Action::Feature {
                interface,
                feature,
                is_on: false,
            } if ethtool::kernel_features(feature).contains(&"rx-gro")
                && receiving(self.standing.direction).contains(&interface.as_str()) =>
            {
                Ok(Some(format!(
                    "a veth polls only with {feature}, and takes no generated frames without, so it stays on for \
                     {interface}"
                )))
            }
            _ => Ok(None),
        }
    }

    /// Whether the lab itself has an interface forward in a thread, by the path of its file.
    fn forwards_in_thread(&self, path: &str) -> bool {
        let receiving = receiving(self.standing.direction);
        let is_of = |name: &&str| path == format!("/sys/class/net/{name}{THREADED}");
        self.standing.placement.dut_cpu.is_some() && receiving.iter().any(is_of)
    }

    fn write(&mut self, path: &str, value: &str) -> Result<(), LabError> {
        let written = self.topology.write_dut_file(Path::new(path), value);
        if !path.starts_with("/sys/") {
            return written;
        }
        written.map_err(|error| match error {
            LabError::File { path, source, .. } => LabError::SysfsValue {
                path,
                value: value.to_owned(),
                source,
            },
            error => error,
        })?;
        if path.ends_with(THREADED) && value == "1" {
            // Left to the scheduler, the threads would forward where they happen to wake up.
            let cpu = self.standing.placement.forwarding_cpu();
            self.topology.pin_polling_threads(cpu)?;
        }
        Ok(())
    }

    fn switch(&mut self, interface: &str, feature: &str, is_on: bool) -> Result<(), LabError> {
        let names = ethtool::kernel_features(feature);
        self.topology.dut().run(|| {
            let features = fwdlab_sys::features(interface)?;
            let otherwise = features.iter().filter(|feature| {
                let is_named = names.contains(&feature.name.as_str());
                is_named && feature.is_changeable && feature.is_on != is_on
            });
            let otherwise: Vec<_> = otherwise.map(|feature| feature.name.as_str()).collect();
            if otherwise.is_empty() {
                return Ok(());
            }
            fwdlab_sys::set_features(interface, &otherwise, is_on)
        })??;
        Ok(())
    }

    fn attach(&mut self, journal: &mut Journal, attachment: Attachment) -> Result<(), LabError> {
        let hook = attachment.hook;
        if attachment.is_done(self.standing.attached.get(&hook)) {
            return Ok(());
        }
        self.detach(hook)?;
        if let Some(program) = attachment.program {
            self.announce_pins(journal, &program)?;
            if hook == Hook::Xdp && program.object().is_some() {
                self.standing.xdp_drops_before = Some(self.xdp_drops()?);
            }
            if program.drops_are_uncounted() {
                self.standing.uncounted.insert(hook);
            }
            let loaded = self.standing.load(&program)?;
            for port in &attachment.ports {
                let attach = || loaded.attach_to_stay(port);
                self.topology.dut().run(attach)??;
            }
            self.standing.attached.insert(hook, program);
        }
        Ok(())
    }

    /// Maps that are pinned outlive this process.
    ///
    /// # Errors
    /// `Pinned` where another program's map is pinned so, which stays.
    fn announce_pins(&mut self, journal: &mut Journal, program: &Program) -> Result<(), LabError> {
        let pins = program.object().into_iter().flat_map(OwnObject::pins);
        for pin in pins {
            if !self.standing.pins.contains(&pin) {
                if Path::new(&pin).exists() {
                    return Err(LabError::Pinned { pin: pin.into() });
                }
                self.standing.pins.insert(pin.clone());
                let undo = Undo::Run {
                    namespace: self.topology.dut().name().to_owned(),
                    arguments: owned(&["rm", "-f", &pin]),
                    started: None,
                };
                journal.announce(format!("the pinned map {pin}"), undo)?;
            }
        }
        Ok(())
    }

    /// Frames that the owner's XDP program has dropped since it was attached; the driver counts them.
    fn dropped_since_attached(&mut self) -> Result<u64, LabError> {
        match self.standing.xdp_drops_before {
            Some(before) => Ok(self.xdp_drops()?.saturating_sub(before)),
            None => Ok(0),
        }
    }

    /// Frames that XDP programs have dropped on the DUT's ports so far.
    ///
    /// # Source
    /// Linux: `veth_rq_stats_desc` in `drivers/net/veth.c`.
    fn xdp_drops(&self) -> Result<u64, LabError> {
        let counters = || [DUT_IN, DUT_OUT].map(fwdlab_sys::statistics);
        let mut frames = 0;
        for counters in self.topology.dut().run(counters)? {
            let counters = counters?;
            let of_xdp = counters
                .iter()
                .filter(|(name, _)| name.ends_with("xdp_drops"));
            frames += of_xdp.map(|(_, frames)| frames).sum::<u64>();
        }
        Ok(frames)
    }

    pub(super) fn detach(&mut self, hook: Hook) -> Result<(), LabError> {
        if hook == Hook::Xdp {
            self.standing.own_xdp_drops += self.dropped_since_attached()?;
            self.standing.xdp_drops_before = None;
        }
        let attached = self.standing.attached.remove(&hook);
        if let Some(loaded) = attached.and_then(|_| self.standing.programs.of(hook)) {
            self.topology.dut().run(|| loaded.detach())??;
        }
        Ok(())
    }

    /// Starts a forwarder in user space where none runs.
    fn start_forwarder(
        &mut self,
        journal: &mut Journal,
        level: String,
        forwarder: &Forwarder,
    ) -> Result<(), LabError> {
        // A polling thread would take the CPU from it.
        self.topology.forward_in_place(self.standing.direction)?;
        let placement = &self.standing.placement;
        let cpu = placement.forwarding_cpu();
        let forwarder = forwarder.with(&places(placement));
        let before = DutSettings::read(self.topology)?;
        self.standing.before_forwarder = Some((level.clone(), before));
        let started = RunningForwarder::start(
            self.topology.dut(),
            journal,
            (level.as_str(), &forwarder),
            cpu,
        );
        self.standing.forwarder = Some(started?);
        Ok(())
    }

    /// Ends the forwarder in user space that runs, and puts back what it has changed of the DUT.
    ///
    /// # Errors
    /// `Forwarder` where something of that cannot be put back.
    pub(super) fn end_forwarder(&mut self, journal: &mut Journal) -> Result<(), LabError> {
        let Some((level, before)) = self.standing.before_forwarder.take() else {
            return Ok(());
        };
        if let Some(forwarder) = self.standing.forwarder.take() {
            forwarder.end(self.topology.dut(), journal)?;
        }
        let left = before.put_back(self.topology).map_err(|error| {
            let what = format!(
                "it left the DUT so that fwdlab cannot put back what it has changed ({error}); have its `stop` put it back"
            );
            LabError::Forwarder {
                level: level.clone(),
                what,
            }
        })?;
        if !left.is_empty() {
            let what = format!(
                "it has changed {}, which fwdlab cannot put back; have its `stop` put it back",
                left.join(", ")
            );
            return Err(LabError::Forwarder { level, what });
        }
        let cpu = self.standing.placement.forwarding_cpu();
        self.topology.forward_on(cpu, self.standing.direction)
    }

    fn run_own(
        &mut self,
        journal: &mut Journal,
        factor: String,
        level: Level,
        programs: &CommandBinding,
    ) -> Result<(), LabError> {
        if self.standing.has_set(&factor, &level) {
            return Ok(());
        }
        if let Some((_, change)) = self.standing.own.remove(&factor) {
            journal.undo(&change)?;
        }
        let started = Descendants::marked(&journal.mark());
        let change = journal.announce(
            format!("factor {factor:?} at level {:?}", level.to_string()),
            Undo::Run {
                namespace: self.topology.dut().name().to_owned(),
                arguments: programs.undo(&level),
                started: Some(Started::of(&started)),
            },
        )?;
        let apply = programs.apply(&level);
        self.standing.own.insert(factor, (level, change));
        let run = || program::run_first_of(&started, &apply);
        self.topology.dut().run(run)??;
        Ok(())
    }
}

/// What placeholders in a forwarder's words stand for.
fn places(placement: &Placement) -> [(&'static str, String); 6] {
    [
        ("{dut-in}", DUT_IN.to_owned()),
        ("{dut-out}", DUT_OUT.to_owned()),
        // The stations that the kernel's routes lead to.
        ("{dut-in-peer}", TESTER_OUT_MAC.to_string()),
        ("{dut-out-peer}", SINK_MAC.to_string()),
        ("{dut-cpu}", placement.forwarding_cpu().to_string()),
        ("{load-cpu}", placement.load_cpu.to_string()),
    ]
}
