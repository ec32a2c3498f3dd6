//! The cores that the slots keep busy, in words for the machine's owner: said once, at the start.

use sojourn_protocol::figures::counted;

/// The slots of a client beside its cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CoreUse {
    /// Slots on GPUs.
    pub(crate) on_gpus: u32,
    /// Slots on the cores.
    pub(crate) on_cores: u32,
    /// Threads of a unit whose job pins none.
    pub(crate) threads: u32,
    /// Cores that the client may use.
    pub(crate) cores: u32,
}

impl CoreUse {
    pub(crate) fn text(self) -> String {
        let Self { on_gpus, on_cores, threads, cores } = self;
        let slots = |number: u32| counted(u64::from(number), "slot");
        let of_cores = counted(u64::from(cores), "core");
        if on_cores == 0 {
            return format!(
                "{} on GPUs, none on {of_cores}: with `--cpu-slots {cores}` units train there too",
                slots(on_gpus)
            );
        }
        let beside = match on_gpus {
            0 => String::new(),
            on_gpus => format!(", and {} on GPUs", slots(on_gpus)),
        };
        let idle = cores.saturating_sub(on_cores);
        let pinned =
            "a unit of a reproducible job takes as many threads as the job says, 1 by default";
        let flag = if on_gpus == 0 { "--slots" } else { "--cpu-slots" };
        let idle = match idle {
            0 => String::new(),
            idle => format!(
                "; {} idle then, which `{flag} {cores}` uses",
                match idle {
                    1 => "1 core is".to_owned(),
                    idle => format!("{idle} cores are"),
                }
            ),
        };
        format!(
            "{} on {of_cores}{beside}: {pinned}{idle}; a unit of another job takes {}",
            slots(on_cores),
            counted(u64::from(threads), "thread")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(on_gpus: u32, on_cores: u32, threads: u32, cores: u32) -> String {
        CoreUse { on_gpus, on_cores, threads, cores }.text()
    }

    #[test]
    fn idle_cores_are_said_with_the_flag_that_uses_them() {
        assert_eq!(
            text(0, 1, 8, 8),
            "1 slot on 8 cores: a unit of a reproducible job takes as many threads as the job says, 1 by default; 7 cores are \
             idle then, which `--slots 8` uses; a unit of another job takes 8 threads"
        );
        assert!(text(0, 7, 1, 8).contains("; 1 core is idle then, which `--slots 8` uses; "));
        assert!(text(2, 1, 8, 8).starts_with("1 slot on 8 cores, and 2 slots on GPUs: "));
        assert!(text(2, 1, 8, 8).contains("`--cpu-slots 8`"));
    }

    #[test]
    fn cores_that_are_all_used_need_no_flag() {
        let all = text(0, 8, 1, 8);
        assert!(!all.contains("idle") && all.ends_with("takes 1 thread"), "{all}");
    }

    #[test]
    fn a_client_with_gpus_alone_says_how_its_cores_can_be_used() {
        let said = text(1, 0, 16, 16);
        assert_eq!(
            said,
            "1 slot on GPUs, none on 16 cores: with `--cpu-slots 16` units train there too"
        );
    }
}
