//! A new job over the data of an earlier one, or over files that the browser sends: a job file that is dropped or written, checked
//! as one types.

use crate::frame;
use maud::{Markup, html};
use sojourn_protocol::{figures, ids::JobId, quantity::to_u64, view::JobView};

/// The result of checking a job file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// The problems of the job file, each with its line where there is one. None: it can be submitted.
    pub problems: Vec<(Option<usize>, String)>,
    /// The plan of what would run, a line each.
    pub plan: Vec<String>,
    /// Where the browser is to send the data: the keys that name files or folders, and what they name.
    pub files: Vec<(&'static str, String)>,
}

/// The data that is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataOf {
    /// The data of an earlier job.
    Job(JobId),
    /// Files that the browser sends.
    Files,
}

/// Characters of a job's name in the form's choice.
const NAME_CHARS: usize = 60;

/// The value of the form's choice that stands for files.
pub const FILES: &str = "files";

/// How far a job over files is that have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Making {
    /// The job's files are still coming.
    Receiving,
    /// The data of another job is being read.
    Waiting,
    /// The job's data is being read.
    Reading {
        /// Bytes that were read.
        bytes: u64,
        /// Bytes to read, over all passes.
        of: u64,
    },
    /// The job's shards go into the store.
    Storing {
        /// Bytes that are there.
        bytes: u64,
        /// Bytes of all.
        of: u64,
    },
}

/// A job file for files that have come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drafted<'a> {
    /// The job file.
    pub text: &'a str,
    /// The column of the labels, where the data is a table.
    pub label: Option<&'a str>,
    /// Each column of a table.
    pub columns: Vec<Column<'a>>,
    /// The guesses, and which line changes each.
    pub remarks: &'a [String],
}

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column<'a> {
    /// The column's name.
    pub name: &'a str,
    /// The contents, in a few words.
    pub holds: &'a str,
    /// The use that is made of it, in a few words.
    pub taken: &'a str,
}

/// The page. `data`: what is chosen; `takes_files`: whether this viewer may send files; `checked`: what was found, where the file was
/// sent.
#[must_use]
pub fn page(
    jobs: &[JobView],
    data: Option<DataOf>,
    takes_files: bool,
    text: &str,
    checked: Option<&Checked>,
) -> Markup {
    let sends = takes_files && (jobs.is_empty() || data == Some(DataOf::Files));
    let content = html! {
        h1 { "New job" }
        @if jobs.is_empty() && !takes_files {
            p.hint { "A job here uses the data of an earlier one, and there is none yet: " code { "sojourn submit job.toml" } " starts the first." }
        } @else {
            form #new .stack method="post" action="/jobs/new" {
                label for="over" { "Data" }
                select #over name="over" {
                    @if takes_files { option value=(FILES) selected[sends] { "new data" } }
                    @for job in jobs.iter().rev() {
                        option value=(job.job) selected[data == Some(DataOf::Job(job.job)) || (data.is_none() && jobs.last() == Some(job))] {
                            "of job " (job.job) ": " (shortened(&job.name))
                        }
                    }
                }
                @if takes_files {
                    (files(sends))
                    div #drafted role="status" {}
                }
                label for="text" { "Job file" }
                // Problems stand beside the file, or above it on a phone, so that they are seen as one types.
                div.editor {
                    textarea #text name="text" rows="24" spellcheck="false" required aria-describedby="hint" placeholder=(PLACEHOLDER) { (text) }
                    div #checked role="status" { @if let Some(checked) = checked { (result(checked)) } }
                }
                p #hint .hint {
                    "Drop a " code { "job.toml" } " here or write one. Over the data of a job it gets the same shards, and what the file says in "
                    code { "[data]" } " isn't used."
                }
                div.buttons {
                    button { "Submit" }
                    label { input type="checkbox" name="again" value="true"; " also if the same job is there" }
                }
            }
        }
    };
    frame::with_script("New job", "/", &content, "new.js")
}

/// The beginning of a long name: a choice of it is no wider than a phone.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()),
        None => name.to_owned(),
    }
}

/// Where files are chosen.
fn files(are_shown: bool) -> Markup {
    html! {
        div #files .stack hidden[!are_shown] {
            label for="chosen" { "Files of the data" }
            input #chosen type="file" multiple;
            label for="folder" { "Or a folder of them" }
            input #folder type="file" webkitdirectory;
            p #taken .hint { "Drop files here or choose them. What the job file names in " code { "[data]" } " must be among them, unless the server fetches it from a URL." }
            p { button #draft type="button" disabled { "Write a job file for them" } }
        }
    }
}

const PLACEHOLDER: &str = "name = \"digits\"\n\n[data]\ntrain = \"digits.csv\"\nlabel = \"digit\"\n\n[[model]]\narch = \"mlp\"\nhidden = { choice = [[64], [128]] }\n\n[training]\nepochs = 10\n\n[search]\nmethod = \"grid\"";

/// The answer that the page shows of a checked job file.
#[must_use]
pub fn result(checked: &Checked) -> Markup {
    html! {
        @if checked.problems.is_empty() {
            p { strong.good { "It can be submitted." } }
            ul.plan {
                @for line in &checked.plan { li { (line) } }
                @for (key, path) in &checked.files { li data-file=(path) { code { (key) } ": " code { (path) } span.hint { } } }
            }
        } @else {
            p { strong.error { (figures::counted(to_u64(checked.problems.len()), "problem")) } }
            ul.problems {
                @for (line, message) in &checked.problems {
                    li { @if let Some(line) = line { button.plain type="button" data-line=(line) { "line " (line) } " " } (message) }
                }
            }
        }
    }
}

/// The answer that the page shows of a job file that was written. The script takes the file from `data-text`, and asks for another where
/// another column is chosen.
#[must_use]
pub fn drafted(drafted: &Drafted<'_>) -> Markup {
    html! {
        @if let Some(label) = drafted.label {
            p {
                label for="label" { "Column of the labels" } " "
                select #label {
                    @for column in drafted.columns.iter().filter(|column| !column.name.is_empty()) {
                        option value=(column.name) selected[column.name == label] { (column.name) }
                    }
                }
            }
        }
        @if !drafted.columns.is_empty() {
            div.wide {
                table {
                    thead { tr { th { "Column" } th { "Holds" } th { "Taken as" } } }
                    tbody {
                        @for column in &drafted.columns {
                            tr { th scope="row" { (column.name) } td { (column.holds) } td { (column.taken) } }
                        }
                    }
                }
            }
        }
        @if !drafted.remarks.is_empty() {
            ul.plan { @for remark in drafted.remarks { li { (remark) } } }
        }
        p.hint data-text=(drafted.text) { "The job file is below: read it, change what you know better, submit it." }
    }
}

/// How far a job is. The script asks again as long as it finds `data-making`.
#[must_use]
pub fn making(making: Making) -> Markup {
    let (said, done) = match making {
        Making::Receiving => ("Files are coming.", None),
        Making::Waiting => ("Waiting until the data of another job is read.", None),
        Making::Reading { bytes, of } => ("Reading the data", Some((bytes, of))),
        Making::Storing { bytes, of } => ("Storing the shards", Some((bytes, of))),
    };
    html! {
        p data-making {
            @if let Some((bytes, of)) = done { progress value=(bytes) max=(of.max(1)) aria-label=(said) { } " " }
            (said)
        }
    }
}

/// The job that was made. The script leads to it.
#[must_use]
pub fn made(job: JobId) -> Markup {
    html! { p { a.made href={ "/jobs/" (job) } { "Job " (job) } " has begun." } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> JobView {
        serde_json::from_str(include_str!("../tests/job.json")).unwrap()
    }

    #[test]
    fn problems_are_shown_with_their_lines_and_as_text() {
        let problems = vec![(Some(3), "`a` <b>".to_owned()), (None, "no trial".to_owned())];
        let text = result(&Checked { problems, ..Checked::default() }).into_string();
        assert!(text.contains("2 problems") && text.contains("data-line=\"3\""), "{text}");
        assert!(text.contains("&lt;b&gt;") && !text.contains("can be submitted"), "{text}");
        let plan = vec!["4 trials".to_owned()];
        let files = vec![("data.train", "a\" b<.csv".to_owned())];
        let text = result(&Checked { problems: Vec::new(), plan, files }).into_string();
        assert!(text.contains("can be submitted") && text.contains("4 trials"), "{text}");
        assert!(text.contains("data-file=\"a&quot; b&lt;.csv\""), "{text}");
    }

    #[test]
    fn a_file_is_shown_as_it_was_sent() {
        let sent = "name = \"</textarea><script>\"";
        let over = Some(DataOf::Job(JobId(1)));
        let text = page(&[job()], over, false, sent, None).into_string();
        assert!(
            text.contains("&lt;/textarea&gt;&lt;script&gt;")
                && !text.contains("</textarea><script>"),
            "{text}"
        );
        assert!(text.contains("selected") && text.contains("/assets/new.js"), "{text}");
    }

    #[test]
    fn files_can_be_chosen_by_whoever_may_send_some() {
        let shown = |jobs: &[JobView], data, takes| page(jobs, data, takes, "", None).into_string();
        assert!(shown(&[], None, false).contains("there is none yet"));
        assert!(!shown(&[job()], None, false).contains("type=\"file\""));
        let first = shown(&[], None, true);
        assert!(first.contains("type=\"file\"") && !first.contains("hidden>"), "{first}");
        // The data of a job comes first where there is one.
        let later = shown(&[job()], None, true);
        assert!(
            later.contains("id=\"files\" hidden") && later.contains("value=\"1\" selected"),
            "{later}"
        );
        let chosen = shown(&[job()], Some(DataOf::Files), true);
        assert!(
            chosen.contains("value=\"files\" selected") && !chosen.contains("value=\"1\" selected"),
            "{chosen}"
        );
    }

    #[test]
    fn a_job_that_is_being_made_is_asked_for_until_it_is_there() {
        let reading = making(Making::Reading { bytes: 5, of: 9 }).into_string();
        assert!(
            reading.contains("data-making") && reading.contains("value=\"5\" max=\"9\""),
            "{reading}"
        );
        let made = made(JobId(7)).into_string();
        assert!(made.contains("href=\"/jobs/7\"") && !made.contains("data-making"), "{made}");
    }
}
