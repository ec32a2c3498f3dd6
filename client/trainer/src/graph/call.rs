//! The call of one operator: its arguments as libtorch takes them.

use super::value::Value;
use crate::{error::TrainError, kind::kind};
use sojourn_graph::{Argument, Memory, Source, Whole};
use std::borrow::Cow;
use tch::{Device, Kind, Reduction, Scalar, Tensor};

/// Computes the value of a node.
pub(super) type Run = fn(&Call<'_>) -> Result<Value, TrainError>;

/// The tensors and the device that nodes refer to beside each other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// The tensor of the graph with this index.
    pub(super) places: &'a [Place],
    /// Parameters, as they are computed with.
    pub(crate) parameters: &'a [Tensor],
    /// The model's buffers.
    pub(crate) buffers: &'a [Tensor],
    /// The graph's constants.
    pub(super) constants: &'a [Tensor],
    /// The columns of the batch.
    pub(super) columns: &'a [Tensor],
    /// Where all of it is.
    pub(super) device: Device,
    /// Do fully connected layers and convolutions compute in rounded numbers?
    pub(super) rounds: bool,
}

/// Where a graph's tensor is: an index among those of its role.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    Parameter(usize),
    Buffer(usize),
    Constant(usize),
}

impl<'a> Scope<'a> {
    fn tensor(&self, index: usize) -> Option<&'a Tensor> {
        match self.places.get(index)? {
            Place::Parameter(at) => self.parameters.get(*at),
            Place::Buffer(at) => self.buffers.get(*at),
            Place::Constant(at) => self.constants.get(*at),
        }
    }

    /// A tensor that a node, or a result, refers to.
    pub(super) fn source(
        &self,
        source: Source,
        values: &'a [Value],
    ) -> Result<&'a Tensor, TrainError> {
        let found = match source {
            Source::Node(node) => match values.get(node) {
                Some(Value::Tensor(tensor)) => Some(tensor),
                _ => None,
            },
            Source::Item { node, item } => match values.get(node) {
                Some(Value::Tensors(tensors)) => tensors.get(item),
                _ => None,
            },
            Source::Tensor(index) => self.tensor(index),
            Source::Column(index) => self.columns.get(index),
        };
        found.ok_or_else(|| TrainError::Unit(format!("there is no value {source:?}")))
    }
}

/// An argument that is ready to be used.
#[derive(Debug)]
pub(super) enum Ready {
    /// As the graph has it.
    Plain(Argument),
    /// Whole numbers that no node computes.
    Wholes(Vec<i64>),
}

impl Ready {
    pub(super) fn of(argument: &Argument) -> Self {
        let number = |whole: &Whole| match whole {
            Whole::Number(number) => Some(*number),
            Whole::Node(_) => None,
        };
        if let Argument::Wholes(wholes) = argument
            && let Some(numbers) = wholes.iter().map(number).collect()
        {
            return Ready::Wholes(numbers);
        }
        Ready::Plain(argument.clone())
    }
}

/// The call of an operator. Arguments are known by their index in the operator's schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(super) arguments: &'a [Ready],
    /// The values of the nodes before it.
    pub(super) values: &'a [Value],
    pub(super) scope: &'a Scope<'a>,
}

impl<'a> Call<'a> {
    fn plain(&self, at: usize) -> Result<&'a Argument, TrainError> {
        match self.arguments.get(at) {
            Some(Ready::Plain(argument)) => Ok(argument),
            _ => Err(wrong(at)),
        }
    }

    /// Is nothing given?
    pub(super) fn is_nothing(&self, at: usize) -> bool {
        matches!(self.arguments.get(at), Some(Ready::Plain(Argument::Nothing)))
    }

    /// How many arguments there are.
    pub(super) const fn len(&self) -> usize {
        self.arguments.len()
    }

    /// A tensor.
    pub(super) fn tensor(&self, at: usize) -> Result<&'a Tensor, TrainError> {
        self.optional(at)?.ok_or_else(|| wrong(at))
    }

    /// A tensor that may be left out.
    pub(super) fn optional(&self, at: usize) -> Result<Option<&'a Tensor>, TrainError> {
        match self.plain(at)? {
            Argument::Tensor(source) => Ok(Some(self.scope.source(*source, self.values)?)),
            Argument::Nothing => Ok(None),
            _ => Err(wrong(at)),
        }
    }

    /// A tensor to be changed: the same one under another handle.
    pub(super) fn changed(&self, at: usize) -> Result<Tensor, TrainError> {
        Ok(self.tensor(at)?.shallow_clone())
    }

    /// Several tensors.
    pub(super) fn tensors(&self, at: usize) -> Result<Vec<&'a Tensor>, TrainError> {
        match self.plain(at)? {
            Argument::AllOf(node) => match self.values.get(*node) {
                Some(Value::Tensors(tensors)) => Ok(tensors.iter().collect()),
                _ => Err(wrong(at)),
            },
            Argument::Tensors(sources) => {
                let one = |source: &Option<Source>| {
                    self.scope.source(source.ok_or_else(|| wrong(at))?, self.values)
                };
                sources.iter().map(one).collect()
            }
            _ => Err(wrong(at)),
        }
    }

    /// Several tensors, of which some may be left out.
    pub(super) fn optional_tensors(
        &self,
        at: usize,
    ) -> Result<Vec<Option<&'a Tensor>>, TrainError> {
        match self.plain(at)? {
            Argument::Tensors(sources) => {
                let one = |source: &Option<Source>| {
                    source.map(|source| self.scope.source(source, self.values)).transpose()
                };
                sources.iter().map(one).collect()
            }
            _ => Ok(self.tensors(at)?.into_iter().map(Some).collect()),
        }
    }

    fn value(&self, at: usize, whole: Whole) -> Result<i64, TrainError> {
        match whole {
            Whole::Number(number) => Ok(number),
            Whole::Node(node) => match self.values.get(node) {
                Some(Value::Whole(number)) => Ok(*number),
                _ => Err(wrong(at)),
            },
        }
    }

    /// A whole number.
    pub(super) fn whole(&self, at: usize) -> Result<i64, TrainError> {
        self.optional_whole(at)?.ok_or_else(|| wrong(at))
    }

    /// A whole number that may be left out.
    pub(super) fn optional_whole(&self, at: usize) -> Result<Option<i64>, TrainError> {
        match self.plain(at)? {
            Argument::Whole(whole) => Ok(Some(self.value(at, *whole)?)),
            Argument::Nothing => Ok(None),
            _ => Err(wrong(at)),
        }
    }

    /// Several whole numbers.
    pub(super) fn wholes(&self, at: usize) -> Result<Cow<'a, [i64]>, TrainError> {
        self.optional_wholes(at)?.ok_or_else(|| wrong(at))
    }

    /// Several whole numbers that may be left out together.
    pub(super) fn optional_wholes(&self, at: usize) -> Result<Option<Cow<'a, [i64]>>, TrainError> {
        match self.arguments.get(at) {
            Some(Ready::Wholes(numbers)) => Ok(Some(Cow::Borrowed(numbers))),
            Some(Ready::Plain(Argument::Wholes(wholes))) => {
                let numbers = wholes.iter().map(|whole| self.value(at, *whole));
                Ok(Some(Cow::Owned(numbers.collect::<Result<_, _>>()?)))
            }
            Some(Ready::Plain(Argument::Nothing)) => Ok(None),
            _ => Err(wrong(at)),
        }
    }

    /// A real number.
    pub(super) fn real(&self, at: usize) -> Result<f64, TrainError> {
        self.optional_real(at)?.ok_or_else(|| wrong(at))
    }

    /// A real number that may be left out; a number of another kind as one.
    pub(super) fn optional_real(&self, at: usize) -> Result<Option<f64>, TrainError> {
        match self.plain(at)? {
            Argument::Real(real) => Ok(Some(*real)),
            Argument::Flag(flag) => Ok(Some(f64::from(u8::from(*flag)))),
            Argument::Whole(whole) =>
            {
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "as PyTorch takes a whole number for a real one"
                )]
                Ok(Some(self.value(at, *whole)? as f64))
            }
            Argument::Nothing => Ok(None),
            _ => Err(wrong(at)),
        }
    }

    /// Several real numbers.
    pub(super) fn reals(&self, at: usize) -> Result<&'a [f64], TrainError> {
        match self.plain(at)? {
            Argument::Reals(reals) => Ok(reals),
            _ => Err(wrong(at)),
        }
    }

    /// Yes or no.
    pub(super) fn flag(&self, at: usize) -> Result<bool, TrainError> {
        match self.plain(at)? {
            Argument::Flag(flag) => Ok(*flag),
            _ => Err(wrong(at)),
        }
    }

    /// A number of any kind.
    pub(super) fn number(&self, at: usize) -> Result<Scalar, TrainError> {
        self.optional_number(at)?.ok_or_else(|| wrong(at))
    }

    /// A number of any kind, where it is one and no tensor.
    pub(super) fn optional_number(&self, at: usize) -> Result<Option<Scalar>, TrainError> {
        Ok(match self.plain(at)? {
            Argument::Whole(whole) => Some(Scalar::int(self.value(at, *whole)?)),
            Argument::Real(real) => Some(Scalar::float(*real)),
            Argument::Flag(flag) => Some(Scalar::int(i64::from(*flag))),
            _ => None,
        })
    }

    /// The type that a tensor of this number has, where nobody says another.
    pub(super) fn kind_of_number(&self, at: usize) -> Result<Kind, TrainError> {
        Ok(match self.plain(at)? {
            Argument::Whole(_) => Kind::Int64,
            Argument::Flag(_) => Kind::Bool,
            _ => Kind::Float,
        })
    }

    /// A type of elements that may be left out.
    pub(super) fn kind(&self, at: usize) -> Result<Option<Kind>, TrainError> {
        match self.plain(at)? {
            Argument::Dtype(dtype) => Ok(Some(kind(*dtype)?)),
            Argument::Nothing => Ok(None),
            _ => Err(wrong(at)),
        }
    }

    /// An order in memory that may be left out.
    pub(super) fn memory(&self, at: usize) -> Result<Memory, TrainError> {
        match self.plain(at)? {
            Argument::Memory(memory) => Ok(*memory),
            Argument::Nothing => Ok(Memory::Preserve),
            _ => Err(wrong(at)),
        }
    }

    /// A word.
    pub(super) fn text(&self, at: usize) -> Result<&'a str, TrainError> {
        match self.plain(at)? {
            Argument::Text(text) => Ok(text),
            _ => Err(wrong(at)),
        }
    }

    /// The reduction of the losses of rows: none, the mean or the sum.
    pub(super) fn reduction(&self, at: usize) -> Result<Reduction, TrainError> {
        match self.whole(at)? {
            0 => Ok(Reduction::None),
            1 => Ok(Reduction::Mean),
            2 => Ok(Reduction::Sum),
            other => Err(TrainError::Unit(format!("there is no reduction {other}"))),
        }
    }

    /// The device, and the type that a new tensor has.
    pub(super) fn options(&self, kind: Kind) -> (Kind, Device) {
        (kind, self.scope.device)
    }
}

/// The reader has checked every argument against its schema, so nobody should see this.
fn wrong(at: usize) -> TrainError {
    TrainError::Unit(format!("argument {at} isn't what the operator takes"))
}
