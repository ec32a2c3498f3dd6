//! The values that dropout draws must not depend on the number of threads. A program of its own, because both the
//! threads and the source of rng belong to the whole process.

use tch::{Device, Kind, Tensor};

#[test]
fn dropout_drops_the_same_values_on_any_number_of_threads() {
    // Far above the size from which libtorch splits an operation among threads.
    for kind in [Kind::Float, Kind::BFloat16] {
        let ones = Tensor::ones([1 << 20], (kind, Device::Cpu));
        let dropped = |threads| {
            tch::set_num_threads(threads);
            tch::manual_seed(11);
            ones.dropout(0.25, true)
        };
        let one = dropped(1);
        assert_eq!(one, dropped(2));
        assert_eq!(one, dropped(3));
        let zeros = one.eq(0.0).count_nonzero(None).int64_value(&[]);
        let ratio = zeros as f64 / f64::from(1 << 20);
        assert!((ratio - 0.25).abs() < 0.005, "{ratio}");
    }
}
