//! A new job over the data of an earlier one: a job file that is dropped or written, checked as one types.

use crate::frame;
use maud::{Markup, html};
use sojourn_protocol::{figures, ids::JobId, quantity::to_u64, view::JobView};

/// What is known of a job file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// What is wrong with it, each with its line where there is one. None: it can be submitted.
    pub problems: Vec<(Option<usize>, String)>,
    /// What would run, a line each.
    pub plan: Vec<String>,
}

/// The page. `over`: the job whose data is chosen; `checked`: what was found, where the file was sent.
#[must_use]
pub fn page(
    jobs: &[JobView],
    over: Option<JobId>,
    text: &str,
    checked: Option<&Checked>,
) -> Markup {
    let content = html! {
        h1 { "New job" }
        @if jobs.is_empty() {
            p.hint { "A job here uses the data of an earlier one, and there is none yet: " code { "sojourn submit job.toml" } " starts the first." }
        } @else {
            form #new .stack method="post" action="/jobs/new" {
                label for="over" { "Data of" }
                select #over name="over" {
                    @for job in jobs.iter().rev() {
                        option value=(job.job) selected[over == Some(job.job)] { "job " (job.job) ": " (job.name) }
                    }
                }
                label for="text" { "Job file" }
                textarea #text name="text" rows="24" spellcheck="false" required aria-describedby="hint" placeholder=(PLACEHOLDER) { (text) }
                p #hint .hint {
                    "Drop a " code { "job.toml" } " here or write one. The data is that job's, in the same shards: what the file says in "
                    code { "[data]" } " isn't used."
                }
                div #checked role="status" { @if let Some(checked) = checked { (result(checked)) } }
                div.buttons {
                    button { "Submit" }
                    label { input type="checkbox" name="again" value="true"; " also if the same job is there" }
                }
            }
        }
    };
    frame::with_script("New job", "/", &content, "new.js")
}

const PLACEHOLDER: &str = "name = \"digits\"\n\n[[model]]\narch = \"mlp\"\nhidden = { choice = [[64], [128]] }\n\n[training]\nepochs = 10\n\n[search]\nmethod = \"grid\"";

/// What was found in a job file.
#[must_use]
pub fn result(checked: &Checked) -> Markup {
    html! {
        @if checked.problems.is_empty() {
            p { strong.good { "It can be submitted." } }
            ul.plan { @for line in &checked.plan { li { (line) } } }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_shown_with_their_lines_and_as_text() {
        let problems = vec![(Some(3), "`a` <b>".to_owned()), (None, "no trial".to_owned())];
        let text = result(&Checked { problems, plan: Vec::new() }).into_string();
        assert!(text.contains("2 problems") && text.contains("data-line=\"3\""), "{text}");
        assert!(text.contains("&lt;b&gt;") && !text.contains("can be submitted"), "{text}");
        let plan = vec!["4 trials".to_owned()];
        let text = result(&Checked { problems: Vec::new(), plan }).into_string();
        assert!(text.contains("can be submitted") && text.contains("4 trials"), "{text}");
    }

    #[test]
    fn a_file_is_shown_as_it_was_sent() {
        let job: JobView = serde_json::from_str(include_str!("../tests/job.json")).unwrap();
        let text =
            page(&[job], Some(JobId(1)), "name = \"</textarea><script>\"", None).into_string();
        assert!(
            text.contains("&lt;/textarea&gt;&lt;script&gt;")
                && !text.contains("</textarea><script>"),
            "{text}"
        );
        assert!(text.contains("selected") && text.contains("/assets/new.js"), "{text}");
        assert!(page(&[], None, "", None).into_string().contains("there is none yet"));
    }
}
