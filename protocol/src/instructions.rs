//! Instruction sets that arithmetic is pinned to, each with the environment of its trainers.

use std::fmt;

/// An instruction set in which a trainer computes reproducible units. Each gives bytes of its own, so each is a numeric
/// class of its own (docs/internals/determinism.md).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstructionSet {
    /// AVX2: the one that all machines have.
    #[default]
    Avx2,
    /// AVX-512 with its extensions for bytes, words and vectors of all lengths.
    Avx512,
}

impl InstructionSet {
    /// All of them, from the slowest to the fastest.
    pub const ALL: [Self; 2] = [Self::Avx2, Self::Avx512];

    /// The set that every host offers, and that leases without a word of it mean.
    pub const COMMON: Self = Self::Avx2;

    /// The set's name in inventories and leases.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// The set of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name() == name)
    }

    /// The environment that pins a trainer's arithmetic to it. libtorch reads most of it only once, at start.
    #[must_use]
    pub const fn environment(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Avx2 => AVX2,
            Self::Avx512 => AVX512,
        }
    }
}

impl fmt::Display for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

const AVX2: &[(&str, &str)] = &[
    ("ATEN_CPU_CAPABILITY", "avx2"),
    ("ONEDNN_MAX_CPU_ISA", "AVX2"),
    ("DNNL_MAX_CPU_ISA", "AVX2"),
    ("MKL_CBWR", "AVX2"),
    ("MKL_ENABLE_INSTRUCTIONS", "AVX2"),
    ("MKL_DYNAMIC", "FALSE"),
    ("OMP_DYNAMIC", "FALSE"),
    // On a GPU: the same order of sums in every matrix product.
    ("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),
];

/// oneDNN is kept from extensions that only some of these machines have (`bfloat16`, AMX): the calibration trains in
/// single precision, so it would not tell such machines apart.
const AVX512: &[(&str, &str)] = &[
    ("ATEN_CPU_CAPABILITY", "avx512"),
    ("ONEDNN_MAX_CPU_ISA", "AVX512_CORE"),
    ("DNNL_MAX_CPU_ISA", "AVX512_CORE"),
    ("MKL_CBWR", "AVX512"),
    ("MKL_ENABLE_INSTRUCTIONS", "AVX512"),
    ("MKL_DYNAMIC", "FALSE"),
    ("OMP_DYNAMIC", "FALSE"),
    ("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_known_by_their_names_and_pin_the_same_variables() {
        for set in InstructionSet::ALL {
            assert_eq!(InstructionSet::named(set.name()), Some(set));
            let variables = |set: InstructionSet| set.environment().iter().map(|(name, _)| *name);
            assert!(variables(set).eq(variables(InstructionSet::COMMON)), "{set}");
        }
        assert_eq!(InstructionSet::named("amx"), None);
    }
}
