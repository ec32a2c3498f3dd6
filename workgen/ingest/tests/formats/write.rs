//! Writers of small files in every format, by hand or by other people's libraries.

use std::io::{Cursor, Write};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

pub(crate) const ROWS: usize = 60;
pub(crate) const HEIGHT: usize = 2;
pub(crate) const WIDTH: usize = 3;

/// Pixels, row after row.
pub(crate) fn pixels() -> Vec<u8> {
    (0..ROWS * HEIGHT * WIDTH).map(|index| (index * 37 % 251) as u8).collect()
}

/// Three classes.
pub(crate) fn labels() -> Vec<u8> {
    (0..ROWS).map(|row| ((row + row / 7) % 3) as u8).collect()
}

pub(crate) fn csv() -> Vec<u8> {
    let mut text = "a,b,c,d,e,f,y\n".to_owned();
    for (row, label) in pixels().chunks(HEIGHT * WIDTH).zip(labels()) {
        let fields: Vec<String> = row.iter().map(u8::to_string).collect();
        text += &format!("{},{label}\n", fields.join(","));
    }
    text.into_bytes()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    ::zstd::stream::encode_all(bytes, 3).unwrap()
}

/// An IDX file of bytes.
pub(crate) fn idx(shape: &[usize], bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, 8, shape.len() as u8];
    for side in shape {
        file.extend((*side as u32).to_be_bytes());
    }
    file.extend(bytes);
    file
}

pub(crate) fn idx_images() -> Vec<u8> {
    idx(&[ROWS, HEIGHT, WIDTH], &pixels())
}

pub(crate) fn idx_labels() -> Vec<u8> {
    idx(&[ROWS], &labels())
}

/// An NPY file.
pub(crate) fn npy(descr: &str, shape: &[usize], bytes: &[u8]) -> Vec<u8> {
    npy_in_order("False", descr, shape, bytes)
}

/// An NPY file in Fortran's order, of elements in C's order.
pub(crate) fn npy_fortran(descr: &str, shape: &[usize], bytes: &[u8]) -> Vec<u8> {
    let elements: usize = shape.iter().product();
    let element = bytes.len() / elements;
    let mut turned = Vec::new();
    for index in 0..elements {
        let mut rest = index;
        let place = shape.iter().fold(0, |place, side| {
            let at = rest % side;
            rest /= side;
            place * side + at
        });
        turned.extend(bytes.iter().skip(place * element).take(element));
    }
    npy_in_order("True", descr, shape, &turned)
}

fn npy_in_order(is_fortran: &str, descr: &str, shape: &[usize], bytes: &[u8]) -> Vec<u8> {
    let sides: String = shape.iter().map(|side| format!("{side},")).collect();
    let header =
        format!("{{'descr': '{descr}', 'fortran_order': {is_fortran}, 'shape': ({sides}), }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes());
    file.extend(bytes);
    file
}

pub(crate) fn npy_pixels() -> Vec<u8> {
    npy("|u1", &[ROWS, HEIGHT, WIDTH], &pixels())
}

/// An NPZ file of these members.
pub(crate) fn npz(members: &[(&str, Vec<u8>)], method: CompressionMethod) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        // NumPy writes every member as a large one.
        let options = SimpleFileOptions::default().compression_method(method).large_file(true);
        archive.start_file(*name, options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// Labels as 64-bit integers, which is what NumPy makes of a list.
pub(crate) fn npy_labels() -> Vec<u8> {
    let bytes: Vec<u8> =
        labels().iter().flat_map(|label| i64::from(*label).to_le_bytes()).collect();
    npy("<i8", &[ROWS], &bytes)
}

pub(crate) fn npz_of_both(method: CompressionMethod) -> Vec<u8> {
    npz(&[("x.npy", npy_pixels()), ("y.npy", npy_labels())], method)
}

/// A safetensors file: pixels as half precision, labels as bytes, something else between them, and
/// free metadata.
pub(crate) fn safetensors() -> Vec<u8> {
    use ::safetensors::{Dtype, serialize, tensor::TensorView};
    let x: Vec<u8> = pixels()
        .iter()
        .flat_map(|pixel| half::f16::from_f32(f32::from(*pixel)).to_le_bytes())
        .collect();
    let y = labels();
    let more = vec![0u8; 12];
    let tensors = [
        ("x", TensorView::new(Dtype::F16, vec![ROWS, HEIGHT * WIDTH], &x).unwrap()),
        ("w", TensorView::new(Dtype::F32, vec![3], &more).unwrap()),
        ("y", TensorView::new(Dtype::U8, vec![ROWS, 1], &y).unwrap()),
    ];
    let metadata = [("by".to_owned(), "hand".to_owned())].into();
    serialize(tensors, Some(metadata)).unwrap()
}
