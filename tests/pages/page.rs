//! A page of Markdown: its fenced blocks, its headings and its links. Only what these pages use is understood.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The folder of the repository.
pub(crate) const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A page, by its path from the root of the repository.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// A fenced block.
#[derive(Debug)]
pub(crate) struct Block {
    /// The line of its fence, from 1.
    pub(crate) line: usize,
    /// The language, the first word after the fence.
    pub(crate) language: String,
    /// The other words after the fence.
    pub(crate) marks: Vec<String>,
    pub(crate) text: String,
}

impl Block {
    /// The value of a mark `name=VALUE`.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.marks.iter().find_map(|mark| mark.strip_prefix(name)?.strip_prefix('='))
    }

    pub(crate) fn has(&self, mark: &str) -> bool {
        self.marks.iter().any(|known| known == mark)
    }
}

impl Page {
    pub(crate) fn read(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let text = fs::read_to_string(Path::new(ROOT).join(&path))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { path, text }
    }

    /// The page's name in a message, with a line.
    pub(crate) fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }

    /// The fenced blocks, in order.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut open: Option<Block> = None;
        for (line, text) in self.numbered() {
            match (text.strip_prefix("```"), &mut open) {
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (Some(info), None) => {
                    let mut words = info.split_whitespace().map(str::to_owned);
                    let language = words.next().unwrap_or_default();
                    let text = String::new();
                    open = Some(Block { line, language, marks: words.collect(), text });
                }
                (None, Some(block)) => block.text.extend([text, "\n"]),
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: a block doesn't end", self.path.display());
        blocks
    }

    /// The lines outside of blocks, with their numbers.
    pub(crate) fn prose(&self) -> Vec<(usize, &str)> {
        let mut inside = false;
        self.numbered()
            .filter(|(_, text)| {
                let fence = text.starts_with("```");
                inside ^= fence;
                !inside && !fence
            })
            .collect()
    }

    /// The headings, without their signs.
    pub(crate) fn headings(&self) -> Vec<&str> {
        let prose = self.prose().into_iter();
        prose
            .filter(|(_, text)| text.starts_with('#'))
            .map(|(_, text)| text.trim_start_matches('#').trim())
            .collect()
    }

    /// The targets of links, with their lines.
    pub(crate) fn links(&self) -> Vec<(usize, String)> {
        let mut links = Vec::new();
        let text: String = self.prose().iter().map(|(_, text)| format!("{text}\n")).collect();
        // A link may be broken over two lines; its number is that of the line on which it ends.
        for (start, _) in text.match_indices("](") {
            let target = text[start + 2..].split(')').next().unwrap_or_default();
            let line = self.line_of(target);
            links.push((line, target.to_owned()));
        }
        links
    }

    fn line_of(&self, target: &str) -> usize {
        let found = self.numbered().find(|(_, text)| text.contains(target));
        found.map_or(0, |(line, _)| line)
    }

    fn numbered(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(line, text)| (line + 1, text))
    }

    /// The text below a heading that begins so, up to the next heading of its level or above.
    pub(crate) fn section(&self, heading: &str) -> Option<String> {
        let level = heading.bytes().take_while(|byte| *byte == b'#').count();
        let prose = self.prose();
        let start = prose.iter().position(|(_, text)| *text == heading)? + 1;
        let ends = |text: &str| {
            let signs = text.bytes().take_while(|byte| *byte == b'#').count();
            (1..=level).contains(&signs)
        };
        let lines = prose[start..].iter().take_while(|(_, text)| !ends(text));
        Some(lines.map(|(_, text)| format!("{text}\n")).collect())
    }
}

/// The anchor that Markdown readers give a heading.
pub(crate) fn anchor(heading: &str) -> String {
    let lower = heading.to_lowercase();
    let kept = lower.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The files below a folder of the repository, by their paths from its root.
pub(crate) fn files(folder: &str, wanted: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(Path::new(ROOT).join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            if hidden || path.starts_with("target") {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if wanted(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Whether a file's name ends so.
pub(crate) fn is(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|of| of == ending)
}

/// The pages of the book.
pub(crate) fn book() -> Vec<Page> {
    files("docs", &|path| is(path, "md")).into_iter().map(Page::read).collect()
}

/// All pages: of the book, at the root, and of the examples.
pub(crate) fn all() -> Vec<Page> {
    let root = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"];
    let examples = files("examples", &|path| is(path, "md")).into_iter().map(Page::read);
    root.into_iter().map(Page::read).chain(book()).chain(examples).collect()
}

#[test]
fn a_page_is_read_by_its_parts() {
    let text = "# A `b` c?\n\nSee [x](y.md#z).\n\n```sh run not-run=why\n# no heading\nls\n```\n\n## D\n\ntext\n";
    let page = Page { path: "p.md".into(), text: text.to_owned() };
    assert_eq!(page.headings(), ["A `b` c?", "D"]);
    assert_eq!(anchor("A `b` c?"), "a-b-c");
    assert_eq!(page.links(), [(3, "y.md#z".to_owned())]);
    let blocks = page.blocks();
    assert_eq!((blocks[0].line, blocks[0].language.as_str()), (5, "sh"));
    assert_eq!(blocks[0].text, "# no heading\nls\n");
    assert!(blocks[0].has("run") && blocks[0].value("not-run") == Some("why"));
    assert_eq!(page.section("## D").unwrap(), "\ntext\n");
}
