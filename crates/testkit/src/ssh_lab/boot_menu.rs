//! What GRUB makes of a host's `/boot/grub`: the kernel of a boot and its command line.

use std::fs;
use std::io;
use std::path::Path;

/// The kernel that is installed beside the machine's own.
pub(super) const SECOND_KERNEL: &str = "6.99.1-second";

/// As grub-mkconfig of Debian 12 writes it.
const GRUB_CFG: &str = include_str!("grub.cfg");

/// An environment block is always as long.
const GRUBENV_BYTES: usize = 1024;

/// What a boot of a host starts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kernel {
    pub(super) release: String,
    pub(super) command_line: String,
}

/// An entry that can be started, and how it is found.
struct Entry {
    /// For each menu on the way, and at last for itself, what names it there: its number, title and id.
    path: Vec<Vec<String>>,
    /// The kernel's path and arguments.
    linux: Vec<String>,
}

/// Fills `/boot` as an installation does that has the machine's kernel and a second one.
pub(super) fn install(boot: &Path) -> io::Result<()> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let release = release.trim_end();
    let grub = boot.join("grub");
    fs::create_dir(&grub)?;
    fs::write(
        grub.join("grub.cfg"),
        GRUB_CFG.replace("@RELEASE@", release),
    )?;
    write_environment(&grub, &[])?;
    for release in [release, SECOND_KERNEL] {
        for file in ["vmlinuz", "initrd.img"] {
            fs::write(boot.join(format!("{file}-{release}")), "")?;
        }
    }
    Ok(())
}

/// Starts the entry that `next_entry` names, once, or else the first.
///
/// # Errors
/// Where a file cannot be read or written, or the entry starts no Linux.
pub(super) fn boot(grub: &Path) -> io::Result<Kernel> {
    let mut menu = fs::read_to_string(grub.join("grub.cfg"))?;
    // It is sourced at the very end.
    menu += &fs::read_to_string(grub.join("custom.cfg")).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(String::new()),
        _ => Err(error),
    })?;
    let block = fs::read_to_string(grub.join("grubenv"))?;
    let (next, others): (Vec<_>, Vec<_>) = block
        .lines()
        .filter(|line| !line.starts_with('#'))
        .partition(|line| line.starts_with("next_entry="));
    if !next.is_empty() {
        write_environment(grub, &others)?;
    }
    let wanted = next.first().and_then(|line| line.split_once('='));
    choose(&entries(&menu), wanted.map_or("", |(_, entry)| entry))
}

fn write_environment(grub: &Path, lines: &[&str]) -> io::Result<()> {
    let mut block = "# GRUB Environment Block\n".to_owned();
    for line in lines {
        block += line;
        block.push('\n');
    }
    fs::write(grub.join("grubenv"), format!("{block:#<GRUBENV_BYTES$}"))
}

fn choose(entries: &[Entry], wanted: &str) -> io::Result<Kernel> {
    let entry = entries
        .iter()
        .find(|entry| entry.is_called(wanted))
        .or(entries.first())
        .ok_or_else(|| io::Error::other("the boot menu is empty"))?;
    let (path, arguments) = entry.linux.split_first().ok_or_else(|| {
        io::Error::other(format!(
            "the boot menu's entry {:?} starts no Linux",
            entry.path
        ))
    })?;
    let file = path.rsplit('/').next().unwrap_or(path);
    let boot_image = format!("BOOT_IMAGE={path}");
    Ok(Kernel {
        release: file.strip_prefix("vmlinuz-").unwrap_or(file).to_owned(),
        command_line: [&[boot_image], arguments].concat().join(" "),
    })
}

impl Entry {
    /// Whether a name as grub-reboot takes it, `menu>entry` for one of a menu below, is its.
    fn is_called(&self, name: &str) -> bool {
        let steps: Vec<&str> = name.split('>').collect();
        steps.len() == self.path.len()
            && steps
                .iter()
                .zip(&self.path)
                .all(|(step, names)| names.iter().any(|name| name == step))
    }
}

/// The entries of a menu in their order, without a look at conditions.
fn entries(menu: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    // What is open: its names, which functions lack, and how many entries and menus it has had so far.
    let mut open: Vec<(Vec<String>, usize)> = Vec::new();
    let mut outermost = 0;
    for line in menu.lines() {
        let words = words(line);
        match words.first().map(String::as_str) {
            Some(kind @ ("menuentry" | "submenu")) => {
                let count = open.last_mut().map_or(&mut outermost, |(_, count)| count);
                let number = count.to_string();
                *count += 1;
                let id = words
                    .iter()
                    .skip_while(|word| !matches!(word.as_str(), "--id" | "$menuentry_id_option"))
                    .nth(1);
                let names = [Some(&number), words.get(1), id];
                open.push((names.into_iter().flatten().cloned().collect(), 0));
                if kind == "menuentry" {
                    entries.push(Entry {
                        path: open.iter().map(|(names, _)| names.clone()).collect(),
                        linux: Vec::new(),
                    });
                }
            }
            Some("linux") => {
                if let Some(entry) = entries.last_mut() {
                    entry.linux = words[1..].to_vec();
                }
            }
            Some("}") => drop(open.pop()),
            _ if words.last().is_some_and(|word| word == "{") => open.push((Vec::new(), 0)),
            _ => {}
        }
    }
    entries
}

/// The words of a line, without their quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for character in line.chars() {
        match (quote, character) {
            (None, '#') if word.is_none() => break,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, _) if character.is_whitespace() => words.extend(word.take()),
            (Some(quoted), _) if character == quoted => quote = None,
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "root=UUID=3c1f6a52-8d0e-4b57-9f43-5a2f0c6e7d18 ro";

    fn grubenv(grub: &Path) -> String {
        fs::read_to_string(grub.join("grubenv")).unwrap()
    }

    #[test]
    fn an_entry_is_found_by_number_title_and_id_in_its_own_menu_only() {
        let menu = GRUB_CFG.replace("@RELEASE@", "6.1.0")
            + "menuentry \"It's mine\" --id mine {\n  linux /vmlinuz a 'b c' # no more\n}\n";
        let entries = entries(&menu);
        let started = |name: &str| choose(&entries, name).unwrap();
        let kernel = |release: &str, command_line: String| Kernel {
            release: release.to_owned(),
            command_line,
        };
        let default = || {
            kernel(
                "6.1.0",
                format!("BOOT_IMAGE=/boot/vmlinuz-6.1.0 {ROOT} quiet"),
            )
        };
        let second = "BOOT_IMAGE=/boot/vmlinuz-6.99.1-second";
        assert_eq!(started(""), default());
        assert_eq!(started("no such entry"), default());
        assert_eq!(
            started("Debian GNU/Linux, with Linux 6.99.1-second"),
            default()
        );
        for name in ["1>2", "Advanced options for Debian GNU/Linux>2"] {
            assert_eq!(
                started(name),
                kernel(SECOND_KERNEL, format!("{second} {ROOT} quiet"))
            );
        }
        assert_eq!(
            started(
                "gnulinux-advanced-3c1f6a52-8d0e-4b57-9f43-5a2f0c6e7d18>\
                 Debian GNU/Linux, with Linux 6.99.1-second (recovery mode)"
            ),
            kernel(SECOND_KERNEL, format!("{second} {ROOT} single"))
        );
        for name in ["mine", "It's mine", "3"] {
            let mine = kernel("vmlinuz", "BOOT_IMAGE=/vmlinuz a b c".to_owned());
            assert_eq!(started(name), mine);
        }
        assert!(choose(&entries, "uefi-firmware").is_err());
    }

    #[test]
    fn the_next_entry_is_started_once_and_other_variables_stay() {
        let folder = tempfile::tempdir().unwrap();
        install(folder.path()).unwrap();
        let grub = folder.path().join("grub");
        let default = boot(&grub).unwrap();
        assert_eq!(grubenv(&grub).len(), GRUBENV_BYTES);
        write_environment(&grub, &["a=1", "next_entry=1>2", "b=2"]).unwrap();
        assert_eq!(boot(&grub).unwrap().release, SECOND_KERNEL);
        let left = grubenv(&grub);
        assert!(
            left.starts_with("# GRUB Environment Block\na=1\nb=2\n###"),
            "{left}"
        );
        assert_eq!(left.len(), GRUBENV_BYTES);
        assert_eq!(boot(&grub).unwrap(), default);
    }
}
