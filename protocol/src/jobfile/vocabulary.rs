//! Every key of a job file.

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
            "dates",
            "missing",
            "missing_values",
            "on_bad_row",
            "on_bad_image",
            "header",
            "encoding",
            "decimal",
            "thousands",
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
            "stratified",
            "groups",
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
            "local_epochs",
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
            "combinations",
            "repeat",
            "folds",
            "refit",
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
            "moving_rate",
            "lambda",
            "decay",
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
