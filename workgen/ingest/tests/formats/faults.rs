//! Bad files: every one is told with its name and the place.

use super::{refused, write::*};
use zip::CompressionMethod::{Deflated, Stored};

fn npz_with(x: Vec<u8>, y: Vec<u8>) -> Vec<u8> {
    npz(&[("x.npy", x), ("y.npy", y)], Deflated)
}

/// The message of the job `train = "t.npz"` with this file.
fn bad_npz(bytes: Vec<u8>) -> String {
    refused("train = \"t.npz\"", &[("t.npz", bytes)])
}

#[test]
fn packed_files_that_are_cut_off_or_damaged() {
    let data = "train = \"t.csv.gz\"\nlabel = \"y\"";
    let whole = gzip(&csv());
    let said = refused(data, &[("t.csv.gz", whole[..whole.len() - 20].to_vec())]);
    assert!(said.starts_with("t.csv.gz: the gzip data is damaged or cut off ("), "{said}");
    let mut altered = whole.clone();
    let checksum = altered.len() - 6;
    altered[checksum] ^= 1;
    let said = refused(data, &[("t.csv.gz", altered)]);
    assert!(said.starts_with("t.csv.gz: the gzip data is damaged or cut off ("), "{said}");
    let whole = zstd(&csv());
    let said = refused(&data.replace("gz", "zst"), &[("t.csv.zst", whole[..60].to_vec())]);
    assert!(said.starts_with("t.csv.zst: the zstd data is damaged or cut off ("), "{said}");
    assert_eq!(refused(data, &[("t.csv.gz", gzip(b""))]), "t.csv.gz: the file is empty");
    assert_eq!(
        refused(data, &[("t.csv.gz", gzip(&gzip(&csv())))]),
        "t.csv.gz: the file is compressed by gzip twice, no CSV text"
    );
    // Large enough that its beginning is whole.
    let noise: Vec<u8> = (0..ROWS * 256).map(|index| (index * index * 31 % 251) as u8).collect();
    let images = gzip(&idx(&[ROWS, 16, 16], &noise));
    let said = refused(
        "train = \"t-images-idx3-ubyte.gz\"",
        &[
            ("t-images-idx3-ubyte.gz", images[..images.len() - 30].to_vec()),
            ("t-labels-idx1-ubyte.gz", gzip(&idx_labels())),
        ],
    );
    assert!(
        said.starts_with("t-images-idx3-ubyte.gz: `images`: the data ends or is damaged at row "),
        "{said}"
    );
}

#[test]
fn files_that_are_not_what_their_names_say() {
    let said = |name: &str, bytes: &[u8]| {
        refused(&format!("train = \"{name}\""), &[(name, bytes.to_vec())])
    };
    let not = |name: &str, kind: &str| {
        format!("{name}: the file isn't {kind}, as its name or the files beside it say")
    };
    assert_eq!(said("t.npz", &npy_pixels()), not("t.npz", "NPZ"));
    assert_eq!(said("t.npy", &npz_of_both(Stored)), not("t.npy", "NPY"));
    assert_eq!(said("t.safetensors", b"PAR1"), not("t.safetensors", "safetensors"));
    assert_eq!(said("t-ubyte", b"\x00\x00\x07\x01"), not("t-ubyte", "IDX"));
    assert_eq!(said("t.npz", b""), "t.npz: the file is empty");
    assert_eq!(said("t.npz", b"something else"), not("t.npz", "NPZ"));
}

#[test]
fn arrays_that_are_not_there_or_do_not_fit() {
    let good = || npz_with(npy_pixels(), npy_labels());
    assert_eq!(
        refused("train = \"t.npz\"\nfeatures = \"images\"", &[("t.npz", good())]),
        "t.npz: no array `images` (`features`); it has `x`, `y`"
    );
    assert_eq!(
        refused("train = \"t.npz\"\nlabel = \"Y\"", &[("t.npz", good())]),
        "t.npz: no array `Y` (`label`); did you mean `y`?"
    );
    assert_eq!(
        bad_npz(npz(&[("notes.txt", b"hello".to_vec())], Stored)),
        "t.npz: no array `x` (`features`); it has none"
    );
    assert_eq!(
        bad_npz(npz_with(npy_pixels(), npy("|u1", &[ROWS - 1], &labels()[1..]))),
        "t.npz: `y`: 59 labels for the 60 rows of `x`"
    );
    assert_eq!(
        bad_npz(npz_with(npy_pixels(), npy("|u1", &[ROWS, 6], &pixels()))),
        "t.npz: `y`: labels must be one a row, [rows] or [rows, 1], not [60, 6]"
    );
    assert_eq!(
        bad_npz(npz_with(npy("|u1", &[], &[1]), npy_labels())),
        "t.npz: `x`: it is one number, no rows"
    );
    assert_eq!(
        bad_npz(npz_with(npy("|u1", &[0, 6], &[]), npy("|u1", &[0], &[]))),
        "t.npz: `x`: it has no rows"
    );
    assert_eq!(
        bad_npz(npz_with(npy("|u1", &[ROWS, 0], &[]), npy_labels())),
        "t.npz: `x`: its rows are empty"
    );
    assert_eq!(
        bad_npz(npz_with(npy("<U1", &[1], &[65, 0, 0, 0]), npy("|u1", &[1], &[0]))),
        "t.npz: `x`: its elements are text; features must be numbers"
    );
    assert_eq!(
        bad_npz(npz_with(npy("|O", &[1], &[]), npy_labels())),
        "t.npz: `x`: its elements are Python objects, no numbers; save words as `x.astype(str)`, numbers as `x.astype(float)`, \
         and a table as `df.to_parquet(...)`"
    );
    assert_eq!(
        bad_npz(npz_with(npy("|u1", &[ROWS, 7], &pixels()), npy_labels())),
        "t.npz: `x`: the shape [60, 7] needs 420 bytes, there are 360"
    );
    assert_eq!(
        bad_npz(npz_with(npy("|u1", &[1 << 40, 1 << 40], &pixels()), npy_labels())),
        format!(
            "t.npz: `x`: the shape [{0}, {0}] needs {1} bytes, there are 360",
            1u64 << 40,
            u64::MAX
        )
    );
}

#[test]
fn labels_that_no_name_needs_are_refused_before_they_are_read() {
    let rows = npy("|u1", &[2, 6], &pixels()[..12]);
    let said = |descr: &str, element: usize| {
        // Packed, so that nothing is known of its size but what the header says.
        let labels = gzip(&npy(descr, &[2], &vec![b'a'; 2 * element]));
        let files = [("x.npy", rows.clone()), ("y.npy.gz", labels)];
        refused("train = \"x.npy\"\nlabels = \"y.npy.gz\"", &files)
    };
    let too_long = |bytes: u64| {
        format!("y.npy.gz: `labels`: a label has {bytes} bytes in the file; 4096 are the most")
    };
    assert_eq!(said("<U1000000000", 0), too_long(4_000_000_000));
    assert_eq!(said("|S4097", 0), too_long(4097));
    // As many are read, and then found to be too long for a name.
    let long = said("|S4096", 4096);
    assert_eq!(long, "y.npy.gz: `labels[0]`: a label of over 1024 bytes");
}

#[test]
fn values_that_are_no_numbers_are_told_with_their_index() {
    let mut numbers: Vec<f32> = pixels().iter().map(|pixel| f32::from(*pixel)).collect();
    numbers[6 * 31 + 4] = f32::NAN;
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    assert_eq!(
        bad_npz(npz_with(npy("<f4", &[ROWS, HEIGHT, WIDTH], &bytes), npy_labels())),
        "t.npz: `x[31, 1, 1]`: `NaN` is not finite"
    );
    let mut classes: Vec<f64> = labels().iter().map(|label| f64::from(*label)).collect();
    classes[7] = f64::INFINITY;
    let bytes: Vec<u8> = classes.iter().flat_map(|number| number.to_le_bytes()).collect();
    assert_eq!(
        bad_npz(npz_with(npy_pixels(), npy("<f8", &[ROWS], &bytes))),
        "t.npz: `y[7]`: `inf` is not finite"
    );
    let valid = npz_with(npy("|u1", &[1, 2, 3], &[0; 6]), npy("|u1", &[1], &[9]));
    assert_eq!(
        refused(
            "train = \"t.npz\"\nvalid = \"v.npz\"",
            &[("t.npz", npz_of_both(Stored)), ("v.npz", valid)]
        ),
        "v.npz: `y[0]`: the label `9` doesn't occur in the training data"
    );
    assert_eq!(
        bad_npz(npz_with(npy_pixels(), npy("|u1", &[ROWS], &[3; ROWS]))),
        "t.npz: `y`: every row has the label `3`; at least two classes are needed"
    );
}

#[test]
fn archives_that_are_damaged() {
    let good = npz_of_both(Stored);
    let said = bad_npz(good[..good.len() - 30].to_vec());
    assert!(said.starts_with("t.npz: the ZIP data is damaged or cut off ("), "{said}");
    // One pixel is another: only the checksum tells.
    let mut altered = good;
    let at = altered.windows(6).position(|window| window == &pixels()[..6]).unwrap();
    altered[at + 100] ^= 1;
    assert_eq!(
        bad_npz(altered),
        "t.npz: `x`: the data ends or is damaged at row 60 of 60 (its checksum isn't what the archive says)"
    );
}

#[test]
fn idx_files_that_do_not_belong_together() {
    let data = "train = \"t-images-idx3-ubyte\"";
    let said = refused(data, &[("t-images-idx3-ubyte", idx_images())]);
    assert_eq!(
        said,
        "the labels were looked for in `t-labels-idx1-ubyte`; another file is named by `labels`: \
         `data.labels`: there is no file or folder `t-labels-idx1-ubyte`"
    );
    let with = |images: Vec<u8>, labels: Vec<u8>| {
        refused(data, &[("t-images-idx3-ubyte", images), ("t-labels-idx1-ubyte", labels)])
    };
    assert_eq!(
        with(idx_images(), idx(&[ROWS - 1], &labels()[1..])),
        "t-labels-idx1-ubyte: `labels`: 59 labels for the 60 rows of `images` in `t-images-idx3-ubyte`"
    );
    let images = idx_images();
    assert_eq!(
        with(images[..images.len() - 1].to_vec(), idx_labels()),
        "t-images-idx3-ubyte: `images`: the shape [60, 2, 3] needs 360 bytes, there are 359"
    );
    assert_eq!(
        with(idx_images(), [idx_labels(), vec![0]].concat()),
        "t-labels-idx1-ubyte: `labels`: the shape [60] needs 60 bytes, there are 61"
    );
    assert_eq!(
        refused("train = \"pixels.idx\"", &[("pixels.idx", idx_images())]),
        "pixels.idx: there is no file of labels; name it by `labels`"
    );
    assert_eq!(
        refused("train = \"x.npy\"", &[("x.npy", npy_pixels())]),
        "x.npy: `rows`: there is no file of labels; name it by `labels`"
    );
    let packed = gzip(&[idx_labels(), vec![7]].concat());
    assert_eq!(
        refused(
            "train = \"p.idx\"\nlabels = \"l.idx.gz\"",
            &[("p.idx", idx_images()), ("l.idx.gz", packed)]
        ),
        "l.idx.gz: `labels`: there is more data after the 60 rows"
    );
}

#[test]
fn safetensors_that_are_damaged() {
    let said = |bytes: Vec<u8>| refused("train = \"t.safetensors\"", &[("t.safetensors", bytes)]);
    let good = safetensors();
    let bytes = good.len();
    assert_eq!(
        said(good[..bytes - 1].to_vec()),
        format!(
            "t.safetensors: the safetensors data is damaged or cut off (it has {} bytes, {bytes} are wanted)",
            bytes - 1
        )
    );
    let text = said(good[..20].to_vec());
    assert!(text.starts_with("t.safetensors: the safetensors data is damaged"), "{text}");
    assert_eq!(
        refused("train = \"t.safetensors\"\nlabel = \"z\"", &[("t.safetensors", good)]),
        "t.safetensors: no array `z` (`label`); it has `w`, `x`, `y`"
    );
}

#[test]
fn shapes_that_do_not_agree() {
    let file = |shape: &[usize]| {
        let count: usize = shape.iter().product();
        let x = npy("|u1", shape, &vec![7; count]);
        npz_with(x, npy("|u1", &[shape[0]], &labels()[..shape[0]]))
    };
    assert_eq!(
        bad_npz(file(&[8, 5, 5, 3])),
        "t.npz: `x`: a row is [5, 5, 3], which looks like [height, width, channels]; set `data.channels = \"last\"`, or `data.shape` to that if it isn't"
    );
    assert_eq!(
        refused("train = \"t.npz\"\nshape = [3, 5, 5]", &[("t.npz", file(&[8, 5, 5, 3]))]),
        "`data.shape` is [3, 5, 5], but a row of `t.npz` is [5, 5, 3]"
    );
    assert_eq!(
        refused("train = \"t.npz\"\nshape = [4]", &[("t.npz", file(&[8, 2, 3]))]),
        "`data.shape` is [4], but a row of `t.npz` is [1, 2, 3]"
    );
    assert_eq!(
        refused("train = \"t.npz\"\nchannels = \"last\"", &[("t.npz", file(&[8, 6]))]),
        "t.npz: `x`: a row is [6]; `channels = \"last\"` needs [height, width, channels]"
    );
    assert_eq!(
        refused(
            "train = \"t.npz\"\nvalid = \"v.npz\"",
            &[("t.npz", file(&[8, 6])), ("v.npz", file(&[8, 2, 3]))]
        ),
        "v.npz: a row is [1, 2, 3], [6] as in `t.npz` is wanted"
    );
    assert_eq!(
        refused(
            "train = \"parts\"\nlabel = \"y\"",
            &[("parts/a.npz", file(&[8, 6])), ("parts/b.npz", file(&[8, 7]))]
        ),
        "parts/b.npz: `x`: a row is [7], [6] as in `parts/a.npz` is wanted"
    );
    assert_eq!(
        refused(
            "train = \"parts\"\nlabel = \"y\"",
            &[("parts/a.npz", file(&[8, 6])), ("parts/b.csv", csv())]
        ),
        "`data.train`: the folder `parts` holds files of several kinds: `parts/a.npz` and `parts/b.csv`"
    );
}
