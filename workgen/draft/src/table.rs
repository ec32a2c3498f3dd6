//! A job over a table.

use crate::{
    Draft, Wishes,
    columns::{Taken, TakenColumn, sign, take},
    job::{JobText, Length, patience},
    label::{LabelKind, guess, kind},
    notation::{Reading, odd_words},
    number::{key, quoted},
};
use sojourn_ingest::{ColumnProfile, TableProfile};
use sojourn_protocol::figures::{count, counted};
use sojourn_protocol::spec::{Separator, TextEncoding};

/// The words that mean a missing value unless a job says others.
const USUAL_MISSING: [&str; 6] = ["NA", "N/A", "NaN", "null", "?", "None"];

/// A job leaves out what can't be read where that is one of so many rows at most.
const MOST_SKIPPED: u64 = 20;

/// Makes a job file for a table.
pub(crate) fn draft(table: &TableProfile, wishes: Wishes<'_>) -> Result<Draft, Vec<String>> {
    if let Some(line) = table.names_below_title {
        return Err(vec![format!(
            "line {line} seems to have the names of the columns, and the lines above it a title; leave these out: `tail -n +{line} FILE > NEW_FILE`"
        )]);
    }
    let reading = Reading::of(table);
    let mut problems = problems(table);
    let guessed = match wishes.label {
        Some(_) => None,
        None => guess(table),
    };
    let wanted = wishes.label.or(guessed.as_ref().map(|guess| guess.column.as_str()));
    let label = wanted.and_then(|name| table.columns.iter().find(|column| column.name == name));
    let label = match (label, wanted) {
        (Some(label), _) => match kind(label, &reading) {
            Ok(found) => Some((label, wishes.labels.unwrap_or(found))),
            Err(why) => {
                let sign = sign(label, table.format);
                problems.push(sign.map_or(why, |because| format!("`{}`: {because}", label.name)));
                None
            }
        },
        (None, Some(wanted)) => {
            let names: Vec<&str> =
                table.columns.iter().map(|column| column.name.as_str()).collect();
            problems
                .push(format!("there is no column `{wanted}`; there are `{}`", names.join("`, `")));
            None
        }
        (None, None) => {
            problems.push("no column can be the label: `--label` names one".to_owned());
            None
        }
    };
    let Some((label, labels)) = label else { return Err(problems) };
    let are_numbers =
        reading.numbers(label) == label.values || odd_words(label, &reading).is_some();
    if labels == LabelKind::Numbers && !are_numbers {
        let odd = label.odd.first().map_or("", |odd| odd.field.as_str());
        problems.push(format!(
            "labels that are numbers were asked for, and `{}` has words such as `{odd}`",
            label.name
        ));
    }
    let columns = take(table, &reading, (&label.name, labels));
    if !columns.iter().any(|column| column.taken.is_feature()) {
        problems.push("no column is left that a model could learn from".to_owned());
        let signs = table.columns.iter().filter(|column| column.name != label.name);
        let signs = signs.filter_map(|column| Some((&column.name, sign(column, table.format)?)));
        problems.extend(signs.map(|(name, because)| format!("`{name}`: {because}")));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let remarks = remarks(table, &reading, &columns, (label, labels));
    let job = job(table, &reading, &columns, (label, labels), wishes);
    Ok(Draft { job, files: Vec::new(), label: guessed, columns, remarks })
}

/// The reasons for which a table can't be read, whatever its columns are taken for.
fn problems(table: &TableProfile) -> Vec<String> {
    let mut problems = Vec::new();
    if table.rows < 8 {
        problems.push(format!("{} are too few to train on", counted(table.rows, "row")));
    }
    if table.columns.len() < 2 {
        let separator = "a table has two columns or more: `--separator` says what separates them";
        problems.push(separator.to_owned());
    }
    if !table.odd_lines.are_none() && !are_few(table.odd_lines.count, table) {
        problems
            .push(format!("{}; `on_bad_row = \"skip\"` would leave them out", odd_lines(table)));
    }
    if table.has_header {
        let mut names: Vec<&str> =
            table.columns.iter().map(|column| column.name.as_str()).collect();
        names.retain(|name| !name.is_empty());
        names.sort_unstable();
        let twice = names.windows(2).find(|pair| pair.first() == pair.last());
        if let Some([name, ..]) = twice {
            problems.push(format!("two columns are called `{name}`"));
        }
    }
    problems
}

/// Are these so few of the rows that the job leaves them out?
fn are_few(count: u64, table: &TableProfile) -> bool {
    count.saturating_mul(MOST_SKIPPED) <= table.rows
}

/// The lines that are no rows.
fn odd_lines(table: &TableProfile) -> String {
    let lines = &table.odd_lines;
    let first = lines.first.iter().map(|odd| format!("line {} ({})", odd.line, odd.field));
    let first: Vec<String> = first.collect();
    format!("{} that can't be read: {}", counted(lines.count, "line"), first.join(", "))
}

/// The first lines of the fields that are no numbers as the others of their columns are.
fn strays(columns: &[TakenColumn]) -> Option<String> {
    let stray = columns.iter().filter(|column| column.strays > 0);
    let told: Vec<String> = stray
        .map(|column| format!("{} of `{}`", counted(column.strays, "field"), column.column))
        .collect();
    (!told.is_empty()).then(|| format!("{} not written as the others", told.join(", ")))
}

/// Everything that was guessed, and the line that changes it.
fn remarks(
    table: &TableProfile,
    reading: &Reading,
    columns: &[TakenColumn],
    (label, labels): (&ColumnProfile, LabelKind),
) -> Vec<String> {
    let mut remarks = Vec::new();
    if !table.has_header {
        remarks.push(
            "the first line was taken for a row: columns are named by their positions, and `header = [\"a\", ...]` names them"
                .to_owned(),
        );
    }
    let lines = (!table.odd_lines.are_none()).then(|| odd_lines(table));
    for what in lines.into_iter().chain(strays(columns)) {
        remarks.push(format!("{what}: `on_bad_row = \"skip\"` leaves such rows out"));
    }
    match table.encoding {
        TextEncoding::Utf8 => {}
        TextEncoding::Utf16 => {
            remarks.push("the text is UTF-16, by its byte order mark".to_owned())
        }
        TextEncoding::Windows1252 | TextEncoding::Latin1 => remarks.push(format!(
            "the text isn't UTF-8 and was taken for {}: `encoding` says otherwise",
            table.encoding.text()
        )),
    }
    if let Some(other) = reading.other {
        let sign = |notation: sojourn_protocol::spec::Notation| match notation.thousands {
            Some(_) => "`1,234` was taken for a thousand and more",
            None => "`1,234` was taken for one and a fraction",
        };
        let key = match other.thousands {
            Some(_) => "`thousands = \",\"`",
            None => "`decimal = \",\"`",
        };
        remarks.push(format!("{}: {key} in its place says otherwise", sign(reading.notation)));
    }
    let unlabelled = match odd_words(label, reading) {
        Some(_) => label.missing + label.values - reading.numbers(label),
        None => label.missing,
    };
    if unlabelled > 0 {
        remarks.push(format!(
            "{} without a label are left out; `missing_values` says which words mean that",
            counted(unlabelled, "row")
        ));
    }
    if labels == LabelKind::Classes && reading.numbers(label) == label.values {
        remarks.push(format!(
            "`{}` was taken for {} classes; `loss = \"mse\"` with `metric = \"valid/rmse\"` predicts it as a number (`--labels numbers` writes both)",
            label.name,
            label.different().map_or_else(|| "many".to_owned(), |classes| count(classes as u64))
        ));
    }
    if labels == LabelKind::Classes
        && let Some(because) = sign(label, table.format)
    {
        remarks.push(format!("`{}` was taken for classes; {because}", label.name));
    }
    let left_out: Vec<&TakenColumn> =
        columns.iter().filter(|column| column.taken == Taken::LeftOut).collect();
    let many =
        left_out.iter().find(|column| column.because.ends_with("different words are too many"));
    if let Some(column) = many {
        remarks.push(format!(
            "`{}` was left out; a line such as `categories = {{ {} = \"ordinal\" }}` takes its words by number",
            column.column,
            key(&column.column)
        ));
    }
    remarks
}

fn job(
    table: &TableProfile,
    reading: &Reading,
    columns: &[TakenColumn],
    (label, labels): (&ColumnProfile, LabelKind),
    wishes: Wishes<'_>,
) -> String {
    let mut job = JobText::new(wishes.name);
    job.section("[data]");
    job.line(format_args!("train = {}", quoted(wishes.train)));
    job.line(format_args!("label = {}", quoted(&label.name)));
    if let Some(separator) = table.separator.filter(|separator| *separator != Separator::Comma) {
        job.line(format_args!("separator = {}", quoted(separator.text())));
    }
    if table.encoding != TextEncoding::Utf8 {
        job.line(format_args!("encoding = {}", quoted(table.encoding.text())));
    }
    if !table.has_header {
        job.line(format_args!("header = false                 # columns are called 1, 2, ...; or their names: [\"a\", \"b\"]"));
    }
    if !table.odd_lines.are_none() || strays(columns).is_some() {
        job.line(format_args!("on_bad_row = \"skip\"           # a few rows can't be read"));
    }
    if reading.notation.decimal != Default::default() {
        job.line(format_args!("decimal = {}", quoted(reading.notation.decimal.text())));
    }
    if let Some(thousands) = reading.notation.thousands {
        job.line(format_args!("thousands = {}", quoted(thousands.text())));
    }
    let left_out = columns.iter().filter(|column| column.taken == Taken::LeftOut);
    let left_out: Vec<&TakenColumn> = left_out.collect();
    if !left_out.is_empty() {
        job.comment("Columns that are left out; those of which a model can learn may come back.");
        job.line(format_args!("columns = {{ drop = ["));
        for column in left_out {
            let named = match column.position {
                Some(position) => format!("{position},"),
                None => format!("{},", quoted(&column.column)),
            };
            job.line(format_args!("    {named:<30} # {}", column.because));
        }
        job.line(format_args!("] }}"));
    }
    let words = columns.iter().filter(|column| column.taken == Taken::OneHot);
    let words: Vec<String> =
        words.map(|column| format!("{} = \"one-hot\"", key(&column.column))).collect();
    if !words.is_empty() {
        job.comment(
            "Columns of words: a feature for each word, or its place in their order (\"ordinal\").",
        );
        job.line(format_args!("categories = {{ {} }}", words.join(", ")));
    }
    let dates = columns.iter().filter(|column| column.taken == Taken::Dates);
    let dates: Vec<String> =
        dates.map(|column| format!("{} = \"parts\"", key(&column.column))).collect();
    if !dates.is_empty() {
        job.comment(
            "Columns of dates: features for year, month, day, weekday and hour, or the days since 1970 (\"days\").",
        );
        job.line(format_args!("dates = {{ {} }}", dates.join(", ")));
    }
    let features = || columns.iter().filter(|column| column.taken.is_feature());
    if features().any(|column| column.missing > 0) {
        job.line(format_args!("missing = \"mean\"               # or \"drop-row\", \"zero\""));
    }
    let odd: std::collections::BTreeSet<&str> =
        columns.iter().flat_map(|column| column.odd_words.iter().map(String::as_str)).collect();
    if !odd.is_empty() {
        let usual = USUAL_MISSING.into_iter().filter(|word| !odd.contains(word));
        let words: Vec<String> = usual.chain(odd.iter().copied()).map(quoted).collect();
        job.line(format_args!("missing_values = [{}]", words.join(", ")));
    }
    job.line(format_args!(
        "scale = \"standard\"             # each feature gets mean 0 and deviation 1"
    ));
    let rows = table.rows.saturating_sub(label.missing);
    job.line(format_args!(
        "valid = 0.2                    # a share of the rows, by which trials are compared"
    ));
    models(&mut job, rows, labels);
    job.finish()
}

/// Rows from which networks of some size are tried.
const ROWS_OF_NETWORKS: u64 = 400;

/// A small grid over a linear model and a network. Each more that is tried is one more that may seem good by the validation rows.
pub(crate) fn models(job: &mut JobText, rows: u64, labels: LabelKind) {
    let length = Length::of(rows);
    job.line(format_args!(
        "\n# Without a hidden layer: {} regression.\n[[model]]\narch = \"mlp\"\nhidden = []",
        match labels {
            LabelKind::Classes => "logistic",
            LabelKind::Numbers => "linear",
        }
    ));
    let optimizer = if rows < ROWS_OF_NETWORKS {
        job.line(format_args!("\n# Small, since a larger one learns so few rows by heart.\n[[model]]\narch = \"mlp\"\nhidden = [16]\ndropout = 0.5"));
        "name = \"adam\", lr = 0.02, weight_decay = { choice = [0.003, 0.01] }"
    } else {
        job.line(format_args!(
            "\n# A network; larger ones, such as [128, 64], may find more where there are many rows.\n[[model]]\narch = \"mlp\"\nhidden = [64]\ndropout = 0.2"
        ));
        "name = \"adam\", lr = { choice = [0.003, 0.02] }, weight_decay = { choice = [0.0003, 0.003] }"
    };
    training(job, length, labels, optimizer);
    search(job, length, labels);
}

pub(crate) fn training(job: &mut JobText, length: Length, labels: LabelKind, optimizer: &str) {
    let Length { batch_size, epochs, passes, .. } = length;
    job.section("[training]");
    job.line(format_args!("epochs = {epochs}"));
    if passes > 1 {
        job.line(format_args!(
            "local_epochs = {passes}               # passes over the rows in each epoch, which ends with an evaluation"
        ));
    }
    job.line(format_args!("batch_size = {batch_size}"));
    if labels == LabelKind::Numbers {
        job.line(format_args!("loss = \"mse\"                   # labels are numbers"));
    }
    job.line(format_args!("optimizer = {{ {optimizer} }}"));
    job.line(format_args!(
        "schedule = {{ name = \"cosine\", floor = 0.01 }}  # the learning rate falls, so that the last epochs settle"
    ));
}

pub(crate) fn search(job: &mut JobText, length: Length, labels: LabelKind) {
    job.section("[search]");
    job.line(format_args!(
        "method = \"grid\"                # every combination of the choices above"
    ));
    job.line(format_args!(
        "metric = {}",
        match labels {
            // Few rows tell models apart by their probabilities, and hardly by the number of right ones.
            LabelKind::Classes if length.is_of_few_rows() => {
                "\"valid/loss\"          # of few rows it tells more than \"valid/accuracy\""
            }
            LabelKind::Classes => "\"valid/accuracy\"",
            LabelKind::Numbers => "\"valid/rmse\"",
        }
    ));
    if let Some(epochs) = patience(length) {
        job.comment("A trial ends that hasn't got better for some epochs.");
        job.line(format_args!("stopping = {{ rule = \"patience\", epochs = {epochs} }}"));
    }
}
