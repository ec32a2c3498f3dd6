//! The promises of `docs/security.md`: each has a row in the page's table, and each row names a test that there is.

use crate::page::{Page, ROOT};
use std::{fs, path::Path};

/// The heading above the table of promises.
const TABLE: &str = "## What holds each promise";

/// A row of the table.
struct Row {
    promise: String,
    /// The file of the test, from the root of the repository, and the function in it.
    test: (String, String),
}

/// The rows below the table's head.
fn rows(page: &Page) -> Vec<Row> {
    let section = page.section(TABLE).unwrap_or_else(|| panic!("no {TABLE}"));
    let lines = section.lines().filter(|line| line.starts_with('|')).skip(2);
    lines.map(row).collect()
}

fn row(line: &str) -> Row {
    let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
    let [promise, test] = cells[..] else { panic!("two cells are wanted: {line}") };
    let test = test.trim_matches('`').rsplit_once("::");
    let (file, name) = test.unwrap_or_else(|| panic!("`file::function` is wanted: {line}"));
    Row { promise: promise.to_owned(), test: (file.to_owned(), name.to_owned()) }
}

/// The words that promises begin with: the bold ones in the lists of the page, and its headings.
fn promises(page: &Page) -> (Vec<String>, Vec<String>) {
    let prose = page.prose();
    let bullets =
        prose.iter().filter_map(|(_, text)| text.strip_prefix("- **")?.split("**").next());
    let bullets = bullets.map(|words| words.trim_end_matches('.').to_owned()).collect();
    (bullets, page.headings().into_iter().map(str::to_owned).collect())
}

/// Whether a promise begins with these words, whole.
fn begins(promise: &str, words: &str) -> bool {
    promise.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

/// Whether the text has a function of this name that is marked as a test.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let named = |line: &&str| {
        line.split("fn ").nth(1).is_some_and(|rest| rest.starts_with(&format!("{name}(")))
    };
    let Some(at) = lines.iter().position(named) else { return false };
    let above = lines[..at].iter().rev();
    let mut above = above.take_while(|line| line.starts_with("#[") || line.starts_with("///"));
    above.any(|line| line.starts_with("#[") && line.contains("test"))
}

#[test]
fn each_promise_of_security_has_a_row() {
    let page = Page::read("docs/security.md");
    let (bullets, headings) = promises(&page);
    assert!(bullets.len() > 15, "{bullets:?}");
    let rows = rows(&page);
    let without: Vec<&String> = bullets
        .iter()
        .filter(|words| !rows.iter().any(|row| begins(&row.promise, words)))
        .collect();
    assert!(without.is_empty(), "no row begins with {without:#?}");
    let known = || bullets.iter().chain(&headings);
    let stale = rows.iter().filter(|row| !known().any(|words| begins(&row.promise, words)));
    let stale: Vec<&String> = stale.map(|row| &row.promise).collect();
    assert!(stale.is_empty(), "the page promises nothing that begins as {stale:#?}");
}

#[test]
fn each_test_that_holds_a_promise_is_there() {
    let mut missing = Vec::new();
    for Row { promise, test: (file, name) } in rows(&Page::read("docs/security.md")) {
        let text = fs::read_to_string(Path::new(ROOT).join(&file));
        if !text.is_ok_and(|text| has_test(&text, &name)) {
            missing.push(format!("{promise}: {file} has no test `{name}`"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn a_function_is_a_test_where_it_is_marked_so() {
    let text =
        "fn helper() {}\n\n#[tokio::test]\n/// Why.\nasync fn holds() {}\n    fn other() {}\n";
    assert!(has_test(text, "holds"));
    assert!(!has_test(text, "helper") && !has_test(text, "other") && !has_test(text, "hold"));
}
