//! A file below `/sys/class/net/<interface>/`.

use fwdlab_model::{DutInterface, Values};

use super::DutPlace;
use super::held::{Held, Holder};
use super::reading::Form;

/// One of a Linux kernel.
pub(super) fn on_linux(
    factor: &str,
    file: &str,
    interfaces: &[DutInterface],
    values: &Values,
    place: &DutPlace,
) -> Held {
    let interfaces = interfaces.iter();
    let paths =
        interfaces.map(|&interface| format!("/sys/class/net/{}/{file}", place.port(interface)));
    let holder = Holder::Files(Form::TextOrMask);
    Held::new(factor, paths.collect(), values, holder)
}

/// Whether two values are the same for the kernel: as text, or as masks of CPUs, which it shows with
/// zeros in front and a comma every 32 bits.
pub(crate) fn is_same(asked: &str, seen: &str) -> bool {
    let mask = |text: &str| -> Option<String> {
        let digits = text.trim().replace(',', "");
        let is_mask = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_mask.then(|| digits.trim_start_matches('0').to_ascii_lowercase())
    };
    asked.trim() == seen.trim() || mask(asked).is_some_and(|asked| mask(seen) == Some(asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_the_same_however_they_are_shown() {
        assert!(is_same("1", "1\n"));
        assert!(is_same("3", "00000003"));
        assert!(is_same("A,00000001", "0000000a,00000001\n"));
        assert!(is_same("0", "00000000,00000000"));
        assert!(!is_same("1", "3") && !is_same("", "1") && !is_same("mq", "noqueue"));
    }
}
