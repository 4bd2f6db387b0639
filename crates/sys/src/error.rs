use std::io;

/// A system call that failed.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}{}", remedy(source))]
pub struct SysError {
    /// What was tried, with its object.
    pub what: String,
    /// What the kernel said.
    pub source: io::Error,
}

impl SysError {
    pub(crate) fn new(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self {
            what: what.into(),
            source: source.into(),
        }
    }
}

fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied if !crate::is_root() => "; run as root (sudo)",
        _ => "",
    }
}
