//! Checks of a configuration, wherever it comes from: a job file, a notebook, a call by curl.
//!
//! The job file's reader says the same with line and key; this is the last word, at the server.

use super::{
    Architecture, Loss, MAX_EPOCHS, MAX_LOCAL_EPOCHS, Optimizer, Ratio, Sampling, Schedule,
    TrainingConfig, TrialConfig,
};
use crate::column::Column;

impl TrialConfig {
    /// Is every value one that can be trained with?
    ///
    /// # Errors
    /// The first one that can't, by its key and value.
    pub fn check(&self) -> Result<(), String> {
        self.check_values()?;
        match &self.model {
            Architecture::Graph(graph) if graph.exported.is_none() => {
                Err(format!("`{}` has not been exported for these values", graph.entry))
            }
            _ => Ok(()),
        }
    }

    /// The same of a model that may be still to be exported.
    pub(super) fn check_values(&self) -> Result<(), String> {
        self.model.check_sizes()?;
        self.training.check()
    }

    /// Can it be trained on data with these columns by name? Where there are none, it is rows of `shape` with a label.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_columns(&self, columns: &[Column], shape: &[u32]) -> Result<(), String> {
        let Architecture::Graph(graph) = &self.model else {
            let name = self.model.name();
            return match columns {
                [] => Ok(()),
                _ => {
                    Err(format!("`{name}` takes rows of numbers; columns by name are for `graph`"))
                }
            };
        };
        if !columns.is_empty() && self.training.augment.is_some() {
            return Err(
                "`training.augment` takes images, and columns by name are taken as they are".into(),
            );
        }
        if let Some(column) = columns.iter().find(|column| column.windows) {
            let window = graph.window().ok_or("there is no `window` for rows of text")?;
            column.windows_of_row(window)?;
        }
        let read = graph.exported.iter().flat_map(|exported| &exported.columns);
        read.into_iter().try_for_each(|(name, column)| column.check(name, columns, shape))
    }
}

impl Architecture {
    fn check_sizes(&self) -> Result<(), String> {
        let dropout = |Ratio(ratio)| want("model.dropout", ratio, (0.0..1.0).contains(&ratio));
        match self {
            Architecture::Mlp(mlp) => {
                each_positive("model.hidden", &mlp.hidden)?;
                dropout(mlp.dropout)
            }
            Architecture::Cnn(cnn) => {
                each_positive("model.channels", &cnn.channels)?;
                each_positive("model.pool_every", &[cnn.pool_every])?;
                each_positive("model.hidden", &cnn.hidden)?;
                dropout(cnn.dropout)
            }
            Architecture::Resnet(resnet) => {
                want("model.depth", f64::from(resnet.depth), resnet.blocks().is_some())?;
                each_positive("model.width", &[resnet.width])
            }
            Architecture::Graph(_) => Ok(()),
        }
    }
}

impl TrainingConfig {
    fn check(&self) -> Result<(), String> {
        want("training.epochs", f64::from(self.epochs), (1..=MAX_EPOCHS).contains(&self.epochs))?;
        let passes = self.local_epochs;
        want("training.local_epochs", f64::from(passes), (1..=MAX_LOCAL_EPOCHS).contains(&passes))?;
        want("training.batch_size", f64::from(self.batch_size), self.batch_size >= 1)?;
        if let Some(norm) = self.clip_norm {
            want("training.clip_norm", norm, norm.is_finite() && norm > 0.0)?;
        }
        if self.sampling == Sampling::Balanced && self.loss != Loss::CrossEntropy {
            return Err(
                "`training.sampling` can't be `\"balanced\"` where labels aren't classes".into()
            );
        }
        let smoothing = self.label_smoothing;
        want("training.label_smoothing", smoothing, (0.0..1.0).contains(&smoothing))?;
        if smoothing != 0.0 && self.loss != Loss::CrossEntropy {
            return Err("`training.label_smoothing` needs labels that are classes".into());
        }
        self.optimizer.check()?;
        self.schedule.check()
    }
}

impl Optimizer {
    fn check(&self) -> Result<(), String> {
        let ratio = |value: f64| (0.0..1.0).contains(&value);
        want("training.optimizer.lr", self.lr, self.lr.is_finite() && self.lr > 0.0)?;
        want("training.optimizer.momentum", self.momentum, ratio(self.momentum))?;
        want("training.optimizer.beta1", self.beta1, ratio(self.beta1))?;
        want("training.optimizer.beta2", self.beta2, ratio(self.beta2))?;
        want("training.optimizer.eps", self.eps, self.eps.is_finite() && self.eps > 0.0)?;
        let decay = self.weight_decay;
        want("training.optimizer.weight_decay", decay, decay.is_finite() && decay >= 0.0)
    }
}

impl Schedule {
    fn check(&self) -> Result<(), String> {
        want("training.schedule.every", f64::from(self.every), self.every >= 1)?;
        let gamma = self.gamma;
        want("training.schedule.gamma", gamma, gamma > 0.0 && gamma <= 1.0)?;
        want("training.schedule.floor", self.floor, (0.0..=1.0).contains(&self.floor))
    }
}

fn each_positive(key: &str, sizes: &[u32]) -> Result<(), String> {
    sizes.iter().try_for_each(|size| want(key, f64::from(*size), *size >= 1))
}

fn want(key: &str, value: f64, holds: bool) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("`{key}` can't be {value}")) }
}
