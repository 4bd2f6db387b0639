//! What lint looks for in results directories: every rule with its stable code. Some are met elsewhere as well.

use serde::Serialize;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// To know; nothing published is wrong for it.
    Note,
    /// What is published may mislead.
    Warning,
    /// What is published is not what was measured, or cannot be traced to it.
    Error,
}

impl Severity {
    /// All of them, the worst first.
    pub const ALL: [Self; 3] = [Self::Error, Self::Warning, Self::Note];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Something that lint looks for.
///
/// Codes say what a rule is about: L1 numbers, L2 identity, L3 text and links, L4 logs and load, L5
/// profiles, L6 verdicts, L9 files. A code never changes its meaning.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The stable code.
    pub code: &'static str,
    /// The same in words, as programs like to show it.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What it finds.
    pub finds: &'static str,
    /// Why that matters.
    pub matters: &'static str,
    /// What can be done about it.
    pub help: &'static str,
}

/// A table of rules: a static for each, and `RULES` of all of them.
///
/// Each is a name, its code, severity and name in words, what it finds, why that matters and what to do.
#[macro_export]
macro_rules! rules {
    ($($constant:ident $code:literal $severity:ident $name:literal $finds:literal $matters:literal $help:literal)*) => {
        $(
            #[doc = concat!($code, ": ", $finds, ".")]
            pub static $constant: $crate::lint::Rule = $crate::lint::Rule {
                code: $code,
                name: $name,
                severity: $crate::lint::Severity::$severity,
                finds: $finds,
                matters: $matters,
                help: $help,
            };
        )*
        /// Every rule of this crate, in the order of the codes.
        pub const RULES: &[&$crate::lint::Rule] = &[$(&$constant),*];
    };
}

rules! {
    VALUE_NOT_DERIVED "L101" Error "value-not-derived"
        "published values that the raw data does not give, in no simple way"
        "readers cannot know what was measured"
        "publish what the raw data gives; of a run of fwdlab, `fwdlab run` with the same arguments goes on with the records, and writes them again"
    VALUE_REMOVED "L102" Error "value-removed"
        "a run that was measured and whose value is not among those published"
        "leaving out what does not fit makes any result look surer than it is"
        "put the value back; what must not count is marked in the raw data, with its reason"
    VALUE_REPLACED "L103" Error "value-replaced"
        "a published value that is not that of its run, while those around it are"
        "one value changed by hand changes the mean, the interval and perhaps the verdict"
        "publish the value that the raw data gives"
    RUN_MISSING "L104" Error "run-missing"
        "a published value, or a part of the raw data, whose run is not there"
        "what cannot be derived again cannot be checked"
        "bring the raw data back from a copy, or take the value out"
    VALUES_REORDERED "L105" Error "values-reordered"
        "published values that are those of the runs, in another order"
        "lines of two files pair up: in another order the effect of each block is that of none"
        "publish them in the order of the runs; never sort them"
    TRIAL_NOT_OF_SLICES "L106" Error "trial-not-of-slices"
        "a trial whose figures are not those of its slices"
        "trial and slices are two accounts of one measurement: one of them was changed"
        "bring the file that was changed back from a copy"
    FRAMES_DO_NOT_ADD_UP "L107" Error "frames-do-not-add-up"
        "a block whose frames are not all accounted for, and which counts all the same"
        "frames that nobody saw go are a sign that something else was counted"
        "bring the records back from a copy, or measure the block again"
    FIGURE_CHANGED "L108" Error "figure-changed"
        "a line of a report whose figures are not those that the records give"
        "the report is what people read and quote"
        "bring back first what L118 and L119 name, if they do; then `fwdlab report` makes it again from the records"
    FINISHED_RUN_CHANGED "L109" Error "finished-run-changed"
        "a finished run whose records are no longer those it was finished with"
        "a finished run never changes; what was taken out or put in since was not measured by it"
        "bring the records back from a copy"
    VALUES_MISSING "L110" Warning "values-missing"
        "a file that the run wrote, and that is gone"
        "ministat and the tools of others read these files, not the records"
        "bring it back from a copy"
    BLOCK_CHANGED "L118" Error "block-changed"
        "a block whose records, or whose files, are not those that its line in chain.jsonl was made of"
        "something was damaged or changed since it was written, and what is published from it is not what was measured"
        "bring what differs back from a copy"
    CHAIN_BROKEN "L119" Error "chain-broken"
        "a chain.jsonl that is missing, or does not have a line for each block that names the line before"
        "blocks may have been taken out or put in, and other changes no longer show"
        "bring chain.jsonl and trials.jsonl back from a copy"
    TRIAL_MISPLACED "L120" Error "trial-misplaced"
        "a trial's line among those of another block"
        "it counts nowhere; somebody has copied or moved lines"
        "bring trials.jsonl back from a copy"
    VALUES_OF_ANOTHER "L201" Error "values-of-another"
        "values that are those of another variant, directory, session or machine"
        "they say nothing about what stands above them"
        "publish the values of the runs that the name promises"
    LABELS_EXCHANGED "L202" Error "labels-exchanged"
        "two sets of values, each under the name of the other"
        "the effect turns round: what is slower reads as faster"
        "exchange the names"
    NO_SUCH_VARIANT "L203" Warning "no-such-variant"
        "a file of observations that is named after no variant of the experiment"
        "nothing says what it holds, and a program that reads all files of the directory reads it, too"
        "move it out of the results directory"
    OTHER_MACHINE "L204" Error "other-machine"
        "sessions of different kernels, CPUs or testers in one run, or a run of another kernel than it says"
        "what differs between machines reads as an effect, or hides one"
        "bring the sessions back from a copy; what was measured elsewhere belongs into a directory of its own"
    TIMES_OUT_OF_ORDER "L205" Warning "times-out-of-order"
        "a session, block or trial that is dated earlier than what came before it"
        "it comes from another run, or the clock was set back while it was measured"
        "look at where it comes from"
    OTHER_TITLE "L206" Error "other-title"
        "a report whose title is not the question that was asked"
        "readers find results by their titles"
        "`fwdlab report` makes it again from the records"
    OTHER_EXPERIMENT "L207" Error "other-experiment"
        "an experiment that does not have the hash beside it"
        "it was changed after the run was started: its verdicts may compare what was never compared"
        "bring resolved.json back from a copy"
    NOT_A_TIME "L210" Error "not-a-time"
        "a start or an end that is not a time in UTC"
        "nothing says when it was measured, nor that it was in its turn"
        "bring the file back from a copy"
    BROKEN_LINK "L301" Warning "broken-link"
        "a link to a file that is not there"
        "a reader sees a gap in place of the plot"
        "bring the file back from a copy, or correct the link; `fwdlab report` makes the plots of a run again"
    NOT_AS_REPORTED "L302" Note "not-as-reported"
        "a report that is not what this fwdlab makes of the records, while its figures agree or the run is not finished"
        "it was edited or cut, made by another version, or made before the last blocks were measured"
        "`fwdlab report` makes it again from the records"
    INVALID_TRIALS_UNBALANCED "L401" Warning "invalid-trials-unbalanced"
        "invalid trials that one variant has many more of than chance would give it"
        "what is left of that variant may be a choice of its better or worse moments"
        "look at the reasons in the report's table of invalid trials"
    CEILING "L402" Warning "ceiling"
        "observations that a limit holds which is not the device under test: the line rate, the generator"
        "how fast the device is does not show, and differences at the ceiling mean nothing"
        "offer more, or use smaller frames or a faster line"
    OFFERED_LOAD_MOVED "L403" Warning "offered-load-moved"
        "an offered load that differs between a variant and its baseline"
        "a device that is offered more forwards more: part of the effect may be the generator's"
        "hold the verdict against the effect at equal offered load, which the report gives"
    SLICE_STALLED "L411" Warning "slice-stalled"
        "a slice that lasted longer than planned, in a trial that counts"
        "the run or the machine stood still meanwhile, and its rate is that of both"
        "measure the run again; fwdlab now calls such trials invalid by itself"
    PROFILE_ALTERED "L504" Error "profile-altered"
        "stacks of a profile that do not sum to the samples recorded of it"
        "what a report says of where time goes is computed from the stacks"
        "bring the file back from a copy, or take it away: the run stands without it"
    PROFILE_MISSING "L505" Note "profile-missing"
        "a profile that was taken, and whose stacks are not there"
        "where time went cannot be looked at again"
        "publish the folder profiles with the run"
    OTHER_VERDICT "L601" Error "other-verdict"
        "a published verdict that is not the one that the records give"
        "it is the sentence that people remember"
        "`fwdlab report` makes it again from the records"
    VERDICT_FLIPS "L602" Warning "verdict-flips"
        "a verdict that reads otherwise under another sound analysis of the same records"
        "it rests on a choice, and not on what was measured alone"
        "measure more blocks, or on a quieter machine"
    UNREADABLE "L901" Error "unreadable"
        "a file or folder that cannot be read"
        "what is in it was not looked at"
        "give yourself the right to read it, or bring it back from a copy"
    NOT_OF_ITS_FORM "L902" Error "not-of-its-form"
        "a file that does not hold what its name says"
        "what is published from it cannot be traced, and what rests on it was not looked at"
        "bring the file back from a copy"
    NEWER_FORM "L903" Error "newer-form"
        "a file that a later fwdlab has written"
        "this one would misread it; the other rules on its directory were not applied"
        "use that version"
    TORN_LINE "L904" Note "torn-line"
        "a last line without its end"
        "the process that wrote it was killed, or the file was cut; it does not count"
        "of an unfinished run, the same `fwdlab run` measures the block again; else bring the file back from a copy"
    HOSTILE_NAME "L905" Warning "hostile-name"
        "a name with characters that act instead of being read, or that is no text"
        "it can show as another name, and break the programs that come across it"
        "rename it"
    UNKNOWN_FILE "L906" Note "unknown-file"
        "a file in a results directory that is none of the format's, or a symbolic link"
        "it was not looked at"
        "keep what is your own beside the results directory, not in it"
    BEING_MEASURED "L907" Note "being-measured"
        "a directory into which a run is measuring"
        "it was looked at as far as it is written, and changes meanwhile"
        "look again when the run is finished"
    BLOCK_UNRECORDED "L908" Note "block-unrecorded"
        "a last line of chain.jsonl whose block has no records"
        "the run was killed while it wrote the block, or trials.jsonl was cut; the block does not count"
        "the same `fwdlab run` measures the block again"
    NOT_FINISHED "L909" Warning "not-finished"
        "a run whose planned blocks are all measured, and that has no finished.json"
        "it was killed at its end, or the file was removed; without it nothing shows that lines at the end are gone"
        "the same `fwdlab run` finishes it; of a finished run, bring the file back from a copy"
}
