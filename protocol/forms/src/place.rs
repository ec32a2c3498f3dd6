//! On which line of a text something stands.

use toml::de::{DeTable, DeValue};

/// The line, from 1, of a byte offset of the text.
#[must_use]
pub fn line_at(text: &str, place: usize) -> usize {
    text.bytes().take(place).filter(|byte| *byte == b'\n').count() + 1
}

/// The line of `hosts.1.tflops`, or of the innermost table on the way there that the text has.
#[must_use]
pub fn line_of(text: &str, path: &str) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let (mut table, mut found) = (root.get_ref(), None);
    let mut keys = path.split('.').peekable();
    while let Some(key) = keys.next() {
        let Some((name, value)) = table.get_key_value(key) else { break };
        let mut value = value;
        found = Some(name.span().start);
        if let DeValue::Array(list) = value.get_ref()
            && let Some(n) = keys.peek().and_then(|key| key.parse::<usize>().ok())
        {
            let Some(one) = list.get(n) else { break };
            value = one;
            found = Some(one.span().start);
            keys.next();
        }
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => break,
        }
    }
    found.map(|place| line_at(text, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_lines() {
        let text = "seed = 1\n[[hosts]]\ncount = 2\n\n[[hosts]]\ntflops = 1\nspot.back = 3\n[job]\n\
                    trials = 4\n[server]\npolicy = \"ltrp\"\n";
        for (path, line) in [
            ("seed", Some(1)),
            ("hosts.0.count", Some(3)),
            ("hosts.0.tflops", Some(2)),
            ("hosts.1.tflops", Some(6)),
            ("hosts.1.spot.back", Some(7)),
            ("hosts.1.spot.losses_per_hour", Some(7)),
            ("hosts.1.count", Some(5)),
            ("job.trials", Some(9)),
            ("server.policy", Some(11)),
            ("jobs.0.trials", None),
        ] {
            assert_eq!(line_of(text, path), line, "{path}");
        }
    }
}
