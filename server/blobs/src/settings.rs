//! The settings of object stores, by the names that the stores' own tools use: `AWS_ACCESS_KEY_ID` and the like.

use std::{collections::BTreeMap, fmt, time::Duration};

/// The prefixes of the settings of each kind of store. The last two are exceptions of Google and Azure.
const PREFIXES: [&str; 5] = ["AWS_", "AZURE_", "GOOGLE_", "SERVICE_ACCOUNT", "MSI_ENDPOINT"];
/// A request that the store throttles, or that breaks off, is retried for so long.
const DEFAULT_RETRY_TIMEOUT: Duration = Duration::from_secs(60);

/// Keys, endpoints and other settings of a store. Of one name the last value counts.
#[derive(Clone)]
pub struct StoreSettings {
    words: BTreeMap<String, String>,
    patience: Duration,
}

impl fmt::Debug for StoreSettings {
    /// Shows the names alone: some values are secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&String> = self.words.keys().collect();
        f.debug_struct("StoreSettings").field("words", &words).finish_non_exhaustive()
    }
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self { words: BTreeMap::new(), patience: DEFAULT_RETRY_TIMEOUT }
    }
}

impl StoreSettings {
    /// The settings in the environment.
    #[must_use]
    pub fn from_env() -> Self {
        let words = std::env::vars_os().filter_map(|(word, value)| {
            let word = word.into_string().ok()?;
            let known = PREFIXES.iter().any(|prefix| word.starts_with(prefix));
            known.then_some((word, value.into_string().ok()?))
        });
        words.fold(Self::default(), |settings, (word, value)| settings.with(&word, &value))
    }

    /// Adds one setting.
    #[must_use]
    pub fn with(mut self, word: &str, value: &str) -> Self {
        self.words.insert(word.to_ascii_lowercase(), value.to_owned());
        self
    }

    /// Retries requests for so long.
    #[must_use]
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    #[cfg(feature = "object-stores")]
    pub(crate) const fn patience(&self) -> Duration {
        self.patience
    }

    /// The settings that a kind of store knows.
    #[cfg(feature = "object-stores")]
    pub(crate) fn of<K: std::str::FromStr>(&self) -> impl Iterator<Item = (K, &str)> {
        self.words.iter().filter_map(|(word, value)| Some((word.parse().ok()?, value.as_str())))
    }
}

#[cfg(all(test, feature = "object-stores"))]
mod tests {
    use super::*;
    use object_store::{aws::AmazonS3ConfigKey, azure::AzureConfigKey};

    #[test]
    fn each_store_gets_the_settings_that_it_knows_and_no_value_is_shown() {
        let settings = StoreSettings::default()
            .with("AWS_ACCESS_KEY_ID", "first")
            .with("AWS_ACCESS_KEY_ID", "secret")
            .with("AZURE_STORAGE_ACCOUNT_NAME", "other")
            .with("AWS_NOT_A_WORD", "nothing");
        let s3: Vec<(AmazonS3ConfigKey, &str)> = settings.of().collect();
        assert_eq!(s3, [(AmazonS3ConfigKey::AccessKeyId, "secret")]);
        assert_eq!(settings.of::<AzureConfigKey>().count(), 1);
        assert!(!format!("{settings:?}").contains("secret"));
    }
}
