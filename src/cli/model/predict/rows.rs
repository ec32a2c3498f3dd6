//! The data that a model is run over: found, and checked to be rows of the model.

use crate::cli::{
    model::model_file::Model,
    render::text,
    submit::reading::Reading,
    terminal::{causes::ingest_failure, exit::Failure, output},
};
use clap::ValueEnum;
use sojourn_ingest::{
    ColumnReader, ColumnSource, IngestError, Problem, Progress, ReadOptions, Reader,
};
use sojourn_model::portable::Description;
use sojourn_protocol::{
    column::Column,
    error::error_chain,
    quantity::to_u64,
    spec::{Channels, SourceSpec, data::DEFAULT_LABEL},
};
use std::{
    borrow::Cow,
    ffi::{OsStr, OsString},
    io,
    os::unix::fs::symlink,
    path::Path,
};

/// Which data, and what is to be known about it that it doesn't say itself.
#[derive(Debug, clap::Args)]
pub(super) struct DataArgs {
    /// The data: a file, a folder of parts or a URL, in any format that jobs read.
    #[arg(value_name = "DATA")]
    data: OsString,
    /// The array of rows in an NPZ, safetensors or HDF5 file; the name that the model's had if left out.
    #[arg(long, value_name = "NAME")]
    features: Option<String>,
    /// The label column, or the array of labels; the name that the model's had if left out.
    #[arg(long, value_name = "NAME")]
    label: Option<String>,
    /// Where the channels are in an image of an array: `[channels, height, width]` or
    /// `[height, width, channels]`. If left out, rows of the model's own shape are taken as they are,
    /// others as those were that it was trained on.
    #[arg(long, value_enum)]
    channels: Option<ChannelsArg>,
    /// Of text: the tokenizer (`tokenizer.json`) by whose tokens the model was trained; text is bytes if left out.
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<OsString>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ChannelsArg {
    /// Before height and width.
    First,
    /// After them.
    Last,
}

/// A source of data as jobs name it: in UTF-8. A path that isn't gets a link at `link`, with the ending by which its kind is known.
fn in_utf8<'a>(source: &'a OsStr, link: &Path) -> Result<Cow<'a, str>, Failure> {
    if let Some(text) = source.to_str() {
        return Ok(text.into());
    }
    let path = Path::new(source);
    let failed = |error: io::Error| Failure::call(format!("`{}`: {error}", path.display()));
    let path = path.canonicalize().map_err(failed)?;
    let ending = path.extension().and_then(OsStr::to_str);
    let link = ending.map_or_else(|| link.to_owned(), |ending| link.with_extension(ending));
    symlink(&path, &link).map_err(failed)?;
    Ok(link.to_string_lossy().into_owned().into())
}

impl DataArgs {
    /// Where the data lies, for people.
    pub(super) fn source(&self) -> Cow<'_, str> {
        self.data.to_string_lossy()
    }

    /// Finds the data and those of the wanted columns by name that it has.
    pub(super) fn open_columns(
        &self,
        wanted: &[Column],
        spool: &Path,
    ) -> Result<ColumnReader, Failure> {
        let windows = wanted.iter().any(|column| column.windows);
        let foreign = [
            ("--features", self.features.is_some()),
            ("--label", self.label.is_some()),
            ("--channels", self.channels.is_some()),
        ];
        if let Some((flag, _)) = foreign.into_iter().find(|(_, is_said)| *is_said) {
            return Err(Failure::call(format!(
                "`{flag}` is for rows of numbers; the model takes columns by their names"
            )));
        }
        self.refuse_tokenizer(windows)?;
        let data = in_utf8(&self.data, &spool.join("data"))?;
        let tokenizer = self.tokenizer.as_deref();
        let tokenizer =
            tokenizer.map(|file| in_utf8(file, &spool.join("tokenizer"))).transpose()?;
        let tokenizer = tokenizer.as_deref();
        let source = ColumnSource { data: &data, tokenizer, base_dir: Path::new(""), spool };
        let mut reading = Reading::new();
        let tell = &mut |progress: Progress<'_>| reading.tell(progress);
        ColumnReader::open(source, wanted, tell).map_err(unread)
    }

    /// Refuses a tokenizer where nothing is cut into windows.
    fn refuse_tokenizer(&self, windows: bool) -> Result<(), Failure> {
        match &self.tokenizer {
            Some(_) if !windows => {
                Err(Failure::call("`--tokenizer` is for models of text, and this is none"))
            }
            _ => Ok(()),
        }
    }

    /// Finds the data and checks that it is rows of the model.
    pub(super) fn open(&self, model: &Model, spool: &Path) -> Result<Reader, Failure> {
        self.refuse_tokenizer(false)?;
        let description = &model.description;
        // The labels of images had no name.
        let label = self.label.clone().or_else(|| description.label.clone());
        let label = label.unwrap_or_else(|| DEFAULT_LABEL.to_owned());
        let source = SourceSpec {
            data: in_utf8(&self.data, &spool.join("data"))?.into_owned(),
            features: self.features.clone().or_else(|| description.array.clone()),
            label: Some(label.clone()),
            labels: None,
        };
        let (channels, in_order) = match self.channels {
            None => (description.channels, description.shape.as_slice()),
            Some(ChannelsArg::First) => (Channels::First, &[][..]),
            Some(ChannelsArg::Last) => (Channels::Last, &[][..]),
        };
        let options = ReadOptions {
            features: &description.features,
            channels,
            in_order,
            categories: &description.categories,
            missing: description.missing,
            fill: &description.fill,
            dialect: &description.dialect,
            base_dir: Path::new(""),
            spool,
        };
        let mut reading = Reading::new();
        let tell = &mut |progress: Progress<'_>| reading.tell(progress);
        let reader = Reader::open(&source, &options, tell).map_err(unread)?;
        drop(reading);
        self.check(&reader, description)?;
        if !reader.has_labels() && self.label.is_some() {
            return Err(Failure::call(format!("`{}` has no labels `{label}`", self.source())));
        }
        remark_ignored(reader.ignored());
        Ok(reader)
    }

    fn check(&self, reader: &Reader, description: &Description) -> Result<(), Failure> {
        let is_table = !reader.features().is_empty();
        for (flag, is_said) in
            [("--features", self.features.is_some()), ("--channels", self.channels.is_some())]
        {
            if is_table && is_said {
                return Err(Failure::call(format!(
                    "`{flag}` is for arrays; of `{}` the columns are taken that the model was trained on",
                    self.source()
                )));
            }
        }
        let (is, wanted) = (reader.shape(), description.shape.as_slice());
        if fits(is, wanted) {
            return Ok(());
        }
        let hint = match *is {
            [height, width, channels]
                if self.channels.is_none() && fits(&[channels, height, width], wanted) =>
            {
                "; if they have their channels last, say `--channels last`"
            }
            _ => "",
        };
        Err(Failure::call(format!(
            "`{}` has rows of shape {is:?}, the model takes {wanted:?}{hint}",
            self.source()
        )))
    }
}

/// Is a row of the shape `is` one of the model's? As many numbers in a line are; of two shapes that
/// aren't flat, the sides must be the same, but for those of 1.
fn fits(is: &[u32], wanted: &[u32]) -> bool {
    let values =
        |shape: &[u32]| shape.iter().fold(1, |all: u64, side| all.saturating_mul(u64::from(*side)));
    let sides = |shape: &[u32]| shape.iter().copied().filter(|side| *side != 1).collect::<Vec<_>>();
    let is_flat = is.len() == 1 || wanted.len() == 1;
    values(is) == values(wanted) && (is_flat || sides(is) == sides(wanted))
}

/// Why the data can't be read, and by which flag another array or a tokenizer is named.
fn unread(error: IngestError) -> Failure {
    match &error {
        IngestError::Data { problem: Problem::NoArray { key: "features", .. }, .. } => {
            Failure::call(format!("{}; `--features` names another", error_chain(&error)))
        }
        IngestError::Data { problem: Problem::TokensForBytes(_), .. } => Failure::call(format!(
            "{}; `--tokenizer` names the file of the tokenizer that it was trained with",
            error_chain(&error)
        )),
        _ => ingest_failure(error),
    }
}

fn remark_ignored(ignored: &[String]) {
    if ignored.is_empty() {
        return;
    }
    let names = ignored.iter().take(5).map(|name| format!("`{name}`"));
    let names = names.collect::<Vec<_>>().join(", ");
    let more = if ignored.len() > 5 { ", ..." } else { "" };
    let columns = text::counted(to_u64(ignored.len()), "column");
    output::remark(&format!("{columns} ignored: {names}{more}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_rows_fit_by_their_numbers_and_others_by_their_sides() {
        assert!(fits(&[1, 28, 28], &[784]), "a model of flattened images, on images");
        assert!(fits(&[784], &[1, 28, 28]) && fits(&[1, 28, 28], &[28, 28]));
        assert!(!fits(&[28, 28, 3], &[3, 28, 28]) && !fits(&[783], &[1, 28, 28]));
        assert!(!fits(&[u32::MAX, u32::MAX, u32::MAX, 0], &[1]));
    }
}
