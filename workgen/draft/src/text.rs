//! A job over text: a small language model of bytes.

use crate::{Draft, Wishes, job::JobText, number::quoted};

/// The model, which `sojourn init` writes beside the job file.
const MODEL: (&str, &str) =
    ("model.py", include_str!("../../../examples/own-models/language-model/model.py"));

/// Makes a job file for text.
pub(crate) fn draft(bytes: u64, wishes: Wishes<'_>) -> Draft {
    /// Bytes that a trial passes over in a few minutes.
    const MANY: u64 = 10_000_000;
    let epochs = if bytes > MANY { 1 } else { 4 };
    let mut job = JobText::new(wishes.name);
    job.section("[data]");
    job.line(format_args!("train = {}", quoted(wishes.train)));
    job.line(format_args!(
        "window = {{ choice = [64, 128] }}  # bytes that a trial sees at once; c.window in model.py"
    ));
    job.line(format_args!("valid = 0.1"));
    job.line(format_args!("\n# A transformer in PyTorch, yours to change.\n[[model]]\narch = \"graph\"\nentry = \"model.py:LanguageModel\""));
    job.line(format_args!("width = 32\nheads = 4\nlayers = {{ choice = [1, 2] }}\ndropout = 0.1"));
    job.section("[training]");
    job.line(format_args!(
        "epochs = {epochs}\nbatch_size = 8                 # windows of 128 bytes; 16 of 64"
    ));
    job.line(format_args!("optimizer = {{ name = \"adamw\", lr = 3e-3 }}\nclip_norm = 1.0"));
    job.line(format_args!("\n[metrics]\nperplexity = {{ of = \"loss\", as = \"exp_mean\" }}"));
    job.line(format_args!("\n[search]\nmetric = \"valid/perplexity\"\ngoal = \"min\""));
    let remarks = vec![
        "text is trained on by a model of your own: model.py needs PyTorch, see docs/own-models.md"
            .to_owned(),
    ];
    Draft { job: job.finish(), files: vec![MODEL], label: None, columns: Vec::new(), remarks }
}
