//! Images of nanobsd that a FreeBSD host boots.

use fwdlab_model::{Upload, Variant};

use super::Mechanism;
use super::by_level::ByLevel;
use super::question::{Answers, Question};
use super::step::BootChoice;
use crate::LabError;

/// Which image a host boots; none is the owner's system. That it has, is looked at when it has booted.
pub(super) struct Image(pub(super) ByLevel<Option<Upload>>);

impl Image {
    fn image(&self, variant: &Variant) -> Result<Option<&Upload>, LabError> {
        Ok(self.0.get(variant)?.and_then(Option::as_ref))
    }
}

impl Mechanism for Image {
    fn needs(&self, variant: &Variant) -> Result<Vec<Question>, LabError> {
        let image = self.image(variant)?;
        Ok(image.map(|_| Question::ImageWriter).into_iter().collect())
    }

    fn lacking(&self, variant: &Variant, answers: &Answers) -> Result<Option<String>, LabError> {
        let image = self.image(variant)?;
        Ok(image.and_then(|_| answers.no_image_writer.clone()))
    }

    fn boot(&self, variant: &Variant, choice: &mut BootChoice) -> Result<(), LabError> {
        if let Some(image) = self.image(variant)? {
            choice.image = Some(image.found.clone());
        }
        Ok(())
    }
}
