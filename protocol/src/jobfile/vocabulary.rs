//! Every key of a job file, and the nearest word to one that isn't there.

/// The keys of each table, by the table's path (`model` for every `[[model]]`). Programs may list them; a test compares
/// them with `docs/job-file.md`.
pub const TABLES: &[(&str, &[&str])] = &[
    ("", &["name", "seed", "data", "model", "training", "search", "metrics", "placement"]),
    (
        "data",
        &[
            "train",
            "features",
            "label",
            "labels",
            "separator",
            "columns",
            "categories",
            "missing",
            "window",
            "tokenizer",
            "length",
            "shape",
            "channels",
            "scale",
            "scale_label",
            "valid",
            "test",
            "shards",
            "shard_sizes",
            "seed",
        ],
    ),
    ("data.columns", &["use", "drop"]),
    (
        "model",
        &[
            "arch",
            "init",
            "entry",
            "initial",
            "hidden",
            "channels",
            "pool",
            "pool_every",
            "batch_norm",
            "dropout",
            "depth",
            "width",
        ],
    ),
    (
        "training",
        &[
            "epochs",
            "batch_size",
            "loss",
            "optimizer",
            "schedule",
            "clip_norm",
            "augment",
            "precision",
            "class_weights",
            "sampling",
            "label_smoothing",
        ],
    ),
    ("training.augment", &["crop", "flip"]),
    (
        "training.optimizer",
        &["name", "lr", "momentum", "beta1", "beta2", "eps", "weight_decay", "decay"],
    ),
    ("training.schedule", &["name", "warmup", "every", "gamma", "floor"]),
    (
        "search",
        &[
            "method",
            "trials",
            "constraints",
            "metric",
            "goal",
            "top_k",
            "target",
            "wall_time",
            "total_cost",
            "total_epochs",
            "history",
            "spread",
            "stopping",
        ],
    ),
    ("search.method", &["name", "startup", "batch", "interval", "quantile", "resample"]),
    ("search.stopping", &["rule", "reduction", "min_epochs", "min_trials", "epochs", "min_delta"]),
    (
        "placement",
        &[
            "order",
            "visits",
            "merge",
            "merge_below",
            "merge_in_flight",
            "local_steps",
            "verify",
            "reproducible",
            "threads",
            "replicas",
            "priority",
            "share",
            "max_hosts",
            "budget",
            "deadline",
            "host_shares",
            "residency",
        ],
    ),
    (
        "placement.host_shares",
        &[
            "policy",
            "alpha",
            "threshold",
            "interval",
            "beta",
            "longest_interval",
            "absolute",
            "apply",
            "least",
        ],
    ),
    (
        "placement.residency",
        &[
            "policy",
            "alpha",
            "growth",
            "interval",
            "least_batches",
            "confirm",
            "scope",
            "margin",
            "absolute",
            "listing",
            "reproduction",
        ],
    ),
    ("placement.verify", &["quorum", "rate"]),
    (
        "placement.merge",
        &[
            "rule",
            "alpha",
            "staleness",
            "gain",
            "arrivals",
            "outer",
            "period",
            "rate",
            "momentum",
            "optimizer",
            "canary",
        ],
    ),
    ("placement.merge.staleness", &["polynomial", "hinge"]),
    ("placement.merge.staleness.hinge", &["a", "b"]),
    ("placement.merge.outer", &["name", "rate", "momentum"]),
];

/// The keys of the table at `path`.
pub(super) fn keys(path: &str) -> &'static [&'static str] {
    let table = path.split('[').next().unwrap_or(path);
    TABLES.iter().find(|(name, _)| *name == table).map_or(&[], |(_, keys)| *keys)
}

/// Where else a key is at home: its whole path.
pub(super) fn elsewhere(key: &str) -> Option<String> {
    let (table, _) = TABLES.iter().find(|(_, keys)| keys.contains(&key))?;
    Some(if table.is_empty() {
        // In TOML a bare key belongs to the table above it: a common slip.
        format!("`{key}` at the top of the file, before the first table")
    } else {
        format!("`{table}.{key}`")
    })
}

/// Longer words are near to none: comparing two takes time by the product of their lengths, and who is told of a near one
/// is shown it.
const MAX_WORD_CHARS: usize = 100;

fn is_word(text: &str) -> bool {
    text.chars().nth(MAX_WORD_CHARS).is_none()
}

/// The candidate that `word` most likely stands for, if any is near. Texts of over 100 characters aren't.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if !is_word(word) {
        return None;
    }
    let word = word.to_lowercase();
    let closeness = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let edits = strsim::normalized_damerau_levenshtein(&word, &candidate);
        let contains = word.len() >= 3
            && candidate.len() >= 3
            && (candidate.contains(&word) || word.contains(&candidate));
        if contains { edits.max(0.6) } else { edits }
    };
    candidates
        .into_iter()
        .filter(|candidate| is_word(candidate))
        .map(|candidate| (closeness(candidate), candidate))
        .filter(|(closeness, _)| *closeness >= 0.5)
        // The first of equals wins, so that the answer doesn't depend on `max_by`'s choice.
        .fold(None, |best: Option<(f64, &str)>, next| match best {
            Some(best) if best.0 >= next.0 => Some(best),
            _ => Some(next),
        })
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_and_a_far_one_is_not() {
        let keys = ["epochs", "batch_size", "loss"];
        assert_eq!(nearest("epoch", keys), Some("epochs"));
        assert_eq!(nearest("batchsize", keys), Some("batch_size"));
        assert_eq!(nearest("Loss", keys), Some("loss"));
        assert_eq!(nearest("zebra", keys), None);
    }

    #[test]
    fn a_long_text_that_holds_the_word_is_not_near() {
        let longest = format!("{}label", "x".repeat(MAX_WORD_CHARS - 5));
        assert_eq!(nearest("label", [longest.as_str()]), Some(longest.as_str()));
        let longer = format!("x{longest}");
        assert_eq!(nearest("label", [longer.as_str()]), None);
        assert_eq!(nearest(&longer, ["label"]), None);
    }
}
