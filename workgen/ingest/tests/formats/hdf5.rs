//! HDF5: equal rows are those of NPZ and CSV, however datasets are laid out.
//!
//! The files in `hdf5/` are written by h5py 3.16, with the pixels and labels of [`super::write`]: `plain.h5` has them as they are,
//! `chunked.h5` in a group, in chunks, in doubles with the big end first, by gzip, shuffled, with checksums and in the latest version of
//! the format, `kinds.h5` in other types, and `empty.h5` a dataset of 2^40 rows that nobody wrote.

use super::{
    folder, made, refused, told,
    write::{csv, gzip, npy_labels, npy_pixels},
};
use sojourn_ingest::{Elements, Profile, ProfileOf, Unbounded, profile};
use std::{path::Path, sync::Arc};

const PLAIN: &[u8] = include_bytes!("hdf5/plain.h5");
const CHUNKED: &[u8] = include_bytes!("hdf5/chunked.h5");
const KINDS: &[u8] = include_bytes!("hdf5/kinds.h5");
const EMPTY: &[u8] = include_bytes!("hdf5/empty.h5");
const REST: &str = "\nscale = \"standard\"\nshards = 3\ntest = 0.1";

fn blobs(data: &str, base: &Path) -> Vec<sojourn_protocol::digest::BlobRef> {
    let made = made(&format!("{data}{REST}"), base);
    made.map_err(|error| format!("{data}: {}", told(&error))).unwrap().manifest.blobs().collect()
}

#[test]
fn equal_rows_are_equal_shards_however_datasets_are_laid_out() {
    let dir = folder(&[
        ("t.csv", csv()),
        ("x.npy", npy_pixels()),
        ("y.npy", npy_labels()),
        ("plain.h5", PLAIN.to_vec()),
        ("plain.hdf5.gz", gzip(PLAIN)),
        ("unnamed", PLAIN.to_vec()),
        ("chunked.h5", CHUNKED.to_vec()),
        ("kinds.h5", KINDS.to_vec()),
    ]);
    let bytes = blobs("train = \"x.npy\"\nlabels = \"y.npy\"", dir.path());
    for data in ["plain.h5", "plain.hdf5.gz", "unnamed"] {
        assert_eq!(
            blobs(&format!("train = \"{data}\"\nlabel = \"y\""), dir.path()),
            bytes,
            "{data}"
        );
    }
    let text = blobs("train = \"t.csv\"\nlabel = \"y\"", dir.path());
    for data in [
        "train = \"chunked.h5\"\nfeatures = \"data/images\"\nlabel = \"data/names\"",
        "train = \"chunked.h5\"\nfeatures = \"/data/images\"\nlabel = \"/data/names\"",
        "train = \"kinds.h5\"",
        "train = \"kinds.h5\"\nfeatures = \"half\"",
    ] {
        assert_eq!(blobs(data, dir.path()), text, "{data}");
    }
    let truths = made(&format!("train = \"kinds.h5\"\nfeatures = \"truths\"{REST}"), dir.path());
    assert!(truths.is_ok(), "{truths:?}");
}

#[test]
fn datasets_that_are_no_rows_are_refused_by_their_names() {
    let said =
        |keys: &str| refused(&format!("train = \"t.h5\"\n{keys}"), &[("t.h5", KINDS.to_vec())]);
    assert_eq!(
        said("features = \"images\""),
        "t.h5: no array `images` (`features`); it has `few`, `half`, `lzf`, `scalar`, `table`, `truths`, `words`, ..., `y`"
    );
    assert_eq!(
        said("features = \"table\""),
        "t.h5: `table`: its elements are a structure, no numbers"
    );
    assert_eq!(
        said("label = \"words\""),
        "t.h5: `words`: its elements are texts or lists of different lengths (h5py writes texts of one length by `astype(\"S\")`), no \
         numbers"
    );
    assert_eq!(said("label = \"few\""), "t.h5: `few`: 7 labels for the 60 rows of `x`");
    assert!(said("features = \"scalar\"").starts_with("t.h5: `scalar`: "));
    assert_eq!(
        said("features = \"lzf\""),
        "t.h5: `lzf`: the HDF5 data is damaged or cut off (unsupported filter: filter id 32000)"
    );
    let empty = refused("train = \"t.h5\"", &[("t.h5", EMPTY.to_vec())]);
    assert_eq!(
        empty,
        "t.h5: `x`: the shape [1099511627776, 6] needs 26388279066624 bytes, there are 2108"
    );
}

#[test]
fn damaged_files_are_refused() {
    let data = "train = \"t.h5\"\nfeatures = \"data/images\"\nlabel = \"data/names\"";
    let said = |bytes: Vec<u8>| refused(data, &[("t.h5", bytes)]);
    for cut in [12, 100, 1000, CHUNKED.len() - 1] {
        let said = said(CHUNKED[..cut].to_vec());
        assert!(said.starts_with("t.h5: "), "{said}");
    }
    // Every bit of the file's latest version is behind a checksum, or between what is used.
    let dir = folder(&[("good.h5", CHUNKED.to_vec())]);
    let good = blobs(&data.replace("t.h5", "good.h5"), dir.path());
    for at in (8..CHUNKED.len()).step_by(97) {
        let mut bytes = CHUNKED.to_vec();
        bytes[at] ^= 0x10;
        let dir = folder(&[("t.h5", bytes)]);
        if let Ok(made) = made(&format!("{data}{REST}"), dir.path()) {
            assert_eq!(made.manifest.blobs().collect::<Vec<_>>(), good, "byte {at}");
        }
    }
    let named = refused("train = \"t.npz\"", &[("t.npz", PLAIN.to_vec())]);
    assert_eq!(named, "t.npz: the file isn't NPZ, as its name or the files beside it say");
}

#[test]
fn a_look_at_a_file_finds_its_datasets() {
    let dir = folder(&[("t.h5", KINDS.to_vec())]);
    let wanted = ProfileOf {
        data: "t.h5",
        base_dir: dir.path(),
        spool: dir.path(),
        separator: None,
        label: None,
    };
    let found = profile(wanted, Arc::new(Unbounded), &mut |_| {}).unwrap();
    let Profile::Arrays { arrays, .. } = found else { panic!("{found:?}") };
    let found: Vec<(&str, &[u64], Elements)> = arrays
        .iter()
        .map(|array| (array.name.as_str(), array.shape.as_slice(), array.elements))
        .collect();
    let wanted: [(&str, &[u64], Elements); 7] = [
        ("few", &[7], Elements::Bytes),
        ("half", &[60, 6], Elements::Floats),
        ("lzf", &[60, 6], Elements::Bytes),
        ("scalar", &[], Elements::Floats),
        ("truths", &[60, 6], Elements::Bytes),
        ("x", &[60, 6], Elements::Floats),
        ("y", &[60], Elements::Whole),
    ];
    assert_eq!(found, wanted);
}
