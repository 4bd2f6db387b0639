//! Benches: what a figure in the docs was measured with.

use anyhow::{Result, bail};

/// A bench: its name, what it measures, and what runs it with the arguments after its name.
type Bench = (&'static str, &'static str, fn(&[&str]) -> Result<()>);

const BENCHES: &[Bench] = &[];

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    dispatch(BENCHES, arguments)
}

fn dispatch(benches: &[Bench], arguments: &[&str]) -> Result<()> {
    let list: String = benches
        .iter()
        .map(|(name, measures, _)| format!("\n  {name:<8}{measures}"))
        .collect();
    let list = if list.is_empty() {
        "\n  (none yet)"
    } else {
        &list
    };
    let Some((name, arguments)) = arguments.split_first() else {
        println!("cargo xtask bench <name>\n{list}");
        return Ok(());
    };
    match benches.iter().find(|(known, ..)| known == name) {
        Some((_, _, run)) => run(arguments),
        None => bail!("bench: no bench {name:?}; there are:{list}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[Bench] = &[
        ("first", "what is asked of it", |arguments| {
            bail!("ran with {arguments:?}")
        }),
        ("second", "nothing", |_| Ok(())),
    ];

    #[test]
    fn a_bench_gets_the_arguments_after_its_name() {
        let error = dispatch(TWO, &["first", "--pairs", "3"]).unwrap_err();
        assert_eq!(error.to_string(), r#"ran with ["--pairs", "3"]"#);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_names_there_are() {
        let error = dispatch(TWO, &["third"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "bench: no bench \"third\"; there are:\n  first   what is asked of it\n  second  nothing"
        );
        assert!(
            dispatch(&[], &["gen"])
                .unwrap_err()
                .to_string()
                .ends_with("(none yet)")
        );
    }
}
