//! The images below a folder, in the order of their paths.
//!
//! A folder's names are read when the walk comes to it, so that memory holds the names of one folder and of those above.

use crate::error::{IngestError, Place, Problem};
use std::{
    ffi::OsString,
    fs, io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    vec,
};

/// Folders in folders: more are a link to a folder above.
const MAX_DEPTH: usize = 32;
/// Endings of files that are read. The content says which of the formats it is.
const IMAGES: [&str; 6] = ["jpeg", "jpg", "png", "tif", "tiff", "webp"];
/// Endings of images that aren't read: to leave them out in silence would lose rows.
const OTHER_IMAGES: [&str; 11] =
    ["avif", "bmp", "gif", "heic", "heif", "jfif", "jp2", "jxl", "pgm", "ppm", "svg"];

/// An image of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    /// As messages name it: the folder as the job has it, and what comes below.
    pub(super) shown: String,
    /// The folder below the first one that it lies in.
    pub(super) class: Option<String>,
    /// Is it of a format that is read, by its name?
    pub(super) is_read: bool,
}

/// A walk over the images below a folder.
pub(super) struct Walk {
    /// The folders that it is in, each with the names that are left, in order.
    inside: Vec<Folder>,
    skipped: u64,
}

struct Folder {
    path: PathBuf,
    shown: String,
    /// The class of what lies in it.
    class: Option<String>,
    names: vec::IntoIter<OsString>,
}

impl Folder {
    fn list(path: PathBuf, shown: String, class: Option<String>) -> Result<Self, IngestError> {
        let listed = fs::read_dir(&path).and_then(|entries| {
            entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<OsString>>>()
        });
        let mut names = listed.map_err(IngestError::io("list", &path))?;
        names.sort_unstable_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
        Ok(Self { path, shown, class, names: names.into_iter() })
    }
}

impl Walk {
    /// Begins at the folder `path`, which the job calls `shown`.
    pub(super) fn new(path: &Path, shown: &str) -> Result<Self, IngestError> {
        let shown = shown.trim_end_matches('/').to_owned();
        let folder = Folder::list(path.to_owned(), shown, None)?;
        Ok(Self { inside: vec![folder], skipped: 0 })
    }

    /// Files, and hidden folders, that were left aside so far.
    pub(super) const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The next image; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<Found>, IngestError> {
        loop {
            let depth = self.inside.len();
            let Some(folder) = self.inside.last_mut() else { return Ok(None) };
            let Some(name) = folder.names.next() else {
                self.inside.pop();
                continue;
            };
            let path = folder.path.join(&name);
            let shown = format!("{}/{}", folder.shown, name.to_string_lossy());
            if name.as_bytes().starts_with(b".") {
                self.skipped += 1;
                continue;
            }
            // Follows links, as those who collect data sets by links mean it.
            let is_folder =
                fs::metadata(&path).map_err(IngestError::io("look at", &path))?.is_dir();
            if is_folder {
                if depth > MAX_DEPTH {
                    let problem = Problem::DeepFolders { limit: MAX_DEPTH };
                    return Err(Place::of(&shown).refuse(problem));
                }
                let class = match &folder.class {
                    Some(class) => class.clone(),
                    None => match name.into_string() {
                        Ok(class) => class,
                        Err(_) => return Err(Place::of(&shown).refuse(Problem::ClassName)),
                    },
                };
                let class = Some(class);
                self.inside.push(Folder::list(path, shown, class)?);
                continue;
            }
            let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
            let ending = ending.unwrap_or_default();
            let is_read = IMAGES.contains(&ending.as_str());
            if is_read || OTHER_IMAGES.contains(&ending.as_str()) {
                return Ok(Some(Found { path, shown, class: folder.class.clone(), is_read }));
            }
            self.skipped += 1;
        }
    }
}
