//! A user namespace of this process's own, in which an ordinary user may do what root does with
//! network namespaces.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

use nix::sched::{CloneFlags, unshare};

use crate::start_thread;

/// Inode of the user namespace that the kernel starts with (`PROC_USER_INIT_INO`).
const INITIAL_USER_NAMESPACE: &str = "user:[4026531837]";

/// Where programs for root lie that an ordinary user's `PATH` often leaves out, `nft` among them.
const ROOTS_PROGRAMS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Why there is no user namespace to be had.
#[derive(Debug, thiserror::Error)]
#[error("{source}; {}", remedy(obstacles))]
pub struct NoUserNamespace {
    /// What was refused.
    source: io::Error,
    /// Settings of this machine that forbid it.
    obstacles: Vec<Obstacle>,
}

/// A sysctl that forbids user namespaces or what they are needed for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Obstacle {
    sysctl: &'static str,
    value: String,
    /// A value with which it would not be one.
    wanted: &'static str,
}

/// Whether this process is in another user namespace than the one that the kernel starts with: it
/// may then own network namespaces, but nothing of the machine itself.
#[must_use]
pub fn is_in_user_namespace() -> bool {
    fs::read_link("/proc/self/ns/user")
        .is_ok_and(|namespace| namespace != Path::new(INITIAL_USER_NAMESPACE))
}

/// Moves this process for good into a user namespace of its own, where its user is root: files that
/// it makes outside still belong to that user.
///
/// To be called before any thread is started, as the kernel demands. The folders of root's programs
/// come to the end of `PATH`.
///
/// # Errors
/// Where user or network namespaces are forbidden, with the settings that forbid them.
pub fn enter_user_namespace() -> Result<(), NoUserNamespace> {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    let refused = |source: io::Error| NoUserNamespace {
        source,
        obstacles: obstacles(|path| fs::read_to_string(path).ok()),
    };
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|errno| refused(errno.into()))?;
    // Without the right to drop groups, which it must give up first, nobody may map a group.
    fs::write("/proc/self/setgroups", "deny")
        .and_then(|()| fs::write("/proc/self/uid_map", format!("0 {user} 1")))
        .and_then(|()| fs::write("/proc/self/gid_map", format!("0 {group} 1")))
        .map_err(refused)?;
    prove_network_namespaces().map_err(refused)?;
    let path = with_roots_programs(std::env::var_os("PATH").unwrap_or_default());
    // SAFETY: this process has one thread, or the kernel would not have let it into another user
    // namespace, and the one that was started since has ended; so nobody reads the environment.
    unsafe { std::env::set_var("PATH", path) };
    Ok(())
}

/// Some security modules let a user namespace be made and only then forbid all that it is good for.
fn prove_network_namespaces() -> io::Result<()> {
    start_thread(|| unshare(CloneFlags::CLONE_NEWNET))
        .map_err(io::Error::other)?
        .join()
        .expect("a system call does not panic")
        .map_err(Into::into)
}

fn with_roots_programs(path: OsString) -> OsString {
    let mut folders: Vec<_> = std::env::split_paths(&path).collect();
    for folder in ROOTS_PROGRAMS {
        if !folders.iter().any(|known| known == Path::new(folder)) {
            folders.push(folder.into());
        }
    }
    // Folders that came out of a PATH hold no colon.
    std::env::join_paths(folders).unwrap_or(path)
}

/// The settings that forbid what is needed, among all that are known to.
fn obstacles(read: impl Fn(&str) -> Option<String>) -> Vec<Obstacle> {
    [
        ("user.max_user_namespaces", "0", "10000"),
        ("user.max_net_namespaces", "0", "10000"),
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ]
    .into_iter()
    .filter_map(|(sysctl, forbidding, wanted)| {
        let value = read(&format!("/proc/sys/{}", sysctl.replace('.', "/")))?;
        let value = value.trim();
        (value == forbidding).then(|| Obstacle {
            sysctl,
            value: value.to_owned(),
            wanted,
        })
    })
    .collect()
}

fn remedy(obstacles: &[Obstacle]) -> String {
    if obstacles.is_empty() {
        return "no sysctl known to forbid it does, so a container's seccomp filter or a security \
                module may"
            .into();
    }
    let settings: Vec<_> = obstacles
        .iter()
        .map(|obstacle| {
            let Obstacle {
                sysctl,
                value,
                wanted,
            } = obstacle;
            format!("{sysctl} is {value}: allow it with `sudo sysctl -w {sysctl}={wanted}`")
        })
        .collect();
    settings.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_forbid_are_named_with_what_would_allow() {
        let open = |path: &str| {
            (!path.contains("apparmor"))
                .then(|| if path.contains("max") { "9" } else { "1" }.into())
        };
        assert_eq!(obstacles(open), []);
        let closed = |path: &str| {
            Some(
                if path.contains("apparmor") {
                    "1\n"
                } else {
                    "0\n"
                }
                .into(),
            )
        };
        let found = obstacles(closed);
        assert_eq!(found.len(), 4);
        let text = NoUserNamespace {
            source: io::Error::from_raw_os_error(libc::ENOSPC),
            obstacles: found,
        }
        .to_string();
        for expected in [
            "No space left on device",
            "user.max_user_namespaces is 0: allow it with `sudo sysctl -w user.max_user_namespaces=10000`",
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ] {
            assert!(text.contains(expected), "{text}");
        }
        assert!(remedy(&[]).contains("seccomp"));
    }

    #[test]
    fn folders_of_roots_programs_come_last_and_once() {
        assert_eq!(
            with_roots_programs("/usr/bin:/usr/sbin".into()),
            "/usr/bin:/usr/sbin:/usr/local/sbin:/sbin"
        );
    }
}
