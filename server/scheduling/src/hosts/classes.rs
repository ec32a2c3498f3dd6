//! The numeric classes that a device computes in, and how fast it is in each.

use sojourn_protocol::{
    digest::Digest,
    inventory::{COMMON_SPEED, Device, class_speed},
    quantity::mul_div,
};
use std::cmp::Reverse;

/// Classes that one device may offer.
const MAX_CLASSES: usize = 8;

/// A numeric class that a device computes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassSpeed {
    /// The class.
    pub class: Digest,
    /// How fast the device is there, in thousandths of its speed in its common class.
    pub speed: u64,
}

/// The classes of a device, the fastest first. There is at least its common class, which every host offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceClasses {
    fastest: ClassSpeed,
    others: Vec<ClassSpeed>,
}

impl DeviceClasses {
    /// The classes that a device offers. Equally fast ones stay in its order.
    pub fn of(device: &Device) -> Self {
        let common = ClassSpeed { class: device.numeric_class, speed: COMMON_SPEED };
        let offered = device.classes.iter().take(MAX_CLASSES).map(|offered| ClassSpeed {
            class: offered.numeric_class,
            speed: class_speed(offered.flops, device.flops),
        });
        let mut others: Vec<ClassSpeed> = offered.filter(|of| of.class != common.class).collect();
        others.sort_by_key(|of| Reverse(of.speed));
        match others.first().copied().filter(|first| first.speed >= COMMON_SPEED) {
            Some(fastest) => {
                others.remove(0);
                let slower = others.iter().take_while(|of| of.speed >= COMMON_SPEED).count();
                others.insert(slower, common);
                Self { fastest, others }
            }
            None => Self { fastest: common, others },
        }
    }

    /// One class alone.
    #[cfg(test)]
    pub fn only(class: Digest) -> Self {
        Self { fastest: ClassSpeed { class, speed: COMMON_SPEED }, others: Vec::new() }
    }

    /// All of them, the fastest first.
    pub fn iter(&self) -> impl Iterator<Item = ClassSpeed> + '_ {
        std::iter::once(self.fastest).chain(self.others.iter().copied())
    }

    /// The fastest.
    #[must_use]
    pub fn fastest(&self) -> ClassSpeed {
        self.fastest
    }

    /// Are there several?
    #[must_use]
    pub fn is_choice(&self) -> bool {
        !self.others.is_empty()
    }

    /// Is this one of them?
    #[must_use]
    pub fn offers(&self, class: Digest) -> bool {
        self.iter().any(|of| of.class == class)
    }

    /// The speed in a class, in thousandths of that in the common class; [`COMMON_SPEED`] where the class isn't offered.
    #[must_use]
    pub fn speed(&self, class: Digest) -> u64 {
        self.iter().find(|of| of.class == class).map_or(COMMON_SPEED, |of| of.speed)
    }

    /// A speed in the fastest class, as it is in another one.
    #[must_use]
    pub fn speed_in(&self, class: Digest, in_fastest: u64) -> u64 {
        mul_div(in_fastest, self.speed(class), self.fastest.speed.max(1)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::inventory::OfferedClass;

    #[test]
    fn classes_are_ordered_by_speed_and_the_common_one_is_always_there() {
        let class = |name: &str| Digest::of(name.as_bytes());
        let offered = |name: &str, flops| OfferedClass {
            instructions: name.to_owned(),
            numeric_class: class(name),
            flops,
        };
        let device = |classes| Device { classes, ..Device::new("cpu", class("common"), 1e9) };
        let order = |classes| {
            let classes = DeviceClasses::of(&device(classes));
            classes.iter().map(|of| (of.class, of.speed)).collect::<Vec<_>>()
        };
        assert_eq!(order(Vec::new()), [(class("common"), 1000)]);
        assert_eq!(
            order(vec![offered("slow", 5e8), offered("fast", 1.3e9), offered("common", 1e9)]),
            [(class("fast"), 1300), (class("common"), 1000), (class("slow"), 500)]
        );
        assert_eq!(order(vec![offered("as fast", 1e9)])[0], (class("as fast"), 1000));
        let classes = DeviceClasses::of(&device(vec![offered("fast", 1.3e9)]));
        assert_eq!(classes.speed_in(class("common"), 2600), 2000);
        assert!(classes.offers(class("fast")) && !classes.offers(class("other")));
    }
}
