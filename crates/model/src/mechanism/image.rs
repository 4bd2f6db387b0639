//! Images of nanobsd, written to the other slice of a FreeBSD host.

use serde_json::json;
use toml::Spanned;

use crate::binding::{Binding, Upload};
use crate::document::Reading;
use crate::kind::{LabKind, System};
use crate::schema_parts::by_level;

use super::{
    Binder, ByLevel, Description, Given, Levels, Meanings, Mechanism, file_or_none, levels,
};

pub(super) const IMAGE: Description = Description {
    key: "image",
    what: "images of nanobsd",
    levels: Levels::Files,
    kinds: &[LabKind::Ssh(System::Freebsd)],
    takes_values: false,
    table: None,
    read,
    schema,
};

fn schema() -> serde_json::Value {
    by_level(
        "The file of nanobsd's image of each level, relative to this file, which is written to the \
         DUT's other slice; \"\" is the system that it boots by itself. Needs a reboot.",
        json!({ "type": "string" }),
    )
}

/// For each level the file of an image, relative to the lab file; empty is the owner's system.
fn read(reading: &mut Reading<'_>, given: Given<'_>) -> Option<Box<dyn Mechanism>> {
    Some(Box::new(ByLevel {
        meanings: levels(reading, given.value, given.what, file_or_none),
        bind,
        // An image brings its kernel.
        sets: &["the kernel"],
    }))
}

fn bind(binder: &mut Binder<'_, '_>, files: &Meanings<Spanned<String>>) -> Binding {
    let files = binder.levels(files).into_iter();
    let images = files.map(|(level, file)| (level, image(binder, file)));
    Binding::Image(images.collect())
}

/// An image, for which something on the DUT has to give way.
fn image(binder: &mut Binder<'_, '_>, file: &Spanned<String>) -> Option<Upload> {
    if file.get_ref().is_empty() {
        return None;
    }
    if !binder.may_overwrite {
        let message = "an image takes the place of what is on the DUT's other slice, for good";
        let place = Some((binder.lab, file.span()));
        binder
            .reading
            .diagnostics
            .error(place, message)
            .with_help("where that may be lost, write overwrite_other_slice = true into [dut]");
    }
    binder.upload(file)
}
