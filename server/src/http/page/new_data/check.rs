//! Checks the file of a job over data that a browser sends, or that lies at a URL, before any data is there.

use super::super::new_job::{at_lines, needs_command};
use crate::{data_uploads::path_below, data_urls::DataUrl};
use sojourn_page::new_job::Checked;
use sojourn_protocol::{
    bounds::Bounded,
    figures, jobfile,
    quantity::{to_u64, to_usize},
    spec::{DataSpec, JobSpec, Split},
};
use sojourn_workgen::{SearchError, search::preview};

/// The check of a job file over data that a browser is to send, or that lies at one of these URLs: its problems, or what would
/// run and which files it names.
pub(in crate::http::page) fn check(text: &str, urls: &[DataUrl]) -> Checked {
    let problems = |problems| Checked { problems, ..Checked::default() };
    let spec = jobfile::parse_with(text, &mut |_| {
        Err("is read by `sojourn submit` alone: leave it out here".to_owned())
    });
    let spec = match spec {
        Ok(spec) => spec,
        Err(error) => return problems(at_lines(&error)),
    };
    if let Some(why) = needs_command(&spec) {
        return problems(vec![(None, why.to_owned())]);
    }
    let files = named_files(&spec.data);
    let is_url = |path: &str| urls.iter().any(|url| url.admits(path));
    let (fetched, files): (Vec<_>, Vec<_>) = files.into_iter().partition(|(_, path)| is_url(path));
    let wrong: Vec<_> = files.iter().filter_map(|(key, path)| refusal(key, path)).collect();
    if !wrong.is_empty() {
        return problems(wrong.into_iter().map(|why| (None, why)).collect());
    }
    // A file is no request, which is bounded as it is read. Without bounds a space may be larger than the memory.
    if let Err(error) = Bounded::new(&spec) {
        return problems(vec![(None, error.to_string())]);
    }
    match preview(&spec) {
        Err(error) => problems(vec![(None, error.to_string())]),
        Ok(searched) => {
            let mut plan = plan(&spec, to_u64(searched.trials.len()));
            let asked = spec.search.method.trials().unwrap_or(0);
            let short = searched.differ.map(to_usize);
            let short = short.map(|differ| SearchError::UsedUp { differ, asked }.to_string());
            plan.extend(short);
            plan.extend(fetched.into_iter().map(|(key, url)| format!("{key}: fetched from {url}")));
            let files = files.into_iter().map(|(key, path)| (key, path.to_owned())).collect();
            Checked { problems: Vec::new(), plan, files }
        }
    }
}

/// The paths of a job's data, each with the key that names it.
fn named_files(data: &DataSpec) -> Vec<(&'static str, &str)> {
    let mut files = vec![("data.train", data.train.as_str())];
    files.extend(data.labels.as_deref().map(|path| ("data.labels", path)));
    files.extend(data.tokenizer.as_deref().map(|path| ("data.tokenizer", path)));
    for (key, split) in [("data.valid", Some(&data.valid)), ("data.test", data.test.as_ref())] {
        match split {
            None | Some(Split::Ratio(_) | Split::Folds) => {}
            Some(Split::File(path)) => files.push((key, path)),
            Some(Split::Source(source)) => {
                files.push((key, &source.data));
                files.extend(source.labels.as_deref().map(|path| (key, path)));
            }
        }
    }
    files.sort_by_key(|(_, path)| *path);
    files.dedup_by_key(|(_, path)| *path);
    files
}

/// Why a path of a job's data can't be that of a file which a browser sends.
fn refusal(key: &str, path: &str) -> Option<String> {
    if path.contains("://") {
        return Some(format!(
            "`{key}` is a URL that this server may not fetch (`sojourn serve --data-urls`): `sojourn submit` does"
        ));
    }
    let why = path_below(path).err()?;
    Some(format!("`{key}` is `{path}`, which {why}: `sojourn submit` reads files anywhere"))
}

/// The plan of what would run, in words.
fn plan(spec: &JobSpec, trials: u64) -> Vec<String> {
    let begin = match trials {
        0 => "trials that a program suggests".to_owned(),
        trials => format!("{} to begin with", figures::counted(trials, "trial")),
    };
    let shards = match spec.data.shards {
        None => "as many shards as suit the hosts".to_owned(),
        Some(shards) => figures::counted(shards.into(), "shard"),
    };
    vec![
        format!("job `{}`", spec.name),
        begin,
        format!("{} of {shards}", figures::counted(spec.training.epochs.into(), "epoch")),
        format!("compared by {}", spec.search.metric.name()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\n\
                        arch = \"mlp\"\nhidden = [10]\n[training]\nepochs = 2\n";

    fn problem(text: &str) -> String {
        let checked = check(text, &[]);
        assert_eq!((checked.plan.len(), checked.files.len()), (0, 0));
        checked.problems.into_iter().map(|(_, why)| why).collect()
    }

    #[test]
    fn a_job_file_says_what_would_run_and_which_files_it_names() {
        let checked = check(FILE, &[]);
        assert_eq!(checked.problems, []);
        assert_eq!(checked.files, [("data.train", "t.csv".to_owned())]);
        assert!(checked.plan.iter().any(|line| line == "1 trial to begin with"), "{checked:?}");
        let split = FILE.replace("label", "valid = \"parts/v.csv\"\nlabel");
        let files = check(&split, &[]).files;
        assert_eq!(
            files.iter().map(|(_, path)| path.as_str()).collect::<Vec<_>>(),
            ["parts/v.csv", "t.csv"]
        );
    }

    #[test]
    fn what_reads_elsewhere_or_runs_code_is_left_to_the_command() {
        for path in ["../t.csv", "/etc/passwd", "~/t.csv", "a/../../t.csv", "./t.csv", "a//t.csv"] {
            let said = problem(&FILE.replace("t.csv", path));
            assert!(
                said.contains("`data.train`") && said.contains("`sojourn submit`"),
                "{path}: {said}"
            );
        }
        let at = |url: &str| FILE.replace("t.csv", url);
        let url = problem(&at("https://example.org/t.csv"));
        assert!(url.contains("is a URL"), "{url}");
        let urls = ["https://example.org/".parse().unwrap()];
        let fetched = check(&at("https://example.org/t.csv"), &urls);
        assert_eq!((fetched.problems.len(), fetched.files.len()), (0, 0), "{fetched:?}");
        assert!(
            fetched.plan.contains(&"data.train: fetched from https://example.org/t.csv".into())
        );
        assert_eq!(check(&at("https://example.com/t.csv"), &urls).problems.len(), 1);
        let valid = problem(&FILE.replace("label", "valid = \"/v.csv\"\nlabel"));
        assert!(valid.contains("`data.valid`"), "{valid}");
        let labels = FILE.replace("label = \"y\"", "labels = \"../y.npy\"");
        assert!(problem(&labels).contains("`data.labels`"));
        let graph = FILE.replace("\"mlp\"\nhidden = [10]", "\"graph\"\nentry = \"model.py:M\"");
        assert!(problem(&graph).contains("runs your code"), "{}", problem(&graph));
        let init = FILE.replace("hidden", "init = \"/etc/passwd\"\nhidden");
        assert!(problem(&init).contains("`sojourn submit` alone"), "{}", problem(&init));
    }
}
