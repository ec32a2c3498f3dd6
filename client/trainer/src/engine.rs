//! The description of this program for those who give units out, and its refusal of units that it doesn't know.

use serde_json::Value;
use sojourn_protocol::{
    engine::Engine,
    report::{Failure, FailureKind},
    trainer::TRAINER_PROGRAM,
};

/// libtorch, of the version that the program is built with.
const FRAMEWORK: &str = "libtorch 2.11.0";
/// The models that it trains, by the word that a job file has for them.
const MODELS: [&str; 4] = ["mlp", "cnn", "resnet", "graph"];

/// This program.
pub(crate) fn engine() -> Engine {
    Engine {
        name: TRAINER_PROGRAM.to_owned(),
        framework: FRAMEWORK.to_owned(),
        models: MODELS.map(str::to_owned).to_vec(),
    }
}

/// The answer to a line that isn't a request of this version. A request with a unit or a model in it asks for something
/// that this program doesn't know.
pub(crate) fn refusal(line: &str, error: &serde_json::Error) -> Failure {
    let line = serde_json::from_str::<Value>(line).unwrap_or_default();
    if ["run", "predict"].iter().any(|known| line.get(known).is_some()) {
        let message = format!("this trainer ({FRAMEWORK}) doesn't support the unit: {error}");
        return Failure { kind: FailureKind::Unsupported, message };
    }
    let message = format!("the request can't be understood: {error}");
    Failure { kind: FailureKind::Trainer, message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::{
        spec::{Architecture, Graph, Resnet},
        trainer::TrainerRequest,
    };

    #[test]
    fn the_engine_names_every_model() {
        let resnet = Architecture::Resnet(Resnet { depth: 11, width: 4 });
        let (entry, values) = ("model.py:Net".to_owned(), [].into());
        let graph = Architecture::Graph(Graph { entry, values, exported: None });
        for model in [Architecture::mlp([4]), Architecture::cnn([4]), resnet, graph] {
            assert!(engine().trains(model.name()), "{model:?}");
            // A new model has to be named here.
            match model {
                Architecture::Mlp(_)
                | Architecture::Cnn(_)
                | Architecture::Resnet(_)
                | Architecture::Graph(_) => {}
            }
        }
    }

    #[test]
    fn a_unit_that_is_not_known_is_told_from_nonsense() {
        let kind = |line: &str| {
            let error = serde_json::from_str::<TrainerRequest>(line).unwrap_err();
            refusal(line, &error).kind
        };
        assert_eq!(kind(r#"{"run":{"unit":{"train":{}},"files":{}}}"#), FailureKind::Unsupported);
        assert_eq!(kind(r#"{"predict":{"augment":"none"}}"#), FailureKind::Unsupported);
        for nonsense in ["{}", "nonsense", r#"{"describe":{}}"#, r#"{"run":{"unit""#, "[]"] {
            assert_eq!(kind(nonsense), FailureKind::Trainer, "{nonsense}");
        }
    }
}
