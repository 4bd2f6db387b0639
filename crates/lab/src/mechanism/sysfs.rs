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

/// Whether a CPU is in a mask of CPUs.
pub(crate) fn has_cpu(mask: &str, cpu: u32) -> bool {
    let digits = mask.trim().chars().rev().filter(|&digit| digit != ',');
    let mut digits = digits.skip(cpu as usize / 4);
    let digit = digits.next().and_then(|digit| digit.to_digit(16));
    digit.is_some_and(|digit| digit & (1 << (cpu % 4)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_the_cpus_of_its_bits() {
        for (mask, cpus) in [
            ("0", &[][..]),
            ("1", &[0]),
            ("00000006\n", &[1, 2]),
            ("1,80000000", &[31, 32]),
            ("", &[]),
            ("x", &[]),
        ] {
            let found = (0..64).filter(|&cpu| has_cpu(mask, cpu));
            assert_eq!(found.collect::<Vec<u32>>(), cpus, "{mask}");
        }
    }

    #[test]
    fn masks_are_the_same_however_they_are_shown() {
        assert!(is_same("1", "1\n"));
        assert!(is_same("3", "00000003"));
        assert!(is_same("A,00000001", "0000000a,00000001\n"));
        assert!(is_same("0", "00000000,00000000"));
        assert!(!is_same("1", "3") && !is_same("", "1") && !is_same("mq", "noqueue"));
    }
}
