//! What waits to be read.

use std::io::Read;
use std::os::fd::AsFd;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

/// Reads what waits in a pipe, at most so many bytes of it, and waits for nothing: its other end may be open for as long as any
/// process has it.
pub fn read_waiting(pipe: &mut (impl AsFd + Read), bytes_max: u64) -> Vec<u8> {
    let mut waiting = Vec::new();
    let flags = fcntl(pipe.as_fd(), FcntlArg::F_GETFL).map(OFlag::from_bits_retain);
    let set = |flags| fcntl(pipe.as_fd(), FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK));
    if flags.and_then(set).is_ok() {
        // What was read before an error stays, and that nothing waits is one.
        let _ = pipe.take(bytes_max).read_to_end(&mut waiting);
    }
    waiting
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn an_open_pipe_is_not_waited_for() {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        assert_eq!(read_waiting(&mut reader, 9), b"");
        writer.write_all(b"some words").unwrap();
        assert_eq!(read_waiting(&mut reader, 4), b"some");
        assert_eq!(read_waiting(&mut reader, 9), b" words");
        drop(writer);
        assert_eq!(read_waiting(&mut reader, 9), b"");
    }
}
