//! Macro F1, from the counts of each class.

/// The mean of `2 TP / (2 TP + FP + FN)` over classes, each with its TP + FN, its TP + FP and its TP, without those that are
/// neither a label nor predicted.
pub(crate) fn mean_f1(classes: impl Iterator<Item = (f64, f64, f64)>) -> f64 {
    let (mut sum, mut counted) = (0.0, 0u32);
    for (labelled, predicted, correct) in classes {
        let seen = labelled + predicted;
        if seen > 0.0 {
            sum += 2.0 * correct / seen;
            counted = counted.saturating_add(1);
        }
    }
    sum / f64::from(counted)
}
