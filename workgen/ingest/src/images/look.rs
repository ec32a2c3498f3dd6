//! A look at a folder of images that no job describes yet.

use super::{decode::decode, fit::Size, walk::Walk};
use crate::{
    bounds::{SharedBounds, Step},
    error::{IngestError, Place, Problem},
    source::{FolderOfImages, SourceFile},
};
use serde::Serialize;
use sojourn_protocol::quantity::{SaturatingFrom as _, to_u64};
use std::{collections::BTreeMap, io::Read as _};

/// Images of each class that are opened.
const LOOKED_AT: u64 = 8;
/// Images that are opened in all.
const MAX_LOOKED_AT: usize = 64;

/// The contents of a folder of images.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImagesProfile {
    /// Images of each class, that is of each folder; under an empty name those that lie in none.
    pub classes: BTreeMap<String, u64>,
    /// Width and height in pixels, each in the middle of those of the images that were opened.
    pub size: (u32, u32),
    /// Are those that were opened all gray?
    pub is_gray: bool,
    /// Tables that lie beside the folders of classes.
    pub tables: usize,
}

/// Counts the images of a folder, and opens some of each class; `None` where there are none, or where there are tables and no two classes.
pub(crate) fn look(
    FolderOfImages { path: folder, tables }: FolderOfImages,
    shown: &str,
    bounds: &SharedBounds,
) -> Result<Option<ImagesProfile>, IngestError> {
    let mut walk = Walk::new(&folder, shown)?;
    let mut classes: BTreeMap<String, u64> = BTreeMap::new();
    let (mut widths, mut heights, mut is_gray) = (Vec::new(), Vec::new(), true);
    while let Some(found) = walk.next()? {
        if tables > 0 && found.class.is_none() {
            continue;
        }
        if !found.is_read {
            return Err(Place::of(&found.shown).refuse(Problem::OtherImage));
        }
        let count = classes.entry(found.class.unwrap_or_default()).or_default();
        *count += 1;
        if *count > LOOKED_AT || widths.len() >= MAX_LOOKED_AT {
            continue;
        }
        let file = SourceFile::at(found.path, &found.shown, bounds)?;
        let mut bytes = Vec::new();
        file.raw()?.read_to_end(&mut bytes).map_err(|error| file.failed(error))?;
        let any = Size { channels: 3, height: 1, width: 1 };
        let picture = decode(&bytes, any).map_err(|problem| file.refuse(problem))?;
        bounds.admit(Step::Unpacked(to_u64(picture.bytes())))?;
        is_gray &= picture.is_gray();
        let (width, height) = picture.size();
        widths.push(u32::saturating_from(width));
        heights.push(u32::saturating_from(height));
    }
    let middle = |mut sides: Vec<u32>| {
        sides.sort_unstable();
        sides.get(sides.len() / 2).copied()
    };
    let (Some(width), Some(height)) = (middle(widths), middle(heights)) else { return Ok(None) };
    if tables > 0 && classes.len() < 2 {
        return Ok(None);
    }
    Ok(Some(ImagesProfile { classes, size: (width, height), is_gray, tables }))
}
