//! The upper hull of points that are added from right to left: which of them is highest above a line of some slope.

/// The hull. Points are `(x, y)` with falling `x`.
#[derive(Debug, Default)]
pub(super) struct Hull {
    points: Vec<(f64, f64)>,
}

impl Hull {
    /// No points.
    pub(super) fn clear(&mut self) {
        self.points.clear();
    }

    /// One more, to the left of all others.
    pub(super) fn push(&mut self, point: (f64, f64)) {
        while let [.., before, last] = self.points.as_slice() {
            let turn =
                (last.0 - before.0) * (point.1 - last.1) - (last.1 - before.1) * (point.0 - last.0);
            if turn > 0.0 {
                break;
            }
            self.points.pop();
        }
        self.points.push(point);
    }

    /// The point with the most of `slope * x + y`.
    pub(super) fn highest(&self, slope: f64) -> Option<(f64, f64)> {
        let above = |point: &(f64, f64)| slope.mul_add(point.0, point.1);
        // Along the hull this rises to its most, and falls.
        let (mut from, mut to) = (0, self.points.len().checked_sub(1)?);
        while from < to {
            let middle = usize::midpoint(from, to);
            let (one, next) = (self.points.get(middle)?, self.points.get(middle + 1)?);
            if above(next) > above(one) { from = middle + 1 } else { to = middle }
        }
        self.points.get(from).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_point_is_that_of_a_search_over_all() {
        let ys = [3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.0, 6.0];
        let mut hull = Hull::default();
        let mut all = Vec::new();
        for (n, y) in (0..8_u32).zip(ys) {
            let point = (f64::from(8 - n), y);
            hull.push(point);
            all.push(point);
            for slope in [-4.0, -1.0, -0.3, 0.0, 0.7, 2.0, 10.0] {
                let value = |(x, y): (f64, f64)| slope * x + y;
                let best = all.iter().copied().map(value).fold(f64::NEG_INFINITY, f64::max);
                let found = value(hull.highest(slope).unwrap());
                assert!((found - best).abs() < 1e-12, "{found} {best}");
            }
        }
    }
}
