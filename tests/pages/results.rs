//! Pages whose figures a script writes: each names its kept results, and is what its script makes of them, to the byte.
//!
//! ```text
//!   <!-- written by examples/scripts/proofs.py from results -->     in examples/scheduling/PROOFS.md
//! ```

use crate::page::{self, Page, ROOT};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Pages that a script writes and whose results aren't kept, with the reason.
const NOT_KEPT: &[(&str, &str)] =
    &[("examples/merging/README.md", "trains for over an hour: its next run keeps the results")];

/// The origin of a page, as it names it.
struct Written {
    script: PathBuf,
    results: PathBuf,
}

fn written(page: &Page) -> Option<Written> {
    let line = page.text.lines().find_map(|line| line.strip_prefix("<!-- written by "))?;
    let (script, results) = line.strip_suffix(" -->")?.split_once(" from ")?;
    let folder = page.path.parent()?;
    Some(Written { script: script.into(), results: folder.join(results) })
}

/// Whether a page says that a target of `examples/Makefile` writes it, or its tables.
fn says_it_is_written(page: &Page) -> bool {
    let text = page.text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.split("`make -C examples ").skip(1).any(|rest| {
        let sentence = rest.split(". ").next().unwrap_or_default();
        sentence.contains("writes this page") || sentence.contains("writes the tables")
    })
}

/// Runs a script on results, with the tests' Python; the page and its charts go to a folder.
fn render(script: &Path, results: &Path, to: &Path, more: &[&str]) {
    let python = Path::new(ROOT).join(".cache/python/bin");
    let path = format!("{}:{}", python.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("python3")
        .arg(Path::new(ROOT).join(script))
        .arg("--results")
        .arg(results)
        .arg("--to")
        .arg(to)
        .args(more)
        .env("PATH", path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", script.display());
}

/// All files below a folder, by their paths in it.
fn all_files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(open) = folders.pop() {
        for entry in fs::read_dir(open).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(
                    path.strip_prefix(folder).unwrap().to_owned(),
                    fs::read(&path).unwrap(),
                );
            }
        }
    }
    found
}

#[test]
fn each_page_is_what_its_script_makes_of_the_kept_results() {
    let mut seen = 0;
    for page in page::all() {
        let Some(Written { script, results }) = written(&page) else { continue };
        seen += 1;
        let folder = Path::new(ROOT).join(page.path.parent().unwrap());
        let to = tempfile::tempdir().unwrap();
        let kept = Path::new(ROOT).join(&results);
        let before = all_files(&kept);
        render(&script, &kept, to.path(), &[]);
        assert_eq!(before.len(), all_files(&kept).len(), "{}: not all is kept", results.display());
        let made = all_files(to.path());
        assert!(made.contains_key(Path::new(page.path.file_name().unwrap())));
        for (file, bytes) in made {
            let there = fs::read(folder.join(&file)).unwrap_or_default();
            assert!(
                there == bytes,
                "{} isn't what {} makes of {}: run it without arguments",
                folder.join(&file).display(),
                script.display(),
                results.display(),
            );
        }
    }
    assert!(seen >= 4, "only {seen} pages name their results");
}

#[test]
fn a_page_that_is_written_names_its_results() {
    let mut without = Vec::new();
    for page in page::all().iter().filter(|page| says_it_is_written(page)) {
        let is_known = NOT_KEPT.iter().any(|(path, _)| page.path == Path::new(path));
        match written(page) {
            Some(_) => assert!(!is_known, "{}: its results are kept", page.path.display()),
            None if is_known => {}
            None => without.push(page.path.display().to_string()),
        }
    }
    assert!(without.is_empty(), "no results are named in {without:?}");
}

/// A result that isn't kept is run, and kept.
#[test]
fn a_script_runs_what_is_missing() {
    let kept = Path::new(ROOT).join("examples/scheduling/results");
    let (results, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (file, bytes) in all_files(&kept) {
        fs::write(results.path().join(file), bytes).unwrap();
    }
    let missing = results.path().join("9-traffic.json");
    fs::remove_file(&missing).unwrap();
    let sojourn = env!("CARGO_BIN_EXE_sojourn");
    let script = Path::new("examples/scripts/proofs.py");
    render(script, results.path(), to.path(), &["--sojourn", sojourn]);
    assert_eq!(fs::read(&missing).unwrap().last(), Some(&b'\n'));
    assert!(to.path().join("PROOFS.md").exists());
}
