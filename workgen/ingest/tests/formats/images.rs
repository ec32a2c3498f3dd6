//! Folders of images: their rows, labels and order, and what is refused.

use super::{folder, job, made, refused, told};
use png::{BitDepth, ColorType, Encoder};
use proptest::prelude::*;
use sojourn_codec::decode;
use sojourn_ingest::{IngestError, Progress, ReadOptions, Reader, check, ingest};
use sojourn_protocol::{
    digest::Digest,
    manifest::Labels,
    spec::{Channels, Dialect, Missing, SourceSpec},
};
use std::{os::unix::fs::symlink, path::Path};
use tempfile::TempDir;
use tiff::encoder::{
    TiffEncoder,
    colortype::{Gray16, Gray32Float},
};

const JOB: &str = "train = \"images/\"\nshape = [3, 2, 2]\nshards = 1\nvalid = 0.5";
/// Files that Pillow wrote, of 24 x 16 pixels: red grows to the right, green down, and blue falls.
const JPEG: [(&str, &[u8]); 4] = [
    ("rgb", include_bytes!("jpeg/rgb.jpg")),
    ("progressive", include_bytes!("jpeg/progressive.jpg")),
    ("cmyk", include_bytes!("jpeg/cmyk.jpg")),
    ("turned", include_bytes!("jpeg/turned.jpg")),
];
/// The same without loss, and with loss, by Pillow.
const LOSSLESS: [&[u8]; 3] = [
    include_bytes!("pictures/lossless.webp"),
    include_bytes!("pictures/lzw.tif"),
    include_bytes!("pictures/deflate.tif"),
];
const LOSSY: [&[u8]; 2] =
    [include_bytes!("pictures/lossy.webp"), include_bytes!("pictures/alpha.webp")];
const GRAY_JPEG: &[u8] = include_bytes!("jpeg/gray.jpg");

fn png_of(color: ColorType, depth: BitDepth, (width, height): (u32, u32), data: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    encoder.set_palette(&[9, 8, 7, 90, 80, 70][..]);
    if color == ColorType::Indexed {
        encoder.set_trns(&[255, 0][..]);
    }
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(data).unwrap();
    writer.finish().unwrap();
    file
}

/// A PNG of 2 x 2 pixels of one color.
pub(crate) fn plain(color: [u8; 3]) -> Vec<u8> {
    png_of(ColorType::Rgb, BitDepth::Eight, (2, 2), &color.repeat(4))
}

/// A black square.
pub(crate) fn black(side: u32) -> Vec<u8> {
    let pixels = vec![0; (side * side) as usize];
    png_of(ColorType::Grayscale, BitDepth::Eight, (side, side), &pixels)
}

/// A row's numbers, and its label.
type Labelled = (Vec<f32>, Option<String>);

fn read(base: &Path, data: &str, shape: &[u32]) -> Result<Vec<Labelled>, IngestError> {
    let source =
        SourceSpec { data: data.into(), features: None, label: Some("y".into()), labels: None };
    let options = ReadOptions {
        features: &[],
        channels: Channels::First,
        in_order: shape,
        categories: &[],
        missing: Missing::Refuse,
        fill: &[],
        dialect: &Dialect::default(),
        base_dir: base,
        spool: base,
    };
    let reader = Reader::open(&source, &options, &mut |_| {})?;
    assert_eq!(reader.shape(), shape);
    let mut rows = reader.rows()?;
    let mut found = Vec::new();
    while let Some(row) = rows.next_row()? {
        let label = row.label.map(|label| String::from_utf8(label.to_vec()).unwrap());
        found.push((row.numbers.to_vec(), label));
    }
    assert_eq!(rows.bytes_read(), reader.bytes());
    Ok(found)
}

/// One image as a row.
fn one(image: &[u8], shape: &[u32]) -> Result<Vec<u8>, String> {
    let dir = folder(&[("a.png", image.to_vec())]);
    let rows = read(dir.path(), "a.png", shape).map_err(|error| told(&error))?;
    let [(numbers, None)] = rows.as_slice() else { panic!("{rows:?}") };
    #[expect(clippy::cast_sign_loss, reason = "bytes")]
    Ok(numbers.iter().map(|number| *number as u8).collect())
}

#[test]
fn each_folder_is_a_class_and_rows_are_in_the_order_of_paths() {
    let dir = folder(&[
        ("images/b/2.png", plain([2, 0, 0])),
        ("images/b/10.png", plain([1, 0, 0])),
        ("images/a/deeper/x.png", plain([4, 0, 0])),
        ("images/a/Z.PNG", plain([3, 0, 0])),
        ("images/a/z.jpeg", plain([5, 0, 0])),
        ("images/empty/notes.txt", b"none".to_vec()),
        ("images/README.md", b"Cats and dogs.".to_vec()),
        ("images/.hidden/1.png", b"none".to_vec()),
        ("images/a/.DS_Store", b"none".to_vec()),
        ("images/a/Thumbs.db", b"none".to_vec()),
    ]);
    let rows = read(dir.path(), "images", &[3, 1, 1]).unwrap();
    let found: Vec<(f32, &str)> =
        rows.iter().map(|(numbers, label)| (numbers[0], label.as_deref().unwrap())).collect();
    let expected = [(3.0, "a"), (4.0, "a"), (5.0, "a"), (1.0, "b"), (2.0, "b")];
    assert_eq!(found, expected, "by bytes, folders among files");

    let mut said = Vec::new();
    let mut tell = |progress: Progress<'_>| {
        if let Progress::Skipped { from, files } = progress {
            said.push((from.to_owned(), files));
        }
    };
    let out = TempDir::new().unwrap();
    let made = ingest(&job(JOB), dir.path(), out.path(), &mut tell).unwrap();
    assert_eq!(said, [("images/".to_owned(), 5)], "a hidden folder counts as one");
    assert_eq!(made.manifest.labels, Labels::Classes(vec!["a".into(), "b".into()]));
    assert_eq!((made.manifest.shape.as_slice(), made.manifest.features.len()), (&[3, 2, 2][..], 0));
    let shard = made.manifest.train[0];
    let bytes = std::fs::read(&made.files[&shard.blob.sha256]).unwrap();
    let tensors = decode(&bytes).unwrap();
    assert!(tensors[0].u8s().is_ok(), "bytes stay bytes");
}

#[test]
fn images_give_the_blobs_of_an_array_of_their_pixels() {
    let colors: Vec<[u8; 3]> = (0..20).map(|at| [at, 200 - at, 7 * at]).collect();
    let mut files = Vec::new();
    let mut pixels = Vec::new();
    for (at, color) in colors.iter().enumerate() {
        files.push((format!("images/{}/{:02}.png", at / 10, at), plain(*color)));
        pixels.extend(color.iter().flat_map(|value| [*value; 4]));
    }
    let labels: Vec<u8> = (0..20).map(|at| at / 10).collect();
    files.push(("x.npy".into(), super::write::npy("|u1", &[20, 3, 2, 2], &pixels)));
    files.push(("y.npy".into(), super::write::npy("|u1", &[20], &labels)));
    let files: Vec<(&str, Vec<u8>)> =
        files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    let dir = folder(&files);
    let rest = "shards = 3\nscale = \"standard\"\ntest = 0.1";
    let images = made(&format!("train = \"images\"\nshape = [3, 2, 2]\n{rest}"), dir.path());
    let arrays = made(&format!("train = \"x.npy\"\nlabels = \"y.npy\"\n{rest}"), dir.path());
    assert_eq!(images.unwrap().manifest, arrays.unwrap().manifest);
}

#[test]
fn validation_images_have_the_same_classes() {
    let files = |class: &str| {
        vec![
            ("images/cat/1.png", plain([1; 3])),
            ("images/dog/1.png", plain([2; 3])),
            (if class == "dog" { "v/dog/9.png" } else { "v/cow/9.png" }, plain([3; 3])),
        ]
    };
    let data = "train = \"images\"\nshape = [1, 1, 1]\nshards = 1\nvalid = \"v/\"";
    let dir = folder(&files("dog"));
    let made = made(data, dir.path()).unwrap();
    assert_eq!(made.manifest.valid[0].rows, 1);
    assert_eq!(
        refused(data, &files("cow")),
        "v/cow/9.png: the label `cow` doesn't occur in the training data"
    );
}

#[test]
fn a_folder_without_classes_and_one_image_are_for_predictions() {
    let dir = folder(&[("flat/b.png", plain([2; 3])), ("flat/a.png", plain([1; 3]))]);
    let rows = read(dir.path(), "flat/", &[1, 1, 1]).unwrap();
    assert_eq!(rows, [(vec![1.0], None), (vec![2.0], None)]);
    let rows = read(dir.path(), "flat/b.png", &[1, 1, 1]).unwrap();
    assert_eq!(rows, [(vec![2.0], None)]);
    let error = read(dir.path(), "flat/", &[13]).unwrap_err();
    assert!(told(&error).contains("images are scaled to [channels, height, width]"), "{error}");
    let train =
        |data: &str| told(&made(&format!("{data}\nshape = [1, 1, 1]"), dir.path()).unwrap_err());
    assert_eq!(
        train("train = \"flat\""),
        "flat: the images lie in no folder of a class; put those of each class into a folder of its own"
    );
    assert_eq!(
        train("train = \"flat/a.png\"\nlabel = \"y\""),
        "flat/a.png: one image isn't data to train on; name a folder that has a folder of images for each class"
    );
}

#[test]
fn what_a_job_says_about_other_data_is_refused() {
    let told = |data: &str| {
        refused(data, &[("images/a/1.png", plain([1; 3])), ("images/b/1.png", plain([2; 3]))])
    };
    let with = |more: &str| told(&format!("train = \"images\"\nshape = [3, 2, 2]\n{more}"));
    assert_eq!(
        told("train = \"images\""),
        "images/a/1.png: images need a shape to be scaled to: `data.shape = [channels, height, width]`, e.g. `[3, 64, 64]`"
    );
    for shape in ["[4, 2, 2]", "[2, 2]", "[12]", "[3, 9000, 9000]"] {
        let said = told(&format!("train = \"images\"\nshape = {shape}"));
        assert!(
            said.contains("images are scaled to [channels, height, width] with 1 channel"),
            "{said}"
        );
    }
    for more in ["label = \"y\"", "features = \"x\"", "channels = \"last\"", "labels = \"l.npy\""] {
        let key = more.split(' ').next().unwrap();
        let said = with(more);
        assert!(
            said.starts_with(&format!("images/a/1.png: `data.{key}` says nothing about images")),
            "{said}"
        );
    }
    assert_eq!(
        with("missing = \"zero\""),
        "images/a/1.png: `data.missing` is for tables (CSV, JSON lines, Parquet, Excel, libsvm and TFRecord), and this is none"
    );
    assert_eq!(
        refused("train = \"images\"", &[("images/notes.txt", Vec::new())]),
        "`data.train`: the folder `images` holds no `.csv`, `.jsonl`, `.libsvm`, `.tfrecord`, `.parquet`, `.xlsx`, `.npz`, `.h5` or `.safetensors` file, no JPEG, PNG, TIFF or WebP image, and no `.txt` file, which `data.window` would cut"
    );
    assert_eq!(
        refused(JOB, &[("images/a/1.png", plain([1; 3]))]),
        "images/: every row has the label `a`; at least two classes are needed"
    );
}

#[test]
fn files_of_a_folder_that_are_no_rows_are_named() {
    let told = |name: &str, bytes: Vec<u8>| {
        let name = format!("images/{name}");
        refused(
            JOB,
            &[("images/a/1.png", plain([1; 3])), ("images/b/1.png", plain([2; 3])), (&name, bytes)],
        )
    };
    assert_eq!(
        told("0.png", plain([1; 3])),
        "images/0.png: it lies in no folder of a class, and other images do; move it into that of its class, or out of here"
    );
    assert_eq!(
        told("a/x.gif", Vec::new()),
        "images/a/x.gif: of images JPEG, PNG, TIFF and WebP are read; convert it, or move it out of here"
    );
    assert_eq!(told("a/x.png", Vec::new()), "images/a/x.png: the file is empty");
    assert_eq!(
        told("a/x.jpg", b"GIF89a".to_vec()),
        "images/a/x.jpg: it is no JPEG, PNG, TIFF or WebP image, as its name says"
    );
    let dir = folder(&[("images/a/1.png", plain([1; 3]))]);
    symlink(dir.path().join("images"), dir.path().join("images/b")).unwrap();
    let said = told_loop(dir.path());
    assert!(
        said.ends_with("over 32 folders in each other; is one a link to a folder above?"),
        "{said}"
    );
}

fn told_loop(base: &Path) -> String {
    told(&made(JOB, base).unwrap_err())
}

#[test]
fn every_kind_of_png_becomes_eight_bits() {
    let of = |color, depth, size, data: &[u8], shape: &[u32]| {
        one(&png_of(color, depth, size, data), shape).unwrap()
    };
    use BitDepth::{Eight, One, Sixteen};
    use ColorType::{Grayscale, GrayscaleAlpha, Indexed, Rgb, Rgba};
    assert_eq!(of(Grayscale, Eight, (2, 1), &[7, 200], &[1, 1, 2]), [7, 200]);
    assert_eq!(of(Grayscale, Eight, (2, 1), &[7, 200], &[3, 1, 2]), [7, 200, 7, 200, 7, 200]);
    assert_eq!(of(Grayscale, One, (2, 1), &[0b0100_0000], &[1, 1, 2]), [0, 255]);
    assert_eq!(of(Grayscale, Sixteen, (1, 1), &[0x12, 0xff], &[1, 1, 1]), [0x12], "rounded off");
    assert_eq!(of(GrayscaleAlpha, Eight, (1, 1), &[9, 0], &[3, 1, 1]), [9, 9, 9]);
    assert_eq!(of(Rgb, Sixteen, (1, 1), &[1, 9, 2, 9, 3, 9], &[3, 1, 1]), [1, 2, 3]);
    assert_eq!(of(Rgba, Eight, (1, 1), &[1, 2, 3, 0], &[3, 1, 1]), [1, 2, 3], "alpha is dropped");
    assert_eq!(of(Indexed, Eight, (2, 1), &[0, 1], &[3, 1, 2]), [9, 90, 8, 80, 7, 70]);
    // Pillow: `Image.new("RGB", (1, 1), (200, 100, 50)).convert("L")`.
    assert_eq!(of(Rgb, Eight, (1, 1), &[200, 100, 50], &[1, 1, 1]), [124]);
}

#[test]
fn webp_and_tiff_are_read_as_pillow_reads_them() {
    let at = |row: &[u8], x: usize, y: usize| [0, 1, 2].map(|c| row[c * 384 + y * 24 + x]);
    for file in LOSSLESS {
        let row = one(file, &[3, 16, 24]).unwrap();
        for (x, y) in (0..16).flat_map(|y| (0..24).map(move |x| (x, y))) {
            let color = [x * 10, y * 15, 255 - x * 10].map(|value| value as u8);
            assert_eq!(at(&row, x, y), color, "{x} {y}");
        }
    }
    for file in LOSSY {
        let row = one(file, &[3, 16, 24]).unwrap();
        let corners = [(0, 0), (23, 0), (0, 15), (23, 15)].map(|(x, y)| at(&row, x, y));
        assert_eq!(corners, [[14, 4, 249], [221, 6, 26], [9, 220, 255], [222, 223, 36]]);
        let sum: u32 = row.iter().map(|value| u32::from(*value)).sum();
        assert_eq!(sum, 141_161);
    }
}

/// A TIFF of 16 bits, gray.
fn words(pixels: &[u16], width: u32) -> Vec<u8> {
    let mut file = std::io::Cursor::new(Vec::new());
    let mut encoder = TiffEncoder::new(&mut file).unwrap();
    let height = pixels.len() as u32 / width;
    encoder.write_image::<Gray16>(width, height, pixels).unwrap();
    file.into_inner()
}

#[test]
fn sixteen_bits_are_kept_and_bytes_beside_them_are_the_same_numbers() {
    let deep: Vec<u16> = vec![0, 1, 256, 257, 0x12ff, u16::MAX];
    let bytes: Vec<u8> = deep.iter().flat_map(|word| word.to_be_bytes()).collect();
    let png = png_of(ColorType::Grayscale, BitDepth::Sixteen, (3, 2), &bytes);
    let plain = png_of(ColorType::Grayscale, BitDepth::Eight, (3, 2), &[0, 1, 2, 3, 4, 255]);
    let dir = folder(&[
        ("images/a/1.png", png),
        ("images/a/2.tif", words(&deep, 3)),
        // The content says what it is.
        ("images/b/1.jpg", words(&deep, 3)),
        ("images/b/2.png", plain),
    ]);
    let rows = read(dir.path(), "images", &[1, 2, 3]).unwrap();
    let expected: Vec<f32> = deep.iter().map(|word| f32::from(*word) / 257.0).collect();
    for (numbers, _) in &rows[..3] {
        assert_eq!(numbers, &expected);
    }
    assert_eq!(rows[3].0, [0.0, 1.0, 2.0, 3.0, 4.0, 255.0]);
    let data = "train = \"images/\"\nshape = [1, 2, 3]\nshards = 1\nvalid = 0.5";
    let out = TempDir::new().unwrap();
    let made = ingest(&job(data), dir.path(), out.path(), &mut |_| {}).unwrap();
    let kept = super::numbers(&made, 6);
    assert_eq!(kept.iter().filter(|row| **row == expected).count(), 3, "{kept:?}");
}

/// A TIFF of one pixel of bytes, little-endian and not packed, with these extra samples.
fn tiff_of(samples: &[u8], extra: &[u16]) -> Vec<u8> {
    let count = samples.len() as u16;
    let photometric = if count < 3 { 1 } else { 2 };
    let mut file = b"II\x2a\0\x08\0\0\0".to_vec();
    let mut entries: Vec<(u16, Vec<u16>)> = vec![
        (256, vec![1]),
        (257, vec![1]),
        (258, vec![8; samples.len()]),
        (259, vec![1]),
        (262, vec![photometric]),
        (273, vec![0]),
        (277, vec![count]),
        (278, vec![1]),
        (279, vec![count]),
    ];
    if !extra.is_empty() {
        entries.push((338, extra.to_vec()));
    }
    let behind = 8 + 2 + entries.len() * 12 + 4;
    let mut more: Vec<u8> = samples.to_vec();
    if !more.len().is_multiple_of(2) {
        more.push(0);
    }
    file.extend((entries.len() as u16).to_le_bytes());
    for (tag, values) in &entries {
        let values = if *tag == 273 { &vec![behind as u16] } else { values };
        file.extend([tag.to_le_bytes(), 3u16.to_le_bytes()].concat());
        file.extend((values.len() as u32).to_le_bytes());
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        if bytes.len() <= 4 {
            file.extend(bytes.iter().copied().chain([0; 4]).take(4));
        } else {
            file.extend(((behind + more.len()) as u32).to_le_bytes());
            more.extend(bytes);
        }
    }
    file.extend([0; 4]);
    file.extend(more);
    file
}

#[test]
fn alpha_of_a_tiff_is_dropped_and_what_nobody_knows_is_refused() {
    assert_eq!(one(&tiff_of(&[1, 2, 3], &[]), &[3, 1, 1]), Ok(vec![1, 2, 3]));
    assert_eq!(one(&tiff_of(&[1, 2, 3, 128], &[2]), &[3, 1, 1]), Ok(vec![1, 2, 3]));
    assert_eq!(one(&tiff_of(&[9, 128], &[2]), &[1, 1, 1]), Ok(vec![9]));
    let refused = |file: Vec<u8>| one(&file, &[3, 1, 1]).unwrap_err();
    assert!(refused(tiff_of(&[1, 2, 3, 128], &[1])).contains("multiplied by their alpha"));
    let more = refused(tiff_of(&[1, 2, 3, 4, 5], &[0, 0]));
    assert!(
        more.contains("the TIFF image is damaged, cut off, or of a kind that isn't read"),
        "{more}"
    );
}

#[test]
fn kinds_of_tiff_that_are_not_read_are_told() {
    let mut file = std::io::Cursor::new(Vec::new());
    let mut encoder = TiffEncoder::new(&mut file).unwrap();
    encoder.write_image::<Gray32Float>(2, 1, &[0.5, 1.0]).unwrap();
    assert_eq!(
        one(&file.into_inner(), &[1, 1, 2]).unwrap_err(),
        "a.png: the TIFF image is damaged, cut off, or of a kind that isn't read (of TIFF images gray and RGB of 8 or 16 bits are \
         read, and this is Gray(32))"
    );
}

/// Pixels as Pillow reads them may differ a little: the format leaves rounding to the decoder. Ours are the same everywhere.
#[test]
fn every_kind_of_jpeg_is_read_and_turned_upright() {
    let expected = [
        ("rgb", [[0, 3, 242], [224, 4, 136], [11, 219, 185], [230, 222, 79]]),
        ("progressive", [[0, 0, 254], [229, 0, 142], [2, 225, 180], [230, 224, 64]]),
        ("cmyk", [[0, 0, 255], [230, 0, 140], [0, 226, 180], [230, 226, 65]]),
        // Its stored lower left is the upper left, once it is turned to the right.
        ("turned", [[7, 223, 176], [5, 0, 251], [226, 226, 70], [225, 2, 145]]),
    ];
    let digests = [
        "6f11e89f0e29510c174334c7e0537dd4c95625eba2ec9f9680dfc1d5b5b47788",
        "e93491bdefcf4af68984201149620214cc6bc40518c533f2b3d11e9bb7ce782c",
        "13777cf83ea68e183960596df03bb74f98d10049f2a5d2c81bb47ed7e1b20585",
        "80b8412844d76425131a9d96e24f08085d773ec4001695dbb62cba914cdea901",
        "4ab6013892eb8e8eb8b1ca9e3769871354194987774adfbe72efbc22af7dc822",
    ];
    let mut found = Vec::new();
    for ((name, file), (_, corners)) in JPEG.iter().zip(expected) {
        let (width, height) = if *name == "turned" { (16, 24) } else { (24, 16) };
        let row = one(file, &[3, height, width]).unwrap();
        let plane = (width * height) as usize;
        let places = [0, width - 1, (height - 1) * width, height * width - 1];
        for (place, pixel) in places.into_iter().zip(corners) {
            for (channel, value) in pixel.into_iter().enumerate() {
                let is = i32::from(row[channel * plane + place as usize]);
                assert!((is - value).abs() <= 3, "{name}: {is}, Pillow has {value}");
            }
        }
        found.push(Digest::of(&row).to_string());
    }
    let gray = one(GRAY_JPEG, &[1, 16, 24]).unwrap();
    assert!(gray[0].abs_diff(29) <= 2 && gray[24 * 16 - 1].abs_diff(208) <= 2, "{gray:?}");
    found.push(Digest::of(&gray).to_string());
    assert_eq!(found, digests, "the bytes that every machine gets");
}

#[test]
fn images_that_are_cut_off_or_altered_are_refused_with_their_path() {
    let shape = &[3, 4, 4];
    let png = plain([7; 3]);
    for (whole, kind) in [(png.as_slice(), "PNG"), (JPEG[0].1, "JPEG"), (JPEG[1].1, "JPEG")] {
        for cut in 8..whole.len() {
            let said = one(&whole[..cut], shape).unwrap_err();
            assert!(
                said.starts_with(&format!("a.png: the {kind} image is damaged")),
                "{cut}: {said}"
            );
        }
    }
    // Only the checksum tells.
    let mut altered = png.clone();
    let at = altered.windows(4).position(|name| name == b"IDAT").unwrap();
    altered[at + 6] ^= 1;
    assert!(one(&altered, shape).unwrap_err().contains("PNG image is damaged"));
}

#[test]
fn images_that_declare_too_many_pixels_are_refused_before_they_take_memory() {
    let mut file = png_of(ColorType::Grayscale, BitDepth::One, (1, 1), &[0]);
    file[16..24].copy_from_slice(&[0, 0, 0x7f, 0xff, 0, 0, 0x7f, 0xff]);
    let checksum = crc(&file[12..29]).to_be_bytes();
    file[29..33].copy_from_slice(&checksum);
    assert_eq!(
        one(&file, &[1, 1, 1]).unwrap_err(),
        "a.png: the image has 32767 x 32767 pixels; 67108864 are the most, so make it smaller"
    );
    let mut file = JPEG[0].1.to_vec();
    let at = file.windows(2).position(|marker| marker == b"\xff\xc0").unwrap();
    file[at + 5..at + 9].fill(0xff);
    assert!(one(&file, &[1, 1, 1]).unwrap_err().contains("the image has 65535 x 65535 pixels"));
}

/// The checksum of a PNG's chunk.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

#[test]
fn labels_are_counted_without_a_look_at_the_images() {
    let dir = folder(&[
        ("images/a/1.png", b"no image".to_vec()),
        ("images/b/1.png", plain([1; 3])),
        ("images/b/2.png", plain([2; 3])),
    ]);
    let spec = job(JOB);
    let surveyed = sojourn_ingest::survey(&spec, dir.path(), dir.path(), &mut |_| {}).unwrap();
    assert_eq!(surveyed.shape(), [3, 2, 2]);
    let error = check(&spec, dir.path(), dir.path(), &mut |_| {}).unwrap_err();
    assert!(told(&error).starts_with("images/a/1.png: it is no JPEG"), "{error}");
}

#[test]
fn folders_whose_names_are_numbers_may_be_numbers_to_predict() {
    let dir = folder(&[("images/20/1.png", plain([1; 3])), ("images/3.5/1.png", plain([2; 3]))]);
    let mut spec = job(&JOB.replace("[3, 2, 2]", "[1, 1, 1]"));
    spec.training.loss = sojourn_protocol::spec::Loss::Mse;
    let out = TempDir::new().unwrap();
    let made = ingest(&spec, dir.path(), out.path(), &mut |_| {}).unwrap();
    assert_eq!(made.manifest.labels, Labels::Number);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn altered_images_are_rows_or_refused(which in 0usize..11, at: prop::sample::Index, byte: u8, cut: prop::sample::Index, cuts: bool) {
        let png = png_of(ColorType::Indexed, BitDepth::Eight, (4, 4), &[1; 16]);
        let mut file = match which {
            5 => png,
            4 => GRAY_JPEG.to_vec(),
            6..9 => LOSSLESS[which - 6].to_vec(),
            9.. => LOSSY[which - 9].to_vec(),
            which => JPEG[which].1.to_vec(),
        };
        let at = at.index(file.len());
        file[at] = byte;
        if cuts {
            file.truncate(cut.index(file.len()));
        }
        if let Ok(row) = one(&file, &[3, 5, 4]) {
            prop_assert_eq!(row.len(), 60);
        }
    }
}
