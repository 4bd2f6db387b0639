//! Opening a results directory and writing into it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fwdlab_model::record::fates;
use fwdlab_model::{
    BlockRecord, Environment, Plan, ProfileStacks, Record, Resolved, SCHEMA_VERSION, SessionRecord,
    SliceRecord, TrialRecord, nearest,
};
use fwdlab_sys::durable::{
    Journal, entries, hold_folder, own_folder, remove_unfinished, sync_folder, write_atomically,
    write_synced,
};
use fwdlab_sys::{check_inside, create_folder};

use crate::chain::{ChainWriter, FinishedFile};
use crate::error::{ArchiveError, ArchiveWarning, Place};
use crate::find::not_results;
use crate::load::{
    Attempt, Finished, Head, Loaded, PlanFile, ResolvedFile, files_of_attempts, json, parse_json,
    read_json,
};
use crate::lock::{DirectoryLock, create_and_hold_folder, holder};
use crate::name::{checked_name, first_free, safe_name};
use crate::pps::{format_observations, published_trials};
use crate::slices::{format_slices, parse_slices};
use crate::{fit, layout};

/// What a new directory is created from; a continued one keeps what it has.
#[derive(Clone, Copy, Debug)]
pub struct NewRun<'a> {
    /// What is measured.
    pub resolved: &'a Resolved,
    /// In what order.
    pub plan: &'a Plan,
    /// The experiment file, byte for byte.
    pub experiment_source: &'a [u8],
    /// Kernel release of the DUT, as `uname -r` prints it; the first half of the default label.
    pub kernel: &'a str,
    /// Now, UTC, in a form that sorts (`20261121T084253Z`); the second half of the default label.
    pub started: &'a str,
}

/// Which directory is wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice<'a> {
    /// This one.
    pub label: Option<&'a str>,
    /// One that does not exist yet, instead of the newest unfinished one.
    pub new: bool,
}

/// A results directory held by this process for writing.
#[derive(Debug)]
pub struct Results {
    loaded: Loaded,
    is_continued: bool,
    journal: Journal,
    /// None of a directory that an earlier version has started.
    chain: Option<ChainWriter>,
    _lock: DirectoryLock,
}

impl Results {
    /// Opens the directory that a run of this experiment measures into: `<root>/<name>/<label>`.
    ///
    /// Without a label the newest unfinished directory with the experiment's hash is continued,
    /// and a new one created where there is none. What a continued directory was started with
    /// stands: use [`Loaded::resolved`] (its seed may be another, drawn one) and [`Loaded::plan`].
    ///
    /// # Errors
    /// [`ArchiveError::Locked`] where a run that is alive holds the directory,
    /// [`ArchiveError::Finished`], [`ArchiveError::OtherExperiment`], [`ArchiveError::LabelTaken`]
    /// and [`ArchiveError::BadName`] where the label does not serve; what reading and writing can
    /// run into.
    pub fn open_or_create(
        root: &Path,
        run: &NewRun<'_>,
        choice: &Choice<'_>,
    ) -> Result<Self, ArchiveError> {
        if let Some(label) = choice.label {
            checked_name("--label", label)?;
        }
        let folder = root.join(safe_name(&run.resolved.name));
        let _held = create_and_hold_folder(&folder)?;
        remove_abandoned(&folder)?;

        let hash = run.resolved.hash();
        match choice.label {
            Some(label) => {
                let dir = folder.join(label);
                if !dir.exists() {
                    create(&dir, run, &hash)
                } else if choice.new {
                    Err(ArchiveError::LabelTaken { dir })
                } else {
                    Self::continue_directory(&dir, &hash)
                }
            }
            None => {
                let mut warnings = Vec::new();
                let unfinished = if choice.new {
                    None
                } else {
                    newest_unfinished(&folder, &hash, &mut warnings)?
                };
                let mut results = match unfinished {
                    Some(dir) => Self::continue_directory(&dir, &hash)?,
                    None => create(&free_directory(&folder, run), run, &hash)?,
                };
                results.loaded.warnings.append(&mut warnings);
                Ok(results)
            }
        }
    }

    fn continue_directory(dir: &Path, hash: &str) -> Result<Self, ArchiveError> {
        let head = Head::read(dir)?;
        let refuse_finished = || {
            if is_finished(dir) {
                return Err(ArchiveError::Finished {
                    dir: dir.to_owned(),
                });
            }
            Ok(())
        };
        refuse_finished()?;
        if head.hash != hash {
            return Err(ArchiveError::OtherExperiment {
                dir: dir.to_owned(),
                found: head.hash,
                asked: hash.to_owned(),
            });
        }
        let lock = DirectoryLock::acquire(dir)?;
        // It may have been finished while this process came to the lock.
        refuse_finished()?;

        for folder in ["", layout::SESSIONS, layout::BLOCKS, layout::DERIVED] {
            // A copy of the directory may have come without those that were empty.
            remove_unfinished(&own_folder(dir, folder)?)?;
        }
        let (loaded, whole_bytes) = Loaded::read(dir)?;
        if loaded.resolved.hash() != hash {
            return Err(ArchiveError::damaged(
                Place::file(&dir.join(layout::RESOLVED)),
                "the experiment in it does not have the hash beside it",
            ));
        }
        let is_chained = head.chain || dir.join(layout::CHAIN).exists();
        let results = Self {
            is_continued: true,
            ..Self::new(loaded, whole_bytes, is_chained, lock)?
        };
        if is_chained {
            remove_unrecorded(&results.loaded)?;
        }
        results.write_observations()?;
        Ok(results)
    }

    /// A new directory that was read, opened for writing; `trials.jsonl` counts up to `whole_bytes`.
    fn new(
        mut loaded: Loaded,
        whole_bytes: u64,
        is_chained: bool,
        lock: DirectoryLock,
    ) -> Result<Self, ArchiveError> {
        let chain = is_chained
            .then(|| ChainWriter::open(&mut loaded))
            .transpose()?;
        let journal = Journal::open(&loaded.dir.join(layout::TRIALS), whole_bytes)?;
        Ok(Self {
            loaded,
            is_continued: false,
            journal,
            chain,
            _lock: lock,
        })
    }

    /// Reads a directory, finished or not; one that is being written as far as it is written.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`] and [`ArchiveError::NewerSchema`] with file and line;
    /// [`ArchiveError::Io`].
    pub fn load(dir: &Path) -> Result<Loaded, ArchiveError> {
        Loaded::read(dir).map(|(loaded, _)| loaded)
    }

    /// The directory that a user means: a path, `<name>/<label>`, or `<name>` or its folder for the newest.
    ///
    /// The newest is that of the runs that are finished or are being measured; where there are none, of those that
    /// hold a measurement; and where there are none, of all.
    ///
    /// # Errors
    /// [`ArchiveError::NotFound`] with what there is, [`ArchiveError::NotResults`] for a folder of results directories.
    pub fn find(root: &Path, name: &str) -> Result<PathBuf, ArchiveError> {
        if let Some(dir) = [PathBuf::from(name), root.join(name)]
            .into_iter()
            .find(|dir| is_results(dir))
        {
            return Ok(dir);
        }
        for folder in [root.join(name), PathBuf::from(name)] {
            if let Some(dir) = newest(&folder)? {
                return Ok(dir);
            }
        }
        if Path::new(name).is_dir() {
            return Err(not_results(Path::new(name)));
        }
        let present: Vec<String> = directories(root)?
            .iter()
            .map(|dir| dir.strip_prefix(root).unwrap_or(dir).display().to_string())
            .collect();
        Err(ArchiveError::NotFound {
            name: name.to_owned(),
            root: root.to_owned(),
            nearest: meant(name, &present),
            present,
        })
    }

    /// The newest runs of experiments like the wanted, the newest first, at most `most`.
    ///
    /// Directories that do not read are passed over: they are no evidence.
    ///
    /// # Errors
    /// [`ArchiveError::Io`] where the folders cannot be listed.
    pub fn earlier(
        root: &Path,
        is_wanted: impl Fn(&Resolved) -> bool,
        most: usize,
    ) -> Result<Vec<Loaded>, ArchiveError> {
        let mut heads: Vec<(String, PathBuf)> = directories(root)?
            .into_iter()
            .filter_map(|dir| {
                let file: ResolvedFile = read_json(&dir, &dir.join(layout::RESOLVED)).ok()?;
                is_wanted(&file.experiment).then_some((file.started, dir))
            })
            .collect();
        heads.sort();
        let newest = heads.iter().rev();
        Ok(newest
            .filter_map(|(_, dir)| Self::load(dir).ok())
            .take(most)
            .collect())
    }

    /// Removes a directory that this process has made and in which nothing was measured; whether it was such.
    ///
    /// # Errors
    /// [`ArchiveError::Io`]; what is left of it then is removed when the next run of the experiment opens.
    pub fn remove_if_empty(&self) -> Result<bool, ArchiveError> {
        if self.is_continued || !self.loaded.attempts.is_empty() {
            return Ok(false);
        }
        let dir = self.dir();
        let folder = dir.parent().expect("results lie in a folder");
        let label = dir.file_name().expect("results have a label");
        let _held = hold_folder(folder)?;
        let abandoned = folder.join(format!("{}{}", layout::NEW, label.display()));
        fs::rename(dir, &abandoned).map_err(ArchiveError::io(dir, "rename the directory"))?;
        fs::remove_dir_all(&abandoned)
            .map_err(ArchiveError::io(&abandoned, "remove the folder"))?;
        sync_folder(folder)?;
        // The experiment's folder goes as well, unless it holds other runs.
        let _ = fs::remove_dir(folder);
        Ok(true)
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.loaded.dir
    }

    /// Whether it was there before.
    #[must_use]
    pub const fn is_continued(&self) -> bool {
        self.is_continued
    }

    /// Everything in it so far.
    #[must_use]
    pub const fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// The number of the session that would begin now.
    #[must_use]
    pub fn next_session(&self) -> u32 {
        self.last_session().map_or(1, |session| session.session + 1)
    }

    fn last_session(&self) -> Option<&SessionRecord> {
        self.loaded.sessions.last()
    }

    /// Refuses an environment whose blocks could not stand beside those that are there.
    ///
    /// # Errors
    /// [`ArchiveError::EnvironmentChanged`].
    pub fn check_session(&self, environment: &Environment) -> Result<(), ArchiveError> {
        let Some(last) = self.last_session() else {
            return Ok(());
        };
        match environment.difference(&last.environment) {
            Some(difference) => Err(ArchiveError::EnvironmentChanged {
                dir: self.dir().to_owned(),
                session: last.session,
                difference,
            }),
            None => Ok(()),
        }
    }

    /// Records the session to which the next blocks belong.
    ///
    /// # Errors
    /// [`ArchiveError::EnvironmentChanged`], [`ArchiveError::SessionOutOfTurn`]; what writing can
    /// run into.
    pub fn begin_session(&mut self, session: SessionRecord) -> Result<(), ArchiveError> {
        self.check_session(&session.environment)?;
        if session.session != self.next_session() {
            return Err(ArchiveError::SessionOutOfTurn {
                dir: self.dir().to_owned(),
                session: session.session,
                last: self.next_session() - 1,
            });
        }
        let path = layout::session(self.dir(), session.session);
        let bytes = json(&session);
        write_atomically(&path, &bytes)?;
        if let Some(chain) = &mut self.chain {
            chain.begin_session(session.session, &bytes);
        }
        self.loaded.sessions.push(session);
        Ok(())
    }

    /// Records a block that was measured to its end; it is durable when this returns.
    ///
    /// The slices and the profiles come first, then the block's line of the chain, then the trials and the block's end
    /// mark in one piece, then the `.pps` files. A crash before the end mark leaves nothing that counts, and opening
    /// cuts the chain's line: it is never computed from files that are read back, which would vouch for whatever became
    /// of them meanwhile. A crash after the end mark leaves `.pps` files to be written again, which opening does.
    ///
    /// # Errors
    /// [`ArchiveError::BadOutcome`] where the outcome is not what the plan asked for or holds a
    /// number that cannot be written, [`ArchiveError::DiskFull`]; the directory can be continued
    /// after each of them.
    pub fn append_block(
        &mut self,
        trials: &[TrialRecord],
        block: &BlockRecord,
        slices: &[SliceRecord],
        profiles: &[ProfileStacks],
    ) -> Result<(), ArchiveError> {
        let records: Vec<Record> = trials
            .iter()
            .cloned()
            .map(Record::Trial)
            .chain([Record::Block(block.clone())])
            .collect();
        let written = self
            .check_outcome(trials, block, slices)
            .and_then(|()| Ok((format_lines(&records)?, format_readable(slices)?)));
        let (lines, table) = written.map_err(|what| ArchiveError::BadOutcome {
            dir: self.dir().to_owned(),
            block: block.block,
            attempt: block.attempt,
            what,
        })?;

        let slices_path = layout::slices(self.dir(), block.block, block.attempt);
        write_atomically(&slices_path, table.as_bytes())?;
        let mut files = vec![(slices_path, table.as_bytes())];
        if !profiles.is_empty() {
            own_folder(self.dir(), layout::PROFILES)?;
        }
        for ProfileStacks {
            variant,
            stratum,
            folded,
        } in profiles
        {
            let (block, attempt) = (block.block, block.attempt);
            let path = layout::profile(self.dir(), block, attempt, variant, *stratum);
            write_atomically(&path, folded.as_bytes())?;
            files.push((path, folded.as_bytes()));
        }
        self.record(block, &lines, &files)?;

        self.loaded.records.extend(records);
        let fate = fates(&self.loaded.records)
            .pop()
            .expect("the block's record is the last");
        self.loaded.attempts.push(Attempt {
            record: block.clone(),
            fate,
            trials: trials.to_vec(),
            slices: slices.to_vec(),
            profiles: profiles.to_vec(),
        });
        self.write_observations()
    }

    /// Appends a block's line of the chain, then its records.
    fn record(
        &mut self,
        block: &BlockRecord,
        lines: &[u8],
        files: &[(PathBuf, &[u8])],
    ) -> Result<(), ArchiveError> {
        let Some(chain) = &mut self.chain else {
            return Ok(self.journal.append(lines)?);
        };
        let pending = chain.append(block, lines, files)?;
        match self.journal.append(lines) {
            Ok(()) => chain.commit(pending),
            Err(error) => {
                chain.take_back(&pending);
                return Err(error.into());
            }
        }
        Ok(())
    }

    fn check_outcome(
        &self,
        trials: &[TrialRecord],
        block: &BlockRecord,
        slices: &[SliceRecord],
    ) -> Result<(), String> {
        let planned = fit::planned(&self.loaded.plan, block.block)?;
        fit::check_trials(planned, trials)?;
        let valid = trials.iter().all(|trial| trial.invalid.is_empty());
        planned.check_slices(slices, valid)?;
        if let Some(stranger) = trials.iter().find(|trial| !trial.belongs_to(block)) {
            return Err(format!(
                "a trial of session {}, block {}, attempt {} is among its trials",
                stranger.session, stranger.block, stranger.attempt
            ));
        }
        if self.last_session().map(|session| session.session) != Some(block.session) {
            return Err(format!("session {} is not the current one", block.session));
        }
        let is_repeated = self.loaded.attempts.iter().any(|attempt| {
            (attempt.record.block, attempt.record.attempt) == (block.block, block.attempt)
        });
        if is_repeated {
            return Err("it was recorded before".into());
        }
        Ok(())
    }

    fn write_observations(&self) -> Result<(), ArchiveError> {
        for (path, trials) in published_trials(&self.loaded) {
            let text = format_observations(trials.iter().map(|trial| trial.observation_pps));
            write_atomically(&path, text.as_bytes())?;
        }
        Ok(())
    }

    /// Marks the run as finished, at `finished` (UTC), and lets go of the directory.
    ///
    /// To be called last, when the report has been written: from here on only `derived/` and
    /// README.md can be made again.
    ///
    /// # Errors
    /// [`ArchiveError::BlockMissing`] where a block was never measured; what writing can run into.
    pub fn finish(self, finished: &str) -> Result<Finished, ArchiveError> {
        let loaded = &self.loaded;
        let is_measured = |number| {
            let mut attempts = loaded.attempts.iter();
            attempts.any(|attempt| attempt.record.block == number)
        };
        if let Some(block) = loaded.plan.blocks.iter().find(|b| !is_measured(b.number)) {
            return Err(ArchiveError::BlockMissing {
                dir: self.dir().to_owned(),
                block: block.number,
            });
        }
        self.give_up(finished)
    }

    /// Marks the run as finished as [`Self::finish`] does, with blocks that were never measured among those given up:
    /// it was of no use to go on.
    ///
    /// # Errors
    /// What writing can run into.
    pub fn give_up(self, finished: &str) -> Result<Finished, ArchiveError> {
        let loaded = &self.loaded;
        let finished = Finished {
            schema: SCHEMA_VERSION,
            finished: finished.to_owned(),
            accepted_blocks: loaded
                .accepted()
                .iter()
                .map(|attempt| attempt.record.block)
                .collect(),
            given_up_blocks: loaded.blocks_without_accepted(),
        };
        let bytes = match &self.chain {
            Some(chain) => {
                let sessions = loaded.sessions.iter().map(|session| session.session);
                let (last_link, files) = chain.end(sessions)?;
                let file = FinishedFile {
                    finished: finished.clone(),
                    last_link,
                    files,
                };
                file.sealed().into_bytes()
            }
            None => json(&finished),
        };
        write_atomically(&self.dir().join(layout::FINISHED), &bytes)?;
        // One that stays holds nobody up, and the run is finished without it, too.
        let _ = fs::remove_file(self.dir().join(layout::LOCK));
        Ok(finished)
    }
}

/// Writes one of the files that follow from the records: `<dir>/derived/<name>`.
///
/// # Errors
/// [`ArchiveError::BadName`] where the name is no plain file name; [`ArchiveError::NoReport`] and
/// [`ArchiveError::Refused`].
pub fn write_derived(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
    checked_name("derived file", name)?;
    own_folder(dir, layout::DERIVED)
        .and_then(|folder| write_atomically(&folder.join(name), bytes))
        .map_err(|error| ArchiveError::from(error).of_report(dir))
}

/// Writes the README.md at the top of a results directory, and removes what reports that were killed have left.
///
/// # Errors
/// [`ArchiveError::NoReport`].
pub fn write_readme(dir: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    let derived = dir.join(layout::DERIVED);
    if check_inside(&derived, dir).is_ok() {
        remove_unfinished(&derived)?;
    }
    remove_unfinished(dir)
        .and_then(|()| write_atomically(&dir.join(layout::README), bytes))
        .map_err(|error| ArchiveError::from(error).of_report(dir))
}

/// How much of what a reader asks for a directory can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    /// Nothing was measured.
    Nothing,
    /// A run that was interrupted.
    Part,
    /// Finished, or being measured.
    Whole,
}

impl Worth {
    fn of(dir: &Path) -> Self {
        let has_trials = || fs::metadata(dir.join(layout::TRIALS)).is_ok_and(|file| file.len() > 0);
        if is_finished(dir) || holder(dir).is_some() {
            Self::Whole
        } else if has_trials() {
            Self::Part
        } else {
            Self::Nothing
        }
    }
}

fn is_finished(dir: &Path) -> bool {
    dir.join(layout::FINISHED).exists()
}

/// Records as lines, each proved to read back: a number that JSON cannot hold would make the
/// directory unreadable.
fn format_lines(records: &[Record]) -> Result<Vec<u8>, String> {
    let mut lines = Vec::new();
    for record in records {
        let start = lines.len();
        serde_json::to_writer(&mut lines, record).expect("records are plain data");
        let read: Result<Record, _> = parse_json(&Place::file(Path::new("")), &lines[start..]);
        if read.ok().as_ref() != Some(record) {
            let line = String::from_utf8_lossy(&lines[start..]);
            return Err(format!("a record does not read back as written ({line})"));
        }
        lines.push(b'\n');
    }
    Ok(lines)
}

/// Slices as text that is proved to read back.
fn format_readable(slices: &[SliceRecord]) -> Result<String, String> {
    let text = format_slices(slices);
    match parse_slices(Path::new(""), &text) {
        Ok(read) if read == slices => Ok(text),
        _ => Err("a slice does not read back as written".into()),
    }
}

/// Creates a directory under a name of its own, and renames it when it is complete.
fn create(dir: &Path, run: &NewRun<'_>, hash: &str) -> Result<Results, ArchiveError> {
    let folder = dir.parent().expect("results lie in a folder");
    let label = dir.file_name().expect("results have a label");
    let unfinished = folder.join(format!("{}{}", layout::NEW, label.display()));
    let created = fill(&unfinished, run, hash).and_then(|lock| {
        fs::rename(&unfinished, dir).map_err(ArchiveError::io(dir, "rename the new directory"))?;
        sync_folder(folder)?;
        Ok(lock)
    });
    let lock = created.inspect_err(|_| {
        // The error says what matters; what stays behind is removed at the next opening.
        let _ = fs::remove_dir_all(&unfinished);
    })?;
    let (loaded, whole_bytes) = Loaded::read(dir)?;
    Results::new(loaded, whole_bytes, true, lock)
}

fn fill(dir: &Path, run: &NewRun<'_>, hash: &str) -> Result<DirectoryLock, ArchiveError> {
    for folder in ["", layout::SESSIONS, layout::BLOCKS, layout::DERIVED] {
        let folder = dir.join(folder);
        create_folder(&folder).map_err(ArchiveError::io(&folder, "create the folder"))?;
    }
    let resolved = ResolvedFile {
        schema: SCHEMA_VERSION,
        hash: hash.to_owned(),
        started: run.started.to_owned(),
        kernel: run.kernel.to_owned(),
        chain: true,
        experiment: run.resolved.clone(),
    };
    let plan = PlanFile {
        schema: SCHEMA_VERSION,
        plan: run.plan.clone(),
    };
    write_synced(&dir.join(layout::EXPERIMENT), run.experiment_source)?;
    write_synced(&dir.join(layout::RESOLVED), &json(&resolved))?;
    write_synced(&dir.join(layout::PLAN), &json(&plan))?;
    write_synced(&dir.join(layout::TRIALS), b"")?;
    write_synced(&dir.join(layout::CHAIN), b"")?;
    let lock = DirectoryLock::acquire(dir)?;
    sync_folder(dir)?;
    Ok(lock)
}

/// Removes the slices and stacks of attempts that no record is of: their process was killed before it wrote any, as the
/// chain proves.
fn remove_unrecorded(loaded: &Loaded) -> Result<(), ArchiveError> {
    let attempt = |record: &Record| match record {
        Record::Trial(trial) => (trial.block, trial.attempt),
        Record::Block(block) => (block.block, block.attempt),
    };
    let recorded: BTreeSet<(u32, u32)> = loaded.records.iter().map(attempt).collect();
    for path in files_of_attempts(&loaded.dir, |attempt| !recorded.contains(attempt))? {
        fs::remove_file(&path).map_err(ArchiveError::io(&path, "remove the file"))?;
    }
    Ok(())
}

/// Removes directories whose creation was cut short. The folder is held, so nobody is at them.
fn remove_abandoned(folder: &Path) -> Result<(), ArchiveError> {
    for path in entries(folder)? {
        let is_abandoned = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(layout::NEW));
        if is_abandoned {
            fs::remove_dir_all(&path).map_err(ArchiveError::io(&path, "remove the folder"))?;
        }
    }
    Ok(())
}

fn is_results(dir: &Path) -> bool {
    dir.join(layout::RESOLVED).is_file()
}

/// Every results directory: `<root>/<name>/<label>`.
fn directories(root: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    let mut directories = Vec::new();
    for folder in visible_entries(root)? {
        let inside = visible_entries(&folder)?.into_iter();
        directories.extend(inside.filter(|dir| is_results(dir)));
    }
    Ok(directories)
}

fn visible_entries(folder: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    let mut paths = if folder.is_dir() {
        entries(folder)?
    } else {
        vec![]
    };
    paths.retain(|path| {
        path.file_name()
            .is_some_and(|name| !name.to_string_lossy().starts_with('.'))
    });
    Ok(paths)
}

/// The newest run in a folder of runs of one experiment, as [`Results::find`] says.
fn newest(folder: &Path) -> Result<Option<PathBuf>, ArchiveError> {
    let runs: Vec<(PathBuf, Head)> = visible_entries(folder)?
        .into_iter()
        .filter_map(|dir| {
            let head = Head::read(&dir).ok()?;
            Some((dir, head))
        })
        .collect();
    if runs
        .iter()
        .any(|(_, head)| head.experiment != runs[0].1.experiment)
    {
        return Ok(None);
    }
    let newest = runs
        .into_iter()
        .map(|(dir, head)| (Worth::of(&dir), head.started, dir))
        .max();
    Ok(newest.map(|(_, _, dir)| dir))
}

/// The experiment or the run that was probably meant, a slip away from what was written or longer than it.
fn meant(written: &str, runs: &[String]) -> Option<String> {
    let experiments = runs.iter().filter_map(|run| Some(run.split_once('/')?.0));
    let names: Vec<&str> = experiments.chain(runs.iter().map(String::as_str)).collect();
    let longer = || names.iter().copied().find(|name| name.starts_with(written));
    let nearest = nearest(written, names.iter().copied()).or_else(longer);
    nearest.map(str::to_owned)
}

fn newest_unfinished(
    folder: &Path,
    hash: &str,
    warnings: &mut Vec<ArchiveWarning>,
) -> Result<Option<PathBuf>, ArchiveError> {
    let mut newest = None;
    for dir in visible_entries(folder)? {
        if !dir.join(layout::RESOLVED).exists() || is_finished(&dir) {
            continue;
        }
        match Head::read(&dir) {
            Ok(head) if head.hash == hash => newest = newest.max(Some((head.started, dir))),
            Ok(_) => {}
            Err(error) => warnings.push(ArchiveWarning::PassedOver {
                dir,
                what: error.to_string(),
            }),
        }
    }
    Ok(newest.map(|(_, dir)| dir))
}

/// The default name, or the first of those numbered from 2 that is free.
fn free_directory(folder: &Path, run: &NewRun<'_>) -> PathBuf {
    let label = format!("{}-{}", safe_name(run.kernel), safe_name(run.started));
    let numbered = |number| folder.join(format!("{label}-{number}"));
    first_free(folder.join(&label), numbered, |dir| !dir.exists())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::Command;

    use fwdlab_model::VariantName;
    use fwdlab_model::record::Fate;
    use proptest::prelude::*;

    use super::*;
    use crate::sample;

    fn open(root: &Path, choice: &Choice<'_>) -> Result<Results, ArchiveError> {
        let (resolved, plan) = (sample::resolved(), sample::plan());
        Results::open_or_create(root, &sample::new_run(&resolved, &plan), choice)
    }

    fn with_label(label: &str) -> Choice<'_> {
        Choice {
            label: Some(label),
            new: false,
        }
    }

    const NEW: Choice<'static> = Choice {
        label: None,
        new: true,
    };

    /// Every whole attempt of the sample run: block, and whether it was valid.
    const SCRIPT: [(u32, bool); 5] = [(1, true), (2, false), (2, true), (3, true), (4, true)];

    /// Does what is left of the script, in a session of its own.
    fn go_on(results: &mut Results, attempts: usize) {
        let session = results.next_session();
        results.begin_session(sample::session(session)).unwrap();
        for (block, valid) in SCRIPT
            .into_iter()
            .take(attempts)
            .skip(results.loaded().attempts.len())
        {
            append(results, block, session, valid).unwrap();
        }
    }

    fn append(
        results: &mut Results,
        block: u32,
        session: u32,
        valid: bool,
    ) -> Result<(), ArchiveError> {
        let records = results.loaded().records.iter();
        let last_attempt = records
            .map(|record| match record {
                Record::Trial(trial) => (trial.block, trial.attempt),
                Record::Block(block) => (block.block, block.attempt),
            })
            .filter(|(number, _)| *number == block)
            .map(|(_, attempt)| attempt)
            .max();
        let attempt = last_attempt.unwrap_or(0) + 1;
        let outcome = sample::outcome(&sample::plan(), block, attempt, session, valid);
        results.append_block(
            &outcome.trials,
            &outcome.block,
            &outcome.slices,
            &outcome.profiles,
        )
    }

    #[test]
    fn earlier_runs_come_newest_first_and_what_does_not_read_is_no_evidence() {
        let root = tempfile::tempdir().unwrap();
        let found = |most: usize, name: &str| {
            let runs = Results::earlier(root.path(), |other| other.name == name, most).unwrap();
            runs.iter()
                .map(|run| run.started.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(found(9, "quickstart"), [""; 0]);
        let run = |started: &str| {
            let (resolved, plan) = (sample::resolved(), sample::plan());
            let run = NewRun {
                resolved: &resolved,
                plan: &plan,
                experiment_source: sample::SOURCE,
                kernel: sample::KERNEL,
                started,
            };
            let choice = Choice {
                new: true,
                ..Choice::default()
            };
            let mut results = Results::open_or_create(root.path(), &run, &choice).unwrap();
            go_on(&mut results, 1);
            results.dir().to_owned()
        };
        let dirs = ["20261121T084253Z", "20261121T084255Z", "20261121T084254Z"].map(run);
        assert_eq!(
            found(9, "quickstart"),
            ["20261121T084255Z", "20261121T084254Z", "20261121T084253Z"]
        );
        assert_eq!(found(1, "quickstart"), ["20261121T084255Z"]);
        assert_eq!(found(9, "another"), [""; 0]);
        fs::write(dirs[1].join(layout::TRIALS), "{}\n").unwrap();
        fs::write(dirs[2].join(layout::RESOLVED), "{}\n").unwrap();
        assert_eq!(found(1, "quickstart"), ["20261121T084253Z"]);
    }

    fn files(dir: &Path) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for path in entries(dir).unwrap() {
            let shown = path.strip_prefix(dir).unwrap().display().to_string();
            if path.is_dir() {
                names.extend(files(&path).iter().map(|name| format!("{shown}/{name}")));
            } else {
                names.insert(shown);
            }
        }
        names
    }

    fn read(path: PathBuf) -> String {
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    #[test]
    fn a_picture_of_two_variants_has_room_for_their_longest_names() {
        let root = tempfile::tempdir().unwrap();
        let picture = |length| {
            format!(
                "difference-{0}-{0}-inet6-{1}.svg",
                "v".repeat(length),
                "t".repeat(24)
            )
        };
        write_derived(root.path(), &picture(88), b"<svg/>").unwrap();
        let error = write_derived(root.path(), &picture(100), b"<svg/>").unwrap_err();
        assert!(matches!(error, ArchiveError::BadName { .. }), "{error}");
    }

    #[test]
    fn a_run_from_start_to_end() {
        let root = tempfile::tempdir().unwrap();
        let mut results = open(root.path(), &Choice::default()).unwrap();
        assert!(!results.is_continued());
        let dir = root.path().join("quickstart").join(sample::LABEL);
        assert_eq!(results.dir(), dir);
        go_on(&mut results, SCRIPT.len());
        write_derived(&dir, "report.json", b"{}").unwrap();
        write_readme(&dir, b"# Impact").unwrap();
        let written = results.loaded().clone();
        let finished = results.finish("20261121T085000Z").unwrap();
        assert_eq!(finished.accepted_blocks, [1, 2, 3, 4]);
        assert_eq!(finished.given_up_blocks, [0; 0]);

        let expected = [
            "README.md",
            "blocks/1.csv",
            "blocks/2.attempt-2.csv",
            "blocks/2.csv",
            "blocks/3.csv",
            "blocks/4.csv",
            "chain.jsonl",
            "derived/report.json",
            "experiment.toml",
            "finished.json",
            "nft.inet.pps",
            "none.inet.pps",
            "plan.json",
            "resolved.json",
            "sessions/1.json",
            "trials.jsonl",
            "xdp.inet.pps",
        ];
        let profiles: Vec<String> = ["1", "2", "2.attempt-2", "3", "4"]
            .iter()
            .flat_map(|block| {
                let of = |variant| format!("profiles/{block}.{variant}.inet.folded");
                ["nft", "none", "xdp"].map(of)
            })
            .collect();
        let expected: BTreeSet<String> = expected
            .map(str::to_owned)
            .into_iter()
            .chain(profiles)
            .collect();
        assert_eq!(files(&dir), expected);
        assert_eq!(
            fs::read(dir.join("experiment.toml")).unwrap(),
            sample::SOURCE
        );
        assert_eq!(
            read(dir.join("nft.inet.pps")),
            "1200003.7\n1200007\n1200010.3\n1200013.7\n"
        );

        let loaded = Results::load(&dir).unwrap();
        assert_eq!(loaded.finished.as_ref(), Some(&finished));
        assert_eq!(
            loaded,
            Loaded {
                finished: Some(finished),
                ..written
            }
        );
        assert_eq!(loaded.resolved, sample::resolved());
        assert_eq!(loaded.plan, sample::plan());
        let accepted = loaded.accepted();
        assert!(accepted.iter().map(|a| a.record.block).eq(1..=4));
        assert_eq!(accepted[1].record.attempt, 2);
        let count = |wanted| loaded.trials().filter(|(_, fate)| *fate == wanted).count();
        assert_eq!((count(Fate::Accepted), count(Fate::Invalid)), (12, 3));
    }

    #[test]
    fn a_name_means_the_newest_run_that_has_something_to_show() {
        let root = tempfile::tempdir().unwrap();
        let found = || {
            let dir = Results::find(root.path(), "quickstart").unwrap();
            dir.file_name().unwrap().to_string_lossy().into_owned()
        };
        let (resolved, plan) = (sample::resolved(), sample::plan());
        let opened = |label: &'static str, started: &'static str| {
            let run = NewRun {
                started,
                ..sample::new_run(&resolved, &plan)
            };
            Results::open_or_create(root.path(), &run, &with_label(label)).unwrap()
        };
        // What is under way is told by a lock of its process, and this one holds those of other tests.
        let closed = |results: Results| {
            let lock = results.dir().join(layout::LOCK);
            drop(results);
            fs::remove_file(lock).unwrap();
        };
        closed(opened("empty", "20260101T000000Z"));
        closed(opened("empty-too", "20260102T000000Z"));
        assert_eq!(found(), "empty-too", "where nothing else is");
        let mut part = opened("part", "20250101T000000Z");
        go_on(&mut part, 2);
        closed(part);
        assert_eq!(found(), "part");
        let mut whole = opened("whole", "20240101T000000Z");
        go_on(&mut whole, SCRIPT.len());
        whole.finish("2024-01-01T00:10:00Z").unwrap();
        assert_eq!(found(), "whole");
        // One that is being measured is what is looked for while it is.
        let under_way = opened("under-way", "20260103T000000Z");
        assert_eq!(found(), "under-way");
        closed(under_way);
        assert_eq!(found(), "whole");
    }

    #[test]
    fn a_folder_of_results_names_those_below_it() {
        let root = tempfile::tempdir().unwrap();
        let shown = root.path().display().to_string();
        let refusals = || {
            let found = Results::find(root.path(), &shown).unwrap_err();
            let loaded = Results::load(root.path()).unwrap_err();
            assert_eq!(found.to_string(), loaded.to_string());
            found.to_string().replace(&shown, "root")
        };
        assert_eq!(
            refusals(),
            "root: no results directory; there is none below it either; give another"
        );
        for label in ["a", "b", "c", "d", "e"] {
            Results::open_or_create(
                root.path(),
                &sample::new_run(&sample::resolved(), &sample::plan()),
                &with_label(label),
            )
            .unwrap();
        }
        let name = sample::resolved().name;
        let below = ["a", "b", "c"].map(|label| format!("root/{name}/{label}"));
        assert_eq!(
            refusals(),
            format!(
                "root: no results directory; give one below it: {} or one of 2 more",
                below.join(", ")
            )
        );
    }

    #[test]
    fn a_new_directory_without_a_measurement_can_be_taken_back() {
        let root = tempfile::tempdir().unwrap();
        let results = open(root.path(), &NEW).unwrap();
        let dir = results.dir().to_owned();
        assert!(results.remove_if_empty().unwrap());
        drop(results);
        assert!(!dir.parent().unwrap().exists());

        let mut results = open(root.path(), &NEW).unwrap();
        go_on(&mut results, 1);
        assert!(!results.remove_if_empty().unwrap());
        drop(results);
        // One that was continued was somebody else's.
        let results = open(root.path(), &with_label(sample::LABEL)).unwrap();
        assert!(!results.remove_if_empty().unwrap());
        assert!(results.dir().is_dir());
    }

    #[test]
    fn the_newest_unfinished_run_of_the_same_experiment_is_continued() {
        let root = tempfile::tempdir().unwrap();
        let (resolved, plan) = (sample::resolved(), sample::plan());
        let mut run = sample::new_run(&resolved, &plan);
        let open_run = |run: &NewRun<'_>, choice: &Choice<'_>| {
            Results::open_or_create(root.path(), run, choice)
        };

        drop(open_run(&run, &Choice::default()).unwrap());
        run.started = "20261121T090000Z";
        let newer = open_run(&run, &NEW).unwrap().dir().to_owned();
        assert!(newer.ends_with("6.18.44-20261121T090000Z"));

        // Another seed was drawn; the recorded one stands.
        let mut redrawn = resolved.clone();
        redrawn.design.seed = 7;
        run.resolved = &redrawn;
        run.started = "20261121T100000Z";
        let mut continued = open_run(&run, &Choice::default()).unwrap();
        assert!(continued.is_continued());
        assert_eq!(continued.dir(), newer);
        assert_eq!(continued.loaded().resolved.design.seed, 42);

        // Once it is finished, the older one is next.
        go_on(&mut continued, SCRIPT.len());
        continued.finish("20261121T103000Z").unwrap();
        let older = open_run(&run, &Choice::default()).unwrap();
        assert!(older.dir().ends_with(sample::LABEL));
        drop(older);

        // Another experiment of that name starts afresh.
        let mut other = resolved.clone();
        other.design.rounds = 2;
        other.question = "Impact of something else".into();
        run.resolved = &other;
        let fresh = open_run(&run, &Choice::default()).unwrap();
        assert!(!fresh.is_continued());
        assert!(fresh.dir().ends_with("6.18.44-20261121T100000Z"));
    }

    #[test]
    fn names_that_are_taken_are_numbered() {
        let root = tempfile::tempdir().unwrap();
        let labels: Vec<String> = (0..3)
            .map(|_| {
                let results = open(root.path(), &NEW).unwrap();
                results.dir().file_name().unwrap().display().to_string()
            })
            .collect();
        let label = sample::LABEL;
        assert_eq!(
            labels,
            [label.into(), format!("{label}-2"), format!("{label}-3")]
        );
    }

    #[test]
    fn a_label_names_one_directory_and_no_other() {
        let root = tempfile::tempdir().unwrap();
        drop(open(root.path(), &with_label("mine")).unwrap());
        let mut results = open(root.path(), &with_label("mine")).unwrap();
        assert!(results.is_continued());
        assert!(results.dir().ends_with("quickstart/mine"));

        let new = Choice {
            new: true,
            ..with_label("mine")
        };
        let taken = open(root.path(), &new).unwrap_err();
        assert!(matches!(taken, ArchiveError::LabelTaken { .. }), "{taken}");

        let mut other = sample::resolved();
        other.design.slice_ms = 200;
        let plan = sample::plan();
        let refused = Results::open_or_create(
            root.path(),
            &sample::new_run(&other, &plan),
            &with_label("mine"),
        )
        .unwrap_err();
        assert!(
            matches!(refused, ArchiveError::OtherExperiment { .. }),
            "{refused}"
        );

        go_on(&mut results, SCRIPT.len());
        results.finish("20261121T085000Z").unwrap();
        let finished = open(root.path(), &with_label("mine")).unwrap_err();
        assert!(
            matches!(finished, ArchiveError::Finished { .. }),
            "{finished}"
        );

        for label in ["", "a/b", "..", ".hidden"] {
            let bad = open(root.path(), &with_label(label)).unwrap_err();
            assert!(matches!(bad, ArchiveError::BadName { .. }), "{bad}");
        }
    }

    #[test]
    fn a_second_run_is_refused_while_one_is_alive() {
        let root = tempfile::tempdir().unwrap();
        let first = open(root.path(), &Choice::default()).unwrap();
        for choice in [Choice::default(), with_label(sample::LABEL)] {
            let error = open(root.path(), &choice).unwrap_err();
            let message = error.to_string();
            assert!(matches!(error, ArchiveError::Locked { .. }), "{message}");
            assert!(message.contains(&format!("process {}", std::process::id())));
            assert!(message.contains("--new"), "{message}");
        }
        let beside = open(root.path(), &NEW).unwrap();
        assert_ne!(beside.dir(), first.dir());
        drop((first, beside));
        assert!(
            open(root.path(), &Choice::default())
                .unwrap()
                .is_continued()
        );
    }

    #[test]
    fn runs_that_start_together_get_directories_of_their_own() {
        let root = tempfile::tempdir().unwrap();
        let results: Vec<Results> = std::thread::scope(|scope| {
            let started: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| open(root.path(), &NEW).unwrap()))
                .collect();
            started.into_iter().map(|run| run.join().unwrap()).collect()
        });
        let dirs: BTreeSet<&Path> = results.iter().map(Results::dir).collect();
        assert_eq!(dirs.len(), 8);
    }

    #[test]
    fn a_changed_machine_cannot_continue() {
        let root = tempfile::tempdir().unwrap();
        let mut results = open(root.path(), &Choice::default()).unwrap();
        let mut session = sample::session(1);
        results.check_session(&session.environment).unwrap();
        results.begin_session(session.clone()).unwrap();
        drop(results);

        let mut results = open(root.path(), &Choice::default()).unwrap();
        assert_eq!(results.next_session(), 2);
        results.check_session(&session.environment).unwrap();
        session.session = 3;
        let error = results.begin_session(session.clone()).unwrap_err();
        assert!(
            matches!(error, ArchiveError::SessionOutOfTurn { last: 1, .. }),
            "{error}"
        );
        session.session = 2;
        session.environment.kernel = "6.19.0 #1 SMP".into();
        let error = results.begin_session(session).unwrap_err();
        assert!(
            matches!(error, ArchiveError::EnvironmentChanged { session: 1, .. }),
            "{error}"
        );
        assert_eq!(results.loaded().sessions.len(), 1);
    }

    #[test]
    fn an_outcome_that_cannot_be_read_back_is_not_written() {
        let root = tempfile::tempdir().unwrap();
        let mut results = open(root.path(), &Choice::default()).unwrap();
        go_on(&mut results, 1);
        let good = sample::outcome(&sample::plan(), 2, 1, 1, true);
        let before = files(results.dir());
        type Spoil = fn(&mut sample::Outcome);
        let spoils: [(Spoil, &str); 7] = [
            (
                |o| o.trials[0].observation_pps = f64::NAN,
                "does not read back",
            ),
            (|o| o.slices[0].time_s = f64::INFINITY, "does not read back"),
            (|o| drop(o.trials.pop()), "has no trial"),
            (|o| drop(o.slices.pop()), "slices are there"),
            (|o| o.trials[0].attempt = 2, "is among its trials"),
            (|o| o.block.block = 9, "the plan has no block 9"),
            (
                |o| *o = sample::outcome(&sample::plan(), 1, 1, 1, true),
                "recorded before",
            ),
        ];
        for (spoil, what) in spoils {
            let mut outcome = good.clone();
            spoil(&mut outcome);
            let error = results
                .append_block(
                    &outcome.trials,
                    &outcome.block,
                    &outcome.slices,
                    &outcome.profiles,
                )
                .unwrap_err();
            assert!(matches!(error, ArchiveError::BadOutcome { .. }), "{error}");
            assert!(error.to_string().contains(what), "{error}");
        }
        assert_eq!(files(results.dir()), before);
        results
            .append_block(&good.trials, &good.block, &good.slices, &good.profiles)
            .unwrap();
    }

    #[test]
    fn a_run_with_blocks_left_is_not_finished() {
        let root = tempfile::tempdir().unwrap();
        let mut results = open(root.path(), &Choice::default()).unwrap();
        go_on(&mut results, SCRIPT.len() - 1);
        let error = results.finish("20261121T085000Z").unwrap_err();
        assert!(
            matches!(error, ArchiveError::BlockMissing { block: 4, .. }),
            "{error}"
        );
    }

    #[test]
    fn a_block_that_was_given_up_has_no_row_and_is_named() {
        let root = tempfile::tempdir().unwrap();
        let mut results = open(root.path(), &Choice::default()).unwrap();
        results.begin_session(sample::session(1)).unwrap();
        for (block, valid) in [
            (1, true),
            (2, false),
            (2, false),
            (2, false),
            (3, true),
            (4, true),
        ] {
            append(&mut results, block, 1, valid).unwrap();
        }
        let dir = results.dir().to_owned();
        assert_eq!(read(dir.join("none.inet.pps")).lines().count(), 3);
        let finished = results.finish("20261121T085000Z").unwrap();
        assert_eq!(finished.accepted_blocks, [1, 3, 4]);
        assert_eq!(finished.given_up_blocks, [2]);
    }

    #[test]
    fn leftovers_of_killed_runs_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let dir = open(root.path(), &Choice::default())
            .unwrap()
            .dir()
            .to_owned();
        let abandoned = root.path().join("quickstart/.new-x");
        fs::create_dir_all(abandoned.join("blocks")).unwrap();
        fs::write(dir.join("blocks/.1.csv.99999999.tmp"), b"half").unwrap();
        fs::remove_dir(dir.join("derived")).unwrap();
        drop(open(root.path(), &Choice::default()).unwrap());
        assert!(!abandoned.exists());
        assert!(!dir.join("blocks/.1.csv.99999999.tmp").exists());
        assert!(dir.join("derived").exists());
    }

    #[test]
    fn a_directory_that_cannot_be_read_is_passed_over_aloud() {
        let root = tempfile::tempdir().unwrap();
        let dir = open(root.path(), &Choice::default())
            .unwrap()
            .dir()
            .to_owned();
        fs::write(
            dir.join("resolved.json"),
            format!("{{\"schema\": {}}}", SCHEMA_VERSION + 1),
        )
        .unwrap();
        let results = open(root.path(), &Choice::default()).unwrap();
        assert!(!results.is_continued());
        let warnings = &results.loaded().warnings;
        assert!(
            matches!(&warnings[..], [ArchiveWarning::PassedOver { dir: passed, .. }] if *passed == dir)
        );
        let error = Results::load(&dir).unwrap_err();
        assert!(
            matches!(error, ArchiveError::NewerSchema { schema: 3, .. }),
            "{error}"
        );
    }

    #[test]
    fn an_experiment_changed_by_hand_is_not_continued() {
        let root = tempfile::tempdir().unwrap();
        let dir = open(root.path(), &Choice::default())
            .unwrap()
            .dir()
            .to_owned();
        let path = dir.join("resolved.json");
        let text = read(path.clone());
        assert!(text.contains("\"slice_ms\": 100"), "{text}");
        fs::write(path, text.replace("\"slice_ms\": 100", "\"slice_ms\": 900")).unwrap();
        let error = open(root.path(), &Choice::default()).unwrap_err();
        assert!(matches!(error, ArchiveError::Damaged { .. }), "{error}");
    }

    #[test]
    fn results_are_found_by_path_label_and_name() {
        let root = tempfile::tempdir().unwrap();
        let (resolved, plan) = (sample::resolved(), sample::plan());
        let mut run = sample::new_run(&resolved, &plan);
        let first = Results::open_or_create(root.path(), &run, &NEW).unwrap();
        run.started = "20261122T084253Z";
        let second = Results::open_or_create(root.path(), &run, &NEW).unwrap();
        let find = |name: &str| Results::find(root.path(), name);
        assert_eq!(
            find(&first.dir().display().to_string()).unwrap(),
            first.dir()
        );
        assert_eq!(
            find(&format!("quickstart/{}", sample::LABEL)).unwrap(),
            first.dir()
        );
        assert_eq!(find("quickstart").unwrap(), second.dir());
        // Its folder, which a shell completes, means the same.
        let folder = root.path().join("quickstart").display().to_string();
        assert_eq!(find(&folder).unwrap(), second.dir());
        assert_eq!(find(&format!("{folder}/")).unwrap(), second.dir());
        for written in ["quickstrat", "quick"] {
            let message = find(written).unwrap_err().to_string();
            assert!(
                message.contains("did you mean \"quickstart\"? There are quickstart/6.18"),
                "{message}"
            );
        }
        let nowhere = Results::find(&root.path().join("nowhere"), "x").unwrap_err();
        assert!(nowhere.to_string().contains("there are none"), "{nowhere}");
        for label in ["a", "b", "c", "d", "e"] {
            Results::open_or_create(root.path(), &run, &with_label(label)).unwrap();
        }
        let message = find("else").unwrap_err().to_string();
        assert!(message.contains(", quickstart/b"), "{message}");
        assert!(
            message.contains(" and 2 more; give <name>/<label>"),
            "{message}"
        );
    }

    /// A file system of its own that can be filled up.
    struct SmallDisk {
        root: tempfile::TempDir,
    }

    impl SmallDisk {
        const PAGE: u64 = 4096;

        fn mount() -> Self {
            let root = tempfile::tempdir().unwrap();
            let mounted = Command::new("mount")
                .args(["-t", "tmpfs", "-o", "size=512k", "fwdlab-test"])
                .arg(root.path())
                .status()
                .unwrap();
            assert!(mounted.success());
            Self { root }
        }

        fn path(&self) -> &Path {
            self.root.path()
        }

        /// Fills it up but for that many pages.
        fn fill(&self, free_pages: u64) {
            let mut ballast = fs::File::create(self.path().join("ballast")).unwrap();
            while ballast.write_all(&[0; 4096]).is_ok() {}
            let length = ballast.metadata().unwrap().len() / Self::PAGE * Self::PAGE;
            ballast.set_len(length - free_pages * Self::PAGE).unwrap();
        }

        fn make_room(&self) {
            fs::remove_file(self.path().join("ballast")).unwrap();
        }
    }

    impl Drop for SmallDisk {
        fn drop(&mut self) {
            let unmounted = Command::new("umount").arg(self.path()).status();
            assert!(unmounted.is_ok_and(|status| status.success()) || std::thread::panicking());
        }
    }

    #[test]
    fn a_full_disk_loses_no_block_and_the_run_goes_on_when_there_is_room() {
        testkit::require_root!();
        testkit::require_tool!("mount", "umount");
        let disk = SmallDisk::mount();
        let mut failed_at = BTreeSet::new();
        for free_pages in 0.. {
            let root = disk.path().join(format!("run-{free_pages}"));
            let mut results = open(&root, &Choice::default()).unwrap();
            results.begin_session(sample::session(1)).unwrap();
            let dir = results.dir().to_owned();

            disk.fill(free_pages);
            let outcome = append(&mut results, 1, 1, true);
            let is_whole = match &outcome {
                Ok(()) => true,
                Err(ArchiveError::DiskFull { path, .. }) => {
                    let extension = path.extension().unwrap().display().to_string();
                    failed_at.insert(extension.clone());
                    extension == "pps"
                }
                Err(other) => panic!("{other:?}"),
            };
            // Before there is room again everything is readable, and holds what was recorded.
            let loaded = Results::load(&dir).unwrap();
            assert_eq!(loaded.attempts.len(), usize::from(is_whole));
            assert_eq!(loaded.warnings, []);
            let is_unfinished = |name: &String| name.contains(".tmp");
            assert_eq!(files(&dir).into_iter().find(is_unfinished), None);
            disk.make_room();
            drop(results);

            let mut results = open(&root, &Choice::default()).unwrap();
            assert!(results.is_continued());
            assert_eq!(dir.join("xdp.inet.pps").exists(), is_whole);
            go_on(&mut results, SCRIPT.len());
            assert_eq!(read(dir.join("xdp.inet.pps")).lines().count(), 4);
            assert_eq!(results.loaded().attempts.len(), SCRIPT.len());
            fs::remove_dir_all(&root).unwrap();
            if outcome.is_ok() {
                break;
            }
        }
        assert!(
            failed_at.iter().eq(["csv", "folded", "jsonl", "pps"]),
            "{failed_at:?}"
        );
    }

    #[test]
    fn on_a_full_disk_no_half_directory_appears() {
        testkit::require_root!();
        testkit::require_tool!("mount", "umount");
        let disk = SmallDisk::mount();
        let folder = disk.path().join("quickstart");
        let mut failures = 0;
        for free_pages in 0.. {
            disk.fill(free_pages);
            let opened = open(disk.path(), &NEW);
            disk.make_room();
            match opened {
                Ok(_) => break,
                Err(error) => {
                    assert!(matches!(error, ArchiveError::DiskFull { .. }), "{error}");
                    assert!(error.to_string().contains("make room"), "{error}");
                    assert_eq!(entries(&folder).unwrap(), Vec::<PathBuf>::new());
                    failures += 1;
                }
            }
        }
        assert!(failures >= 3, "{failures}");
        assert_eq!(entries(&folder).unwrap().len(), 1);
    }

    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for path in entries(from).unwrap() {
            let target = to.join(path.file_name().unwrap());
            if path.is_dir() {
                copy(&path, &target);
            } else {
                fs::copy(&path, &target).unwrap();
            }
        }
    }

    fn keep_lines(path: &Path, lines: usize) {
        let text = read(path.to_owned());
        let kept: String = text.split_inclusive('\n').take(lines).collect();
        fs::write(path, kept).unwrap();
    }

    #[test]
    fn a_chain_that_is_not_of_the_records_is_not_continued() {
        type Spoil = fn(&Path);
        let spoils: [(Spoil, &str); 8] = [
            (
                |dir| fs::remove_file(dir.join(layout::CHAIN)).unwrap(),
                "chain.jsonl: is not there",
            ),
            (
                |dir| keep_lines(&dir.join(layout::CHAIN), 2),
                "chain.jsonl: has lost the line of block 2, attempt 2",
            ),
            (
                |dir| keep_lines(&dir.join(layout::TRIALS), 4),
                "chain.jsonl:3: trials.jsonl has lost the records of more than one block",
            ),
            (
                |dir| {
                    let path = dir.join(layout::CHAIN);
                    let text = read(path.clone());
                    fs::write(path, text.replacen("\"attempt\":2", "\"attempt\":9", 1)).unwrap();
                },
                "chain.jsonl:3: it is of block 2, attempt 9, and trials.jsonl has block 2, attempt 2 in its place",
            ),
            (
                |dir| {
                    let path = dir.join(layout::CHAIN);
                    let lines = read(path.clone());
                    let lines: Vec<&str> = lines.split_inclusive('\n').collect();
                    fs::write(path, [lines[1], lines[0], lines[2]].concat()).unwrap();
                },
                "chain.jsonl:1: it does not name the line before",
            ),
            (
                |dir| fs::write(dir.join(layout::CHAIN), "{\"schema\":1}\n").unwrap(),
                "chain.jsonl:1: not of the form",
            ),
            (
                |dir| fs::remove_file(dir.join(layout::EXPERIMENT)).unwrap(),
                "experiment.toml: is not there",
            ),
            (
                // A line without its end, elsewhere: it would be taken for a torn one and cut.
                |dir| {
                    let outside = dir.parent().unwrap().join("outside");
                    fs::write(&outside, "a secret").unwrap();
                    let path = dir.join(layout::CHAIN);
                    fs::remove_file(&path).unwrap();
                    std::os::unix::fs::symlink(outside, path).unwrap();
                },
                "outside",
            ),
        ];
        for (spoil, says) in spoils {
            let root = tempfile::tempdir().unwrap();
            let mut results = open(root.path(), &with_label("run")).unwrap();
            go_on(&mut results, 3);
            let dir = results.dir().to_owned();
            drop(results);
            spoil(&dir);
            let before = files(&dir);
            let error = open(root.path(), &with_label("run"))
                .unwrap_err()
                .to_string();
            assert!(error.contains(says), "{error}");
            assert_eq!(files(&dir), before, "{says}");
            if says == "outside" {
                assert_eq!(read(dir.parent().unwrap().join("outside")), "a secret");
            }
        }
    }

    #[test]
    fn what_was_written_before_its_records_goes_when_the_run_goes_on() {
        let root = tempfile::tempdir().unwrap();
        let mut results = open(root.path(), &with_label("run")).unwrap();
        go_on(&mut results, 3);
        let dir = results.dir().to_owned();
        drop(results);
        let (sound, all) = (read(dir.join(layout::CHAIN)), files(&dir));
        // The last block's records are not written yet, and half of the next line is.
        keep_lines(&dir.join(layout::TRIALS), 8);
        let results = open(root.path(), &with_label("run")).unwrap();
        assert_eq!(results.loaded().warnings, []);
        let left: Vec<String> = all.difference(&files(&dir)).cloned().collect();
        let own = "blocks/2.attempt-2.csv profiles/2.attempt-2.nft.inet.folded \
                   profiles/2.attempt-2.none.inet.folded profiles/2.attempt-2.xdp.inet.folded";
        assert_eq!(left.join(" "), own);
        drop(results);
        fs::write(dir.join(layout::CHAIN), &sound[..sound.len() - 9]).unwrap();
        let mut results = open(root.path(), &with_label("run")).unwrap();
        let warnings = &results.loaded().warnings;
        assert!(
            matches!(&warnings[..], [ArchiveWarning::TornLine { place, .. }] if place.line == Some(3)),
            "{warnings:?}"
        );
        go_on(&mut results, SCRIPT.len());
        assert_eq!(read(dir.join(layout::CHAIN)).lines().count(), SCRIPT.len());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn a_run_cut_anywhere_goes_on_to_the_same_observations(
            attempts in 1..=SCRIPT.len(),
            cut: prop::sample::Index,
            is_ahead: bool,
        ) {
            let root = tempfile::tempdir().unwrap();
            let mut whole = open(root.path(), &with_label("whole")).unwrap();
            go_on(&mut whole, attempts);
            go_on(&mut whole, SCRIPT.len());

            let dir = root.path().join("quickstart/cut");
            copy(whole.dir(), &dir);
            let trials = dir.join(layout::TRIALS);
            let bytes = fs::read(&trials).unwrap();
            let kept = &bytes[..cut.index(bytes.len() + 1)];
            fs::write(&trials, kept).unwrap();
            let is_block = |line: &&[u8]| line.starts_with(b"{\"record\":\"block\"") && line.ends_with(b"\n");
            let whole_blocks = kept.split_inclusive(|&byte| byte == b'\n').filter(is_block).count();
            keep_lines(&dir.join(layout::CHAIN), whole_blocks + usize::from(is_ahead));

            let mut results = open(root.path(), &with_label("cut")).unwrap();
            let is_torn = kept.last().is_some_and(|&byte| byte != b'\n');
            prop_assert_eq!(results.loaded().warnings.len(), usize::from(is_torn));
            let found = results.loaded().attempts.clone();
            prop_assert_eq!(&found[..], &whole.loaded().attempts[..found.len()]);

            go_on(&mut results, SCRIPT.len());
            let reread = Results::load(&dir).unwrap();
            prop_assert_eq!(reread.warnings, []);
            prop_assert_eq!(reread.attempts.len(), SCRIPT.len());
            for variant in ["none", "nft", "xdp"].map(VariantName::from_label) {
                let stratum = fwdlab_model::Stratum::INET;
                let file = |dir| read(layout::observations(dir, &variant, stratum));
                prop_assert_eq!(file(&dir), file(whole.dir()));
            }
        }

        #[test]
        fn any_bytes_in_any_file_are_read_or_refused(
            name in prop::sample::select(vec![
                "resolved.json", "plan.json", "trials.jsonl", "sessions/1.json", "blocks/1.csv",
                "chain.jsonl", "finished.json",
            ]),
            bytes: Vec<u8>,
            position: prop::sample::Index,
            is_spliced: bool,
        ) {
            let root = tempfile::tempdir().unwrap();
            let mut results = open(root.path(), &with_label("fuzz")).unwrap();
            go_on(&mut results, 1);
            let path = results.dir().join(name);
            let mut spoilt = fs::read(&path).unwrap_or_default();
            if is_spliced {
                let start = position.index(spoilt.len() + 1);
                let end = (start + bytes.len()).min(spoilt.len());
                spoilt.splice(start..end, bytes);
            } else {
                spoilt = bytes;
            }
            fs::write(&path, spoilt).unwrap();
            let _ = Results::load(results.dir());
            drop(results);
            let _ = open(root.path(), &with_label("fuzz"));
        }
    }
}
