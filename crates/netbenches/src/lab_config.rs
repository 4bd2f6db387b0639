//! `bench-lab-….config`: the hosts, interfaces and commands of a lab, as variables of a shell.

use crate::assignments::{Assignment, AssignmentError, Assignments, Dialect, Operator};

/// A lab, as its variables describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabConfig {
    /// All variables, in order. `$…` in their values stands as it is, and commands are text.
    pub variables: Vec<Assignment>,
}

/// What a variable of a lab is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LabVariable {
    /// `…_ADMIN`: a host, by the name or address for its administration.
    Host,
    /// `…_IF`: an interface.
    Interface,
    /// `…_MAC`: the MAC address of an interface.
    Mac,
    /// `…_IP`: the address of an interface.
    Address,
    /// `…_NET`: the addresses of flows.
    Flows,
    /// `…_CMD`: a command.
    Command,
    /// Whatever else: sizes, counts, times to wait.
    Other,
}

impl LabVariable {
    /// What a variable's name says it is about.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let has = |word: &str| name.split('_').any(|part| part == word);
        // The MAC address of an interface names both.
        [
            ("CMD", Self::Command),
            ("MAC", Self::Mac),
            ("ADMIN", Self::Host),
            ("IF", Self::Interface),
            ("IP", Self::Address),
            ("NET", Self::Flows),
        ]
        .into_iter()
        .find_map(|(word, kind)| has(word).then_some(kind))
        .unwrap_or(Self::Other)
    }
}

impl LabConfig {
    /// Reads a lab, and never runs it.
    ///
    /// Shape: assignments, assignments of defaults and comments only.
    ///
    /// # Errors
    /// [`AssignmentError`], with a line.
    ///
    /// # Examples
    /// ```
    /// use fwdlab_netbenches::LabConfig;
    /// let lab = LabConfig::parse(
    ///     b"DUT_ADMIN=\"sm2\"\nSENDER_LAB_IF=\"ix0\"\nSENDER_START_CMD=\"pkt-gen -f tx -i ${SENDER_LAB_IF}\"\n",
    /// )?;
    /// assert_eq!(lab.value("DUT_ADMIN"), Some("sm2"));
    /// assert_eq!(lab.value("SENDER_START_CMD"), Some("pkt-gen -f tx -i ${SENDER_LAB_IF}"));
    /// # Ok::<(), fwdlab_netbenches::AssignmentError>(())
    /// ```
    pub fn parse(text: &[u8]) -> Result<Self, AssignmentError> {
        let variables = Assignments::new(text, Dialect::Shell).collect::<Result<_, _>>()?;
        Ok(Self { variables })
    }

    /// The value of a variable, where it has one: the last one, unless that is a default.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        let mut named = self
            .variables
            .iter()
            .filter(|variable| variable.name == name);
        let first = named.next()?;
        let last = named.fold(first, |before, variable| {
            if variable.operator == Operator::Default && !before.value.is_empty() {
                before
            } else {
                variable
            }
        });
        Some(last.value.as_str()).filter(|value| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::assignments::Expansion;

    const LAB: &str = "\
#!/bin/sh
#  +-------+
DUT_ADMIN=\"sm2\"\t# the DUT
REF_ADMIN=\"\"
RECEIVER_ADMIN=${SENDER_ADMIN}
SENDER_LAB_IF=\"ix0\"
SENDER_LAB_IF_MAC=\"00:25:90:91:14:0a\"
SENDER_LAB_IP_2=\"198.18.0.2\"
: ${SENDER_LAB_NET:=\"198.18.10.1:2001-198.18.10.71\"}
: ${PKT_SIZE:=\"43\"}
IS_DUT_ONLINE_CMD=\"ping -c 2 ${SENDER_LAB_IP} && \\
ping -c 2 x; $(true)\"
";

    #[test]
    fn variables_are_about_hosts_interfaces_and_commands() {
        let lab = LabConfig::parse(LAB.as_bytes()).unwrap();
        let about = |kind| {
            let variables = lab.variables.iter();
            variables.filter(move |variable| LabVariable::of(&variable.name) == kind)
        };
        let names = |kind| {
            about(kind)
                .map(|variable| variable.name.as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(LabVariable::Host),
            ["DUT_ADMIN", "REF_ADMIN", "RECEIVER_ADMIN"]
        );
        assert_eq!(names(LabVariable::Interface), ["SENDER_LAB_IF"]);
        assert_eq!(names(LabVariable::Mac), ["SENDER_LAB_IF_MAC"]);
        assert_eq!(names(LabVariable::Address), ["SENDER_LAB_IP_2"]);
        assert_eq!(names(LabVariable::Flows), ["SENDER_LAB_NET"]);
        assert_eq!(names(LabVariable::Other), ["PKT_SIZE"]);
        let command = about(LabVariable::Command).next().unwrap();
        assert_eq!(
            command.value,
            "ping -c 2 ${SENDER_LAB_IP} && ping -c 2 x; $(true)"
        );
        assert_eq!(
            (command.line, command.expansion),
            (11, Some(Expansion::Command))
        );
        assert_eq!(
            (
                lab.value("DUT_ADMIN"),
                lab.value("REF_ADMIN"),
                lab.value("X")
            ),
            (Some("sm2"), None, None)
        );
    }

    #[test]
    fn a_default_does_not_replace_and_a_command_is_refused() {
        let lab = LabConfig::parse(b": ${AF:=4}\nAF=6\n: ${AF:=5}\nB=\n: ${B:=1}").unwrap();
        assert_eq!((lab.value("AF"), lab.value("B")), (Some("6"), Some("1")));
        let refusal = LabConfig::parse(b"A=1\nping x\n").unwrap_err();
        assert_eq!(refusal, AssignmentError::Other { line: 2 });
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>, name: String) {
            if let Ok(lab) = LabConfig::parse(&bytes) {
                prop_assert!(lab.value(&name).is_none_or(|value| !value.is_empty()));
            }
        }

        #[test]
        fn written_values_are_read_back(host in "[a-z0-9.]{1,20}", mac in "[0-9a-f:]{1,17}") {
            let lab = LabConfig::parse(format!("DUT_ADMIN={host}\nX_MAC='{mac}'").as_bytes()).unwrap();
            prop_assert_eq!(lab.value("DUT_ADMIN"), Some(host.as_str()));
            prop_assert_eq!(lab.value("X_MAC"), Some(mac.as_str()));
        }
    }
}
