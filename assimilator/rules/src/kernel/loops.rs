//! The innermost loops. Each is a function of its own, so that the compiler knows its slices to be apart, and has
//! nothing in it but loads, arithmetic and stores, so that it is vectorised.

use super::element::Element;

/// The numbers of a step, in `f32`.
#[derive(Clone, Copy)]
pub(super) struct Scalars {
    pub(super) weight: f32,
    pub(super) gain: f32,
    pub(super) share: f32,
    pub(super) rate: f32,
    pub(super) decay: f32,
    pub(super) lead: f32,
}

#[inline(never)]
pub(super) fn copy<E: Element>(to: &mut [E], from: &[E]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

#[inline(never)]
pub(super) fn blend<E: Element>(w: &mut [E], returned: &[E], keep: f32, take: f32) {
    for (w, c) in w.iter_mut().zip(returned) {
        *w = E::store(keep * w.load() + take * c.load());
    }
}

#[inline(never)]
pub(super) fn blend_scaled<E: Element>(
    w: &mut [E],
    base: &[E],
    returned: &[E],
    keep: f32,
    take: f32,
    scale: f32,
) {
    for ((w, b), c) in w.iter_mut().zip(base).zip(returned) {
        let base = b.load();
        let near = base + scale * (c.load() - base);
        *w = E::store(keep * w.load() + take * near);
    }
}

#[inline(never)]
pub(super) fn add<E: Element>(w: &mut [E], base: &[E], returned: &[E], gain: f32) {
    for ((w, b), c) in w.iter_mut().zip(base).zip(returned) {
        *w = E::store(w.load() + gain * (c.load() - b.load()));
    }
}

#[inline(never)]
pub(super) fn add_new<E: Element>(w: &mut [E], base: &[E], returned: &[E], gain: f32, back: f32) {
    for ((w, b), c) in w.iter_mut().zip(base).zip(returned) {
        let (now, base) = (w.load(), b.load());
        *w = E::store(now + gain * (c.load() - base) - back * (now - base));
    }
}

/// The numbers of a compensation, in `f32`.
#[derive(Clone, Copy)]
pub(super) struct Compensation {
    pub(super) gain: f32,
    pub(super) lambda: f32,
    pub(super) decay: f32,
    /// `1 - decay`.
    pub(super) fresh: f32,
}

#[inline(never)]
pub(super) fn compensate<E: Element, S: Element>(
    w: &mut [E],
    mean_square: &mut [S],
    base: &[E],
    returned: &[E],
    by: Compensation,
) {
    for (((w, v), b), c) in w.iter_mut().zip(mean_square).zip(base).zip(returned) {
        let (now, base) = (w.load(), b.load());
        let change = by.gain * (c.load() - base);
        let square = change * change;
        let mean = by.decay * v.load() + by.fresh * square;
        let (back, root) = (by.lambda * square, mean.sqrt());
        let share = if back < root {
            back / root
        } else if root > 0.0 {
            1.0
        } else {
            0.0
        };
        *v = S::store(mean);
        *w = E::store(now + change - share * (now - base));
    }
}

#[inline(never)]
pub(super) fn gather<E: Element, S: Element>(
    sum: &mut [S],
    base: &[E],
    returned: &[E],
    weight: f32,
) {
    for ((sum, b), c) in sum.iter_mut().zip(base).zip(returned) {
        *sum = S::store(sum.load() + weight * (c.load() - b.load()));
    }
}

#[inline(never)]
pub(super) fn gather_and_add<E: Element, S: Element>(
    w: &mut [E],
    sum: &mut [S],
    base: &[E],
    returned: &[E],
    weight: f32,
    gain: f32,
) {
    for (((w, sum), b), c) in w.iter_mut().zip(sum).zip(base).zip(returned) {
        let change = c.load() - b.load();
        *sum = S::store(sum.load() + weight * change);
        *w = E::store(w.load() + gain * change);
    }
}

#[inline(never)]
pub(super) fn gather_and_step<E: Element, S: Element>(
    w: &mut [E],
    sum: &mut [S],
    base: &[E],
    returned: &[E],
    by: Scalars,
) {
    for (((w, sum), b), c) in w.iter_mut().zip(sum).zip(base).zip(returned) {
        let change = c.load() - b.load();
        let mean = by.share * (sum.load() + by.weight * change);
        *sum = S::store(0.0);
        *w = E::store(w.load() + by.gain * change + by.rate * mean);
    }
}

#[inline(never)]
pub(super) fn gather_and_step_with_momentum<E: Element, S: Element>(
    w: &mut [E],
    sum: &mut [S],
    momentum: &mut [S],
    base: &[E],
    returned: &[E],
    by: Scalars,
) {
    let state = sum.iter_mut().zip(momentum);
    for (((w, (sum, m)), b), c) in w.iter_mut().zip(state).zip(base).zip(returned) {
        let change = c.load() - b.load();
        let mean = by.share * (sum.load() + by.weight * change);
        let moved = by.decay * m.load() + mean;
        *sum = S::store(0.0);
        *m = S::store(moved);
        *w = E::store(w.load() + by.gain * change + by.rate * mean + by.lead * moved);
    }
}
