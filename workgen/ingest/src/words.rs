//! The different words of a column: classes of labels, or categories of features.

use std::collections::BTreeSet;

/// Different words, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Words(BTreeSet<String>);

impl Words {
    pub(crate) fn contains(&self, word: &str) -> bool {
        self.0.contains(word)
    }

    pub(crate) fn add(&mut self, word: &str) {
        self.0.insert(word.to_owned());
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// In index order: numerically where all are whole numbers, else by bytes.
    pub(crate) fn in_order(self) -> Vec<String> {
        let numbers: Option<Vec<(i128, String)>> =
            self.0.iter().map(|name| Some((name.parse().ok()?, name.clone()))).collect();
        match numbers {
            Some(mut numbers) => {
                numbers.sort();
                numbers.into_iter().map(|(_, name)| name).collect()
            }
            None => self.0.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_order(words: &[&str]) -> Vec<String> {
        let mut found = Words::default();
        words.iter().for_each(|word| found.add(word));
        found.in_order()
    }

    #[test]
    fn whole_numbers_are_in_their_order_and_words_by_bytes() {
        assert_eq!(in_order(&["10", "9", "-1"]), ["-1", "9", "10"]);
        assert_eq!(in_order(&["10", "9", "b"]), ["10", "9", "b"]);
        assert_eq!(in_order(&["01", "1"]), ["01", "1"]);
    }
}
