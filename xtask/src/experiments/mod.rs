//! Runs the ready experiments, and shows what came of them on pages under docs.

mod figures;
mod kept;
mod page;

use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::command::{self, cargo, command, repository};

/// Experiments that a page shows together.
struct Book {
    /// Where their files are, from the root of the repository; folders in these are not of the book.
    folders: &'static [&'static str],
    /// The page.
    page: &'static str,
    /// The reports and plots that it shows.
    copies: &'static str,
}

const BOOKS: [Book; 2] = [
    Book {
        folders: &["experiments"],
        page: "docs/experiments.md",
        copies: "docs/experiments",
    },
    Book {
        folders: &["experiments/router", "experiments/seeds"],
        page: "docs/seeds.md",
        copies: "docs/seeds",
    },
];

/// An experiment of a book.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) name: String,
    /// Its file, from the root of the repository.
    pub(crate) source: String,
}

/// Where the lab files and what they name are.
const LABS: &str = "labs";
/// Where `fwdlab` keeps results.
const RESULTS: &str = "results";

/// What `fwdlab run` ends with after Ctrl-C.
const STOPPED: i32 = 130;
/// What it ends with where blocks stayed invalid, or the lab has nothing to compare.
const GOAL_MISSED: i32 = 1;

/// What is asked of the chore.
#[derive(Debug, Default, PartialEq)]
struct Request<'a> {
    /// The experiments to be run; none means all.
    names: Vec<&'a str>,
    /// Also those that were run with this code.
    again: bool,
    /// None at all.
    only_page: bool,
}

impl<'a> Request<'a> {
    /// Shape: the names of the experiments that there are.
    fn parse(arguments: &[&'a str], ready: &[&str]) -> Result<Self> {
        let mut request = Self::default();
        for &argument in arguments {
            match argument {
                "--again" => request.again = true,
                "--only-page" => request.only_page = true,
                name if ready.contains(&name) => request.names.push(name),
                other => bail!(
                    "experiments: {other:?} is neither --again nor --only-page nor one of {}",
                    ready.join(", ")
                ),
            }
        }
        if request.only_page && (request.again || !request.names.is_empty()) {
            bail!("experiments: --only-page runs nothing, so that it stands alone");
        }
        Ok(request)
    }

    fn asks_for(&self, name: &str) -> bool {
        !self.only_page && (self.names.is_empty() || self.names.contains(&name))
    }
}

/// Runs the experiments that are asked for, one after the other, and draws up the pages.
///
/// # Errors
/// One fails, or a page cannot be made. The pages are made of what there is in any case.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let books = BOOKS
        .into_iter()
        .map(|book| Ok((ready(&book)?, book)))
        .collect::<Result<Vec<_>>>()?;
    let all: Vec<&Ready> = books.iter().flat_map(|(ready, _)| ready).collect();
    let names: Vec<&str> = all.iter().map(|ready| ready.name.as_str()).collect();
    let request = Request::parse(arguments, &names)?;
    let program = built_program()?;
    let mut failed = Vec::new();
    for ready in all.iter().filter(|ready| request.asks_for(&ready.name)) {
        if !measure(&program, ready, request.again)? {
            failed.push(ready.name.as_str());
        }
    }
    for (ready, book) in &books {
        draw_up(&program, book, ready)?;
    }
    if !failed.is_empty() {
        bail!("experiments: failed: {}", failed.join(", "));
    }
    Ok(())
}

/// The experiments of a book, folder by folder.
fn ready(book: &Book) -> Result<Vec<Ready>> {
    let mut ready = Vec::new();
    for folder in book.folders {
        let directory = repository().join(folder);
        for path in files_below(&directory)? {
            if path.parent() == Some(directory.as_path()) {
                let stem = path.file_stem().context("a file without a name")?;
                let name = stem.to_string_lossy().into_owned();
                let source = format!("{folder}/{name}.toml");
                ready.push(Ready { name, source });
            }
        }
    }
    Ok(ready)
}

/// Every file below a folder, sorted.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The experiment of a name.
///
/// # Errors
/// There is none.
pub(crate) fn find(name: &str) -> Result<Ready> {
    for book in BOOKS {
        let found = ready(&book)?.into_iter().find(|ready| ready.name == name);
        if let Some(found) = found {
            return Ok(found);
        }
    }
    bail!("no experiment {name}")
}

/// The finished run of an experiment that began last; none where there is none.
///
/// # Errors
/// The results cannot be read.
pub(crate) fn newest(ready: &Ready) -> Result<Option<PathBuf>> {
    kept::newest(&results_of(&ready.name))
}

/// The program as users build it, built.
///
/// # Errors
/// It does not build.
pub(crate) fn built_program() -> Result<PathBuf> {
    command::run(&mut cargo([
        "build",
        "--release",
        "--quiet",
        "--package",
        "fwdlab",
    ]))?;
    let metadata = command::output(&mut cargo(["metadata", "--no-deps", "--format-version=1"]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata")?;
    let target = metadata["target_directory"].as_str();
    let target = target.context("cargo metadata: no target_directory")?;
    Ok(Path::new(target).join("release/fwdlab"))
}

/// Measures one experiment, unless that was done with this code; whether there is a result.
///
/// # Errors
/// The program cannot be started, or was stopped.
pub(crate) fn measure(program: &Path, ready: &Ready, again: bool) -> Result<bool> {
    let Ready { name, source } = ready;
    let label = match kept::next(&results_of(name), &label(program, source)?, again)? {
        kept::Next::Done(label) => {
            println!("{name}: measured with this code in {label}; --again measures once more");
            return Ok(true);
        }
        kept::Next::Measure(label) => label,
    };
    let mut run = at_root(program);
    run.args(["run", source, "--results", RESULTS, "--label", &label]);
    println!("$ {}", command::line(&run));
    let status = run
        .status()
        .with_context(|| program.display().to_string())?;
    match status.code() {
        Some(0) => Ok(true),
        Some(STOPPED) => bail!("experiments: stopped; the same command goes on"),
        Some(GOAL_MISSED) => {
            println!("{name}: not all could be compared, for the reasons above");
            Ok(true)
        }
        _ => {
            println!("{name}: {status}");
            Ok(false)
        }
    }
}

fn at_root(program: &Path) -> Command {
    command(&program.to_string_lossy(), [])
}

fn results_of(name: &str) -> PathBuf {
    repository().join(RESULTS).join(name)
}

/// A name for everything that a result of this experiment comes from: the program, the experiment
/// and the labs.
fn label(program: &Path, source: &str) -> Result<String> {
    let mut sources = vec![program.to_owned(), repository().join(source)];
    sources.extend(files_below(&repository().join(LABS))?);
    let mut hasher = DefaultHasher::new();
    for source in sources {
        let content = fs::read(&source).with_context(|| source.display().to_string())?;
        hasher.write_usize(content.len());
        hasher.write(&content);
    }
    Ok(format!("{}{:016x}", kept::PREFIX, hasher.finish()))
}

/// Copies the newest report of every experiment and writes the page; what has none stays as it is.
fn draw_up(program: &Path, book: &Book, ready: &[Ready]) -> Result<()> {
    let path = repository().join(book.page);
    let mut old = fs::read_to_string(&path).with_context(|| book.page.to_owned())?;
    let mut sections = Vec::new();
    for Ready { name, source } in ready {
        let section = match kept::newest(&results_of(name))? {
            Some(directory) => {
                let report = report(program, &directory)?;
                old = figures::with_figures(&old, name, &report)
                    .with_context(|| book.page.to_owned())?;
                let copies = format!("{}/{name}", book.copies);
                copy(&directory.join("derived"), &repository().join(&copies))?;
                let copies = copies.trim_start_matches("docs/");
                page::measured(name, source, copies, &report, &kept::bindings(&directory)?)
            }
            None => unkept(&old, book, name, source)?,
        };
        sections.push(section);
    }
    fs::write(&path, page::draw_up(&old, &sections)?).with_context(|| book.page.to_owned())?;
    println!("{} is drawn up", book.page);
    Ok(())
}

/// The section of an experiment of which no result is kept here: what the page shows already, where it
/// was measured elsewhere.
fn unkept(old: &str, book: &Book, name: &str, source: &str) -> Result<page::Section> {
    let was_measured = repository().join(book.copies).join(name).is_dir();
    if let Some(section) = page::Section::of(old, name).filter(|_| was_measured) {
        return Ok(section);
    }
    let experiment = fs::read_to_string(repository().join(source));
    let experiment = experiment.with_context(|| source.to_owned())?;
    Ok(page::unmeasured(name, source, &experiment))
}

/// The report of a run, made again by this code.
///
/// # Errors
/// It cannot be made.
pub(crate) fn report(program: &Path, directory: &Path) -> Result<Value> {
    let mut report = at_root(program);
    report.arg("report").arg(directory).arg("--json");
    let text = command::output(&mut report)?;
    serde_json::from_str(&text).with_context(|| directory.display().to_string())
}

/// Copies a report and its plots beside the page, in place of older ones.
fn copy(derived: &Path, folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for file in files_below(derived)? {
        // The data of the report, and the page that holds them, are as large as everything else, and can be
        // had by measuring.
        if file
            .extension()
            .is_some_and(|extension| extension != "json" && extension != "html")
        {
            let to = folder.join(file.file_name().context("a file without a name")?);
            if file.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
                fs::write(&to, without_data(&text))
            } else {
                fs::copy(&file, &to).map(drop)
            }
            .with_context(|| to.display().to_string())?;
        }
    }
    Ok(())
}

/// A README whose lines still say where in report.json its figures stand, but lead to no file.
fn without_data(readme: &str) -> String {
    readme.replace("<sub>[report.json](report.json): ", "<sub>report.json: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_a_readme_leads_to_no_data() {
        let readme = "| 1 |\n\n<sub>[report.json](report.json): /rows</sub>\n[a](a.svg)\n";
        let copy = "| 1 |\n\n<sub>report.json: /rows</sub>\n[a](a.svg)\n";
        assert_eq!(without_data(readme), copy);
    }

    #[test]
    fn arguments_are_names_and_what_to_do_with_them() {
        let ready = ["imix", "routes"];
        let parse = |arguments: &[&'static str]| Request::parse(arguments, &ready);
        let all = parse(&[]).unwrap();
        assert!(all.asks_for("imix") && all.asks_for("routes") && !all.again);
        let one = parse(&["routes", "--again"]).unwrap();
        assert!(!one.asks_for("imix") && one.asks_for("routes") && one.again);
        assert!(!parse(&["--only-page"]).unwrap().asks_for("imix"));
        let error = parse(&["route"]).unwrap_err().to_string();
        assert!(
            error.contains("\"route\"") && error.contains("imix, routes"),
            "{error}"
        );
        assert!(parse(&["--only-page", "imix"]).is_err());
    }

    #[test]
    fn every_page_has_its_experiments_and_no_other() {
        for book in BOOKS {
            let text = fs::read_to_string(repository().join(book.page)).unwrap();
            let ready = ready(&book).unwrap();
            let names: Vec<&str> = ready.iter().map(|ready| ready.name.as_str()).collect();
            assert_eq!(page::names(&text), names);
            for Ready { name, source } in &ready {
                let section = page::Section::of(&text, name).unwrap();
                assert!(section.text.contains(source), "{name}");
            }
            // What is copied belongs to an experiment that there is.
            let copies = repository().join(book.copies);
            for copy in files_below(&copies).unwrap_or_default() {
                let below = copy.strip_prefix(&copies).unwrap();
                let name = below.components().next().unwrap().as_os_str();
                let name = name.to_string_lossy();
                assert!(names.contains(&name.as_ref()), "{}", copy.display());
            }
        }
    }
}
