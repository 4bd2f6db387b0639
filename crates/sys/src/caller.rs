//! Whose the files are: of the user who called sudo, where one did.

use std::env;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::fchown;
use std::path::Path;
use std::sync::OnceLock;

/// A user and a group.
type Ids = (u32, u32);

/// Gives a file that this process has just made to the user who called it by sudo.
///
/// A file system that refuses leaves it to root, which takes nothing from what is in it.
pub fn give_to_caller(file: &File) {
    static CALLER: OnceLock<Option<Ids>> = OnceLock::new();
    let caller = CALLER.get_or_init(|| {
        let said = |name| env::var(name).ok();
        caller(crate::is_root(), said("SUDO_UID"), said("SUDO_GID"))
    });
    if let Some((user, group)) = *caller {
        let _ = fchown(file, Some(user), Some(group));
    }
}

/// Makes a folder, for the user who called this process by sudo.
///
/// # Errors
/// What the system says.
pub fn create_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    give_to_caller(&File::open(path)?);
    Ok(())
}

/// Who called sudo, by what that says in the environment: only to root is that of use.
fn caller(is_root: bool, user: Option<String>, group: Option<String>) -> Option<Ids> {
    let id = |text: Option<String>| text?.parse().ok();
    is_root.then_some((id(user)?, id(group)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_gives_away_and_only_to_whom_sudo_names() {
        let said = |text: &str| Some(text.to_owned());
        assert_eq!(caller(true, said("1000"), said("100")), Some((1000, 100)));
        assert_eq!(caller(false, said("1000"), said("100")), None);
        assert_eq!(caller(true, said("1000"), None), None);
        assert_eq!(caller(true, said("me"), said("100")), None);
        assert_eq!(caller(true, said("-1"), said("100")), None);
    }
}
