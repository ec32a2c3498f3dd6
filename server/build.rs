//! Collects what the comments of the wire types say of each value of an enumeration, for the document that describes the API.
//! `utoipa` takes over the comments of types and fields, and leaves out those of such values.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    error::Error,
    fs, io,
    path::{Path, PathBuf},
};

/// Where the wire types and the events are.
const SOURCES: [&str; 2] = ["../protocol/src", "state/src/event"];

/// The values' descriptions in their order, by the name of the type.
type Enums = BTreeMap<String, Vec<String>>;

/// The enumerations that the comments and attributes of sources describe.
#[derive(Default)]
struct Found {
    enums: Enums,
    /// Enumerations whose forms refuse fields that they don't know.
    strict: BTreeSet<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        list(Path::new(source), &mut files)?;
    }
    let mut found = Found::default();
    for file in files {
        read(&fs::read_to_string(file)?, &mut found)?;
    }
    let pairs = found.enums.iter().map(|(name, values)| format!("({name:?}, &{values:?})"));
    let values = format!("&[{}]", pairs.collect::<Vec<_>>().join(", "));
    let strict: Vec<&String> = found.strict.iter().collect();
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("enum_values.rs"), values)?;
    Ok(fs::write(out.join("strict_enums.rs"), format!("&{strict:?}"))?)
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Takes the enumerations of a file that are in the document.
fn read(text: &str, found: &mut Found) -> Result<(), String> {
    let (mut renamed, mut is_described, mut is_strict) = (None, false, false);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("#[") {
            is_described |= line.contains("ToSchema");
            is_strict |= line.contains("deny_unknown_fields");
            let name = line.split_once("schema(as = ").and_then(|(_, rest)| rest.split(')').next());
            renamed = name.map(str::to_owned).or(renamed);
            continue;
        }
        if let Some(rest) = line.strip_prefix("pub enum ")
            && let Some(name) = rest.split([' ', '<']).next()
            && is_described
        {
            let name = renamed.take().unwrap_or_else(|| name.to_owned());
            if is_strict {
                found.strict.insert(name.clone());
            }
            if let Some(values) = values(&mut lines)
                && found.enums.insert(name.clone(), values).is_some()
            {
                return Err(format!(
                    "two types are `{name}` in the document: use `schema(as = ..)`"
                ));
            }
        }
        // Attributes of several lines stand between.
        if !line.starts_with([' ', ')', '/']) {
            (renamed, is_described, is_strict) = (None, false, false);
        }
    }
    Ok(())
}

/// The descriptions of the values up to the end of a type; `None` where one has fields.
fn values<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Option<Vec<String>> {
    let mut values = Vec::new();
    let mut comment = String::new();
    let mut has_fields = false;
    for line in lines.take_while(|line| *line != "}") {
        let line = line.trim();
        if let Some(text) = line.strip_prefix("///") {
            if !comment.is_empty() {
                comment.push(' ');
            }
            comment.push_str(text.trim());
        } else if line.starts_with(|first: char| first.is_ascii_uppercase()) {
            has_fields |= line.contains(['(', '{']);
            values.push(std::mem::take(&mut comment));
        }
    }
    (!has_fields).then_some(values)
}
