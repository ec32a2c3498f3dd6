//! `init`: models that start from files, which the tests give by letters.

use super::{InitModel, parse, parse_with};
use crate::{
    digest::{BlobRef, Digest},
    manifest::LabelScaling,
    spec::{Architecture, Init, JobSpec, ModelSpace, Scale, ScaleLabel},
};

const SMALL: &str = r#"name = "small"
[data]
train = "x.csv"
label = "y"
[[model]]
[training]
epochs = 2
"#;

const GIVEN: ScaleLabel = ScaleLabel::Given(LabelScaling { mean: 152.0, std: 77.0 });

/// `SMALL` with these keys in its `[[model]]` and `[data]`: what is read or said.
fn with_model(model: &str, scale: &str) -> Result<JobSpec, String> {
    with_text(&SMALL.replacen("[[model]]", &format!("[[model]]\n{model}"), 1), scale)
}

/// `text` with these keys in its `[data]`: what is read or said.
fn with_text(text: &str, data: &str) -> Result<JobSpec, String> {
    let text = text.replacen("[[model]]", &format!("{data}\n[[model]]"), 1);
    let parsed = parse_with(&text, &mut |file| {
        let (hidden, scale) = match file {
            "a" => (vec![64], Scale::Given(blob(b"scaling"))),
            "b" => (vec![32], Scale::None),
            "c" => (vec![16], Scale::Given(blob(b"scaling"))),
            _ => return Err(format!("is `\"{file}\"`, which isn't there")),
        };
        let architecture = Architecture::mlp(hidden);
        let scale_label = if file == "c" { ScaleLabel::None } else { GIVEN };
        Ok(InitModel { architecture, parameters: blob(file.as_bytes()), scale, scale_label })
    });
    parsed.map_err(|error| {
        let lines = error.problems().map(|problem| format!("{}: {problem}", problem.line()));
        lines.collect::<Vec<_>>().join("\n")
    })
}

fn blob(bytes: &[u8]) -> BlobRef {
    BlobRef { sha256: Digest::of(bytes), bytes: bytes.len() as u64 }
}

#[test]
fn a_model_that_starts_from_a_file_is_that_of_the_file() {
    let job = with_model("init = \"a\"", "").unwrap();
    assert_eq!(job.models, [ModelSpace::mlp(vec![64])]);
    assert_eq!(job.init, [Init { model: 0, file: "a".into(), parameters: blob(b"a") }]);
    assert_eq!((job.initial_weights(0), job.initial_weights(1)), (Some(blob(b"a")), None));
    assert_eq!(job.data.scale, Scale::Given(blob(b"scaling")), "its scaling comes with it");
    assert_eq!(with_model("init = \"b\"", "").unwrap().data.scale, Scale::None);
    assert_eq!(with_model("init = \"a\"", "scale = 0.5").unwrap().data.scale, Scale::Constant(0.5));
    // A model table may repeat what its initial weights say.
    for same in ["init = \"a\"\narch = \"mlp\"", "arch = \"mlp\"\nhidden = [64]\ninit = \"a\""] {
        assert_eq!(with_model(same, "").unwrap(), job);
    }
    let text = serde_json::to_value(&job).unwrap();
    assert_eq!(serde_json::from_value::<JobSpec>(text).unwrap(), job);
    let plain = serde_json::to_value(
        parse(&SMALL.replace("[[model]]", "[[model]]\narch = \"mlp\"\nhidden = []")).unwrap(),
    )
    .unwrap();
    assert_eq!(plain.get("init"), None, "other jobs are written as ever");
}

#[test]
fn several_tables_may_start_from_files_of_one_scaling() {
    let several = "init = \"a\"\n[[model]]\narch = \"mlp\"\nhidden = [8]\n[[model]]\ninit = \"c\"";
    let job = with_model(several, "").unwrap();
    assert_eq!(job.init.iter().map(|init| init.model).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(job.data.scale, Scale::Given(blob(b"scaling")));
    let mixed = "init = \"a\"\n[[model]]\ninit = \"b\"";
    let said = with_model(mixed, "").unwrap_err();
    assert!(
        said.ends_with("`model[1].init` is `\"b\"`, which scales its features otherwise than `\"a\"`; say which way with `data.scale`"),
        "{said}"
    );
    assert_eq!(with_model(mixed, "scale = \"none\"").unwrap().init.len(), 2);
}

#[test]
fn labels_are_scaled_as_those_of_the_model_were() {
    let regression = |model: &str, data: &str| {
        let training = format!("{model}\n[training]\nloss = \"mse\"");
        with_text(&SMALL.replacen("[training]", &training, 1), data)
    };
    let scale = |model: &str, data: &str| regression(model, data).unwrap().data.scale_label;
    assert_eq!(scale("init = \"a\"", ""), GIVEN);
    assert_eq!(scale("init = \"c\"", ""), ScaleLabel::None, "a model of before");
    assert_eq!(scale("arch = \"mlp\"\nhidden = []", ""), ScaleLabel::Standard);
    assert_eq!(scale("init = \"a\"", "scale_label = \"standard\""), ScaleLabel::Standard);
    let mixed = "init = \"a\"\n[[model]]\ninit = \"c\"";
    let said = regression(mixed, "").unwrap_err();
    assert!(
        said.ends_with("`model[1].init` is `\"c\"`, which scales its labels otherwise than `\"a\"`; say which way with `data.scale_label`"),
        "{said}"
    );
    assert_eq!(scale(mixed, "scale_label = \"none\""), ScaleLabel::None);
    assert_eq!(with_model(mixed, "").unwrap().data.scale_label, ScaleLabel::None, "classes");
}

#[test]
fn a_file_that_cannot_be_a_start_is_refused_with_its_line() {
    let said = |model: &str| with_model(model, "").unwrap_err();
    let line = 7;
    assert_eq!(
        said("init = \"z\""),
        format!("{line}: `model[0].init` is `\"z\"`, which isn't there")
    );
    let other = format!(
        "{line}: `model[0].init` is `\"a\"`, a `mlp` that isn't the model which the other keys say: leave them out"
    );
    assert_eq!(said("init = \"a\"\narch = \"cnn\""), other);
    assert_eq!(said("init = \"a\"\narch = \"mlp\"\nhidden = [65]"), other);
    let searched = "init = \"a\"\narch = \"mlp\"\nhidden = { choice = [[64], [8]] }";
    assert_eq!(said(searched), other);
    assert!(said("init = \"a\"\nhidden = [64]").contains("`model[0].arch` is missing"));
    assert!(
        said("init = 3").contains("`model[0].init` is a whole number (`3`)"),
        "{}",
        said("init = 3")
    );
    assert!(said("innit = \"a\"").contains("did you mean `init`?"));
    assert!(said("init = \"a\"\narch = \"mpl\"").contains("did you mean `mlp`?"));
}
