//! Files by which a Linux kernel is set: read, written and put back.

use super::step::{Errand, Step, owned};

/// Whether each part of an absolute path goes further down.
pub(super) fn is_plain(path: &str) -> bool {
    let mut parts = path.split('/').skip(1);
    parts.all(|part| !["", ".", ".."].contains(&part))
}

/// What reads a file.
pub(crate) fn cat(path: &str) -> Vec<String> {
    owned(&["cat", path])
}

/// What writes a file.
pub(crate) fn write(path: &str, value: &str) -> Errand {
    Errand::reading(&["tee", path], value)
}

/// A file that is put back as it was.
pub(crate) fn kept(path: &str, value: &str) -> Step {
    // One that is gone, with a module or a boot, has nothing to be put back.
    let undo = Errand::reading(&["sh", "-c", "[ ! -e \"$0\" ] || tee \"$0\"", path], value);
    Step::kept(format!("{path} ({value})"), undo)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_only_goes_down() {
        assert!(is_plain("/sys/class/net/eth0.10/queues/rx-0/rps_cpus"));
        for path in [
            "/sys/class/net/eth0/../lo/mtu",
            "/sys/class/net/eth0//etc",
            "/sys/./mtu",
            "/sys/",
        ] {
            assert!(!is_plain(path), "{path}");
        }
    }
}
