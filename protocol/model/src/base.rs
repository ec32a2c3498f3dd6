//! The checkpoint that a unit begins from, stored or not.

use crate::{
    error::ModelError,
    initial::{graph_checkpoint, initial_checkpoint},
    initial_weights::weights_checkpoint,
    lineage::Lineage,
};
use sojourn_protocol::{
    digest::BlobRef,
    unit::{Base, TrialContext},
};

/// The canonical checkpoint of a base. Version 0 is made here; what is stored for a base comes from `read`.
///
/// # Errors
/// Errors of `read`; a model or initial weights from which version 0 can't be made.
pub fn base_checkpoint<B: AsRef<[u8]> + From<Vec<u8>>, E: From<ModelError>>(
    context: &TrialContext,
    base: Base,
    read: impl FnOnce(BlobRef) -> Result<B, E>,
) -> Result<B, E> {
    match base {
        Base::Initial { seed } => {
            let lineage = Lineage::initial(seed);
            let graph = context.config.model.exported();
            match graph.filter(|graph| graph.has_given_tensors()) {
                Some(graph) => {
                    let file = read(graph.file)?;
                    Ok(graph_checkpoint(context, file.as_ref(), seed, lineage)?.into())
                }
                None => Ok(initial_checkpoint(context, seed, lineage)?.into()),
            }
        }
        Base::InitialWeights { seed, parameters } => {
            let parameters = read(parameters)?;
            Ok(weights_checkpoint(context, parameters.as_ref(), Lineage::initial(seed))?.into())
        }
        Base::Checkpoint { blob, .. } => read(blob),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{checkpoint::tests::context, weights_parameters};
    use sojourn_protocol::{
        digest::Digest,
        ids::Version,
        spec::{Architecture, OptimizerName},
    };

    #[test]
    fn only_what_is_stored_is_read() {
        let context = context(Architecture::mlp([3]), OptimizerName::Adam, 0.0);
        let blob = BlobRef { sha256: Digest::of(b"stored"), bytes: 1 };
        let of = |base, stored: &[u8]| {
            base_checkpoint(&context, base, |asked| {
                assert_eq!(asked, blob);
                Ok::<_, ModelError>(stored.to_vec())
            })
            .unwrap()
        };
        let initial = of(Base::Initial { seed: 5 }, b"not asked for");
        assert_eq!(initial, initial_checkpoint(&context, 5, Lineage::initial(5)).unwrap());
        assert_eq!(of(Base::Checkpoint { version: Version(2), blob }, b"it"), b"it");
        let given = Base::InitialWeights { seed: 5, parameters: blob };
        assert_eq!(of(given, &weights_parameters(&initial).unwrap()), initial);

        let gone = || ModelError::Lineage("gone".into());
        let lost = base_checkpoint(&context, given, |_| Err::<Vec<u8>, _>(gone()));
        assert_eq!(lost.unwrap_err().to_string(), gone().to_string());
    }
}
