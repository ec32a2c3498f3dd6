//! The files of users' models: read once, as every trainer reads them.

use super::{CheckError, JobChecks, beginning, said};
use sojourn_blobs::BlobStore;
use sojourn_graph::{Graph, GraphError, MAX_FILE_BYTES};
use sojourn_protocol::{
    digest::Digest,
    spec::{ExportedGraph, JobSpec, ModelSpace},
};
use std::collections::BTreeMap;
use tokio::task::spawn_blocking;

/// Graphs of one job that are checked.
const MAX_GRAPHS: usize = 256;
/// Bytes of their files.
const MAX_BYTES: u64 = MAX_FILE_BYTES;
/// Graphs that are remembered as sound.
const MAX_SOUND: usize = 4_096;

impl JobChecks {
    /// Can every trainer run the graphs of a job: are their nodes operators of the table, and is what the job says of them so? Of
    /// very many, or very large ones, the first.
    pub(super) async fn check_graphs(
        &self,
        store: &BlobStore,
        spec: &JobSpec,
    ) -> Result<(), CheckError> {
        let exported = spec.models.iter().flat_map(ModelSpace::exported);
        let graphs: BTreeMap<Digest, &ExportedGraph> =
            exported.map(|graph| (graph.file.sha256, graph)).collect();
        let mut left = MAX_BYTES;
        for (digest, graph) in graphs.into_iter().take(MAX_GRAPHS) {
            // The same file may be described in another way.
            let described = serde_json::to_vec(graph).map(|text| Digest::of(&text)).ok();
            if described.is_some_and(|described| self.sound.lock().contains(&described)) {
                continue;
            }
            let Some(after) = left.checked_sub(graph.file.bytes) else { return Ok(()) };
            left = after;
            let Some(bytes) = beginning(store, digest, graph.file.bytes).await? else { continue };
            let said_of = graph.clone();
            let checked = spawn_blocking(move || check(&bytes, &said_of)).await?;
            checked.map_err(|error| {
                CheckError::invalid(format!("graph {}: {}", digest.short(), said(&error)))
            })?;
            let mut sound = self.sound.lock();
            if sound.len() >= MAX_SOUND {
                sound.clear();
            }
            sound.extend(described);
        }
        Ok(())
    }
}

fn check(bytes: &[u8], exported: &ExportedGraph) -> Result<(), GraphError> {
    Graph::read(bytes)?.agrees_with(exported)
}
