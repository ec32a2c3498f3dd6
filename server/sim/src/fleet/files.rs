//! Files that a scenario names: whoever runs it opens them.

/// Gives the text of a file that a scenario names, or says why it can't.
pub type Files<'a> = dyn FnMut(&str) -> Result<String, String> + 'a;
