//! The experiment of the thesis that FlowCon is held to.

use super::{Curve, SharedTrial};

/// The thesis' three jobs: a variational autoencoder, and two networks for MNIST. The work follows from the times that they
/// took with equal shares.
pub const SCHEDULE: [SharedTrial; 3] = [
    SharedTrial { arrival: 0.0, work: 259.7, curve: Curve::VAE },
    SharedTrial { arrival: 40.0, work: 106.1, curve: Curve::GRU },
    SharedTrial { arrival: 80.0, work: 28.2, curve: Curve::GRU },
];

/// Threshold and interval in seconds of each of its cells, and by how much the third job ended earlier there, in percent. Of two
/// figures that it gives for one cell the table's.
pub const CELLS: [(f64, u64, f64); 10] = [
    (0.10, 20, 26.2),
    (0.10, 30, 32.4),
    (0.10, 40, 14.3),
    (0.10, 50, 15.3),
    (0.10, 60, 3.1),
    (0.01, 20, 32.1),
    (0.03, 20, 31.0),
    (0.05, 20, 21.4),
    (0.15, 20, 19.8),
    (0.05, 30, 31.9),
];
