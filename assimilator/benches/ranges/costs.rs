//! The time that each step of a merge by ranges takes on one core, in seconds a raw byte.

use crate::{
    size,
    trial::{FIRST, context, hop, least, merger, result},
};
use sojourn_codec::ranges::{Piece, pack};
use sojourn_model::{CheckpointLayout, Lineage, initial_checkpoint};
use sojourn_protocol::{
    digest::{BlobRef, Digest},
    report::{Sums, Trained},
    unit::Flush,
};
use sojourn_rules::{Arrival, Pieces, Update, screen};
use std::{hint::black_box, time::Instant};

/// All of them, and the sizes that they are of.
#[derive(Debug, Clone)]
pub(crate) struct Costs {
    pub(crate) checkpoint_bytes: f64,
    pub(crate) state_bytes: f64,
    pub(crate) ranges: usize,
    /// Stored bytes for each raw one, of checkpoints and of states.
    pub(crate) packed: f64,
    pub(crate) hash: f64,
    pub(crate) screen: f64,
    pub(crate) squares: f64,
    /// Of a checkpoint, its part of the state included.
    pub(crate) merge: f64,
    pub(crate) pack: f64,
    /// And hash, as whoever reads a piece does.
    pub(crate) unpack: f64,
}

impl Costs {
    pub(crate) fn measured() -> Self {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        pool.install(measure)
    }

    pub(crate) fn named(&self) -> [(&'static str, f64); 6] {
        [
            ("SHA-256", self.hash),
            ("screen an upload", self.screen),
            ("squares", self.squares),
            ("merge with state, bytes of the checkpoint", self.merge),
            ("pack", self.pack),
            ("unpack and SHA-256", self.unpack),
        ]
    }
}

fn measure() -> Costs {
    let (merger, layout) = (merger(), CheckpointLayout::of(&context()).unwrap());
    let [base, current] =
        [1, 2].map(|seed| initial_checkpoint(&context(), seed, Lineage::initial(seed)).unwrap());
    let returned = result();
    let hop = hop(FIRST);
    let end = hop.position_at(hop.batches());
    let name = BlobRef { sha256: Digest::of(&returned), bytes: returned.len() as u64 };
    let trained = Trained {
        base: hop.base.version(),
        checkpoint: name,
        end,
        sums: Sums::default(),
        train_micros: 1,
    };
    let screen = || screen(&layout, &hop, &trained, name.sha256, &returned).unwrap().lineage;
    let lineage = screen();
    let arrival = Arrival { staleness: 0, epoch: 1, in_flight: 4, flush: Flush::ByRule };
    let version = hop.base.version();
    let update = Update {
        base: &base,
        current: &current,
        returned: &returned,
        state: None,
        version,
        arrival,
        position: end,
    };
    let first = merger.merge(&update).unwrap().made;
    let stretches = merger.spans(least());
    let stretch = &stretches[stretches.len() / 2];
    let of = |file: &[u8], place: &std::ops::Range<u64>| {
        let [start, end] = [place.start, place.end].map(|end| usize::try_from(end).unwrap());
        file[start..end].to_vec()
    };
    let [base, now, came] =
        [&base, &current, &returned].map(|file: &Vec<u8>| of(file, &stretch.place));
    let slots: Vec<u8> = stretch.slots.iter().flat_map(|place| of(&first.state, place)).collect();
    let squares = || merger.sums(stretch, &base, &now, &came).unwrap();
    let decision = merger.decide(&squares(), &update.whole(lineage)).unwrap().decision;
    let pieces = Pieces { base: &base, current: &now, returned: &came, slots: &slots };
    let merge = || merger.merge_span(&decision, arrival, stretch, &pieces).unwrap();

    let stored = [now.clone(), slots.clone()].concat();
    let small = pack(&stored).unwrap();
    let raw = BlobRef { sha256: Digest::of(&stored), bytes: stored.len() as u64 };
    let piece = Piece { name: "piece".to_owned(), raw, packed: small.len() as u64 };
    Costs {
        checkpoint_bytes: current.len() as f64,
        state_bytes: first.state.len() as f64,
        ranges: stretches.len(),
        packed: small.len() as f64 / stored.len() as f64,
        hash: per_byte(&returned, || Digest::of(&returned)),
        screen: per_byte(&returned, screen),
        squares: per_byte(&came, squares),
        merge: per_byte(&came, merge),
        pack: per_byte(&stored, || pack(&stored).unwrap()),
        unpack: per_byte(&stored, || piece.unpack(&small).unwrap()),
    }
}

/// The middle one of several times.
fn per_byte<T>(of: &[u8], work: impl Fn() -> T) -> f64 {
    let times = size::of(5, 1);
    let spent = (0..times).map(|_| {
        let begun = Instant::now();
        black_box(work());
        begun.elapsed().as_secs_f64()
    });
    let mut spent: Vec<f64> = spent.collect();
    spent.sort_by(f64::total_cmp);
    spent[times / 2] / of.len() as f64
}
