//! A parameter of a kernel module of Linux.

use toml::Spanned;

use crate::binding::Binding;
use crate::document::Reading;
use crate::kind::{LabKind, System};
use crate::schema_parts::line;

use super::{Binder, Description, Given, Levels, Meanings, Mechanism};

pub(super) const MODULE: Description = Description {
    key: "module",
    what: "a parameter of a kernel module",
    levels: Levels::Values,
    kinds: &[LabKind::Ssh(System::Linux)],
    takes_values: true,
    table: None,
    read,
    schema,
};

fn schema() -> serde_json::Value {
    line("A parameter of a kernel module: module.parameter. May need a reboot.")
}

/// A module and a parameter of it, and the value of each level where the levels are not the values.
#[derive(Debug)]
struct Module {
    module: String,
    parameter: String,
    values: Option<Meanings<String>>,
}

impl Mechanism for Module {
    fn bind(&self, binder: &mut Binder<'_, '_>) -> Binding {
        Binding::Module {
            module: self.module.clone(),
            parameter: self.parameter.clone(),
            values: binder.values(self.values.as_ref(), "a module's parameter"),
        }
    }

    fn sets(&self, _: Option<[&str; 2]>) -> Vec<String> {
        vec![format!("module {} {}", self.module, self.parameter)]
    }
}

fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Box<dyn Mechanism>> {
    let parameter = reading.line(given.value, given.what)?;
    let (module, parameter) = module_parameter(reading, &parameter)?;
    Some(Box::new(Module {
        module,
        parameter,
        values: given.values,
    }))
}

/// `module.parameter`, both as they stand below `/sys/module`.
fn module_parameter(reading: &mut Reading<'_>, name: &Spanned<String>) -> Option<(String, String)> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let is_name = |part: &str| !part.is_empty() && part.bytes().all(is_plain);
    match name.get_ref().split_once('.') {
        Some((module, parameter)) if is_name(module) && is_name(parameter) => {
            Some((module.replace('-', "_"), parameter.to_owned()))
        }
        _ => {
            let message = format!("{:?} is no parameter of a module", name.get_ref());
            reading.error(name.span(), message).with_help(
                "write module.parameter, as `modinfo -p MODULE` lists them: \"ixgbe.max_vfs\"",
            );
            None
        }
    }
}
