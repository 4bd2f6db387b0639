//! Every rule on published trees: what it finds, and what it must not.

mod files;
mod foreign;
mod hostile;
mod logs;
mod numbers;
mod profiles;
mod tables;
mod texts;

use super::sample::Sample;

#[test]
fn nothing_is_found_in_a_sound_tree() {
    assert_eq!(Sample::sound().found(), [""; 0]);
}
