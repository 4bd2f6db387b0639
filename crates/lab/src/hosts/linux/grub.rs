//! GRUB's configuration as text: an entry of fwdlab's own, made of the owner's.

/// The id and title of fwdlab's entry.
pub(super) const ENTRY: &str = "fwdlab";

/// What tells fwdlab's part of GRUB's `custom.cfg` from the owner's.
const MARK: &str = "\n# fwdlab wrote this and takes it back\n";

/// The owner's part of `custom.cfg`.
pub(super) fn owners(custom: &str) -> &str {
    custom.split(MARK).next().unwrap_or_default()
}

/// An entry for GRUB that boots a kernel as its own entry does, with more parameters.
///
/// # Errors
/// Where there is no entry of that kernel.
pub(super) fn entry(
    configuration: &str,
    release: &str,
    parameters: &[String],
) -> Result<String, String> {
    let (title, body) = entries(configuration)
        .find(|(title, body)| {
            !title.to_ascii_lowercase().contains("recovery")
                && body.iter().any(|line| boots(line, release))
        })
        .ok_or_else(|| {
            let releases: Vec<String> = entries(configuration)
                .flat_map(|(_, body)| body.into_iter().filter_map(release_of))
                .collect::<std::collections::BTreeSet<_>>()
                .into_iter()
                .collect();
            format!(
                "it has no entry for the kernel {release}; there are {}",
                releases.join(", ")
            )
        })?;
    let mut text = format!("{MARK}# as: {title}\nmenuentry '{ENTRY}' --id {ENTRY} {{\n");
    for line in body {
        let line = line.trim();
        // What boots by itself is not to change.
        if line.split_whitespace().next() == Some("savedefault") {
            continue;
        }
        text += "\t";
        text += line;
        if boots(line, release) {
            for parameter in parameters {
                text += " ";
                text += parameter;
            }
        }
        text += "\n";
    }
    text += "}\n";
    Ok(text)
}

/// Whether a configuration has entries that load kernels.
pub(super) fn has_kernels(configuration: &str) -> bool {
    let mut lines = entries(configuration).flat_map(|(_, body)| body);
    lines.any(|line| release_of(line).is_some())
}

/// The entries of a configuration, those of its submenus too, each with its title and its lines.
fn entries(configuration: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    let mut lines = configuration.lines();
    std::iter::from_fn(move || {
        let head = lines.by_ref().find(|line| {
            let line = line.trim_start();
            line.starts_with("menuentry ") && line.trim_end().ends_with('{')
        })?;
        let title = head.split(['\'', '"']).nth(1).unwrap_or_default();
        let body = lines.by_ref().take_while(|line| line.trim() != "}");
        Some((title, body.collect()))
    })
}

/// Whether a line of an entry loads the kernel of that release.
fn boots(line: &str, release: &str) -> bool {
    release_of(line).is_some_and(|found| found == release)
}

/// The release of the kernel that a line loads: `linux /boot/vmlinuz-6.1.0 root=…`.
fn release_of(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let command = words.next()?;
    let path = words.next()?;
    let name = path.rsplit('/').next()?;
    let release = name.strip_prefix("vmlinuz-")?;
    matches!(command, "linux" | "linux16" | "linuxefi").then(|| release.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As Debian's grub-mkconfig writes it, shortened.
    const CONFIGURATION: &str = r#"
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
fi
function savedefault {
  if [ -z "${boot_once}" ]; then
    saved_entry="${chosen}"
  fi
}
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-1' {
	load_video
	savedefault
	search --no-floppy --fs-uuid --set=root 1
	echo	'Loading Linux 6.1.0-28-amd64 ...'
	linux	/boot/vmlinuz-6.1.0-28-amd64 root=UUID=1 ro  quiet
	initrd	/boot/initrd.img-6.1.0-28-amd64
}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-1' {
	menuentry 'Debian GNU/Linux, with Linux 6.1.0-28-amd64 (recovery mode)' --class debian {
		linux	/boot/vmlinuz-6.1.0-9-amd64 root=UUID=1 ro single
	}
	menuentry 'Debian GNU/Linux, with Linux 6.1.0-9-amd64' --class debian {
		linux	/boot/vmlinuz-6.1.0-9-amd64 root=UUID=1 ro quiet
		initrd	/boot/initrd.img-6.1.0-9-amd64
	}
}
"#;

    #[test]
    fn an_entry_is_the_owners_with_more_parameters() {
        let parameters = ["mitigations=off".to_owned(), "nosmt".to_owned()];
        let entry = entry(CONFIGURATION, "6.1.0-28-amd64", &parameters).unwrap();
        let expected = "
# fwdlab wrote this and takes it back
# as: Debian GNU/Linux
menuentry 'fwdlab' --id fwdlab {
	load_video
	search --no-floppy --fs-uuid --set=root 1
	echo	'Loading Linux 6.1.0-28-amd64 ...'
	linux	/boot/vmlinuz-6.1.0-28-amd64 root=UUID=1 ro  quiet mitigations=off nosmt
	initrd	/boot/initrd.img-6.1.0-28-amd64
}
";
        assert_eq!(entry, expected);
        let custom = "menuentry 'mine' {\n}\n".to_owned() + &entry;
        assert_eq!(owners(&custom), "menuentry 'mine' {\n}\n");
        assert_eq!(owners("mine"), "mine");
    }

    #[test]
    fn other_kernels_are_found_in_submenus_and_recovery_is_not() {
        let entry = entry(CONFIGURATION, "6.1.0-9-amd64", &[]).unwrap();
        assert!(
            entry.contains("vmlinuz-6.1.0-9-amd64 root=UUID=1 ro quiet\n"),
            "{entry}"
        );
        let missing = super::entry(CONFIGURATION, "6.1.0", &[]).unwrap_err();
        assert_eq!(
            missing,
            "it has no entry for the kernel 6.1.0; there are 6.1.0-28-amd64, 6.1.0-9-amd64"
        );
    }

    #[test]
    fn a_configuration_without_kernels_differs_from_one_with_some() {
        assert!(has_kernels(CONFIGURATION));
        let bls = "insmod blscfg\nblscfg\nmenuentry 'UEFI Firmware Settings' {\n\tfwsetup\n}\n";
        assert!(!has_kernels(bls));
    }

    proptest! {
        #[test]
        fn any_configuration_is_read(text in "(menuentry '|\\{|\\}|\n|\t|linux /vmlinuz-1|\\PC){0,30}") {
            let _ = entry(&text, "1", &[]);
        }
    }
}
