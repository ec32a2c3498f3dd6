//! The dimensions of a space as JSON: where they are, how they are called, which of two spaces are other, and one in words.

use serde_json::{Value, json};

use crate::spec::{ModelSpace, TrainingSpace};

/// The forms of a dimension.
const FORMS: [&str; 4] = ["fixed", "choice", "range", "normal"];
/// The form of a dimension that only some trials have.
const CONDITIONAL: &str = "conditional";
/// The form of a number that follows from other settings.
const TIED: &str = "tied";

/// A space as JSON: `{"models": [..], "training": {..}}`.
#[must_use]
pub fn as_json(models: &[ModelSpace], training: &TrainingSpace) -> Value {
    json!({ "models": models, "training": training })
}

/// The places of all dimensions that a space has, as JSON pointers.
#[must_use]
pub fn places(space: &Value) -> Vec<String> {
    let mut places = Vec::new();
    walk("", space, &mut places);
    places
}

fn walk(at: &str, value: &Value, places: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let is_form = |key: &String, value: &Value| match key.as_str() {
                // A key of a user's own model may have any name.
                CONDITIONAL => value.get("when").is_some(),
                TIED => value.is_string(),
                key => FORMS.contains(&key),
            };
            if fields.len() == 1 && fields.iter().all(|(key, value)| is_form(key, value)) {
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

/// A place as job files and trials name it: `model[0].dropout`, `training.optimizer.lr`.
#[must_use]
pub fn name_of(place: &str) -> String {
    let dotted = place.trim_start_matches('/').replace('/', ".");
    match dotted.strip_prefix("models.").and_then(|rest| rest.split_once('.')) {
        Some((table, key)) => format!("model[{table}].{key}"),
        None => dotted,
    }
}

/// The places of dimensions that are other in the second space. One that has its default may be left out of either.
#[must_use]
pub fn changed(before: &Value, after: &Value) -> Vec<String> {
    let mut all = places(before);
    all.extend(places(after));
    all.sort();
    all.dedup();
    all.retain(|place| before.pointer(place) != after.pointer(place));
    all
}

/// A dimension as a job file writes it: `{ log_uniform = [0.00001, 0.1] }`; one value alone as itself.
#[must_use]
pub fn in_words(dimension: &Value) -> String {
    if let Some(value) = dimension.get("fixed") {
        return value.to_string();
    }
    if let Some(values) = dimension.get("choice") {
        return format!("{{ choice = {values} }}");
    }
    if let Some(formula) = dimension.get(TIED) {
        return format!("{{ formula = {formula} }}");
    }
    if let Some(conditional) = dimension.get(CONDITIONAL) {
        return conditional_in_words(conditional).unwrap_or_else(|| dimension.to_string());
    }
    let of = |part: &str, key: &str| dimension.get(part).and_then(|part| part.get(key));
    let mut options = String::new();
    for (part, key) in [("range", "points"), ("range", "step"), ("normal", "truncate")] {
        if let Some(value) = of(part, key).filter(|value| !value.is_null()) {
            options.push_str(&format!(", {key} = {value}"));
        }
    }
    let ends = |part: &str, form: &str, from: &str, to: &str| {
        let (from, to) = (of(part, from)?, of(part, to)?);
        Some(format!("{{ {form} = [{from}, {to}]{options} }}"))
    };
    let form = match of("range", "spread").and_then(Value::as_str) {
        Some("integer") => "int",
        Some("log_integer") => "log_int",
        Some(form) => form,
        None => "",
    };
    ends("range", form, "low", "high")
        .or_else(|| ends("normal", "normal", "mean", "deviation"))
        .unwrap_or_else(|| dimension.to_string())
}

/// `{ choice = [0.5,0.9], when = { optimizer = ["sgd"] }, otherwise = 0.0 }`.
fn conditional_in_words(conditional: &Value) -> Option<String> {
    let inner = in_words(conditional.get("dimension")?);
    let inner = inner.strip_suffix(" }")?;
    let settings = conditional.get("when")?.as_object()?.iter();
    let settings: Vec<String> =
        settings.map(|(name, values)| format!("{} = {values}", toml_key(name))).collect();
    let otherwise = conditional.get("otherwise")?;
    Some(format!("{inner}, when = {{ {} }}, otherwise = {otherwise} }}", settings.join(", ")))
}

/// A name as a key of TOML: in quotes where it has dots.
fn toml_key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.chars().all(is_bare) { name.to_owned() } else { Value::from(name).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobfile;

    fn space(lr: &str, batch_size: &str) -> Value {
        let text = format!(
            "name = \"t\"\n[data]\ntrain = \"t.csv\"\nlabel = \"y\"\n[[model]]\narch = \"mlp\"\nhidden = {{ choice = [[4], [8]] }}\n[training]\nepochs = 3\nbatch_size = {batch_size}\noptimizer = {{ name = \"adam\", lr = {lr} }}\n[search]\nmethod = \"random\"\ntrials = 4\n"
        );
        let spec = jobfile::parse(&text).unwrap();
        as_json(&spec.models, &spec.training)
    }

    #[test]
    fn what_is_other_has_its_name_and_its_words() {
        let before = space("0.1", "8");
        for lr in [
            "{ log_uniform = [0.25, 0.5] }",
            "{ uniform = [0.25, 0.5], step = 0.25 }",
            "{ normal = [0.5, 0.25], truncate = [0.25,0.75] }",
            "{ choice = [0.25,0.5] }",
            "0.25",
        ] {
            let after = space(lr, "8");
            let changed = changed(&before, &after);
            assert_eq!(changed, ["/training/optimizer/lr"]);
            assert_eq!(name_of(&changed[0]), "training.optimizer.lr");
            let words = in_words(after.pointer(&changed[0]).unwrap());
            assert_eq!(words.replace(".0,", ","), lr);
        }
        let after = space("0.1", "{ int = [4, 16] }");
        let changed = changed(&before, &after);
        assert_eq!(in_words(after.pointer(&changed[0]).unwrap()), "{ int = [4.0, 16.0] }");
        assert!(places(&before).iter().any(|place| name_of(place) == "model[0].hidden"));
    }
}
