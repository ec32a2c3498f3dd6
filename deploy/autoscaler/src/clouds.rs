//! The cloud that a file names, among those that the program was built with.

use crate::config::Config;
use sojourn_clouds::{Account, Provider, ProviderError, Providers};

/// Why there is no account.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloudsError {
    /// The program was built without the cloud that the file names.
    #[error("this program was built without the cloud of `[{table}]`; {}", known(built))]
    NotBuilt {
        /// The table.
        table: String,
        /// The clouds that it has, with their tables.
        built: Vec<String>,
    },
    /// The table can't be understood, or a value in it can't be.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

fn known(built: &[String]) -> String {
    if built.is_empty() { "it has none".to_owned() } else { format!("it has {}", built.join(", ")) }
}

/// A cloud with its table, for messages.
pub(crate) fn shown(provider: &dyn Provider) -> String {
    format!("{} (`[{}]`)", provider.title(), provider.table())
}

/// The account that the file describes. Nothing is asked of the cloud.
///
/// # Errors
/// With what is wrong, and where the program was built without that cloud.
pub fn account(config: &Config, providers: Providers<'_>) -> Result<Box<dyn Account>, CloudsError> {
    let cloud = &config.cloud;
    let of_table = providers.iter().find(|provider| provider.table() == cloud.name);
    let provider = of_table.ok_or_else(|| CloudsError::NotBuilt {
        table: cloud.name.clone(),
        built: providers.iter().map(|provider| shown(*provider)).collect(),
    })?;
    Ok(provider.read(&cloud.table, &config.fleet, &cloud.folder)?)
}
