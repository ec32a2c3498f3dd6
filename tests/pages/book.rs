//! The book hangs together: sizes, the table of contents, links, and the pages that code names.

use crate::page::{self, Page, ROOT, anchor, files, is};
use std::{collections::BTreeSet, fs, path::Path, path::PathBuf};

/// README is read in five minutes.
const MAX_README_BYTES: usize = 8_192;

#[test]
fn readme_is_read_in_five_minutes() {
    let bytes = Page::read("README.md").text.len();
    assert!(
        bytes <= MAX_README_BYTES,
        "README.md has {bytes} bytes, {MAX_README_BYTES} are allowed"
    );
}

#[test]
fn every_page_of_the_book_is_in_its_table_of_contents() {
    let summary = Page::read("docs/SUMMARY.md");
    let listed: Vec<PathBuf> =
        summary.links().into_iter().map(|(_, target)| Path::new("docs").join(target)).collect();
    let listed_once: BTreeSet<&PathBuf> = listed.iter().collect();
    assert_eq!(listed.len(), listed_once.len(), "a page is listed twice");
    let pages = page::book();
    let pages: BTreeSet<&PathBuf> =
        pages.iter().map(|page| &page.path).filter(|path| !path.ends_with("SUMMARY.md")).collect();
    assert_eq!(listed_once, pages);
}

#[test]
fn every_page_begins_with_its_only_title() {
    for page in page::all() {
        let prose = page.prose();
        let titles: Vec<_> = prose.iter().filter(|(_, text)| text.starts_with("# ")).collect();
        let is_summary = page.path.ends_with("SUMMARY.md");
        let first = prose.first().is_some_and(|(_, text)| text.starts_with("# "));
        assert!(first && (titles.len() == 1 || is_summary), "{}: {titles:?}", page.path.display());
    }
}

/// The path from the root that a link of a page points to, and its anchor.
fn target(page: &Page, link: &str) -> (PathBuf, Option<String>) {
    let (path, anchor) = match link.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor.to_owned())),
        None => (link, None),
    };
    if path.is_empty() {
        return (page.path.clone(), anchor);
    }
    let mut whole = page.path.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(path).components() {
        match part {
            std::path::Component::ParentDir => {
                assert!(whole.pop(), "{}: {link} leaves the repository", page.path.display());
            }
            part => whole.push(part),
        }
    }
    (whole, anchor)
}

#[test]
fn every_internal_link_leads_somewhere() {
    let mut broken = Vec::new();
    let mut seen = 0;
    for page in page::all() {
        for (line, link) in page.links() {
            if link.starts_with("http://") || link.starts_with("https://") {
                continue;
            }
            seen += 1;
            let (path, wanted) = target(&page, &link);
            if !Path::new(ROOT).join(&path).exists() {
                broken.push(format!("{}: no file {link}", page.at(line)));
            } else if let Some(wanted) = wanted.filter(|_| is(&path, "md")) {
                let other = Page::read(&path);
                let known = other.headings().iter().any(|heading| anchor(heading) == wanted);
                if !known {
                    broken.push(format!("{}: no heading {link}", page.at(line)));
                }
            }
        }
    }
    assert!(seen > 100, "only {seen} links were found");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The paths of pages that a text names: `docs/` or a page of the root.
fn named_pages(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let words = text.split(|c: char| !is_part(c)).map(|word| word.trim_matches('.'));
    words.filter(|word| word.starts_with("docs/") && word.ends_with(".md")).collect()
}

#[test]
fn every_page_that_code_names_is_there() {
    let is_code = |path: &Path| {
        ["rs", "toml", "py", "yaml"].iter().any(|ending| is(path, ending))
            || path.ends_with("Makefile")
    };
    let mut missing = Vec::new();
    for path in files("", &is_code) {
        let text = fs::read_to_string(Path::new(ROOT).join(&path)).unwrap();
        for page in named_pages(&text) {
            if !Path::new(ROOT).join(page).exists() {
                missing.push(format!("{} names {page}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
#[test]
fn every_module_that_architecture_names_is_there() {
    let page = Page::read("ARCHITECTURE.md");
    let spans = page.text.split('`').skip(1).step_by(2);
    let top = ["assimilator/", "client/", "protocol/", "server/", "src/", "tests/", "workgen/"];
    let mut missing = Vec::new();
    for span in spans.filter(|span| top.iter().any(|top| span.starts_with(top))) {
        // A name in capitals stands for one that the reader chooses.
        let known = span.split('/').take_while(|part| !part.chars().any(char::is_uppercase));
        let path: PathBuf = known.collect();
        if !Path::new(ROOT).join(&path).exists() {
            missing.push(span);
        }
    }
    assert!(missing.is_empty(), "ARCHITECTURE.md names {missing:?}");
}
