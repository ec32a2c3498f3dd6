//! A job over a folder of images.

use crate::{
    Draft, LabelKind, Wishes,
    job::{JobText, Length},
    number::quoted,
    table::{search, training},
};
use sojourn_ingest::ImagesProfile;
use sojourn_protocol::figures::counted;

/// Sides that images are scaled to.
const SIDES: [u32; 4] = [32, 64, 96, 128];

/// Makes a job file for images, whose folders are their classes.
pub(crate) fn draft(images: &ImagesProfile, wishes: Wishes<'_>) -> Result<Draft, Vec<String>> {
    let mut problems = Vec::new();
    if let Some(count) = images.classes.get("") {
        problems.push(format!(
            "{} lie in no folder of a class: each class has a folder, whose name is its label",
            counted(*count, "image")
        ));
    }
    if images.classes.keys().filter(|class| !class.is_empty()).count() < 2 {
        problems.push("two classes or more are wanted, each in a folder of its own".to_owned());
    }
    if wishes.label.is_some() {
        problems.push(
            "the labels of images are the names of their folders: there is no column".to_owned(),
        );
    }
    if wishes.labels == Some(LabelKind::Numbers) {
        problems.push("the folders of images are classes, no numbers".to_owned());
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let rows: u64 = images.classes.values().sum();
    let smaller = images.size.0.min(images.size.1);
    let side = SIDES.into_iter().rev().find(|side| *side <= smaller).unwrap_or(32);
    let channels = if images.is_gray { 1 } else { 3 };
    let length = Length::of_images(rows);
    let mut job = JobText::new(wishes.name);
    job.section("[data]");
    job.line(format_args!(
        "train = {}             # the folders in it are the classes",
        quoted(wishes.train)
    ));
    job.line(format_args!("shape = [{channels}, {side}, {side}]          # channels, height, width: images are scaled to it"));
    job.line(format_args!("scale = \"standard\""));
    job.line(format_args!(
        "valid = 0.2                    # a share of the images, by which trials are compared"
    ));
    job.section("[[model]]");
    job.line(format_args!("arch = \"cnn\""));
    job.line(format_args!("channels = {{ choice = [[16, 32], [32, 64, 64]] }}"));
    job.section("[[model]]");
    job.line(format_args!("arch = \"cnn\""));
    job.line(format_args!("channels = [32, 32, 64, 64]\npool_every = 2\nbatch_norm = true"));
    training(
        &mut job,
        length,
        LabelKind::Classes,
        "name = \"adamw\", lr = { choice = [0.0005, 0.002] }",
    );
    job.line(format_args!(
        "augment = {{ crop = 4, flip = true }} # false where left and right matter, as in writing"
    ));
    search(&mut job, length, LabelKind::Classes);
    let (width, height) = images.size;
    let mut remarks = vec![format!(
        "{} in {}, most of about {width} x {height} pixels; they are scaled to {side} x {side}",
        counted(rows, "image"),
        counted(images.classes.len() as u64, "folder")
    )];
    if images.tables > 0 {
        remarks.push(format!(
            "{} beside the folders of images left out; `--label COLUMN` takes tables in place of the images",
            counted(images.tables as u64, "table")
        ));
    }
    Ok(Draft { job: job.finish(), files: Vec::new(), label: None, columns: Vec::new(), remarks })
}
