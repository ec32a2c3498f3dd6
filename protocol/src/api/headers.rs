//! Headers of requests and answers, and the features that both sides say in one of them.

/// Header of an upload: the SHA-256 of the whole decoded content, in hex.
pub const SHA256_HEADER: &str = "sojourn-sha256";

/// Header of an upload: the size of the whole decoded content.
pub const BYTES_HEADER: &str = "sojourn-bytes";

/// Header of a delta: the SHA-256 of the blob that it is the difference from.
pub const BASE_HEADER: &str = "sojourn-base";

/// Header of a delta: the SHA-256 of the checkpoint that it gives.
pub const RESULT_SHA256_HEADER: &str = "sojourn-result-sha256";

/// Header of a delta: the size of the checkpoint that it gives.
pub const RESULT_BYTES_HEADER: &str = "sojourn-result-bytes";

/// The largest checkpoint that goes as a delta: both sides hold it, its base and the delta in memory.
pub const MAX_DELTA_CHECKPOINT: u64 = 256 << 20;

/// Header of every answer, and of every request of a host: what the sender understands beyond the first version of the
/// API, in words that are divided by `, `. Nothing that needs one of them is sent to who doesn't say it.
pub const FEATURES_HEADER: &str = "sojourn-features";

/// Header of an answer: the fields of the request that the server doesn't know and has left out, as `holding.0.usage`, divided by
/// `, `. Only requests of programs may have such fields; those of people are refused with them.
pub const UNKNOWN_FIELDS_HEADER: &str = "sojourn-unknown-fields";

/// A feature: [`HeldState::Sending`](super::HeldState::Sending).
pub const UPLOAD_PROGRESS: &str = "upload-progress";

/// A feature: [`HeldState::Awaiting`](super::HeldState::Awaiting).
pub const AWAITING_SHARDS: &str = "awaiting-shards";

/// A feature of both sides: the 64-bit seeds of leases and assimilation units are read as decimal text too
/// ([`decimal`](crate::decimal)). A server sends them so to who says it; to others they are numbers.
pub const DECIMAL_SEEDS: &str = "decimal-seeds";

/// A feature of servers: a host that holds a finished unit may name the checkpoint that it is about to upload
/// ([`Held::result`](super::Held::result)). Then the trial's next unit may come before the result is there.
pub const PRODUCED_CHECKPOINTS: &str = "made-checkpoints";

/// A feature of servers: a device may offer several numeric classes
/// ([`Device::classes`](crate::inventory::Device::classes)). The host's leases then name the instruction set of a
/// reproducible unit.
pub const SEVERAL_CLASSES: &str = "several-classes";

/// A feature: a host says that its disk has no room for new units
/// ([`Inventory::disk_is_low`](crate::inventory::Inventory::disk_is_low)).
pub const DISK_RESERVES: &str = "disk-reserves";

/// A feature of both sides: a device names its engines ([`Device::engines`](crate::inventory::Device::engines)). Where a
/// client knows of them and its inventory names none, the server asks for the inventory again.
pub const ENGINES: &str = "engines";

/// A feature of clients: they divide their processors as a lease says ([`LeaseCpuShares`](crate::cpu_shares::LeaseCpuShares)).
pub const HOST_SHARES: &str = "host-shares";

/// A feature of servers: held leases say the losses of their units so far ([`Held::losses`](super::Held::losses)).
pub const TRAIN_LOSSES: &str = "train-losses";

/// A feature of servers: heartbeats may say what each running unit takes of its host ([`Held::usage`](super::Held::usage)).
pub const UNIT_USAGE: &str = "unit-usage";

/// A feature: a host says that its engines can't do a unit ([`FailureKind::Unsupported`](crate::report::FailureKind),
/// [`Device::unsupported`](crate::inventory::Device::unsupported)).
pub const UNSUPPORTED_UNITS: &str = "unsupported-units";

/// A feature of servers: jobs have owners, whose names are in views ([`JobOwner`](crate::view::JobOwner)), and tokens have quotas
/// ([`TokenQuotas`](crate::quotas::TokenQuotas)).
pub const JOB_OWNERS: &str = "job-owners";

/// A feature of servers: a host says that a unit is wrong wherever it is tried
/// ([`FailureKind::WrongUnit`](crate::report::FailureKind)).
pub const WRONG_UNITS: &str = "wrong-units";

/// A feature: `PUT /v1/leases/{lease}/checkpoint/delta`.
pub const DELTA_UPLOADS: &str = "delta-uploads";
