//! The names of files that browsers send: none leads out of the folder of its upload.

use std::path::PathBuf;

/// Bytes of a file's name, folders included; bytes of each part of it; and its parts.
const MAX_NAME_BYTES: usize = 1_024;
const MAX_PART_BYTES: usize = 255;
const MAX_PARTS: usize = 16;

/// The path that a name means below the folder of an upload; or why it means none.
pub(crate) fn path_below(name: &str) -> Result<PathBuf, &'static str> {
    let parts: Vec<&str> = name.strip_suffix('/').unwrap_or(name).split('/').collect();
    if name.len() > MAX_NAME_BYTES || parts.len() > MAX_PARTS {
        return Err("is too long");
    }
    if name.starts_with('~') {
        return Err("is in the home folder of somebody");
    }
    for part in &parts {
        match *part {
            "" => return Err("isn't below the job file's folder"),
            "." | ".." => return Err("has a `.` or `..`, which files that are sent can't have"),
            part if part.len() > MAX_PART_BYTES => return Err("is too long"),
            part if part.chars().any(|c| c.is_control() || c == '\\') => {
                return Err("has characters that no name of a file should have");
            }
            _ => {}
        }
    }
    Ok(parts.iter().collect())
}
