//! Random changes to the images that a model is trained on.

use super::dimension::{Chooser, Dimension, is_default};
use serde::{Deserialize, Serialize};

/// Data augmentation of every row of a training batch, of shape `[channels, height, width]` and already
/// scaled; drawn anew for each row from the batch's seed. Evaluation sees rows as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Augment {
    /// Zeros put around an image, on each side, before a window of its old size is taken out of it: all
    /// `(2 crop + 1)^2` places are as likely. At most the shorter side. With `scale = "standard"`
    /// 0 is each feature's mean.
    #[serde(default, skip_serializing_if = "is_default")]
    pub crop: u32,
    /// Left and right change places with probability 1/2.
    #[serde(default, skip_serializing_if = "is_default")]
    pub flip: bool,
}

/// `augment` with open dimensions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "see the fields of `Augment`")]
pub struct AugmentSpace {
    #[serde(default, skip_serializing_if = "is_default")]
    pub crop: Dimension<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub flip: Dimension<bool>,
}

impl AugmentSpace {
    /// The augmentation that `chooser` takes: `Some(None)` where it changes nothing.
    pub(crate) fn close(&self, chooser: &mut dyn Chooser) -> Option<Option<Augment>> {
        let crop = self.crop.close("training.augment.crop", chooser)?;
        let flip = self.flip.close("training.augment.flip", chooser)?;
        let augment = Augment { crop, flip };
        Some((augment != Augment::default()).then_some(augment))
    }
}
