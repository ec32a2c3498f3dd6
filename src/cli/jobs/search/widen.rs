//! Another range of a dimension, as a job file writes it.

use serde_json::{Map, Value};
use sojourn_protocol::{
    api::Space,
    jobfile,
    spec::{JobSpec, ModelSpace},
    trial_name::last_word,
};

/// The space of a job with these dimensions instead of its own: `lr = { log_uniform = [1e-5, 1e-1] }`.
///
/// # Errors
/// What is wrong with one of them, for people.
pub(super) fn space(spec: &JobSpec, dimensions: &[String]) -> Result<Space, String> {
    let unreadable = |_| "the job's space can't be read".to_owned();
    let mut json = Map::new();
    let models = serde_json::to_value(&spec.models).map_err(unreadable)?;
    json.insert("models".into(), models);
    json.insert("training".into(), serde_json::to_value(&spec.training).map_err(unreadable)?);
    let mut json = Value::Object(json);
    for dimension in dimensions {
        let (name, value) = dimension.split_once('=').ok_or_else(|| {
            format!(
                "`{dimension}`: a key and its values are wanted: lr = {{ choice = [0.1, 0.2] }}"
            )
        })?;
        let (name, value) = (name.trim(), value.trim());
        let pointer = find(&json, name)?;
        let read = read(spec, &pointer, value).map_err(|why| format!("`{dimension}`: {why}"))?;
        if let Some(place) = json.pointer_mut(&pointer) {
            *place = read;
        }
    }
    serde_json::from_value(json).map_err(|why| format!("the space can't be: {why}"))
}

/// The place of a dimension: by its name, or the last word of that where there is one such.
fn find(space: &Value, name: &str) -> Result<String, String> {
    let mut places = Vec::new();
    walk("", space, &mut places);
    let called = |place: &String| {
        let dotted = place.trim_start_matches('/').replace('/', ".");
        match dotted.strip_prefix("models.") {
            Some(rest) => match rest.split_once('.') {
                Some((table, key)) => format!("model[{table}].{key}"),
                None => dotted.clone(),
            },
            None => dotted,
        }
    };
    let exact = places.iter().find(|place| called(place) == name);
    let found: Vec<&String> = match exact {
        Some(place) => vec![place],
        None => places.iter().filter(|place| last_word(&called(place)) == name).collect(),
    };
    match found.as_slice() {
        [place] => Ok((*place).clone()),
        [] => {
            let known: Vec<String> =
                places.iter().map(|place| format!("`{}`", called(place))).collect();
            Err(format!("`{name}` is no setting of this job; there are {}", known.join(", ")))
        }
        several => {
            let known: Vec<String> =
                several.iter().map(|place| format!("`{}`", called(place))).collect();
            Err(format!("`{name}` may be {}: write it out", known.join(" or ")))
        }
    }
}

/// Places of dimensions: objects with one of their forms.
fn walk(at: &str, value: &Value, places: &mut Vec<String>) {
    const FORMS: [&str; 4] = ["fixed", "choice", "range", "normal"];
    match value {
        Value::Object(fields) => {
            let mut keys = fields.keys();
            if fields.len() == 1 && keys.next().is_some_and(|key| FORMS.contains(&key.as_str())) {
                places.push(at.to_owned());
                return;
            }
            for (key, value) in fields {
                walk(&format!("{at}/{key}"), value, places);
            }
        }
        Value::Array(entries) => {
            for (n, value) in entries.iter().enumerate() {
                walk(&format!("{at}/{n}"), value, places);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The dimension at a place that a job file's text says: read as part of a small job.
fn read(spec: &JobSpec, pointer: &str, text: &str) -> Result<Value, String> {
    let mut parts = pointer.trim_start_matches('/').split('/');
    let section = parts.next().unwrap_or_default();
    let (table, keys): (usize, Vec<&str>) = match section {
        "models" => (parts.next().and_then(|n| n.parse().ok()).unwrap_or(0), parts.collect()),
        _ => (0, parts.collect()),
    };
    let arch = match spec.models.get(table) {
        Some(ModelSpace::Cnn(_)) => "arch = \"cnn\"\nchannels = [1]",
        Some(ModelSpace::Resnet(_)) => "arch = \"resnet\"",
        Some(ModelSpace::Mlp(_) | ModelSpace::Graph(_)) | None => "arch = \"mlp\"\nhidden = [1]",
    };
    let key = keys.join(".");
    let (of_model, of_training) = match section {
        "models" => (format!("{key} = {text}\n"), String::new()),
        _ => (String::new(), format!("{key} = {text}\n")),
    };
    let arch = match of_model.split_once(" = ") {
        // A table has a key once.
        Some((own, _)) => {
            let others = arch.lines().filter(|line| !line.starts_with(&format!("{own} =")));
            others.collect::<Vec<_>>().join("\n")
        }
        None => arch.to_owned(),
    };
    let optimizer =
        if of_training.starts_with("optimizer.") && !of_training.starts_with("optimizer.name") {
            "optimizer.name = \"sgd\"\n"
        } else {
            ""
        };
    let schedule =
        if of_training.starts_with("schedule.") && !of_training.starts_with("schedule.name") {
            "schedule.name = \"cosine\"\n"
        } else {
            ""
        };
    let file = format!(
        "name = \"x\"\n[data]\ntrain = \"x.csv\"\nlabel = \"y\"\n[[model]]\n{arch}\n{of_model}[training]\nepochs = {}\n{optimizer}{schedule}{of_training}[search]\nmethod = \"random\"\ntrials = 1\n",
        spec.training.epochs
    );
    let small = jobfile::parse(&file).map_err(|error| plain(&error.to_string()))?;
    let json = match section {
        "models" => serde_json::to_value(small.models.first()),
        _ => serde_json::to_value(&small.training),
    };
    let inner = keys.iter().fold(String::new(), |all, key| format!("{all}/{key}"));
    let found = json.ok().and_then(|json| json.pointer(&inner).cloned());
    found.ok_or_else(|| "this setting can't be searched".to_owned())
}

/// A problem without the line of the small job.
fn plain(problem: &str) -> String {
    let lines = problem.lines().map(|line| match line.split_once(": ") {
        Some((number, rest)) if number.trim().parse::<u32>().is_ok() => rest.to_owned(),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = { choice = [[4], [8]] }\ndropout = { uniform = [0.0, 0.5] }\n[training]\nepochs = 3\nbatch_size = 8\noptimizer = { name = \"adam\", lr = { log_uniform = [1e-4, 1e-2] } }\n[search]\nmethod = \"random\"\ntrials = 4\n";

    fn widened(dimensions: &[&str]) -> Result<Space, String> {
        let dimensions: Vec<String> = dimensions.iter().map(|one| (*one).to_owned()).collect();
        space(&jobfile::parse(JOB).unwrap(), &dimensions)
    }

    #[test]
    fn dimensions_are_those_of_the_job_file_that_says_them() {
        let expected = JOB
            .replace("[1e-4, 1e-2]", "[1e-5, 1e-1]")
            .replace("batch_size = 8", "batch_size = { choice = [8, 16] }")
            .replace("choice = [[4], [8]]", "choice = [[4], [16, 8]]");
        let expected = jobfile::parse(&expected).unwrap();
        let space = widened(&[
            "lr = { log_uniform = [1e-5, 1e-1] }",
            "training.batch_size = { choice = [8, 16] }",
            "model[0].hidden = { choice = [[4], [16, 8]] }",
        ]);
        let space = space.unwrap();
        assert_eq!((space.models, space.training), (expected.models, expected.training));
    }

    #[test]
    fn what_can_not_be_is_told_without_a_line_of_another_file() {
        for (dimension, told) in [
            ("rate = { uniform = [0, 1] }", "`rate` is no setting of this job; there are"),
            ("lr = { uniform = [1, 0] }", "has its low end 1 above its high end 0"),
            ("lr { }", "a key and its values are wanted"),
            ("lr = { unifrom = [0, 1] }", "did you mean `uniform`?"),
        ] {
            let why = widened(&[dimension]).unwrap_err();
            assert!(why.contains(told), "{dimension}: {why}");
            assert!(!why.contains("line "), "{why}");
        }
    }
}
