//! Equal rows in any format, packed or not, in one file or several, give the same blobs; rows of bytes give shards of
//! bytes.

use super::{folder, job, made, write::*};
use sojourn_codec::decode;
use sojourn_ingest::{Progress, check, ingest};
use sojourn_protocol::{digest::BlobRef, manifest::Labels};
use tempfile::TempDir;
use zip::CompressionMethod::{Deflated, Stored};

const REST: &str = "\nscale = \"standard\"\nshards = 3\ntest = 0.1";

/// The blobs of the same rows as text, which the other tests of this crate hold to their digests.
fn reference() -> Vec<BlobRef> {
    let dir = folder(&[("t.csv", csv())]);
    blobs("train = \"t.csv\"\nlabel = \"y\"", dir.path(), &[6])
}

/// The blobs of the same rows as bytes.
fn reference_of_bytes() -> Vec<BlobRef> {
    let dir = folder(&[("x.npy", npy_pixels()), ("y.npy", npy_labels())]);
    blobs("train = \"x.npy\"\nlabels = \"y.npy\"", dir.path(), &[1, 2, 3])
}

#[test]
fn bytes_stay_bytes_in_shards_with_the_same_numbers_labels_and_scaling() {
    let dir = folder(&[("t.csv", csv()), ("x.npy", npy_pixels()), ("y.npy", npy_labels())]);
    let made = |data: &str| made(&format!("{data}{REST}"), dir.path()).unwrap();
    let out = TempDir::new().unwrap();
    let cut = |data: &str| {
        let made = ingest(&job(&format!("{data}{REST}")), dir.path(), out.path(), &mut |_| {});
        let made = made.unwrap();
        let shards = made.manifest.train.iter().chain(&made.manifest.valid);
        let shards = shards.chain(&made.manifest.test).map(|shard| shard.blob);
        let files: Vec<Vec<u8>> =
            shards.map(|blob| std::fs::read(&made.files[&blob.sha256]).unwrap()).collect();
        (files, made.manifest.scaling)
    };
    let (bytes, scaling) = cut("train = \"x.npy\"\nlabels = \"y.npy\"");
    let (singles, same) = cut("train = \"t.csv\"\nlabel = \"y\"");
    assert_eq!(scaling, same, "the mean and the deviation of the same numbers");
    assert_eq!(bytes.len(), singles.len());
    for (bytes, singles) in bytes.iter().zip(&singles) {
        let (bytes, singles) = (decode(bytes).unwrap(), decode(singles).unwrap());
        let numbers: Vec<f32> = bytes[0].u8s().unwrap().iter().copied().map(f32::from).collect();
        assert_eq!(numbers, singles[0].f32s().unwrap().collect::<Vec<_>>());
        assert_eq!(bytes[0].shape, singles[0].shape);
        assert_eq!(bytes[1], singles[1]);
    }
    // Each file for itself: those that aren't bytes stay as they are.
    let mixed =
        made("train = \"x.npy\"\nlabels = \"y.npy\"\nvalid = { data = \"t.csv\", label = \"y\" }");
    let text = made("train = \"t.csv\"\nlabel = \"y\"\nvalid = \"t.csv\"");
    assert_eq!(mixed.manifest.valid, text.manifest.valid);
    assert!(mixed.manifest.train[0].blob.bytes < text.manifest.train[0].blob.bytes);
}

#[test]
fn images_like_those_of_cifar_are_uploaded_in_hardly_more_than_their_bytes() {
    const IMAGES: usize = 5000;
    let pixels: Vec<u8> = (0..IMAGES * 3 * 32 * 32).map(|at| (at * 37 % 251) as u8).collect();
    let classes: Vec<u8> = (0..IMAGES).map(|row| (row % 10) as u8).collect();
    let array = pixels.len() as u64;
    let x = npy("|u1", &[IMAGES, 3, 32, 32], &pixels);
    let dir = folder(&[(
        "t.npz",
        npz(&[("x.npy", x), ("y.npy", npy("|u1", &[IMAGES], &classes))], Stored),
    )]);
    let made = made("train = \"t.npz\"\nscale = \"standard\"\nshards = 16", dir.path()).unwrap();
    let uploaded: u64 = made.manifest.blobs().map(|blob| blob.bytes).sum();
    assert!(uploaded * 10 <= array * 11, "{uploaded} bytes for {array}");
}

fn blobs(data: &str, base: &std::path::Path, shape: &[u32]) -> Vec<BlobRef> {
    let data = format!("{data}{REST}");
    let manifest = made(&data, base).unwrap_or_else(|error| panic!("{data}: {error}")).manifest;
    assert_eq!(manifest.shape, shape, "{data}");
    assert_eq!(manifest.labels, Labels::Classes(vec!["0".into(), "1".into(), "2".into()]));
    let checked = check(&job(&data), base, base, &mut |_| {}).unwrap();
    assert_eq!((checked.shape.as_slice(), checked.width), (shape, 6));
    manifest.blobs().collect()
}

#[test]
fn every_format_gives_the_same_blobs() {
    let float: Vec<u8> =
        pixels().iter().flat_map(|pixel| f64::from(*pixel).to_be_bytes()).collect();
    let words: Vec<u8> =
        labels().iter().flat_map(|label| u32::from(b'0' + label).to_le_bytes()).collect();
    let dir = folder(&[
        ("t.csv.gz", gzip(&csv())),
        ("t.csv.zst", zstd(&csv())),
        // Two members one after the other are one file.
        ("two.csv.gz", [gzip(&csv()[..100]), gzip(&csv()[100..])].concat()),
        ("stored.npz", npz_of_both(Stored)),
        ("deflated.npz", npz_of_both(Deflated)),
        ("packed.npz.gz", gzip(&npz_of_both(Stored))),
        (
            "named.npz",
            npz(
                &[
                    ("images.npy", npy(">f8", &[ROWS, HEIGHT, WIDTH], &float)),
                    ("names.npy", npy("<U1", &[ROWS], &words)),
                    ("readme.txt", b"no array".to_vec()),
                ],
                Deflated,
            ),
        ),
        ("stored-fortran.npz", npz_in_fortran_order(Stored)),
        ("deflated-fortran.npz", npz_in_fortran_order(Deflated)),
        ("fortran.npy", npy_fortran(">f8", &[ROWS, HEIGHT, WIDTH], &float)),
        ("fortran.npy.gz", gzip(&npy_fortran(">f8", &[ROWS, HEIGHT, WIDTH], &float))),
        ("x.npy", npy_pixels()),
        ("y.npy.zst", zstd(&npy_labels())),
        ("t10k-images-idx3-ubyte.gz", gzip(&idx_images())),
        ("t10k-labels-idx1-ubyte.gz", gzip(&idx_labels())),
        ("pixels.idx", idx_images()),
        ("classes.idx.zst", zstd(&idx_labels())),
        ("t.safetensors", safetensors()),
        ("t.safetensors.zst", zstd(&safetensors())),
    ]);
    let (text, bytes) = (reference(), reference_of_bytes());
    for (data, shape, reference) in [
        ("train = \"t.csv.gz\"\nlabel = \"y\"", &[6][..], &text),
        ("train = \"t.csv.zst\"\nlabel = \"y\"", &[6], &text),
        ("train = \"two.csv.gz\"\nlabel = \"y\"", &[6], &text),
        ("train = \"stored.npz\"", &[1, 2, 3], &bytes),
        ("train = \"deflated.npz\"", &[1, 2, 3], &bytes),
        ("train = \"deflated.npz\"\nshape = [6]", &[6], &bytes),
        ("train = \"packed.npz.gz\"", &[1, 2, 3], &bytes),
        ("train = \"named.npz\"\nfeatures = \"images\"\nlabel = \"names\"", &[1, 2, 3], &text),
        ("train = \"x.npy\"\nlabels = \"y.npy.zst\"", &[1, 2, 3], &bytes),
        ("train = \"stored-fortran.npz\"", &[1, 2, 3], &bytes),
        ("train = \"deflated-fortran.npz\"", &[1, 2, 3], &bytes),
        ("train = \"fortran.npy\"\nlabels = \"y.npy.zst\"", &[1, 2, 3], &text),
        ("train = \"fortran.npy.gz\"\nlabels = \"y.npy.zst\"", &[1, 2, 3], &text),
        ("train = \"t10k-images-idx3-ubyte.gz\"", &[1, 2, 3], &bytes),
        ("train = \"pixels.idx\"\nlabels = \"classes.idx.zst\"", &[1, 2, 3], &bytes),
        ("train = \"t.safetensors\"", &[6], &text),
        ("train = \"t.safetensors.zst\"\nshape = [2, 3]", &[2, 3], &text),
    ] {
        assert_eq!(&blobs(data, dir.path(), shape), reference, "{data}");
    }
}

fn npz_in_fortran_order(method: zip::CompressionMethod) -> Vec<u8> {
    let x = npy_fortran("|u1", &[ROWS, HEIGHT, WIDTH], &pixels());
    npz(&[("x.npy", x), ("y.npy", npy_labels())], method)
}

#[test]
fn damage_of_arrays_in_fortran_order_is_noticed() {
    for method in [Stored, Deflated] {
        let mut file = npz_in_fortran_order(method);
        let begins = |at: &usize| file[*at..].starts_with(b"PK\x03\x04");
        let second = (1..file.len()).find(begins).unwrap();
        file[second - 10] ^= 1;
        let said = super::refused("train = \"t.npz\"", &[("t.npz", file)]);
        assert!(said.starts_with("t.npz: `x`: "), "{said}");
        assert!(said.contains("damaged"), "{said}");
    }
    let whole = npy_fortran("|u1", &[ROWS, 6], &pixels());
    let cut = whole[..whole.len() - 1].to_vec();
    for (name, file) in [("x.npy", cut.clone()), ("x.npy.gz", gzip(&cut))] {
        let files = [(name, file), ("y.npy", npy_labels())];
        let said = super::refused(&format!("train = \"{name}\"\nlabels = \"y.npy\""), &files);
        let wanted = format!("{name}: `rows`: the shape [60, 6] needs 360 bytes, there are 359");
        assert_eq!(said, wanted);
    }
}

#[test]
fn a_folder_of_parts_is_one_source() {
    let half = ROWS / 2;
    let pixels = pixels();
    let part = |rows: std::ops::Range<usize>| {
        let width = HEIGHT * WIDTH;
        let x = npy("|u1", &[rows.len(), width], &pixels[rows.start * width..rows.end * width]);
        npz(&[("x.npy", x), ("y.npy", npy("|u1", &[rows.len()], &labels()[rows]))], Deflated)
    };
    let dir = folder(&[
        ("parts/b.npz", part(half..ROWS)),
        ("parts/a.npz", part(0..half)),
        ("parts/.hidden.csv", csv()),
        ("parts/notes.txt", b"none".to_vec()),
    ]);
    let data = "train = \"parts\"\nlabel = \"y\"";
    assert_eq!(blobs(data, dir.path(), &[6]), reference_of_bytes());
}

#[test]
fn a_shard_of_our_own_is_a_source() {
    let dir = folder(&[("t.csv", csv())]);
    let first = ingest(
        &job("train = \"t.csv\"\nlabel = \"y\"\nshards = 1"),
        dir.path(),
        dir.path(),
        &mut |_| {},
    );
    let first = first.unwrap();
    let shard = first.manifest.train[0];
    std::fs::rename(&first.files[&shard.blob.sha256], dir.path().join("s.safetensors")).unwrap();
    let again =
        made("train = \"s.safetensors\"\nshards = 1\nvalid = \"s.safetensors\"", dir.path());
    // Every row goes to the one training shard again, in the file's order.
    assert_eq!(again.unwrap().manifest.train, [shard]);
}

#[test]
fn splits_may_be_other_arrays_of_the_same_file_and_other_formats() {
    let x = npy("|u1", &[4, 6], &pixels()[..24]);
    let dir = folder(&[
        (
            "all.npz",
            npz(
                &[
                    ("x_train.npy", npy("|u1", &[ROWS, 6], &pixels())),
                    ("y_train.npy", npy_labels()),
                    ("x_test.npy", x),
                    ("y_test.npy", npy("|u1", &[4], &labels()[..4])),
                ],
                Deflated,
            ),
        ),
        ("v.csv", csv()),
    ]);
    let made = made(
        "train = \"all.npz\"\nfeatures = \"x_train\"\nlabel = \"y_train\"\n\
         valid = { data = \"v.csv\", label = \"y\" }\n\
         test = { data = \"all.npz\", features = \"x_test\", label = \"y_test\" }",
        dir.path(),
    );
    let manifest = made.unwrap().manifest;
    let rows = |shards: &[sojourn_protocol::manifest::Shard]| -> u32 {
        shards.iter().map(|shard| shard.rows).sum()
    };
    let counts = [&manifest.train, &manifest.valid, &manifest.test].map(|shards| rows(shards));
    assert_eq!(counts, [ROWS as u32, ROWS as u32, 4]);
}

#[test]
fn channels_are_turned_round() {
    // Two channels of 2 x 5: first as models take them, then the other way round.
    let first: Vec<u8> = (0..ROWS * 20).map(|index| (index * 41 % 239) as u8).collect();
    let last: Vec<u8> = first
        .chunks(20)
        .flat_map(|row| (0..10).flat_map(|pixel| [row[pixel], row[10 + pixel]]))
        .collect();
    let file = |shape: &[usize], bytes: &[u8]| {
        npz(&[("x.npy", npy("|u1", shape, bytes)), ("y.npy", npy_labels())], Stored)
    };
    let dir = folder(&[
        ("first.npz", file(&[ROWS, 2, 2, 5], &first)),
        ("last.npz", file(&[ROWS, 2, 5, 2], &last)),
    ]);
    let a = made("train = \"first.npz\"", dir.path()).unwrap().manifest;
    let b = made("train = \"last.npz\"\nchannels = \"last\"", dir.path()).unwrap().manifest;
    assert_eq!(a.shape, [2, 2, 5]);
    assert_eq!(a, b);
}

#[test]
fn progress_counts_both_passes_and_tells_of_copies() {
    let dir = folder(&[("t.npz.gz", gzip(&npz_of_both(Deflated)))]);
    let (mut read, mut copied) = (Vec::new(), Vec::new());
    let mut tell = |progress: Progress<'_>| match progress {
        Progress::Reading { bytes, of } => read.push((bytes, of)),
        Progress::Loading { from, .. } => copied.push((from.to_owned(), 0)),
        Progress::Loaded { from, bytes, .. } => copied.push((from.to_owned(), bytes)),
        Progress::Separated { .. }
        | Progress::Sheet { .. }
        | Progress::Dropped { .. }
        | Progress::Unlabelled { .. }
        | Progress::SameClass { .. }
        | Progress::Bad { .. }
        | Progress::Unnamed { .. } => panic!("no table"),
        Progress::Skipped { .. } => panic!("no folder"),
    };
    let spool = TempDir::new().unwrap();
    let folder = spool.path().join("made");
    check(&job("train = \"t.npz.gz\""), dir.path(), &folder, &mut tell).unwrap();
    let all = (8 * ROWS + 8 * ROWS + 6 * ROWS) as u64;
    assert!(read.is_sorted());
    assert_eq!(read.last(), Some(&(all, all)), "labels, then labels and rows");
    let bytes = npz_of_both(Deflated).len() as u64;
    assert_eq!(copied, [("t.npz.gz".to_owned(), 0), ("t.npz.gz".to_owned(), bytes)]);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "the copy has no name");
}
