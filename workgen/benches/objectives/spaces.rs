//! The objectives: their functions and their spaces as job files have them.

use super::functions::{self as of, Values};

/// A function over a space.
pub(crate) struct Objective {
    /// The name, the same as in `workgen/tests/tpe_optuna.json`.
    pub(crate) name: &'static str,
    /// The function, which is minimised.
    pub(crate) function: fn(&dyn Values) -> f64,
    /// The settings of the optimiser, which all model tables share.
    pub(crate) shared: &'static str,
    /// The model tables, each with its own settings.
    pub(crate) tables: &'static [&'static str],
}

const NAMED: &str = "lr = { log_uniform = [1e-5, 1.0] }";

/// The objectives that the search was changed by.
pub(crate) const OBJECTIVES: [Objective; 9] = [
    Objective {
        name: "quadratic",
        function: of::quadratic,
        shared: "",
        tables: &["lr = { log_uniform = [1e-5, 1.0] }\ndecay = { log_uniform = [1e-6, 0.1] }"],
    },
    Objective {
        name: "ackley-10",
        function: of::ackley,
        shared: "",
        tables: &[
            "x0 = { uniform = [-10, 10] }\nx1 = { uniform = [-10, 10] }\nx2 = { uniform = [-10, 10] }
x3 = { uniform = [-10, 10] }\nx4 = { uniform = [-10, 10] }\nx5 = { uniform = [-10, 10] }
x6 = { uniform = [-10, 10] }\nx7 = { uniform = [-10, 10] }\nx8 = { uniform = [-10, 10] }
x9 = { uniform = [-10, 10] }",
        ],
    },
    Objective {
        name: "rosenbrock-4",
        function: of::rosenbrock,
        shared: "",
        tables: &["x0 = { uniform = [-2, 2] }\nx1 = { uniform = [-2, 2] }
x2 = { uniform = [-2, 2] }\nx3 = { uniform = [-2, 2] }"],
    },
    Objective {
        name: "branin",
        function: of::branin,
        shared: "",
        tables: &["x0 = { uniform = [-5, 10] }\nx1 = { uniform = [0, 15] }"],
    },
    Objective {
        name: "hartmann-6",
        function: of::hartmann,
        shared: "",
        tables: &["x0 = { uniform = [0, 1] }\nx1 = { uniform = [0, 1] }\nx2 = { uniform = [0, 1] }
x3 = { uniform = [0, 1] }\nx4 = { uniform = [0, 1] }\nx5 = { uniform = [0, 1] }"],
    },
    Objective {
        name: "styblinski-tang-5",
        function: of::styblinski_tang,
        shared: "",
        tables: &["x0 = { uniform = [-5, 5] }\nx1 = { uniform = [-5, 5] }
x2 = { uniform = [-5, 5] }\nx3 = { uniform = [-5, 5] }\nx4 = { uniform = [-5, 5] }"],
    },
    Objective {
        name: "category",
        function: of::category,
        shared: "",
        tables: &["optimizer = { choice = [\"sgd\", \"adam\", \"adamw\"] }
depth = { choice = [0, 1, 2, 3] }\nbatch = { log_int = [8, 512] }
lr = { log_uniform = [1e-5, 1.0] }\nmomentum = { uniform = [0.0, 0.99] }
warmup = { int = [0, 100], step = 5 }"],
    },
    Objective {
        name: "tables",
        function: of::tables,
        shared: NAMED,
        tables: &["dropout = { uniform = [0.0, 0.9] }", "width = { log_int = [4, 64] }"],
    },
    Objective {
        name: "steps",
        function: of::steps,
        shared: "",
        tables: &["layers = { int = [1, 16] }\nwidth = { int = [8, 256], step = 8 }
kernel = { int = [1, 11], step = 2 }\npatience = { int = [1, 20] }
ratio = { uniform = [0.0, 1.0], step = 0.05 }"],
    },
];

/// Objectives that were not looked at while the search was changed.
pub(crate) const HELD_OUT: [Objective; 7] = [
    Objective {
        name: "interaction",
        function: of::interaction,
        shared: "",
        tables: &["lr = { log_uniform = [1e-5, 1.0] }\ndecay = { log_uniform = [1e-6, 0.1] }
eps = { log_uniform = [1e-10, 1e-3] }\nfloor = { uniform = [0, 1] }"],
    },
    Objective {
        name: "three-tables",
        function: of::three_tables,
        shared: NAMED,
        tables: &[
            "momentum = { uniform = [0, 0.99] }",
            "width = { log_int = [8, 512] }\nnorm = { choice = [false, true] }",
            "heads = { int = [1, 12] }\ndropout = { uniform = [0, 0.6] }\ndepth = { int = [1, 12] }",
        ],
    },
    Objective {
        name: "noisy",
        function: of::noisy,
        shared: "",
        tables: &["x0 = { uniform = [-1, 1] }\nx1 = { uniform = [-1, 1] }
x2 = { uniform = [-1, 1] }\nx3 = { uniform = [-1, 1] }"],
    },
    Objective {
        name: "mixed",
        function: of::mixed,
        shared: "",
        tables: &["activation = { choice = [\"relu\", \"gelu\", \"tanh\", \"elu\", \"silu\"] }
layers = { int = [1, 12] }\nwidth = { log_int = [8, 1024] }\ndropout = { uniform = [0, 0.7] }
seed_share = { int = [5, 95], step = 5 }\nlr = { log_uniform = [1e-5, 1.0] }"],
    },
    Objective {
        name: "network",
        function: of::network,
        shared: "",
        tables: &["lr = { log_uniform = [1e-5, 1.0] }\nmomentum = { uniform = [0, 0.99] }
batch = { log_int = [8, 512] }\nwidth = { log_int = [8, 512] }\nlayers = { int = [1, 6] }
dropout = { uniform = [0, 0.7] }\ndecay = { log_uniform = [1e-6, 0.1] }
schedule = { choice = [\"constant\", \"cosine\"] }"],
    },
    Objective {
        name: "levy-6",
        function: of::levy,
        shared: "",
        tables: &["x0 = { uniform = [-10, 10] }\nx1 = { uniform = [-10, 10] }
x2 = { uniform = [-10, 10] }\nx3 = { uniform = [-10, 10] }\nx4 = { uniform = [-10, 10] }
x5 = { uniform = [-10, 10] }"],
    },
    Objective {
        name: "corner-8",
        function: of::corner,
        shared: "",
        tables: &["x0 = { uniform = [0, 1] }\nx1 = { uniform = [0, 1] }\nx2 = { uniform = [0, 1] }
x3 = { uniform = [0, 1] }\nx4 = { uniform = [0, 1] }\nx5 = { uniform = [0, 1] }
x6 = { uniform = [0, 1] }\nx7 = { uniform = [0, 1] }"],
    },
];
