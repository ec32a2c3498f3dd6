//! A surrogate: the loss that a trial would have after each epoch, from learning curves of other configurations of its space.
//!
//! ```text
//!   recorded curves (CSV)  ----.
//!   configuration --> place in the space --> mean of the curves nearby, weighted --> x offset of the trial --> loss
//!                                                                                    x noise of the epoch
//! ```
//!
//! The mean is that of Nadaraya and Watson (1964), of the losses' logarithms, with a Gaussian kernel whose width along each axis
//! stands in the table. The offset stands for what a configuration doesn't tell, and is as large as held-out curves
//! miss by; the noise is as large as that of the recorded curves. Both follow from a seed.
//!
//! | file | holds |
//! |---|---|
//! | `table.rs` | the CSV file; a place in the space |
//! | `quality.rs` | how well held-out curves are met |

mod quality;
mod table;

use super::lognormal::lognormal;
pub use quality::Quality;
use sojourn_protocol::{
    ids::TrialId, quantity::to_u64, quantity::to_usize, seeds, spec::TrialConfig,
};
use table::{Axis, Curve, Place, axes_and_curves};

/// Learning curves of configurations that nobody has trained.
#[derive(Debug, Clone)]
pub struct Surrogate {
    axes: Vec<Axis>,
    curves: Vec<Curve>,
    quality: Quality,
}

impl Surrogate {
    /// Reads recorded curves. `name` is the file's, for people.
    ///
    /// The first row names settings (`training.optimizer.lr`) and then epochs (1, 2 and so on), the second has the width of the
    /// kernel along each setting, and each further one the settings of a configuration, as JSON, and its losses.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(name: &str, text: &str) -> Result<Self, String> {
        let read = axes_and_curves(text).map_err(|error| format!("the curves `{name}`: {error}"));
        let (axes, curves) = read?;
        let quality = Quality::of(&curves);
        Ok(Self { axes, curves, quality })
    }

    /// Epochs of the recorded curves.
    #[must_use]
    pub fn epochs(&self) -> u32 {
        self.curves.first().map_or(0, Curve::epochs)
    }

    /// Recorded curves.
    #[must_use]
    pub fn len(&self) -> u64 {
        to_u64(self.curves.len())
    }

    /// Are there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.curves.is_empty()
    }

    /// How well held-out curves are met.
    #[must_use]
    pub fn quality(&self) -> &Quality {
        &self.quality
    }

    /// The loss of a trial after each epoch, the first one's first.
    ///
    /// # Errors
    /// The setting that the configuration lacks.
    pub fn curve(
        &self,
        config: &TrialConfig,
        seed: u64,
        trial: TrialId,
    ) -> Result<Vec<f64>, String> {
        let place = Place::of(&self.axes, config)?;
        let logs = table::mean_of(&self.curves, &place, None);
        let chance =
            |epoch: u64| seeds::stream("sim-surrogate", &[seed, u64::from(trial.0), epoch]);
        let offset = lognormal(&mut chance(0), self.quality.offset);
        let noisy = (1u64..).zip(logs).map(|(epoch, log)| {
            libm::exp(log) * offset * lognormal(&mut chance(epoch), self.quality.noise)
        });
        Ok(noisy.collect())
    }

    /// The loss of a trial after so many epochs; more than were recorded bring nothing new.
    ///
    /// # Errors
    /// As of [`Self::curve`].
    pub fn loss(
        &self,
        config: &TrialConfig,
        epochs: u32,
        seed: u64,
        trial: TrialId,
    ) -> Result<f64, String> {
        let curve = self.curve(config, seed, trial)?;
        let last = epochs.clamp(1, self.epochs().max(1)) - 1;
        curve.get(to_usize(last)).copied().ok_or_else(|| "the curves have no epochs".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::{jobfile, spec::JobSpec};

    const TABLE: &str = "model.hidden,training.optimizer.lr,1,2\n0.1,0.2,,\n[8],0.001,2.0,1.0\n[8],0.1,1.0,0.5\n\
                         [4],0.001,4.0,3.0\n[4],0.1,3.0,2.5\n[2],0.01,9.0,9.0\n";

    fn spec(hidden: &str, lr: &str) -> JobSpec {
        let text = format!(
            "name = \"t\"\n[data]\ntrain = \"d.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = {hidden}\n\
             [training]\nepochs = 2\nbatch_size = 8\noptimizer = {{ name = \"adam\", lr = {lr} }}\n\
             [search]\nmethod = \"grid\"\nmetric = \"valid/loss\"\n"
        );
        jobfile::parse(&text).unwrap()
    }

    fn curve(surrogate: &Surrogate, hidden: &str, lr: &str, seed: u64) -> Result<Vec<f64>, String> {
        let config = sojourn_workgen::trials(&spec(hidden, lr)).unwrap().remove(0).config;
        surrogate.curve(&config, seed, TrialId(3))
    }

    /// Without offset and noise.
    fn exact(table: &str) -> Surrogate {
        let mut surrogate = Surrogate::read("t.csv", table).unwrap();
        surrogate.quality.offset = 0.0;
        surrogate.quality.noise = 0.0;
        surrogate
    }

    #[test]
    fn a_recorded_configuration_has_its_own_curve_and_one_between_two_their_geometric_mean() {
        let surrogate = exact(TABLE);
        let near = |values: Vec<f64>, wanted: [f64; 2]| {
            values.iter().zip(wanted).all(|(value, wanted)| (value - wanted).abs() < 1e-3)
        };
        assert!(near(curve(&surrogate, "[8]", "0.001", 1).unwrap(), [2.0, 1.0]));
        assert!(near(curve(&surrogate, "[4]", "0.1", 1).unwrap(), [3.0, 2.5]));
        // The rate is taken by its logarithm: 0.01 is in the middle.
        let middle = curve(&surrogate, "[8]", "0.01", 1).unwrap();
        assert!(near(middle.clone(), [libm::sqrt(2.0), libm::sqrt(0.5)]), "{middle:?}");
    }

    #[test]
    fn far_from_all_curves_it_is_still_a_number() {
        let surrogate = exact(TABLE);
        let far = curve(&surrogate, "[99]", "1e30", 1).unwrap();
        assert!(far.iter().all(|value| value.is_finite()), "{far:?}");
    }

    #[test]
    fn a_seed_and_a_trial_give_the_same_curve_again_and_others_another() {
        let surrogate = Surrogate::read("t.csv", TABLE).unwrap();
        let one = curve(&surrogate, "[8]", "0.001", 1).unwrap();
        assert_eq!(one, curve(&surrogate, "[8]", "0.001", 1).unwrap());
        assert_ne!(one, curve(&surrogate, "[8]", "0.001", 2).unwrap());
        let config = sojourn_workgen::trials(&spec("[8]", "0.001")).unwrap().remove(0).config;
        assert_ne!(one, surrogate.curve(&config, 1, TrialId(4)).unwrap());
        for epochs in 1..4 {
            let index = to_usize(epochs.min(2) - 1);
            let loss = surrogate.loss(&config, epochs, 1, TrialId(3)).unwrap();
            assert_eq!(loss.to_bits(), one[index].to_bits());
        }
    }

    #[test]
    fn a_table_that_is_none_says_why() {
        for (table, wanted) in [
            ("", "there is no row of names"),
            ("a,b\n", "no column is an epoch"),
            ("a,1\n1,\n", "there are fewer than three curves"),
            ("a,1,3\n1,,\n", "epochs are 1, 2 and so on, and the 2nd is `3`"),
            ("a,1\n0,\n2,1\n3,1\n4,1\n", "the width of `a` must be above 0"),
            ("a,1\n1,\n2,x\n", "line 3: `x` is no loss above 0"),
            ("a,1\n1,\n2,-1\n", "line 3: `-1` is no loss above 0"),
            ("a,1\n1,\n[,1\n", "line 3: `[` isn't JSON"),
        ] {
            let error = Surrogate::read("t.csv", table).unwrap_err();
            assert!(error.contains(wanted), "{table}: {error}");
        }
        let surrogate = Surrogate::read("t.csv", &TABLE.replace("model.hidden", "model.width"));
        let error = curve(&surrogate.unwrap(), "[8]", "0.1", 1).unwrap_err();
        assert!(error.contains("`model.width`"), "{error}");
    }
}
