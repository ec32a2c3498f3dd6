//! Random windows and flips of training images.
//!
//! All randomness comes from a stream of its own, seeded by the batch's seed: it is the same wherever a hop
//! is cut, for any number of threads, and on any device.

use crate::error::TrainError;
use sojourn_protocol::{seeds, spec::Augment, unit::TrialContext};
use tch::Tensor;

/// A trial's changes to its training images.
#[derive(Debug)]
pub(crate) struct Augmenter {
    augment: Augment,
    channels: u32,
    height: u32,
    width: u32,
}

impl Augmenter {
    /// The trial's augmentation; `None` where there is none.
    pub(crate) fn of(context: &TrialContext) -> Result<Option<Self>, TrainError> {
        let Some(augment) = context.config.training.augment else { return Ok(None) };
        let &[channels, height, width] = context.shape.as_slice() else {
            return Err(TrainError::Unit("`augment` takes images".into()));
        };
        Ok(Some(Self { augment, channels, height, width }))
    }

    /// A changed copy of a batch's rows `x`, `[rows, features]`.
    pub(crate) fn apply(&self, x: &Tensor, batch_seed: u64) -> Result<Tensor, TrainError> {
        let (rows, features) = x.size2()?;
        let [channels, height, width] = [self.channels, self.height, self.width].map(i64::from);
        let images = x.f_view([rows, channels, height, width])?;
        let crop = i64::from(self.augment.crop);
        let padded =
            if crop > 0 { images.f_constant_pad_nd([crop; 4].as_slice())? } else { images };
        // Where in the padded image each row and column of each image comes from.
        let (down, across) = self.sources(rows, batch_seed);
        let index = |numbers: &[i64], shape: [i64; 4]| -> Result<Tensor, TrainError> {
            Ok(Tensor::f_from_slice(numbers)?.f_view(shape)?.f_to_device(x.device())?)
        };
        let indices = [
            index(&(0..rows).collect::<Vec<_>>(), [rows, 1, 1, 1])?,
            index(&(0..channels).collect::<Vec<_>>(), [1, channels, 1, 1])?,
            index(&down, [rows, 1, height, 1])?,
            index(&across, [rows, 1, 1, width])?,
        ];
        let changed = padded.f_index(&indices.each_ref().map(Some))?;
        Ok(changed.f_reshape([rows, features])?)
    }

    /// Per image the rows, then per image the columns of the padded image that it is made of.
    fn sources(&self, rows: i64, batch_seed: u64) -> (Vec<i64>, Vec<i64>) {
        let Augment { crop, flip } = self.augment;
        let mut rng = seeds::stream("augment", &[batch_seed]);
        let (mut down, mut across) = (Vec::new(), Vec::new());
        for _ in 0..rows {
            let (mut top, mut left) = (0, 0);
            if crop > 0 {
                top = seeds::below(&mut rng, 2 * crop + 1);
                left = seeds::below(&mut rng, 2 * crop + 1);
            }
            let flipped = flip && seeds::below(&mut rng, 2) == 1;
            down.extend((top..top + self.height).map(i64::from));
            let columns = (left..left + self.width).map(i64::from);
            if flipped { across.extend(columns.rev()) } else { across.extend(columns) }
        }
        (down, across)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use sojourn_protocol::spec::Architecture;
    use std::collections::BTreeSet;

    fn augmenter(crop: u32, flip: bool, shape: [u32; 3]) -> Augmenter {
        let mut context = fixture::context(Architecture::mlp([]));
        context.config.training.augment = Some(Augment { crop, flip });
        context.shape = shape.to_vec();
        Augmenter::of(&context).unwrap().unwrap()
    }

    /// `rows` images whose values are their places, from 1 on.
    fn images(rows: i64, features: i64) -> Tensor {
        let image: Vec<f32> = (1..=features).map(|value| value as f32).collect();
        Tensor::from_slice(&image).repeat([rows, 1])
    }

    fn rows(x: &Tensor) -> Vec<Vec<f32>> {
        Vec::<Vec<f32>>::try_from(x).unwrap()
    }

    #[test]
    fn flips_come_for_half_of_the_rows_and_turn_every_channel() {
        let x = images(400, 12);
        let changed = rows(&augmenter(0, true, [2, 2, 3]).apply(&x, 7).unwrap());
        let plain: Vec<f32> = (1..=12u8).map(f32::from).collect();
        let flipped = [3.0, 2.0, 1.0, 6.0, 5.0, 4.0, 9.0, 8.0, 7.0, 12.0, 11.0, 10.0];
        let turned = changed.iter().filter(|row| **row == flipped).count();
        assert_eq!(turned + changed.iter().filter(|row| **row == plain).count(), 400);
        // One deviation is 10.
        assert!((150..250).contains(&turned), "{turned}");
    }

    #[test]
    fn windows_come_from_every_place_of_the_padded_image() {
        let x = images(1000, 4);
        let changed = rows(&augmenter(1, false, [1, 2, 2]).apply(&x, 7).unwrap());
        let mut all = BTreeSet::new();
        // The image [1 2; 3 4] with a zero on each side, in windows of 2x2.
        let padded =
            [[0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, 0.0], [0.0, 3.0, 4.0, 0.0], [0.0f32; 4]];
        for top in 0..3 {
            for left in 0..3 {
                let window = [(0, 0), (0, 1), (1, 0), (1, 1)];
                all.insert(window.map(|(y, x)| padded[top + y][left + x].to_bits()).to_vec());
            }
        }
        let came: BTreeSet<Vec<u32>> =
            changed.iter().map(|row| row.iter().map(|value| value.to_bits()).collect()).collect();
        assert_eq!(came, all);
    }

    #[test]
    fn the_seed_says_all_and_a_row_is_drawn_after_those_before_it() {
        let augmenter = augmenter(2, true, [1, 4, 4]);
        let x = images(20, 16);
        let first = rows(&augmenter.apply(&x, 1).unwrap());
        assert_eq!(first, rows(&augmenter.apply(&x, 1).unwrap()));
        assert_ne!(first, rows(&augmenter.apply(&x, 2).unwrap()));
        assert_eq!(first[..5], rows(&augmenter.apply(&x.narrow(0, 0, 5), 1).unwrap()));
        assert_eq!(rows(&x), rows(&images(20, 16)), "the rows themselves stay");
    }

    #[test]
    fn nothing_asked_is_nothing_done_and_flat_rows_are_refused() {
        let mut context = fixture::context(Architecture::mlp([]));
        assert!(Augmenter::of(&context).unwrap().is_none());
        context.config.training.augment = Some(Augment { crop: 1, flip: false });
        context.shape = vec![16];
        let error = Augmenter::of(&context).unwrap_err();
        assert_eq!(error.to_string(), "`augment` takes images");
    }
}
