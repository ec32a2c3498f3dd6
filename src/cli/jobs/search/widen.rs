//! Another range of a dimension, as a job file writes it.

use serde_json::{Map, Value};
use sojourn_protocol::{
    api::Space,
    jobfile,
    space::{self, as_json, name_of},
    spec::{JobSpec, Loss, ModelSpace, ScheduleName},
    trial_name::{ends_with, last_word},
};

/// Settings of `[training]` that the description of a job leaves out where they have their defaults.
const LEFT_OUT_OF_TRAINING: &[&str] =
    &["augment/crop", "augment/flip", "precision", "sampling", "label_smoothing"];
/// The same of a `[[model]]` table.
const LEFT_OUT_OF_MLP: &[&str] = &["batch_norm", "dropout"];
const LEFT_OUT_OF_CNN: &[&str] = &["pool", "pool_every", "hidden", "batch_norm", "dropout"];
/// The shape of rows in the small job that a dimension is read in: architectures for images need one.
const SHAPE: &str = "[3, 32, 32]";

/// The space of a job with these dimensions instead of its own: `lr = { log_uniform = [1e-5, 1e-1] }`.
///
/// # Errors
/// What is wrong with one of them, for people.
pub(super) fn space(spec: &JobSpec, dimensions: &[String]) -> Result<Space, String> {
    let mut json = as_json(&spec.models, &spec.training);
    let places = places(spec, &json);
    for dimension in dimensions {
        let (name, value) = dimension.split_once('=').ok_or_else(|| {
            format!(
                "`{dimension}`: a key and its values are wanted: lr = {{ choice = [0.1, 0.2] }}"
            )
        })?;
        let (name, value) = (name.trim(), value.trim());
        let pointer = find(&places, name)?;
        let read = read(spec, &pointer, value).map_err(|why| format!("`{dimension}`: {why}"))?;
        put(&mut json, &pointer, read);
    }
    let space: Space =
        serde_json::from_value(json).map_err(|why| format!("the space can't be: {why}"))?;
    let (models, training) = (space.models.clone(), space.training.clone());
    let widened = JobSpec { models, training, ..spec.clone() };
    widened.check_space().map_err(|fault| fault.to_string())?;
    Ok(space)
}

/// The places of all dimensions of a job, also of those that its description leaves out. A user's own model stays as it is.
fn places(spec: &JobSpec, json: &Value) -> Vec<String> {
    let mut places = space::places(json);
    let mut left_out: Vec<String> =
        LEFT_OUT_OF_TRAINING.iter().map(|key| format!("/training/{key}")).collect();
    for (n, model) in spec.models.iter().enumerate() {
        let of_model = match model {
            ModelSpace::Mlp(_) => LEFT_OUT_OF_MLP,
            ModelSpace::Cnn(_) => LEFT_OUT_OF_CNN,
            ModelSpace::Resnet(_) => &[],
            ModelSpace::Graph(_) => {
                places.retain(|place| !place.starts_with(&format!("/models/{n}/")));
                &[]
            }
        };
        left_out.extend(of_model.iter().map(|key| format!("/models/{n}/{key}")));
    }
    left_out.retain(|place| !places.contains(place));
    places.extend(left_out);
    places
}

/// The place of a dimension: by its name, or the last words of that where there is one such.
fn find(places: &[String], name: &str) -> Result<String, String> {
    let exact = places.iter().find(|place| name_of(place) == name);
    let found: Vec<&String> = match exact {
        Some(place) => vec![place],
        None => places.iter().filter(|place| ends_with(&name_of(place), name)).collect(),
    };
    let quoted =
        |of: &[&String]| of.iter().map(|place| format!("`{}`", name_of(place))).collect::<Vec<_>>();
    match found.as_slice() {
        [place] => Ok((*place).clone()),
        [] => {
            let names: Vec<String> = places.iter().map(|place| name_of(place)).collect();
            let words =
                names.iter().map(|name| last_word(name)).chain(names.iter().map(String::as_str));
            let hint = match jobfile::nearest(name, words) {
                Some(near) => format!("did you mean `{near}`? "),
                None => String::new(),
            };
            let known = quoted(&places.iter().collect::<Vec<_>>()).join(", ");
            Err(format!("`{name}` is no setting of this job; {hint}there are {known}"))
        }
        several => Err(format!("`{name}` may be {}: write it out", quoted(several).join(" or "))),
    }
}

/// Sets the value at a place, with what leads there.
fn put(space: &mut Value, pointer: &str, value: Value) {
    let mut at = space;
    for part in pointer.trim_start_matches('/').split('/') {
        at = match at {
            Value::Array(entries) => {
                let entry = part.parse().ok().and_then(|n: usize| entries.get_mut(n));
                let Some(entry) = entry else { return };
                entry
            }
            Value::Object(fields) => {
                fields.entry(part).or_insert_with(|| Value::Object(Map::new()))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return,
        };
    }
    *at = value;
}

/// The dimension at a place that a job file's text says: read as part of a small job.
fn read(spec: &JobSpec, pointer: &str, text: &str) -> Result<Value, String> {
    let mut parts = pointer.trim_start_matches('/').split('/');
    let section = parts.next().unwrap_or_default();
    let (table, keys): (usize, Vec<&str>) = match section {
        "models" => (parts.next().and_then(|n| n.parse().ok()).unwrap_or(0), parts.collect()),
        _ => (0, parts.collect()),
    };
    // A table has a key once.
    let key = keys.join(".");
    let but = |lines: &str| -> String {
        let others = lines.lines().filter(|line| !line.starts_with(&format!("{key} =")));
        others.map(|line| format!("{line}\n")).collect()
    };
    let line = format!("{key} = {text}\n");
    let (model, training) = match section {
        "models" => (but(arch(spec.models.get(table))) + &line, but(&training(spec))),
        _ => (arch(spec.models.first()).to_owned() + "\n", but(&training(spec)) + &line),
    };
    let file = format!(
        "name = \"x\"\n[data]\ntrain = \"x.csv\"\nlabel = \"y\"\nshape = {SHAPE}\n[[model]]\n{model}[training]\n{training}[search]\nmethod = \"random\"\ntrials = 1\n"
    );
    // The small job has one table.
    let said = |why: String| why.replace("model[0].", &format!("model[{table}]."));
    let small =
        jobfile::parse_dimensions(&file).map_err(|error| said(plain(&error.to_string())))?;
    let json = match section {
        "models" => serde_json::to_value(small.models.first()),
        _ => serde_json::to_value(&small.training),
    };
    let inner = keys.iter().fold(String::new(), |all, key| format!("{all}/{key}"));
    let json = json.map_err(|why| why.to_string())?;
    match json.pointer(&inner) {
        Some(found) => Ok(found.clone()),
        // It has its default, which is left out.
        None => serde_json::from_str(text)
            .map(|fixed: Value| serde_json::json!({ "fixed": fixed }))
            .map_err(|_| "this setting can't be searched".to_owned()),
    }
}

/// The keys that every `[[model]]` table of an architecture has.
fn arch(model: Option<&ModelSpace>) -> &'static str {
    match model {
        Some(ModelSpace::Cnn(_)) => "arch = \"cnn\"\nchannels = [1]",
        Some(ModelSpace::Resnet(_)) => "arch = \"resnet\"\ndepth = 11",
        Some(ModelSpace::Mlp(_) | ModelSpace::Graph(_)) | None => "arch = \"mlp\"\nhidden = [1]",
    }
}

/// The settings on which the reading of others of `[training]` depends.
fn training(spec: &JobSpec) -> String {
    let training = &spec.training;
    let loss = if training.loss == Loss::Mse { "loss = \"mse\"\n" } else { "" };
    let names: Vec<String> = training
        .optimizer
        .name
        .values()
        .into_iter()
        .map(|name| format!("\"{}\"", name.word()))
        .collect();
    let schedule = match training.schedule.name {
        ScheduleName::Constant => "constant",
        ScheduleName::Step => "step",
        ScheduleName::Cosine => "cosine",
    };
    format!(
        "epochs = {}\n{loss}optimizer.name = {{ choice = [{}] }}\nschedule.name = \"{schedule}\"\n",
        training.epochs,
        names.join(", ")
    )
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
    fn conditions_are_of_the_settings_of_the_job() {
        let lr = "lr = { choice = [0.1, 0.2], when = { hidden = [8] } }";
        let expected = JOB.replace("lr = { log_uniform = [1e-4, 1e-2] }", lr);
        let space = widened(&[lr]).unwrap();
        assert_eq!(space.training, jobfile::parse(&expected).unwrap().training);
    }

    #[test]
    fn names_may_be_as_long_as_constraints_have_them() {
        for name in ["lr", "optimizer.lr", "training.optimizer.lr"] {
            let space = widened(&[&format!("{name} = {{ log_uniform = [1e-5, 1e-1] }}")]).unwrap();
            let expected = JOB.replace("[1e-4, 1e-2]", "[1e-5, 1e-1]");
            assert_eq!(space.training, jobfile::parse(&expected).unwrap().training, "{name}");
        }
    }

    #[test]
    fn settings_of_every_architecture_are_widened_also_those_that_the_job_leaves_out() {
        let job = |models: &str, training: &str| {
            let text = format!(
                "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\nshape = [1, 8, 8]\n{models}[training]\nepochs = 3\n{training}[search]\nmethod = \"random\"\ntrials = 4\n"
            );
            jobfile::parse(&text).unwrap()
        };
        let left_out = job(
            "[[model]]\narch = \"mlp\"\nhidden = [4]\n[[model]]\narch = \"cnn\"\nchannels = [4]\n[[model]]\narch = \"resnet\"\ndepth = 11\n",
            "",
        );
        let of_model = [
            ("model[0].batch_norm", "{ choice = [true, false] }"),
            ("model[0].dropout", "{ uniform = [0.0, 0.5] }"),
            ("model[1].channels", "{ choice = [[4], [8]] }"),
            ("model[1].pool", "{ choice = [\"max\", \"average\"] }"),
            ("model[1].pool_every", "{ choice = [1, 2] }"),
            ("model[1].hidden", "{ choice = [[], [8]] }"),
            ("model[1].batch_norm", "{ choice = [true, false] }"),
            ("model[1].dropout", "{ uniform = [0.0, 0.5] }"),
            ("model[2].depth", "{ choice = [11, 20] }"),
            ("width", "{ choice = [8, 16] }"),
        ];
        let of_training = [
            ("label_smoothing", "{ uniform = [0.0, 0.2] }"),
            ("precision", "{ choice = [\"f32\", \"bf16\"] }"),
            ("augment.flip", "{ choice = [true, false] }"),
            ("crop", "{ choice = [0, 2] }"),
            ("clip_norm", "{ choice = [0.0, 1.0] }"),
            ("beta1", "{ choice = [0.8, 0.9] }"),
            ("sampling", "{ choice = [\"shuffled\", \"balanced\"] }"),
        ];
        for (name, value) in of_model.into_iter().chain(of_training) {
            let wide = space(&left_out, &[format!("{name} = {value}")]);
            let wide = wide.unwrap_or_else(|why| panic!("{name}: {why}"));
            let is_same = (&wide.models, &wide.training) == (&left_out.models, &left_out.training);
            assert!(!is_same, "{name}");
        }
        let why = space(&left_out, &["dropout = { uniform = [0.0, 0.5] }".to_owned()]).unwrap_err();
        assert_eq!(why, "`dropout` may be `model[0].dropout` or `model[1].dropout`: write it out");
    }

    #[test]
    fn what_can_not_be_is_told_without_a_line_of_another_file() {
        for (dimension, told) in [
            ("rate = { uniform = [0, 1] }", "`rate` is no setting of this job; "),
            ("lrr = { uniform = [0, 1] }", "did you mean `lr`? there are"),
            ("lr = { uniform = [1, 0] }", "has its low end 1 above its high end 0"),
            ("lr { }", "a key and its values are wanted"),
            ("lr = { unifrom = [0, 1] }", "did you mean `uniform`?"),
            (
                "lr = { choice = [0.1, 0.2], when = { hidden = [5] } }",
                "`when` of `training.optimizer.lr`: `hidden` is `5` in no trial; it may be `[4]`, `[8]`",
            ),
        ] {
            let why = widened(&[dimension]).unwrap_err();
            assert!(why.contains(told), "{dimension}: {why}");
            assert!(!why.contains("line "), "{why}");
        }
    }
}
