//! The tensors that a shard must have, as the header of its file says it: the same for whoever trains on it and whoever takes a job.

use sojourn_codec::{Dtype, TensorSpec};
use sojourn_protocol::{
    column::Column,
    manifest::{DataManifest, Labels, Shard},
};

/// The tensor of a shard's features.
pub const X: &str = "x";
/// The tensor of a shard's labels.
pub const Y: &str = "y";

/// A shard whose rows are numbers with a label, as its tensors are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowsShape {
    /// Rows of the shard.
    pub rows: u64,
    /// Numbers of each.
    pub features: u64,
    /// Are labels classes? Else they are numbers.
    pub has_classes: bool,
}

impl RowsShape {
    /// The shape of a shard with these tensors, in the order of their names.
    ///
    /// # Errors
    /// The form that such a shard must have.
    pub fn of(tensors: &[TensorSpec]) -> Result<Self, &'static str> {
        let [x, y] = tensors else { return Err("a shard must hold exactly `x` and `y`") };
        let (rows, features) = match x.shape.as_slice() {
            [rows, features]
                if x.name == X && matches!(x.dtype, Dtype::F32 | Dtype::U8) && *rows > 0 =>
            {
                (*rows, *features)
            }
            _ => return Err("a shard's `x` must be F32 or U8 of shape [rows, features]"),
        };
        if y.name != Y || y.shape != [rows] || !matches!(y.dtype, Dtype::F32 | Dtype::I64) {
            return Err("a shard's `y` must be I64 or F32 of shape [rows]");
        }
        Ok(Self { rows, features, has_classes: y.dtype == Dtype::I64 })
    }

    /// Has a shard these rows, of a job with so many features?
    ///
    /// # Errors
    /// The differences.
    pub fn agrees(self, shard: &Shard, features: u64) -> Result<(), String> {
        let (rows, said) = (self.rows, shard.rows);
        if rows != u64::from(said) {
            return Err(format!("the shard has {rows} rows, the unit says {said}"));
        }
        if self.features != features {
            let own = self.features;
            return Err(format!("the shard has {own} features, the unit says {features}"));
        }
        Ok(())
    }
}

/// Can a job's models be trained on a shard with these tensors, in the order of their names?
///
/// # Errors
/// What differs from the manifest.
pub fn check_shard(
    tensors: &[TensorSpec],
    shard: &Shard,
    data: &DataManifest,
) -> Result<(), String> {
    if !data.columns.is_empty() {
        return check_columns(tensors, shard, &data.columns);
    }
    let shape = RowsShape::of(tensors)?;
    let features = data.shape.iter().map(|side| u64::from(*side)).fold(1, u64::saturating_mul);
    shape.agrees(shard, features)?;
    match (&data.labels, shape.has_classes) {
        (Labels::Classes(_), true) | (Labels::Number, false) => Ok(()),
        (Labels::Classes(_), false) => Err("the shard's labels are numbers, not classes".into()),
        (Labels::Number | Labels::None, _) => Err("the shard's labels are classes".into()),
    }
}

/// The columns by name of a shard: each of its type and shape, with all rows, and nothing else.
fn check_columns(tensors: &[TensorSpec], shard: &Shard, columns: &[Column]) -> Result<(), String> {
    let find = |name: &str| tensors.iter().find(|tensor| tensor.name == name);
    let mut expected = 0;
    for Column { name, dtype, shape, longest, .. } in columns {
        let sides: Vec<u64> = shape.iter().map(|side| u64::from(*side)).collect();
        let found = find(name).ok_or_else(|| format!("the shard has no `{name}`"))?;
        if found.dtype != *dtype || found.shape.get(1..) != Some(&sides) {
            let dtype = dtype.name();
            return Err(format!(
                "a shard's `{name}` must be {dtype}, and a row of it of shape {shape:?}"
            ));
        }
        let ends = format!("{name}.ends");
        let of_rows = match longest {
            None => found,
            Some(_) => find(&ends).ok_or_else(|| format!("the shard has no `{ends}`"))?,
        };
        expected += 1 + usize::from(longest.is_some());
        if of_rows.shape.first() != Some(&u64::from(shard.rows)) {
            return Err(format!("the shard has other rows of `{name}` than the manifest says"));
        }
    }
    if tensors.len() != expected {
        return Err("the shard has tensors that are no column".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::{
        digest::{BlobRef, Digest},
        manifest::{Scaling, Targets},
    };

    fn spec(name: &str, dtype: Dtype, shape: &[u64]) -> TensorSpec {
        TensorSpec { name: name.to_owned(), dtype, shape: shape.to_vec() }
    }

    fn data(columns: Vec<Column>, labels: Labels) -> DataManifest {
        DataManifest {
            shape: if columns.is_empty() { vec![2, 3] } else { Vec::new() },
            columns,
            features: Vec::new(),
            labels,
            categories: Vec::new(),
            fill: Vec::new(),
            scaling: Scaling::None,
            targets: Targets::Plain,
            train: Vec::new(),
            valid: Vec::new(),
            test: Vec::new(),
        }
    }

    const SHARD: Shard = Shard { blob: BlobRef { sha256: Digest([0; 32]), bytes: 1 }, rows: 10 };

    #[test]
    fn rows_with_a_label_are_as_the_manifest_says() {
        let classes = Labels::Classes(vec!["a".into(), "b".into()]);
        let y = |dtype| spec(Y, dtype, &[10]);
        let x = |features| spec(X, Dtype::F32, &[10, features]);
        let check = |tensors: &[TensorSpec], labels: &Labels| {
            check_shard(tensors, &SHARD, &data(Vec::new(), labels.clone()))
        };
        assert_eq!(check(&[x(6), y(Dtype::I64)], &classes), Ok(()));
        assert_eq!(check(&[x(6), y(Dtype::F32)], &Labels::Number), Ok(()));
        let wrong = [
            (vec![x(5), y(Dtype::I64)], "5 features, the unit says 6"),
            (vec![x(6), y(Dtype::F32)], "labels are numbers"),
            (vec![x(6)], "exactly `x` and `y`"),
            (vec![x(6), spec(Y, Dtype::I64, &[9])], "must be I64 or F32"),
            (vec![spec(X, Dtype::F32, &[9, 6]), spec(Y, Dtype::I64, &[9])], "9 rows"),
            (vec![spec(X, Dtype::I64, &[10, 6]), y(Dtype::I64)], "must be F32 or U8"),
        ];
        for (tensors, said) in wrong {
            let error = check(&tensors, &classes).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn columns_by_name_are_those_of_the_manifest() {
        let column = |name: &str, longest| Column {
            name: name.to_owned(),
            dtype: Dtype::U8,
            shape: vec![4],
            longest,
            values: None,
            classes: Vec::new(),
            windows: false,
        };
        let data = data(vec![column("image", None), column("text", Some(7))], Labels::None);
        let all = [
            spec("image", Dtype::U8, &[10, 4]),
            spec("text", Dtype::U8, &[31, 4]),
            spec("text.ends", Dtype::I64, &[10]),
        ];
        assert_eq!(check_shard(&all, &SHARD, &data), Ok(()));
        assert!(check_shard(&all[..2], &SHARD, &data).unwrap_err().contains("no `text.ends`"));
        assert!(check_shard(&all[1..], &SHARD, &data).unwrap_err().contains("no `image`"));
        let mut more = all.to_vec();
        more.push(spec("z", Dtype::U8, &[10]));
        assert!(check_shard(&more, &SHARD, &data).unwrap_err().contains("no column"));
        let mut other = all.to_vec();
        other[0].shape = vec![9, 4];
        assert!(check_shard(&other, &SHARD, &data).unwrap_err().contains("other rows of `image`"));
    }
}
