//! The table of bounds: one line for each field whose type alone doesn't bound it.

use crate::{
    api::{MAX_ADDED_TRIALS, MAX_DELETED_JOBS, MAX_NOTE_CHARS, MAX_WHY_CHARS},
    column::MAX_COLUMNS,
    machines::MAX_MACHINES,
    manifest::MAX_EVALUATION_SHARDS,
    metrics::{MAX_CONFUSION_CLASSES, MAX_COUNTED_CLASSES},
    money::MAX_USD,
    names::MAX_OWNER_CHARS,
    spec::{
        MAX_CONDITION_SETTINGS, MAX_CONSTRAINT_CHARS, MAX_CONSTRAINTS, MAX_HOSTS,
        MAX_MISSING_WORDS, MAX_PRIORITY, MAX_SLOT_SHARE, MAX_WORD_COLUMNS, MAX_WORDS,
    },
    sum_array::{MAX_ARRAY_DIMENSIONS, MAX_ARRAY_NUMBERS},
    sums::MAX_NAMED_SUMS,
    text::MAX_NAME_CHARS,
    tokens::MAX_TOKEN_HOSTS,
    usage::{MAX_CORES, MAX_DISK_RATE},
};

/// Characters of a name as it is sent: of a host, an assimilator, a call, a column, a class. Shown and stored names are shorter.
pub const MAX_GIVEN_NAME_CHARS: usize = 1 << 10;
/// Characters of a path or URL.
pub const MAX_PLACE_CHARS: usize = 4 << 10;
/// Characters of an error or a reason as it is sent. Much less of it is kept.
pub const MAX_MESSAGE_CHARS: usize = 64 << 10;
/// Trials of an earlier job that a search takes in: as many as a job has.
const MAX_PAST_TRIALS: usize = 1 << 16;
/// Kinds of devices that a host names.
pub const MAX_DEVICES: usize = 64;
/// Slots of one device.
pub const MAX_SLOTS: u64 = 1 << 16;
/// Numeric classes of one device.
pub const MAX_NUMERIC_CLASSES: usize = 16;
/// Engines of one device.
pub const MAX_ENGINES: usize = 16;
/// Models that one engine names.
pub const MAX_ENGINE_MODELS: usize = 64;
/// Measured workloads of one device, and those that its engines have refused.
pub const MAX_MEASURED: usize = 1 << 10;
/// Digests of blobs in a host's cache.
pub const MAX_CACHED_BLOBS: usize = 100_000;
/// Leases in one request of a host.
pub const MAX_LEASES: usize = 1 << 16;
/// Floating-point operations per second: several hundred times those of the fastest device.
pub const MAX_FLOPS: f64 = 1e18;
/// Nanoseconds of training per row: over eleven days.
pub const MAX_NANOS_PER_ROW: u64 = 1_000_000_000_000_000;
/// Microseconds of training in one report: a year.
pub const MAX_TRAIN_MICROS: u64 = 366 * 86_400 * 1_000_000;
/// Milliseconds of any length of time: a year.
pub const MAX_TIME: u64 = 366 * 86_400_000;
/// Bytes of memory, of a cache, or per second: two such amounts can be added.
pub const MAX_AMOUNT: u64 = (1 << 63) - 1;
/// Bytes of one blob, 16 TiB: the sizes of a job's blobs can be added.
pub const MAX_BLOB_BYTES: u64 = 1 << 44;
/// Blobs that one request asks for.
pub const MAX_JOB_BLOBS: usize = 1 << 17;
/// Shards of a job's training data.
pub const MAX_SHARDS: usize = 1 << 16;
/// Features of a row.
pub const MAX_FEATURES: usize = 1 << 20;
/// Classes of labels.
pub const MAX_CLASSES: usize = 1 << 20;
/// Dimensions of a row's shape.
pub const MAX_DIMENSIONS: usize = 16;
/// `[[model]]` tables of a job.
pub const MAX_MODELS: usize = 1 << 10;
/// Layers that one setting names.
pub const MAX_LAYERS: usize = 1 << 10;
/// Values of one dimension of a search.
pub const MAX_CHOICES: usize = 4 << 10;
/// Tensors of a graph.
pub const MAX_GRAPH_TENSORS: usize = 10_000;
/// Floating-point operations of one row of a graph: a millisecond of the fastest device by [`MAX_FLOPS`], hours of a processor.
pub const MAX_GRAPH_FLOPS: u64 = 1 << 50;
/// Numbers of the widest value that one row of a graph has: more than a value may have for all rows.
pub const MAX_GRAPH_WIDTH: u64 = 1 << 40;
/// Exported graphs of one `[[model]]` table: as many as a job has trials.
pub const MAX_GRAPHS: usize = 1 << 16;
/// Ranges of a merge that is divided.
pub const MAX_RANGES: usize = 4 << 10;
/// Sums of one range.
pub const MAX_SQUARES: usize = 1 << 19;
/// Numbers of a checkpoint's lineage.
pub const MAX_LINEAGE: usize = 64;
/// Pieces that a merge rule stores beside the parameters.
pub const MAX_RULE_SLOTS: usize = 16;
/// Entries of a list that the table doesn't name.
pub const MAX_OTHER_ENTRIES: usize = 1 << 10;

/// The bound of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Entries of a list, and of the lists in it.
    pub lists: &'static [usize],
    /// The bound of a single value, also of those in a list.
    pub leaf: Leaf,
}

/// The bound of a single value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Leaf {
    /// A number in its type's range; a text has at most [`MAX_NAME_CHARS`] characters.
    Typed,
    /// A text of at most so many characters.
    Text(usize),
    /// A line without control characters, of at most so many characters.
    Line(usize),
    /// A name: a line without characters that nobody sees and without spaces at its ends, of at most so many characters.
    Name(usize),
    /// A whole number up to this.
    Whole(u64),
    /// A whole number from the first to the second.
    Between(i64, u64),
    /// A number from 0 up to this.
    Real(f64),
}

impl Bound {
    /// Of fields that the table doesn't name.
    pub(crate) const OTHER: Self = Self { lists: &[], leaf: Leaf::Typed };

    const fn leaf(leaf: Leaf) -> Self {
        Self { lists: &[], leaf }
    }

    const fn list(lists: &'static [usize]) -> Self {
        Self { lists, leaf: Leaf::Typed }
    }

    /// The bound of a type's field.
    #[must_use]
    pub fn of(owner: &str, field: &str) -> Self {
        let found = BOUNDS.binary_search_by(|(name, of, _)| (*name, *of).cmp(&(owner, field)));
        let found = found.ok().and_then(|at| BOUNDS.get(at));
        found.map_or(Self::OTHER, |(_, _, bound)| *bound)
    }

    /// Entries of a list at this depth.
    #[must_use]
    pub fn entries(&self, depth: usize) -> usize {
        self.lists.get(depth).copied().unwrap_or(MAX_OTHER_ENTRIES)
    }
}

const NOTE: Bound = Bound::leaf(Leaf::Line(MAX_NOTE_CHARS));
const GIVEN_NAME: Bound = Bound::leaf(Leaf::Text(MAX_GIVEN_NAME_CHARS));
/// The name of an owner or a token.
const OWNER: Bound = Bound::leaf(Leaf::Name(MAX_OWNER_CHARS));
const NAME: Bound = Bound::leaf(Leaf::Line(MAX_NAME_CHARS));
const MESSAGE: Bound = Bound::leaf(Leaf::Text(MAX_MESSAGE_CHARS));
const PLACE: Bound = Bound::leaf(Leaf::Text(MAX_PLACE_CHARS));
const TIME: Bound = Bound::leaf(Leaf::Whole(MAX_TIME));
const AMOUNT: Bound = Bound::leaf(Leaf::Whole(MAX_AMOUNT));
const FLOPS: Bound = Bound::leaf(Leaf::Real(MAX_FLOPS));
const DISK_RATE: Bound = Bound::leaf(Leaf::Real(MAX_DISK_RATE));
const SLOTS: Bound = Bound::leaf(Leaf::Whole(MAX_SLOTS));
const TRAIN_MICROS: Bound = Bound::leaf(Leaf::Whole(MAX_TRAIN_MICROS));
const MACHINES: Bound = Bound::list(&[MAX_MACHINES]);
/// Less than a billion dollars, in millionths.
const MONEY: Bound = Bound::leaf(Leaf::Whole(MAX_USD * 1_000_000 - 1));
const PRIORITY: Bound =
    Bound::leaf(Leaf::Between(-(MAX_PRIORITY as i64), MAX_PRIORITY.unsigned_abs() as u64));
/// A part of slot time beside others of the same priority.
const SLOT_SHARE: Bound = Bound::leaf(Leaf::Between(1, MAX_SLOT_SHARE as u64));
const LEASES: Bound = Bound::list(&[MAX_LEASES]);
const LAYERS: Bound = Bound::list(&[MAX_LAYERS]);
const SHAPE: Bound = Bound::list(&[MAX_DIMENSIONS]);
const BATCH_COLUMNS: Bound = Bound::list(&[MAX_COLUMNS]);
const EVALUATION_SHARDS: Bound = Bound::list(&[MAX_EVALUATION_SHARDS as usize]);
const COUNTED_CLASSES: Bound = Bound::list(&[MAX_COUNTED_CLASSES as usize]);

/// Type, field (or variant) and bound, sorted by both. A value of a type has its bounds wherever it lies.
pub const BOUNDS: &[(&str, &str, Bound)] = &[
    ("AssimilationUnit", "term", TIME),
    ("BlobRef", "bytes", Bound::leaf(Leaf::Whole(MAX_BLOB_BYTES))),
    ("ByClass", "confusion", CONFUSION),
    ("Categories", "column", GIVEN_NAME),
    ("Categories", "words", WORDS),
    ("CategoriesSpec", "column", GIVEN_NAME),
    ("CategoriesSpec", "words", WORDS),
    ("ClassTotals", "correct", COUNTED_CLASSES),
    ("ClassTotals", "labelled", COUNTED_CLASSES),
    ("ClassTotals", "predicted", COUNTED_CLASSES),
    ("Cnn", "channels", LAYERS),
    ("Cnn", "hidden", LAYERS),
    ("CollectRequest", "grace", TIME),
    ("Column", "classes", NAMES_OF_CLASSES),
    ("Column", "name", GIVEN_NAME),
    ("Column", "shape", SHAPE),
    ("Conditional", "otherwise", LAYERS),
    ("Conditional", "when", Bound::list(&[MAX_CONDITION_SETTINGS, MAX_CHOICES, MAX_LAYERS])),
    ("DataManifest", "categories", WORD_COLUMNS),
    ("DataManifest", "columns", BATCH_COLUMNS),
    ("DataManifest", "features", NAMES_OF_FEATURES),
    ("DataManifest", "fill", Bound::list(&[MAX_FEATURES])),
    ("DataManifest", "shape", SHAPE),
    ("DataManifest", "test", EVALUATION_SHARDS),
    ("DataManifest", "train", Bound::list(&[MAX_SHARDS])),
    ("DataManifest", "valid", EVALUATION_SHARDS),
    ("DataSpec", "categories", WORD_COLUMNS),
    ("DataSpec", "features", GIVEN_NAME),
    ("DataSpec", "groups", GIVEN_NAME),
    ("DataSpec", "label", GIVEN_NAME),
    ("DataSpec", "labels", PLACE),
    ("DataSpec", "shape", SHAPE),
    ("DataSpec", "train", PLACE),
    ("DeleteRequest", "jobs", Bound::list(&[MAX_DELETED_JOBS])),
    ("Demand", "device", NAME),
    ("Demand", "idle", SLOTS),
    ("Demand", "slots", SLOTS),
    ("Demand", "wanted", SLOTS),
    ("Device", "classes", Bound::list(&[MAX_NUMERIC_CLASSES])),
    ("Device", "engines", Bound::list(&[MAX_ENGINES])),
    ("Device", "flops", FLOPS),
    ("Device", "measured", Bound::list(&[MAX_MEASURED])),
    ("Device", "memory", AMOUNT),
    ("Device", "name", NAME),
    ("Device", "unsupported", Bound::list(&[MAX_MEASURED])),
    ("Dialect", "missing_values", MISSING_WORDS),
    ("Dimension", "choice", Bound::list(&[MAX_CHOICES, MAX_LAYERS])),
    ("Dimension", "fixed", LAYERS),
    ("Dimension", "tied", Bound::leaf(Leaf::Text(MAX_CONSTRAINT_CHARS))),
    ("DrainRequest", "machines", MACHINES),
    ("DrainRequest", "within", TIME),
    ("Engine", "framework", NAME),
    ("Engine", "models", ENGINE_MODELS),
    ("Engine", "name", NAME),
    ("EnrolRequest", "name", GIVEN_NAME),
    ("Evaluated", "arrays", Bound::list(&[MAX_NAMED_SUMS])),
    ("Evaluated", "shards", EVALUATION_SHARDS),
    ("Evaluated", "train_micros", TRAIN_MICROS),
    ("ExportedGraph", "arrays", Bound::list(&[MAX_NAMED_SUMS, MAX_ARRAY_DIMENSIONS])),
    ("ExportedGraph", "columns", BATCH_COLUMNS),
    ("ExportedGraph", "flops_per_row", Bound::leaf(Leaf::Whole(MAX_GRAPH_FLOPS))),
    ("ExportedGraph", "sums", Bound::list(&[MAX_NAMED_SUMS])),
    ("ExportedGraph", "tensors", Bound::list(&[MAX_GRAPH_TENSORS])),
    ("ExportedGraph", "widest", Bound::leaf(Leaf::Whole(MAX_GRAPH_WIDTH))),
    ("Failure", "message", MESSAGE),
    ("Graph", "entry", PLACE),
    ("GraphSpace", "entry", PLACE),
    ("GraphSpace", "exported", Bound::list(&[MAX_GRAPHS])),
    ("GraphTensor", "shape", SHAPE),
    ("Header", "names", NAMES_OF_COLUMNS),
    ("HeartbeatRequest", "holding", LEASES),
    ("HeartbeatRequest", "reported", LEASES),
    ("Hop", "then", Bound::list(&[MAX_SHARDS])),
    ("Init", "file", PLACE),
    ("Inventory", "cache", AMOUNT),
    ("Inventory", "cached", Bound::list(&[MAX_CACHED_BLOBS])),
    ("Inventory", "client", NAME),
    ("Inventory", "devices", Bound::list(&[MAX_DEVICES])),
    ("JobSpec", "init", Bound::list(&[MAX_MODELS])),
    ("JobSpec", "models", Bound::list(&[MAX_MODELS])),
    ("JobSpec", "name", Bound::leaf(Leaf::Name(MAX_NAME_CHARS))),
    ("Labels", "classes", NAMES_OF_CLASSES),
    ("LeadRequest", "left", Bound::list(&[MAX_RANGES])),
    ("LeadRequest", "wait", TIME),
    ("LeaderRequest", "holder", GIVEN_NAME),
    ("LeaderRequest", "role", GIVEN_NAME),
    ("LeaderRequest", "term", TIME),
    ("Links", "download", AMOUNT),
    ("Links", "upload", AMOUNT),
    ("MachineReport", "instance", NAME),
    ("MachineReport", "instance_type", NAME),
    ("MachineReport", "on_demand_price", MONEY),
    ("MachineReport", "price", MONEY),
    ("MachineReport", "zone", NAME),
    ("MachinesRequest", "machines", MACHINES),
    ("Measured", "nanos_per_row", Bound::leaf(Leaf::Whole(MAX_NANOS_PER_ROW))),
    ("Measured", "peak_memory", AMOUNT),
    ("MissingRequest", "blobs", Bound::list(&[MAX_JOB_BLOBS])),
    ("Mlp", "hidden", LAYERS),
    ("Normal", "truncate", Bound::list(&[2])),
    ("NoteRequest", "note", NOTE),
    ("OfferedClass", "flops", FLOPS),
    ("OfferedClass", "instructions", NAME),
    ("PastJob", "job", NAME),
    ("PastJob", "trials", Bound::list(&[MAX_PAST_TRIALS])),
    ("PlacementRequest", "budget", MONEY),
    ("PlacementRequest", "deadline", TIME),
    ("PlacementRequest", "max_hosts", Bound::leaf(Leaf::Whole(MAX_HOSTS as u64))),
    ("PlacementRequest", "priority", PRIORITY),
    ("PlacementRequest", "share", SLOT_SHARE),
    ("PlacementSpec", "budget", MONEY),
    ("PlacementSpec", "deadline", TIME),
    ("RangeDecision", "lineage", Bound::list(&[MAX_LINEAGE])),
    ("RangeDecision", "overlap", Bound::list(&[2])),
    ("RangeResult", "slots", Bound::list(&[MAX_RULE_SLOTS])),
    ("RangeResult", "squares", Bound::list(&[MAX_SQUARES])),
    ("RejectRequest", "reason", MESSAGE),
    ("ReleaseRequest", "leases", LEASES),
    ("ReleaseRequest", "reason", MESSAGE),
    ("SearchRequest", "add", Bound::list(&[MAX_ADDED_TRIALS])),
    ("SearchRequest", "nonce", GIVEN_NAME),
    ("SearchRequest", "retry", Bound::list(&[MAX_ADDED_TRIALS])),
    ("SearchRequest", "why", Bound::leaf(Leaf::Line(MAX_WHY_CHARS))),
    ("SearchSpec", "constraints", CONSTRAINTS),
    ("SearchSpec", "wall_time", TIME),
    ("ShareRequest", "label", OWNER),
    ("ShareRequest", "lifetime", TIME),
    ("SourceSpec", "data", PLACE),
    ("SourceSpec", "features", GIVEN_NAME),
    ("SourceSpec", "label", GIVEN_NAME),
    ("SourceSpec", "labels", PLACE),
    ("Space", "models", Bound::list(&[MAX_MODELS])),
    ("Split", "file", PLACE),
    ("Start", "normal", Bound::list(&[2])),
    ("Start", "uniform", Bound::list(&[2])),
    ("StoredPiece", "name", NAME),
    ("SubmitRequest", "nonce", GIVEN_NAME),
    ("SumArray", "numbers", Bound::list(&[MAX_ARRAY_NUMBERS])),
    ("SumArray", "shape", Bound::list(&[MAX_ARRAY_DIMENSIONS])),
    ("TakeRequest", "name", GIVEN_NAME),
    ("TakeRequest", "wait", TIME),
    ("TokenGrant", "hosts", Bound::leaf(Leaf::Whole(MAX_TOKEN_HOSTS as u64))),
    ("TokenGrant", "owner", OWNER),
    ("TokenQuotas", "bytes", AMOUNT),
    ("TokenQuotas", "share", SLOT_SHARE),
    ("TokenRequest", "label", OWNER),
    ("TokenRequest", "lifetime", TIME),
    ("Trained", "train_micros", TRAIN_MICROS),
    ("TrialContext", "columns", BATCH_COLUMNS),
    ("TrialContext", "shape", SHAPE),
    ("UnitUsage", "cores", Bound::leaf(Leaf::Real(MAX_CORES))),
    ("UnitUsage", "memory", AMOUNT),
    ("UnitUsage", "read_per_second", DISK_RATE),
    ("UnitUsage", "received", AMOUNT),
    ("UnitUsage", "written_per_second", DISK_RATE),
    ("WorkRequest", "demand", Bound::list(&[MAX_DEVICES])),
    ("WorkRequest", "holding", LEASES),
    ("WorkRequest", "reported", LEASES),
    ("WorkRequest", "wait", TIME),
    ("Workload", "shape", SHAPE),
];

const CONSTRAINTS: Bound =
    Bound { lists: &[MAX_CONSTRAINTS], leaf: Leaf::Text(MAX_CONSTRAINT_CHARS) };
const CONFUSION: Bound =
    Bound::list(&[MAX_CONFUSION_CLASSES as usize, MAX_CONFUSION_CLASSES as usize]);
const ENGINE_MODELS: Bound =
    Bound { lists: &[MAX_ENGINE_MODELS], leaf: Leaf::Line(MAX_NAME_CHARS) };
const NAMES_OF_FEATURES: Bound =
    Bound { lists: &[MAX_FEATURES], leaf: Leaf::Text(MAX_GIVEN_NAME_CHARS) };
const WORD_COLUMNS: Bound = Bound::list(&[MAX_WORD_COLUMNS]);
const WORDS: Bound = Bound { lists: &[MAX_WORDS], leaf: Leaf::Text(MAX_GIVEN_NAME_CHARS) };
const MISSING_WORDS: Bound =
    Bound { lists: &[MAX_MISSING_WORDS], leaf: Leaf::Text(MAX_GIVEN_NAME_CHARS) };
const NAMES_OF_COLUMNS: Bound =
    Bound { lists: &[MAX_OTHER_ENTRIES], leaf: Leaf::Text(MAX_GIVEN_NAME_CHARS) };
const NAMES_OF_CLASSES: Bound =
    Bound { lists: &[MAX_CLASSES], leaf: Leaf::Text(MAX_GIVEN_NAME_CHARS) };
