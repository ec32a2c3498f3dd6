//! Tests that a message stays one line that can be read, whatever a file has in it.

use super::*;
use sojourn_protocol::spec::Notation;
use std::error::Error as _;

/// A text that a file may have in the place of a name.
fn long() -> String {
    "name\u{1b}[31m\n".repeat(1000)
}

#[test]
fn what_comes_out_of_files_is_shown_as_a_short_line() {
    let places = [
        Place { file: long(), ..Place::of("") },
        Place { column: Some(long()), ..Place::of("t") },
        Place { element: Some(long()), ..Place::of("t") },
    ];
    let place = Place::of("t");
    let problems = [
        Problem::AfterQuote,
        Problem::BadColumn(long()),
        Problem::BadColumns(long()),
        Problem::BadImage { kind: "PNG", reason: long() },
        Problem::BadTokenizer(long()),
        Problem::Counts { labels: 1, rows: 2, of: long() },
        Problem::CutOff { row: 1, rows: 2, reason: long() },
        Problem::Damaged { how: "ZIP", reason: long() },
        Problem::Dtype(long()),
        Problem::DuplicateColumn { name: long(), first: 1, second: 2 },
        Problem::HeaderName { number: 1, actual: long(), expected: long(), of: long() },
        Problem::HeaderWidth { actual: 1, expected: 2, of: long() },
        Problem::LabelNotANumber(long()),
        Problem::LabelShape(vec![1; 10_000]),
        Problem::LabelUnsaid(long()),
        Problem::MissingFeature(long()),
        Problem::NameInFile { name: long(), why: long() },
        Problem::NoArray { name: long(), key: "label", hint: long() },
        Problem::NoColumn { name: long(), more: 0, hint: long() },
        Problem::NoColumnByName { name: long(), holds: "maps" },
        Problem::NoColumns(long()),
        Problem::NoLabel { label: long(), hint: long() },
        Problem::NoMean(long()),
        Problem::NoNamedColumn { name: long(), hint: long() },
        Problem::NoneOfColumns(long()),
        Problem::NoSequences(long()),
        Problem::NotANumber(long()),
        Problem::NotFinite(long()),
        Problem::NoTable { what: long() },
        Problem::NoTruth(long()),
        Problem::NoWordColumn { name: long(), hint: long() },
        Problem::NullElement(long()),
        Problem::NullRow(long()),
        Problem::OneClass(long()),
        Problem::NotInNotation { text: long(), notation: Notation::default() },
        Problem::OtherNotation {
            text: long(),
            ways: vec![Way { notation: Notation::default(), value: long() }],
        },
        Problem::OtherSeparator(long()),
        Problem::OtherColumns { of: long(), difference: long() },
        Problem::OtherKind(long()),
        Problem::RowShape { actual: vec![1; 10_000], expected: vec![1; 10_000], of: long() },
        Problem::SameFeature(long()),
        Problem::Size { shape: vec![1; 10_000], wanted: 1, there: 2 },
        Problem::TooLarge(long()),
        Problem::UnseenLabel(long()),
        Problem::UnseenWord(long()),
        Problem::WordFeature { word: long(), column: long() },
    ];
    let files = Box::new((long(), long()));
    let fetched = [
        FetchError::BadUrl(long()),
        FetchError::Cut { attempts: 1, bytes: 2, reason: long() },
        FetchError::NoCredentials(long()),
        FetchError::Request(long()),
        FetchError::Status { status: long(), hint: "" },
        FetchError::Store(long()),
    ];
    let whole = [
        IngestError::ArrayShape { shape: vec![1], actual: vec![1; 10_000], file: long() },
        IngestError::MixedParts { key: "data.train", path: "t".into(), files },
        IngestError::Shape { shape: vec![1], values: 1, features: 2, file: long() },
    ];
    let errors = places.into_iter().map(|at| at.refuse(Problem::Empty));
    let errors = errors.chain(problems.map(|problem| place.clone().refuse(problem))).chain(whole);
    let fetched = fetched.map(|source| IngestError::Fetch { url: "s3://b/k".into(), source });
    for error in errors.chain(fetched) {
        let source = error.source().map(ToString::to_string).unwrap_or_default();
        for said in [error.to_string(), source] {
            let is_line = !said.chars().any(char::is_control) && said.len() < 2000;
            assert!(is_line, "{error:.500?}: {} bytes", said.len());
        }
    }
}
