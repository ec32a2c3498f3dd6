//! The Python package that makes graphs, as this program carries it: a job's Python needs PyTorch and nothing of ours.

use std::{fs, io, path::Path};

/// The package's files.
const FILES: &[(&str, &str)] = &[
    ("__init__.py", include_str!("../../python/sojourn/__init__.py")),
    ("canonical.py", include_str!("../../python/sojourn/canonical.py")),
    ("check.py", include_str!("../../python/sojourn/check.py")),
    ("column.py", include_str!("../../python/sojourn/column.py")),
    ("costs.py", include_str!("../../python/sojourn/costs.py")),
    ("data.py", include_str!("../../python/sojourn/data.py")),
    ("description.py", include_str!("../../python/sojourn/description.py")),
    ("export.py", include_str!("../../python/sojourn/export.py")),
    ("index_check.py", include_str!("../../python/sojourn/index_check.py")),
    ("keras.py", include_str!("../../python/sojourn/keras.py")),
    ("lightning.py", include_str!("../../python/sojourn/lightning.py")),
    ("metrics.py", include_str!("../../python/sojourn/metrics.py")),
    ("model.py", include_str!("../../python/sojourn/model.py")),
    ("nodes.py", include_str!("../../python/sojourn/nodes.py")),
    ("parts.py", include_str!("../../python/sojourn/parts.py")),
    ("program.py", include_str!("../../python/sojourn/program.py")),
    ("refusal.py", include_str!("../../python/sojourn/refusal.py")),
    ("rows.py", include_str!("../../python/sojourn/rows.py")),
    ("run_graph.py", include_str!("../../python/sojourn/run_graph.py")),
    ("seeds.py", include_str!("../../python/sojourn/seeds.py")),
    ("starts.py", include_str!("../../python/sojourn/starts.py")),
    ("torch.py", include_str!("../../python/sojourn/torch.py")),
    ("tracing.py", include_str!("../../python/sojourn/tracing.py")),
    ("transformers.py", include_str!("../../python/sojourn/transformers.py")),
    ("watch.py", include_str!("../../python/sojourn/watch.py")),
    ("wrapped.py", include_str!("../../python/sojourn/wrapped.py")),
];

/// Writes the package into a folder that is to be on Python's path.
pub(super) fn write(folder: &Path) -> io::Result<()> {
    let package = folder.join("sojourn");
    fs::create_dir_all(&package)?;
    FILES.iter().try_for_each(|(name, text)| fs::write(package.join(name), text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_program_carries_the_whole_package() {
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/sojourn");
        let there = fs::read_dir(package).unwrap().filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.ends_with(".py").then_some(name)
        });
        let carried: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(there.collect::<BTreeSet<_>>(), carried);
    }
}
