//! Shapes of rows, and the check that an array has the bytes of its shape.

use super::{Array, Body};
use crate::error::{IngestError, Problem};
use sojourn_protocol::{quantity::to_usize, spec::Channels};

/// Most numbers in a row, which is held in memory.
const MAX_WIDTH: u64 = 64 << 20;

/// Shape of a row as models take it: `[features]` or `[channels, height, width]`; an image without
/// channels has one.
pub(super) fn of_row(x: &Array, channels: Channels) -> Result<Vec<u32>, IngestError> {
    let sides = x.shape.iter().skip(1).map(|side| u32::try_from(*side));
    let Ok(sides) = sides.collect::<Result<Vec<u32>, _>>() else {
        return Err(x.refuse(Problem::WideRow { limit: MAX_WIDTH }));
    };
    match (sides.as_slice(), channels) {
        ([], _) => Ok(vec![1]),
        // One channel is the same bytes on either side.
        ([height, width] | [height, width, 1], _) => Ok(vec![1, *height, *width]),
        ([height, width, count], Channels::Last) => Ok(vec![*count, *height, *width]),
        (_, Channels::First) => Ok(sides),
        (_, Channels::Last) => Err(x.refuse(Problem::NoChannels(sides))),
    }
}

/// Whether rows are flat, or have the shape that models take, so that they need no transposition. False if a transposed
/// row would have that shape too, since then it is unknown.
pub(super) fn is_in_order(x: &Array, shape: &[u32]) -> bool {
    let is = |sides: &[u64]| sides.iter().copied().eq(shape.iter().copied().map(u64::from));
    match x.shape.as_slice() {
        _ if shape.is_empty() => false,
        [_, _] => true,
        [_, sides @ ..] => match sides {
            [height, width, channels] => is(sides) && !is(&[*channels, *height, *width]),
            _ => false,
        },
        [] => false,
    }
}

/// Numbers in a row of this shape.
pub(super) fn width(x: &Array, shape: &[u32]) -> Result<usize, IngestError> {
    let width = shape.iter().try_fold(1u64, |all, side| all.checked_mul(u64::from(*side)));
    match width.filter(|width| (1..=MAX_WIDTH).contains(width)) {
        Some(width) => Ok(to_usize(width)),
        None if width == Some(0) => Err(x.refuse(Problem::NoArrayFeatures)),
        None => Err(x.refuse(Problem::WideRow { limit: MAX_WIDTH })),
    }
}

/// Refuses a row like `[32, 32, 3]`: as `[channels, height, width]` it would be trained on as noise.
pub(super) fn refuse_channels_last(x: &Array) -> Result<(), IngestError> {
    match x.shape.as_slice() {
        [_, rows @ ..] if matches!(rows, [first, _, 3 | 4] if !matches!(first, 1 | 3 | 4)) => {
            Err(x.refuse(Problem::ChannelsLast(rows.to_vec())))
        }
        _ => Ok(()),
    }
}

/// Most dimensions of an array, as in NumPy.
const MAX_DIMENSIONS: usize = 64;

impl Array {
    /// Refuses an array of more dimensions than anybody means: each is repeated by messages and by the job.
    pub(super) fn check_dimensions(&self) -> Result<(), IngestError> {
        let (dimensions, limit) = (self.shape.len(), MAX_DIMENSIONS);
        if dimensions <= limit {
            return Ok(());
        }
        Err(self.refuse(Problem::Dimensions { dimensions, limit }))
    }

    /// Refuses an array whose size isn't that of its shape; `header` is the size of the header before it. For a compressed
    /// file the size is known only when it is read.
    pub(super) fn check_size(&self, header: u64) -> Result<(), IngestError> {
        self.check_dimensions()?;
        let there = match &self.body {
            Body::Member { member, .. } | Body::Columns { member: Some(member), .. } => {
                member.bytes
            }
            _ if self.file.is_packed() => return Ok(()),
            Body::At { .. } | Body::Columns { member: None, .. } => self.file.bytes(),
        };
        let elements = self.shape.iter().try_fold(1u64, |all, side| all.checked_mul(*side));
        let wanted =
            elements.and_then(|elements| elements.checked_mul(self.encoding.dtype.bytes()));
        let there = there.saturating_sub(header);
        if wanted == Some(there) {
            return Ok(());
        }
        let shape = self.shape.clone();
        Err(self.refuse(Problem::Size { shape, wanted: wanted.unwrap_or(u64::MAX), there }))
    }
}
