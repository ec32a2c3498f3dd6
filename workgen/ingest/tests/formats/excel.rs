//! Workbooks of Excel: a sheet's rows are those of an equal CSV file.

use super::{folder, job, made, refused, told};
use proptest::prelude::*;
use sojourn_ingest::{Ingested, Progress, ingest};
use sojourn_protocol::digest::Digest;
use std::{
    fmt::Write as _,
    io::{Cursor, Write as _},
};
use tempfile::TempDir;
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

/// A cell of a sheet.
#[derive(Debug, Clone, PartialEq)]
enum Cell {
    Empty,
    Number(f64),
    Word(&'static str),
    /// In the sheet itself, not among the words of the workbook.
    Inline(&'static str),
    Truth(bool),
    /// Days since 1899-12-30.
    Day(u32),
    Error(&'static str),
    /// Without its value, as programs write it that don't compute.
    Formula,
}

/// A sheet with its name, whether it is shown, and its rows, each with its number from 1.
struct Sheet<'a> {
    name: &'a str,
    is_shown: bool,
    rows: Vec<(u32, Vec<Cell>)>,
}

fn sheet(name: &str, rows: Vec<Vec<Cell>>) -> Sheet<'_> {
    Sheet { name, is_shown: true, rows: (1..).zip(rows).collect() }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// Cells from the second column on.
fn xml(sheet: &Sheet<'_>, words: &mut Vec<&'static str>) -> String {
    let mut rows = String::new();
    for (number, cells) in &sheet.rows {
        write!(rows, "<row r=\"{number}\">").unwrap();
        for (column, cell) in (b'B'..=b'Z').zip(cells) {
            let at = format!("r=\"{}{number}\"", char::from(column));
            let text = match cell {
                Cell::Empty => format!("<c {at} s=\"1\"/>"),
                Cell::Number(number) => format!("<c {at}><f>1+1</f><v>{number}</v></c>"),
                Cell::Word(word) => {
                    words.push(word);
                    format!("<c {at} t=\"s\"><v>{}</v></c>", words.len() - 1)
                }
                Cell::Inline(word) => {
                    format!("<c {at} t=\"inlineStr\"><is><t>{}</t></is></c>", escaped(word))
                }
                Cell::Truth(truth) => format!("<c {at} t=\"b\"><v>{}</v></c>", u8::from(*truth)),
                Cell::Day(day) => format!("<c {at} s=\"1\"><v>{day}</v></c>"),
                Cell::Formula => format!("<c {at}><f>B1+1</f><v></v></c>"),
                Cell::Error(error) => format!("<c {at} t=\"e\"><v>{error}</v></c>"),
            };
            rows += &text;
        }
        rows += "</row>";
    }
    format!(
        "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><sheetData>{rows}</sheetData></worksheet>"
    )
}

/// A workbook's archive.
fn workbook(sheets: &[Sheet<'_>]) -> Vec<u8> {
    const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    const OFFICE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let mut words = Vec::new();
    let (mut listed, mut related, mut members) = (String::new(), String::new(), Vec::new());
    for (id, sheet) in (1..).zip(sheets) {
        let state = if sheet.is_shown { "" } else { " state=\"hidden\"" };
        let name = escaped(sheet.name);
        write!(listed, "<sheet name=\"{name}\" sheetId=\"{id}\"{state} r:id=\"rId{id}\"/>")
            .unwrap();
        write!(
            related,
            "<Relationship Id=\"rId{id}\" Type=\"{OFFICE}/worksheet\" Target=\"worksheets/sheet{id}.xml\"/>"
        )
        .unwrap();
        members.push((format!("xl/worksheets/sheet{id}.xml"), xml(sheet, &mut words)));
    }
    let shared: String =
        words.iter().map(|word| format!("<si><t>{}</t></si>", escaped(word))).collect();
    let count = words.len();
    let types = "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\"/>";
    members.insert(0, ("[Content_Types].xml".into(), types.into()));
    let workbook = format!(
        "<workbook xmlns=\"{MAIN}\" xmlns:r=\"{OFFICE}\"><sheets>{listed}</sheets></workbook>"
    );
    members.push(("xl/workbook.xml".into(), workbook));
    let relationships = "http://schemas.openxmlformats.org/package/2006/relationships";
    let related = format!("<Relationships xmlns=\"{relationships}\">{related}</Relationships>");
    members.push(("xl/_rels/workbook.xml.rels".into(), related));
    let root = format!(
        "<Relationships xmlns=\"{relationships}\"><Relationship Id=\"rId1\" Type=\"{OFFICE}/officeDocument\" \
         Target=\"xl/workbook.xml\"/></Relationships>"
    );
    members.push(("_rels/.rels".into(), root));
    let styles = "<cellXfs count=\"2\"><xf numFmtId=\"0\"/><xf numFmtId=\"14\"/></cellXfs>";
    members.push((
        "xl/styles.xml".into(),
        format!("<styleSheet xmlns=\"{MAIN}\">{styles}</styleSheet>"),
    ));
    let shared =
        format!("<sst xmlns=\"{MAIN}\" count=\"{count}\" uniqueCount=\"{count}\">{shared}</sst>");
    members.push(("xl/sharedStrings.xml".into(), shared));
    archive(&members)
}

fn archive(members: &[(String, String)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::DEFLATE);
    for (name, text) in members {
        writer.start_file(name.as_str(), options).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

const DATA: &str = "label = \"y\"\nshards = 2\nvalid = 0.25\nmissing = \"mean\"\n\
                    categories = { word = \"one-hot\" }\ndates = { day = \"parts\" }";

fn header() -> Vec<Cell> {
    ["n", "word", "day", "flag", "y"].map(Cell::Word).to_vec()
}

fn row(n: f64, word: &'static str, y: bool) -> Vec<Cell> {
    let label = if y { "a" } else { "b, c" };
    vec![Cell::Number(n), Cell::Word(word), Cell::Day(45_382), Cell::Truth(y), Cell::Word(label)]
}

fn blobs(made: &Ingested) -> Vec<Digest> {
    made.files.keys().copied().collect()
}

/// The field that a CSV file has for a cell.
fn field(cell: &Cell) -> String {
    match cell {
        Cell::Empty => String::new(),
        Cell::Number(number) => number.to_string(),
        Cell::Word(word) | Cell::Inline(word) => format!("\"{}\"", word.replace('"', "\"\"")),
        Cell::Truth(truth) => truth.to_string(),
        Cell::Day(day) => format!("2024-03-{:02}", day - 45_382 + 31),
        Cell::Error(error) => (*error).to_owned(),
        Cell::Formula => unreachable!("it has no value"),
    }
}

fn any_row() -> impl Strategy<Value = Vec<Cell>> {
    let word = prop::sample::select(vec![
        Cell::Word("red"),
        Cell::Inline("grün"),
        Cell::Word("say \"hi\" & <go>"),
        Cell::Word("a, b"),
        Cell::Empty,
    ]);
    let number = prop_oneof![
        4 => prop::num::f32::NORMAL.prop_map(|n| Cell::Number(f64::from(n))),
        1 => Just(Cell::Empty)
    ];
    (number, word, any::<bool>(), any::<bool>()).prop_map(|(number, word, flag, y)| {
        let label = Cell::Word(if y { "a" } else { "b, c" });
        vec![number, word, Cell::Day(45_382), Cell::Truth(flag), label]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn equal_rows_are_equal_shards(more in prop::collection::vec(any_row(), 0..20)) {
        let whole = (0..8u8).map(|n| row(n.into(), if n < 4 { "red" } else { "a, b" }, n % 2 == 0));
        let rows: Vec<Vec<Cell>> = std::iter::once(header()).chain(whole).chain(more).collect();
        let lines = rows.iter().map(|row| row.iter().map(field).collect::<Vec<_>>().join(","));
        let csv = lines.collect::<Vec<_>>().join("\n");
        let dir =
            folder(&[("t.csv", csv.into_bytes()), ("t.xlsx", workbook(&[sheet("Sheet1", rows)]))]);
        let of = |file: &str| {
            made(&format!("train = \"{file}\"\n{DATA}"), dir.path()).map_err(|error| told(&error))
        };
        let (csv, excel) = (of("t.csv"), of("t.xlsx"));
        prop_assert!(excel.is_ok(), "{excel:?}");
        let (csv, excel) = (csv.unwrap(), excel.unwrap());
        prop_assert_eq!(blobs(&excel), blobs(&csv));
        prop_assert_eq!(excel.manifest, csv.manifest);
    }
}

fn rows(count: u8) -> Vec<Vec<Cell>> {
    let rows = (0..count).map(|n| row(n.into(), "red", n % 2 == 0));
    std::iter::once(header()).chain(rows).collect()
}

#[test]
fn the_first_sheet_that_is_shown_is_read_and_named() {
    let hidden = Sheet { is_shown: false, ..sheet("Old", vec![vec![Cell::Word("x")]]) };
    let others = [hidden, sheet("Sales & more", rows(8)), sheet("Notes", vec![])];
    let dir = folder(&[
        ("two.xlsx", workbook(&others)),
        ("one.xlsx", workbook(&[sheet("One", rows(8))])),
    ]);
    let of = |file: &str| {
        let (out, mut said) = (TempDir::new().unwrap(), Vec::new());
        let job = job(&format!("train = \"{file}\"\n{DATA}"));
        let made = ingest(&job, dir.path(), out.path(), &mut |progress| {
            if let Progress::Sheet { file, sheet, of } = progress {
                said.push(format!("{file}: {sheet} of {of}"));
            }
        });
        (made.map(|made| blobs(&made)).map_err(|error| told(&error)), said)
    };
    let (two, said) = of("two.xlsx");
    assert_eq!(said, ["two.xlsx: Sales & more of 2"]);
    let (one, said) = of("one.xlsx");
    assert!(said.is_empty(), "{said:?}");
    assert_eq!(two, one);
}

#[test]
fn rows_are_counted_from_the_first_that_has_something_and_empty_ones_are_none() {
    let mut all = rows(8);
    all[4][0] = Cell::Error("#N/A");
    // An empty row, and two above the names.
    let numbered = all.into_iter().zip([3, 4, 5, 7, 8, 9, 10, 11, 12]);
    let rows = numbered.map(|(row, number)| (number, row)).collect();
    let book = workbook(&[Sheet { name: "S", is_shown: true, rows }]);
    let said = refused(&format!("train = \"t.xlsx\"\n{DATA}"), &[("t.xlsx", book)]);
    assert!(said.starts_with("t.xlsx:6: column `n`: `#N/A` is no number"), "{said}");
}

#[test]
fn titles_above_the_names_are_no_rows() {
    let titled = [vec![Cell::Word("Sales 2024")], vec![], vec![Cell::Empty, Cell::Word("draft")]];
    let titled: Vec<Vec<Cell>> = titled.into_iter().chain(rows(8)).collect();
    let dir = folder(&[
        ("titled.xlsx", workbook(&[sheet("S", titled)])),
        ("plain.xlsm", workbook(&[sheet("S", rows(8))])),
        // Excel's own file beside a workbook that is open.
        ("parts/~$1.xlsx", b"locked".to_vec()),
        ("parts/1.xlsx", workbook(&[sheet("S", rows(8))])),
        ("nameless", workbook(&[sheet("S", rows(8))])),
    ]);
    let of = |file: &str| {
        made(&format!("train = \"{file}\"\n{DATA}"), dir.path()).map(|made| blobs(&made))
    };
    let plain = of("plain.xlsm").unwrap();
    for file in ["titled.xlsx", "parts", "nameless"] {
        assert_eq!(of(file).map_err(|error| told(&error)), Ok(plain.clone()), "{file}");
    }
}

#[test]
fn titles_of_several_cells_are_no_rows_unless_a_job_has_the_names() {
    let title = vec![Cell::Word("Sales"), Cell::Number(2024.0)];
    let titled: Vec<Vec<Cell>> = [title, vec![]].into_iter().chain(rows(8)).collect();
    let sparse = vec![Cell::Number(9.0), Cell::Empty, Cell::Empty, Cell::Empty, Cell::Word("a")];
    let headless: Vec<Vec<Cell>> =
        std::iter::once(sparse).chain(rows(8).into_iter().skip(1)).collect();
    let dir = folder(&[
        ("titled.xlsx", workbook(&[sheet("S", titled)])),
        ("plain.xlsx", workbook(&[sheet("S", rows(8))])),
        ("headless.xlsx", workbook(&[sheet("S", headless)])),
    ]);
    let of = |file: &str, more: &str| {
        let data = format!("train = \"{file}\"\n{DATA}\n{more}");
        made(&data, dir.path()).map(|made| made.manifest).map_err(|error| told(&error))
    };
    let plain = of("plain.xlsx", "").unwrap();
    assert_eq!(of("titled.xlsx", ""), Ok(plain));
    let names = "header = [\"n\", \"word\", \"day\", \"flag\", \"y\"]";
    let headless = of("headless.xlsx", names).unwrap();
    let rows = headless.train.iter().chain(&headless.valid).map(|shard| shard.rows);
    assert_eq!(rows.sum::<u32>(), 9);
}

#[test]
fn what_is_no_table_is_told() {
    let data = format!("train = \"t.xlsx\"\n{DATA}");
    let said = |bytes: Vec<u8>| refused(&data, &[("t.xlsx", bytes)]);
    assert_eq!(
        said(workbook(&[sheet("Empty", vec![vec![Cell::Empty]])])),
        "t.xlsx: the sheet `Empty`, which is the first, has no row of two cells or more"
    );
    assert_eq!(said(workbook(&[])), "t.xlsx: it has no sheet of cells that is shown");
    assert_eq!(
        said(b"n,word,day,flag,y\n1,a,2024-03-31,true,a\n".to_vec()),
        "t.xlsx: the file isn't an Excel workbook, as its name or the files beside it say"
    );
    let mut formula = rows(8);
    formula[3][0] = Cell::Formula;
    assert_eq!(
        said(workbook(&[sheet("S", formula)])),
        "t.xlsx: cell B4 has a formula and no value, as programs write it that don't compute; open the file in Excel or \
         LibreOffice, and save it"
    );
    let old = [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".as_slice(), &[0; 512]].concat();
    let remedy = "the file is an old or an encrypted workbook of Excel; save it as `.xlsx`, without a password";
    assert_eq!(said(old), format!("t.xlsx: {remedy}"));
    let zeros = "\0".repeat(65 << 20);
    let zeros = archive(&[("xl/worksheets/sheet1.xml".into(), zeros)]);
    assert_eq!(
        said(zeros),
        "t.xlsx: the Excel data is damaged or cut off (a cell has over 67108864 bytes)"
    );
    let cut = workbook(&[sheet("S", rows(8))]);
    let cut = said(cut[..cut.len() / 2].to_vec());
    assert!(cut.starts_with("t.xlsx: the Excel data is damaged or cut off"), "{cut}");
    let lying = format!("<sst uniqueCount=\"{}\"><si/></sst>", u64::MAX);
    let lying = archive(&[
        ("[Content_Types].xml".into(), String::new()),
        ("xl/sharedStrings.xml".into(), lying),
    ]);
    assert_eq!(
        said(lying),
        "t.xlsx: the Excel data is damaged or cut off (it has fewer words than it says)"
    );
}
