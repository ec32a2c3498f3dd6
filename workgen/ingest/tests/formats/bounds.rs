//! Files that declare more than they have, and names as long as the file: neither is believed, and neither is repeated.

use super::{refused, write::*};
use zip::CompressionMethod::Stored;

#[test]
fn arrays_of_more_dimensions_than_numpy_has_are_refused_by_their_number() {
    let most = npy("|u1", &[1; 64], &[7]);
    let said = refused("train = \"t.npy\"\nlabels = \"t.npy\"", &[("t.npy", most)]);
    assert!(said.starts_with("t.npy: `labels`: labels must be one a row"), "{said}");
    let more = npy("|u1", &[1; 65], &[7]);
    let said = refused("train = \"t.npy\"\nlabels = \"t.npy\"", &[("t.npy", more)]);
    assert_eq!(said, "t.npy: `rows`: it has 65 dimensions; 64 are the most");
    let idx = gzip(&idx(&[1; 200], &[7]));
    let said = refused("train = \"t.idx\"\nlabels = \"t.idx\"", &[("t.idx", idx)]);
    assert!(said.ends_with("it has 200 dimensions; 64 are the most"), "{said}");
}

/// Sizes of packed arrays are seen to be wrong only as they are read, and are added up before.
#[test]
fn a_packed_array_that_declares_more_bytes_than_can_be_counted_is_found_to_be_cut_off() {
    let vast = 1 << 61;
    let x = npy("<f8", &[vast, 1], &[0; 80]);
    let y = npy("<f8", &[vast], &[0; 80]);
    let said = refused(
        "train = \"x.npy\"\nlabels = \"y.npy\"",
        &[("x.npy", gzip(&x)), ("y.npy", gzip(&y))],
    );
    let expected =
        "y.npy: `labels`: the data ends or is damaged at row 10 of 2305843009213693952 (";
    assert!(said.starts_with(expected), "{said}");
}

/// A dataset of JSON in one line, named as a table, say.
#[test]
fn a_header_of_one_long_name_is_not_repeated() {
    let line = format!("[{{\"label\":{}}}]\n", "7".repeat(1 << 20)).replace('"', "'");
    for label in ["label", "y"] {
        let data = format!("train = \"t.csv\"\nlabel = \"{label}\"");
        let said = refused(&data, &[("t.csv", line.clone().into_bytes())]);
        assert!(said.len() < 1_000, "{} bytes", said.len());
    }
}

#[test]
fn names_of_arrays_and_columns_are_shown_by_their_beginning_without_what_a_terminal_obeys() {
    let name = format!("\u{1b}[31m{}", "n".repeat(60_000));
    let files = npz(&[(&format!("{name}.npy"), npy_pixels())], Stored);
    let said = refused("train = \"t.npz\"", &[("t.npz", files)]);
    assert!(said.contains("no array `x`") && said.len() < 1_000, "{} bytes", said.len());
    assert!(!said.contains('\u{1b}'), "{said}");
    let table = format!("{name},y\n{}", "x,1\nx,2\n".repeat(10));
    let said = refused("train = \"t.csv\"\nlabel = \"y\"", &[("t.csv", table.into_bytes())]);
    assert!(said.contains(": column `[31mnnn") && said.len() < 1_000, "{} bytes", said.len());
}

/// A line may have 64 MiB, and each name takes many times its bytes.
#[test]
fn tables_of_more_than_a_million_columns_are_refused_as_their_header_is_read() {
    let columns: Vec<String> = (0..=1 << 20).map(|n| format!("{n:x}")).collect();
    let table = format!("{}\n", columns.join(","));
    let said = refused("train = \"t.csv\"\nlabel = \"y\"", &[("t.csv", table.into_bytes())]);
    assert_eq!(said, "t.csv:1: there are over 1048576 columns");
}
