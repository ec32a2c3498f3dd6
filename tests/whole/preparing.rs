//! Strangers' bytes, as `sojourn prepare` reads them for a server: bounded by the kernel, and a crash of it is a refusal.

use crate::site::program;
use sojourn_server::{
    BytesRead, DataBounds, DataStep, JobFiles, PrepareJob as _, PreparedJob, ReaderLimits,
    ReaderProgram,
};
use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

const MIB: u64 = 1 << 20;

/// Bounds that count, and end nothing.
#[derive(Debug, Default)]
struct Counted(AtomicU64);

impl DataBounds for Counted {
    fn admit(&self, _: DataStep) -> Result<(), String> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn admits_url(&self, _: &str) -> bool {
        false
    }
}

/// The job of files in a folder, as a server has them read.
fn prepared(folder: &Path, text: &str, limits: ReaderLimits) -> Result<PreparedJob, Vec<String>> {
    let shards = folder.join("shards");
    fs::create_dir_all(&shards).unwrap();
    let bounds = Arc::<Counted>::default();
    let asked = Arc::<Counted>::clone(&bounds);
    let (hosts, earlier) = (Vec::new(), Vec::new());
    let files = JobFiles { text, folder, shards: &shards, hosts, earlier, bounds, limits };
    let reader = ReaderProgram::new(program().into(), vec!["prepare".into()]);
    let mut last = None;
    let made = reader.prepare(files, &mut |read| last = Some(read));
    if made.is_ok() {
        assert!(matches!(last, Some(BytesRead { bytes, of }) if bytes == of), "{last:?}");
        assert!(asked.0.load(Ordering::Relaxed) > 0);
    }
    made
}

fn limits() -> ReaderLimits {
    ReaderLimits::for_data(MIB, 1024 * MIB, 1024 * MIB)
}

fn job(data: &str, model: &str) -> String {
    format!(
        "name = \"a\"\n[data]\nvalid = 0.5\nshards = 1\n{data}\n[[model]]\n{model}\n[training]\nepochs = 1\nbatch_size = 1\n"
    )
}

const MLP: &str = "arch = \"mlp\"\nhidden = [2]";

/// The job files that read a corpus, which `FILE` names.
fn readers(corpus: &str) -> Vec<String> {
    let table = job("train = \"FILE\"\nlabel = \"label\"", MLP);
    // An array of one dimension is rows and labels.
    let arrays = job("train = \"FILE\"\nlabels = \"FILE\"", MLP);
    let named = job("train = \"FILE\"\nlabel = \"y\"", MLP);
    match corpus {
        "csv" | "parquet" => vec![table],
        "images" => vec![job("train = \"images\"\nshape = [3, 4, 4]", MLP)],
        "npy" | "idx" => vec![arrays],
        _ => vec![named],
    }
}

#[test]
fn the_corpora_of_the_fuzz_targets_end_no_reader() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let (mut made, mut refused) = (0, Vec::new());
    for corpus in ["csv", "parquet", "images", "npz", "npy", "idx", "tensor_data", "parts"] {
        for entry in fs::read_dir(corpora.join(corpus)).unwrap() {
            let entry = entry.unwrap();
            let (name, bytes) = (entry.file_name(), fs::read(entry.path()).unwrap());
            // As it is, cut in the middle, and with a bit turned in each 64th byte.
            let half = bytes.get(..bytes.len() / 2).unwrap().to_vec();
            let mut turned = bytes.clone();
            turned.iter_mut().step_by(64).for_each(|byte| *byte ^= 4);
            for bytes in [bytes, half, turned] {
                for text in readers(corpus) {
                    let folder = tempfile::tempdir().unwrap();
                    let name = name.to_str().unwrap();
                    for class in ["a", "b"] {
                        fs::create_dir_all(folder.path().join("images").join(class)).unwrap();
                        fs::write(folder.path().join("images").join(class).join(name), &bytes)
                            .unwrap();
                    }
                    fs::write(folder.path().join(name), &bytes).unwrap();
                    match prepared(folder.path(), &text.replace("FILE", name), limits()) {
                        Ok(_) => made += 1,
                        Err(problems) => refused.extend(problems),
                    }
                }
            }
        }
    }
    let crashed =
        |why: &&String| why.contains("ended the program") || why.contains("takes more than");
    assert_eq!(refused.iter().find(crashed), None);
    assert!(made >= 20 && refused.len() >= 20, "{made} made, {} refused", refused.len());
}

/// A file of NumPy: an array of two rows.
fn array(dtype: &str, shape: &str, values: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut array = b"\x93NUMPY\x01\x00".to_vec();
    array.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    array.extend(header.as_bytes());
    array.extend(values);
    array
}

#[test]
fn memory_that_files_ask_for_is_bounded_by_the_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let rows = array("<f4", "(2, 60000000)", &vec![0; 480_000_000]);
    let packed = zstd::stream::encode_all(rows.as_slice(), 1).unwrap();
    assert!(packed.len() < 100_000, "{}", packed.len());
    fs::write(folder.path().join("x.npy.zst"), packed).unwrap();
    fs::write(folder.path().join("y.npy"), array("|u1", "(2,)", &[0, 1])).unwrap();
    let text = job("train = \"x.npy.zst\"\nlabels = \"y.npy\"", MLP);
    let few = ReaderLimits { memory: 256 * MIB, ..limits() };
    let why = prepared(folder.path(), &text, few).unwrap_err().join("; ");
    assert!(why.contains("takes more than 268 MB of memory (`--max-data-memory`)"), "{why}");
}
