//! Patterns of instance types: names in which `*` stands for any characters.

/// Does the pattern match the whole name?
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(rest) = name.strip_prefix(before) else {
        return false;
    };
    rest.char_indices()
        .map(|(at, _)| at)
        .chain([rest.len()])
        .any(|at| rest.get(at..).is_some_and(|rest| matches(after, rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, expected) in [
            ("c7i.large", "c7i.large", true),
            ("c7i.large", "c7i.xlarge", false),
            ("c7i.*", "c7i.2xlarge", true),
            ("c7i.*", "c7id.2xlarge", false),
            ("c*.2xlarge", "c7i.2xlarge", true),
            ("c*.2xlarge", "c7i.12xlarge", false),
            ("*xlarge", "c7i.12xlarge", true),
            ("*", "any.thing", true),
            ("c7i.**", "c7i.", true),
            ("", "", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
