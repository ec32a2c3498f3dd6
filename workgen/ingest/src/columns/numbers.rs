//! The range of a column's whole numbers, and the check that all numbers are finite.

use half::{bf16, f16};
use sojourn_protocol::dtype::Dtype;

/// The smallest and the largest whole number so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Whole(Option<(i64, i64)>);

impl Whole {
    /// Takes the numbers of a row. `false` where one is infinite or NaN.
    pub(crate) fn take(&mut self, dtype: Dtype, bytes: &[u8]) -> bool {
        match dtype {
            Dtype::U8 => self.add(bytes.iter().map(|byte| i64::from(*byte))),
            Dtype::I8 => self.add(bytes.iter().map(|byte| i64::from(byte.cast_signed()))),
            Dtype::I16 => self.add(chunks(bytes).map(|bytes| i64::from(i16::from_le_bytes(bytes)))),
            Dtype::I32 => self.add(chunks(bytes).map(|bytes| i64::from(i32::from_le_bytes(bytes)))),
            Dtype::I64 => self.add(chunks(bytes).map(i64::from_le_bytes)),
            Dtype::F16 => return chunks(bytes).all(|bytes| f16::from_le_bytes(bytes).is_finite()),
            Dtype::Bf16 => {
                return chunks(bytes).all(|bytes| bf16::from_le_bytes(bytes).is_finite());
            }
            Dtype::F32 => return chunks(bytes).all(|bytes| f32::from_le_bytes(bytes).is_finite()),
            Dtype::F64 => return chunks(bytes).all(|bytes| f64::from_le_bytes(bytes).is_finite()),
            Dtype::Bool => return bytes.iter().all(|byte| *byte <= 1),
            Dtype::U32 | Dtype::U64 => {}
        }
        true
    }

    fn add(&mut self, numbers: impl Iterator<Item = i64>) {
        for number in numbers {
            let (low, high) = self.0.unwrap_or((number, number));
            self.0 = Some((low.min(number), high.max(number)));
        }
    }

    /// One more than the largest, where none is below 0.
    pub(crate) fn values(self) -> Option<u64> {
        let (low, high) = self.0?;
        (low >= 0).then(|| high.unsigned_abs().saturating_add(1))
    }
}

fn chunks<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.as_chunks::<N>().0.iter().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_from_zero_and_not_below() {
        let mut whole = Whole::default();
        assert_eq!(whole.values(), None);
        assert!(whole.take(Dtype::U8, &[3, 0, 9]));
        assert!(whole.take(Dtype::I16, &300i16.to_le_bytes()));
        assert_eq!(whole.values(), Some(301));
        assert!(whole.take(Dtype::I64, &(-1i64).to_le_bytes()));
        assert_eq!(whole.values(), None);
    }

    #[test]
    fn infinite_numbers_are_seen_in_every_type() {
        let takes = |dtype, bytes: &[u8]| Whole::default().take(dtype, bytes);
        for number in [f32::INFINITY, f32::NAN] {
            assert!(!takes(Dtype::F32, &number.to_le_bytes()));
            assert!(!takes(Dtype::F64, &f64::from(number).to_le_bytes()));
            assert!(!takes(Dtype::F16, &f16::from_f32(number).to_le_bytes()));
            assert!(!takes(Dtype::Bf16, &bf16::from_f32(number).to_le_bytes()));
        }
        assert!(takes(Dtype::F32, &1.5f32.to_le_bytes()));
        assert!(!takes(Dtype::Bool, &[2]));
    }
}
