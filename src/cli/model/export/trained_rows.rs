//! Digests of the rows that a model was trained on, for its file.

use crate::{api_client::ApiClient, cli::model::export::download::fetch};
use sojourn_codec::{Dtype, TensorView, decode};
use sojourn_model::{portable::TrainedRows, shard::X};
use sojourn_protocol::{
    ids::ShardId,
    manifest::Shard,
    quantity::to_usize,
    view::{HopRecord, JobDetail, TrialHistory},
};
use std::collections::BTreeSet;

/// Bytes of shards whose rows are looked at. Of larger data they are a part.
const MAX_SHARDS: u64 = 32 << 20;

/// Digests of the rows that a trial has trained on: of all, or of those of its first shards. None where the job has no rows of numbers, or its
/// shards aren't kept.
pub(super) async fn trained_rows(
    client: &ApiClient,
    detail: &JobDetail,
    history: &TrialHistory,
) -> Option<TrainedRows> {
    if !detail.data.columns.is_empty() {
        return None;
    }
    let visited: BTreeSet<ShardId> = history.hops.iter().flat_map(HopRecord::shards).collect();
    // A clone has all that the other trial was trained on, and a history may have been thinned out.
    let is_partly_known = history.origin.is_some() || visited.is_empty();
    let all = (0..).map(ShardId).zip(&detail.data.train);
    let trained = all.filter(|(id, _)| is_partly_known || visited.contains(id));
    let trained: Vec<&Shard> = trained.map(|(_, shard)| shard).collect();
    let mut rows = TrainedRows::of(trained.iter().map(|shard| u64::from(shard.rows)).sum());
    let (mut left, mut has_any) = (MAX_SHARDS, false);
    for shard in trained {
        let Some(after) = left.checked_sub(shard.blob.bytes) else { break };
        left = after;
        let bytes = fetch(client, shard.blob).await.ok()?;
        let tensors = decode(&bytes).ok()?;
        see(&mut rows, tensors.iter().find(|tensor| tensor.name == X)?)?;
        has_any = true;
    }
    has_any.then_some(rows)
}

/// Takes the rows of a shard; none where they aren't rows of numbers.
fn see(rows: &mut TrainedRows, x: &TensorView<'_>) -> Option<()> {
    let numbers: Vec<f32> = match x.dtype {
        Dtype::U8 => x.u8s().ok()?.iter().map(|byte| f32::from(*byte)).collect(),
        _ => x.f32s().ok()?.collect(),
    };
    let width = to_usize(*x.shape.get(1)?).max(1);
    numbers.chunks_exact(width).for_each(|row| rows.see(row));
    Some(())
}
