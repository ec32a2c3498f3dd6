//! From blobs to blobs: base, current version and result are read, merged and written in one go.

mod job;
mod make;
mod parts;
mod spans;

pub use spans::{ByteSpan, Decided, Decision, Pieces, SpanOutput, Whole};

use crate::{
    arrival::Arrival,
    error::{Fit, MergeError},
    kernel::{Pair, Triple, products_of, squares_of},
    overlap::{Overlap, Products},
    rule::{MergeRule, rule_of},
    state::{Counters, StateLayout, header_of},
};
use make::Recipe;
use parts::{Part, parts, piece};
use sojourn_model::{CheckpointLayout, Lineage, Role};
use sojourn_protocol::{
    ids::Version,
    position::Position,
    spec::{MergeSpec, OptimizerMerge},
};
use spans::length;
use std::ops::{Add, Range};

/// The longest change that is merged. With the largest rate and the largest momentum, and a million of its like in one
/// sum, a number of the model grows by less than 1e28 a merge: it stays finite for ten thousand million merges.
const MAX_NORM: f64 = 1e20;

/// Merges the results of one trial.
#[derive(Debug)]
pub struct Merger {
    rule: Box<dyn MergeRule>,
    optimizer: OptimizerMerge,
    layout: CheckpointLayout,
    parts: Vec<Part>,
    state: StateLayout,
}

/// A result to merge. The files are canonical checkpoints of the trial, screened as far as they came from a host.
#[derive(Debug, Clone, Copy)]
pub struct Update<'a> {
    /// The checkpoint that the host started from.
    pub base: &'a [u8],
    /// The trial's current version.
    pub current: &'a [u8],
    /// The checkpoint that the host returned.
    pub returned: &'a [u8],
    /// The state that was made with the current version; none where that came from hop order.
    pub state: Option<&'a [u8]>,
    /// The number of the current version.
    pub version: Version,
    /// The circumstances.
    pub arrival: Arrival,
    /// Where the trial stands after the merge.
    pub position: Position,
}

/// A version: a model and the rule's state that belongs to it. Neither is of use with another one's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The version's number.
    pub version: Version,
    /// The checkpoint, a canonical safetensors file.
    pub checkpoint: Vec<u8>,
    /// The state, a canonical safetensors file.
    pub state: Vec<u8>,
}

/// The result of a merge.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// The next version.
    pub made: Made,
    /// The norm of the change that the result brought, over all parameters.
    pub norm: f64,
    /// The factor of the change: below 1 where it was clipped.
    pub scale: f64,
}

/// Memory to make a version in, such as that of an older one: for large models the pages of fresh memory cost more
/// than the merge. What is in it doesn't matter.
#[derive(Debug, Default)]
pub struct Spare {
    /// Room for a checkpoint.
    pub checkpoint: Vec<u8>,
    /// Room for a state.
    pub state: Vec<u8>,
}

impl From<Made> for Spare {
    fn from(Made { checkpoint, state, .. }: Made) -> Self {
        Self { checkpoint, state }
    }
}

impl Merger {
    /// A merger of a trial whose checkpoints are these.
    ///
    /// # Errors
    /// [`MergeError::Rule`] for a parameter out of its range; [`MergeError::Codec`] for a model too large to hold.
    pub fn new(spec: &MergeSpec, layout: CheckpointLayout) -> Result<Self, MergeError> {
        spec.rule.check()?;
        let rule = rule_of(&spec.rule);
        let state = StateLayout::new(spec.rule, rule.slots(), &layout)?;
        let parts = parts(&layout)?;
        Ok(Self { rule, optimizer: spec.optimizer, layout, parts, state })
    }

    /// The exact size of every state of the trial.
    #[must_use]
    pub const fn state_bytes(&self) -> u64 {
        self.state.file_bytes()
    }

    /// The next version.
    ///
    /// # Errors
    /// Files that aren't the trial's, a state of another rule or version, and a change too large to be one.
    pub fn merge(&self, update: &Update<'_>) -> Result<Merged, MergeError> {
        self.merge_over(update, Spare::default())
    }

    /// As [`Merger::merge`], in memory that is there already.
    ///
    /// # Errors
    /// As [`Merger::merge`].
    pub fn merge_over(&self, update: &Update<'_>, spare: Spare) -> Result<Merged, MergeError> {
        let Update { base, current, returned, version, arrival, position, .. } = *update;
        self.check("base", base)?;
        self.check("current version", current)?;
        self.check("result", returned)?;
        let state = self.state.read(update.state, version)?;
        let place = 0..current.len();
        let sums = self.sums_within(&place, base, current, returned);
        let Measured { norm, scale, overlap } = self.measure(&sums, &state.counters)?;
        let pass = self.rule.pass(&state.counters, arrival, overlap).scaled(scale);
        let counters = state.counters.after(&pass, norm);
        let lineage = Lineage { position, ..self.lineage(returned)? };
        let share = self.rule.share(arrival) * scale;
        let discount = arrival.discount();
        let slots = state.slots;
        let recipe =
            Recipe { pass, share, discount, lineage, place, base, current, returned, slots };
        let made = self.make(&recipe, &counters, spare)?;
        Ok(Merged { made, norm, scale })
    }

    /// The sums over the change of the parameters in a span, of which these are the bytes: for each block its squares,
    /// or where the rule wants them the three numbers of its products.
    fn sums_within(
        &self,
        place: &Range<usize>,
        base: &[u8],
        current: &[u8],
        returned: &[u8],
    ) -> Vec<f64> {
        fn of<'a>(file: &'a [u8], bytes: &Range<usize>) -> &'a [[u8; 4]] {
            piece(file, bytes).as_chunks().0
        }
        let parameters = self.parts.iter().filter(|part| part.role == Role::Parameter);
        let places = parameters.filter_map(|part| part.within(place));
        if !self.rule.needs_overlap() {
            return squares_of(
                places.map(|bytes| Pair { base: of(base, &bytes), returned: of(returned, &bytes) }),
            );
        }
        let products = products_of(places.map(|bytes| Triple {
            base: of(base, &bytes),
            current: of(current, &bytes),
            returned: of(returned, &bytes),
        }));
        products.into_iter().flat_map(Products::to_numbers).collect()
    }

    /// The norm, factor and overlap that follow from all sums: each block's, in order.
    fn measure(&self, sums: &[f64], counters: &Counters) -> Result<Measured, MergeError> {
        let products = if self.rule.needs_overlap() {
            let (blocks, _) = sums.as_chunks();
            blocks
                .iter()
                .map(|block| Products::from_numbers(*block))
                .fold(Products::default(), Add::add)
        } else {
            Products { change: sums.iter().sum(), ..Products::default() }
        };
        let norm = products.change.sqrt();
        if !norm.is_finite() || norm > MAX_NORM {
            return Err(MergeError::Norm(norm));
        }
        let scale = counters.norms().scale(norm);
        Ok(Measured { norm, scale, overlap: Overlap::of(products, scale) })
    }

    /// Does the first round of a merge by spans need the current version?
    #[must_use]
    pub fn needs_overlap(&self) -> bool {
        self.rule.needs_overlap()
    }

    fn lineage_part(&self) -> Option<&Part> {
        self.parts.iter().find(|part| part.role == Role::Lineage)
    }

    fn lineage(&self, file: &[u8]) -> Result<Lineage, MergeError> {
        let (numbers, _) =
            self.lineage_part().map_or(&[][..], |part| part.of(file)).as_chunks::<8>();
        let numbers: Vec<i64> = numbers.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect();
        Ok(Lineage::from_numbers(&numbers)?)
    }

    /// Is this one of the trial's checkpoints?
    fn check(&self, name: &'static str, file: &[u8]) -> Result<(), MergeError> {
        self.check_start(name, file, length(file))
    }

    /// Does a file of this size that begins so fit? A canonical file's header says all of its layout.
    fn check_start(&self, name: &'static str, start: &[u8], bytes: u64) -> Result<(), MergeError> {
        if bytes == self.layout.file_bytes() && start.starts_with(self.layout.layout().header()) {
            return Ok(());
        }
        let found = header_of(start, bytes).map_err(|error| Fit::Codec(error).of(name))?;
        crate::screen::check_specs(
            self.layout.tensors(),
            found.tensors().iter().map(|(spec, _)| spec),
        )
        .map_err(|refusal| Fit::Tensors(Box::new(refusal)).of(name))
    }
}

/// The measurements of a change.
#[derive(Debug, Clone, Copy)]
struct Measured {
    norm: f64,
    /// The factor of the change.
    scale: f64,
    /// With what others have changed, after that.
    overlap: Overlap,
}
