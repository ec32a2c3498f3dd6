//! The jobs that are measured, over the digits in `examples`.

use crate::size;

/// A job file's text and the data beside it.
pub(crate) struct Job {
    pub(crate) text: String,
    pub(crate) data: String,
}

const DIGITS: &str = include_str!("../../examples/digits/digits.csv");

/// A model whose hops take about a second.
fn heavy_model() -> &'static str {
    size::of(
        "[[model]]\narch = \"cnn\"\nchannels = [256, 384]",
        "[[model]]\narch = \"cnn\"\nchannels = [16, 32]",
    )
}

impl Job {
    /// Six mlps and six cnns, each with six learning rates.
    pub(crate) fn search(epochs: u32) -> Self {
        Self::of(
            "[[model]]\narch = \"mlp\"\nhidden = [64]\n\n[[model]]\narch = \"cnn\"\nchannels = [16, 32]",
            2,
            epochs,
            6,
        )
    }

    /// Four cnns whose hops take about a second; enough of them that the last ones, at which a slot waits for
    /// the other, count little.
    pub(crate) fn heavy() -> Self {
        Self::of(heavy_model(), 2, size::of(8, 1), 4)
    }

    /// Eight of them, so that there is always one which nobody trains.
    pub(crate) fn many_heavy() -> Self {
        Self::of(heavy_model(), 2, size::of(3, 1), 8)
    }

    /// So many cnns on eight times the rows, whose hops take more than ten seconds alone.
    pub(crate) fn long_hops(trials: u32) -> Self {
        let job = Self::of(heavy_model(), 1, size::of(3, 1), trials);
        let rows = DIGITS.split_once('\n').map_or("", |(_, rows)| rows);
        Self { data: format!("{DIGITS}{}", rows.repeat(7)), ..job }
    }

    /// One mlp, a chain of 200 hops with an evaluation after every twentieth.
    pub(crate) fn chain() -> Self {
        Self::of("[[model]]\narch = \"mlp\"\nhidden = [64]", size::of(20, 6), size::of(10, 1), 1)
    }

    /// One mlp that takes half a gigabyte to train.
    pub(crate) fn large() -> Self {
        Self::of("[[model]]\narch = \"mlp\"\nhidden = [5000, 5000]", 1, 1, 1)
    }

    /// One whose checkpoint has 28 MB.
    pub(crate) fn wide() -> Self {
        Self::of("[[model]]\narch = \"mlp\"\nhidden = [1500, 1500]", 1, 1, 1)
    }

    /// One with a shard of 23 MB.
    pub(crate) fn many_rows() -> Self {
        let job = Self::of("[[model]]\narch = \"mlp\"\nhidden = [64]", 1, 1, 1);
        let rows = DIGITS.split_once('\n').map_or("", |(_, rows)| rows);
        Self { data: format!("{DIGITS}{}", rows.repeat(59)), ..job }
    }

    fn of(models: &str, shards: u32, epochs: u32, rates: u32) -> Self {
        let lr = match rates {
            1 => "1e-3".to_owned(),
            rates => format!("{{ log_uniform = [1e-3, 1e-2], points = {rates} }}"),
        };
        let text = format!(
            r#"name = "bench"
seed = 7

[data]
train = "digits.csv"
label = "label"
shape = [1, 8, 8]
scale = "standard"
valid = 0.2
shards = {shards}

{models}

[training]
epochs = {epochs}
batch_size = 32
optimizer = {{ name = "adam", lr = {lr} }}

[search]
method = "grid"
metric = "valid/accuracy"
goal = "max"
"#
        );
        Self { text, data: DIGITS.to_owned() }
    }
}
