//! Tests of tables and values that are read, and of the messages about all others.

use super::*;

/// The problems, each with its line.
fn wrong(text: &str, form: impl FnOnce(Table<'_>) -> Option<()>) -> Vec<String> {
    let problems = read(text, "can't be read", form).unwrap_err();
    problems.iter().map(|problem| format!("{}: {problem}", problem.line())).collect()
}

fn wrong_section(text: &str, form: impl FnOnce(&Section<'_>) -> Option<()>) -> Vec<String> {
    wrong(text, |root| form(&Section::from(root)))
}

#[test]
fn values_of_the_wanted_types_are_read() {
    let text = "name = 'a'\nspot = true\ncount = 0x10\nports = [2, 16]\n[by_name]\nx = 1_000\n";
    let all = read(text, "", |root| {
        let root = Section::from(root);
        let ports = root.range("ports", "a range", Node::as_integer::<u8>);
        let there = (root.section("by_name").is_there(), root.section("other").is_there());
        let numbers = (root.number("count", 0..=16), ports, root.numbers("by_name"));
        Some((root.text("name").map(str::to_owned), root.flag("spot"), numbers, there))
    });
    // `by_name` was read as a table without asking for `x` too.
    let problems = all.unwrap_err();
    assert_eq!(problems.len(), 1);
    assert_eq!((problems[0].line(), problems[0].key()), (6, "by_name.x"));
    let numbers = read(text, "", |root| {
        let root = Section::from(root);
        root.is_read_elsewhere();
        Some((root.number("count", 0..=16), root.numbers("by_name"), root.parsed::<char>("name")))
    });
    let thousand = [("x".to_owned(), 1000)].into();
    assert_eq!(numbers, Ok((Some(16), Some(thousand), Some('a'))));
}

#[test]
fn wrong_values_are_told_with_what_is_there_and_what_is_wanted() {
    let found = wrong_section(
        "text = 5\nflag = 'no'\nsmall = -1\nlarge = 300\nfar = 99999999999999999999999999999999999999999\n\
         range = [3, 2]\nlist = ['a', 1]\nparsed = 'ab'\ntable = 1.5\n",
        |root| {
            let _ = (root.text("text"), root.flag("flag"), root.number("small", 1..=9));
            let _ = (root.number("large", 1..=9), root.number("far", 1..=u32::MAX));
            let _ = (root.range("range", "a range", Node::as_integer::<u32>), root.list("list"));
            let _ = (root.parsed::<char>("parsed"), root.section("table"));
            root.required("gone", "a thing").map(|_| ())
        },
    );
    assert_eq!(
        found,
        [
            "1: `text` is a whole number (`5`); a text is wanted",
            "1: `gone` is missing: a thing",
            "2: `flag` is a string (`\"no\"`); `true` or `false` is wanted",
            "3: `small` is -1; a whole number from 1 to 9 is wanted",
            "4: `large` is 300; at most 9 is possible",
            "5: `far` is 99999999999999999999999999999999999999999; a whole number, at least 1, is wanted",
            "6: `range` is no range: its first end is above its last",
            "7: `list[1]` is a whole number (`1`); a text is wanted",
            "8: `parsed` is ab; too many characters in string",
            "9: `table` is a number (`1.5`); a table is wanted",
        ]
    );
}

#[test]
fn unknown_keys_are_told_with_the_nearest_word_another_place_or_all_words() {
    let elsewhere = |word: &str| (word == "zoo").then(|| "`animals.zoo`".to_owned());
    let found = wrong("epoch = 1\nzoo = 2\nqqq = 3\n", |root| {
        root.refuse_unknown(&["epochs", "loss"], "key or table", elsewhere);
        Some(())
    });
    assert_eq!(
        found,
        [
            "1: `epoch` is no known key or table; did you mean `epochs`?",
            "2: `zoo` is no known key or table; did you mean `animals.zoo`?",
            "3: `qqq` is no known key or table; known here: `epochs`, `loss`",
        ]
    );
    let found = wrong_section("[limits]\nflor = 2\nceiling = 3\n", |root| {
        let limits = root.section("limits");
        let _ = (limits.number("floor", 0..=9), limits.number("ceiling", 0..=9));
        Some(())
    });
    assert_eq!(found, ["2: `limits.flor` is no known key; did you mean `floor`?"]);
}

#[test]
fn the_only_table_that_nobody_asked_for_is_left_to_another_reader() {
    let found = |text: &str| {
        let mut table = None;
        let problems = read(text, "", |root| {
            let root = Section::from(root);
            let _ = root.section("limits");
            table = root.foreign_table().map(str::to_owned);
            Some(())
        });
        (table, problems.err().map_or(0, |problems| problems.len()))
    };
    assert_eq!(found("[limits]\n[cloud]\nx = 1\n"), (Some("cloud".to_owned()), 0));
    assert_eq!(found("[limits]\n[cloud]\n[haze]\n"), (None, 2), "which of them isn't known");
    assert_eq!(found("[limts]\nx = 1\n"), (None, 1), "a word that is mistyped");
    assert_eq!(found("cloud = 1\n"), (None, 1), "no table");
}

#[test]
fn problems_of_an_absent_table_are_where_it_would_be() {
    let found = wrong_section("\nlimits = 5\n", |root| {
        root.section("limits").refuse("machines", "is missing");
        root.section("times").refuse("boot", "is missing");
        Some(())
    });
    assert_eq!(
        found,
        [
            "1: `times.boot` is missing",
            "2: `limits` is a whole number (`5`); a table is wanted",
            "2: `limits.machines` is missing",
        ]
    );
}

#[test]
fn a_text_that_is_no_toml_is_told_and_nothing_else_of_it() {
    let found = wrong("a = 1\nb = 'open\n", |_| panic!("not reached"));
    assert!(found[0].starts_with("2: no valid TOML here: "), "{found:?}");
    assert_eq!(wrong("", |_| None), ["1: can't be read"]);
}

#[test]
fn after_a_hundred_problems_only_that_there_are_more_is_told() {
    let text: String = (0..150).map(|n| format!("key{n:03} = 1\n")).collect();
    let found = wrong(&text, |root| {
        root.refuse_unknown(&[], "key", |_| None);
        Some(())
    });
    assert_eq!(found.len(), 101);
    assert_eq!(found[100], "100: there are more problems than these");
}

#[test]
fn long_keys_and_messages_are_cut() {
    let problem = Problem::new(1, &"k".repeat(300), &"m".repeat(2000));
    assert_eq!(problem.key(), "k".repeat(200) + "…");
    assert_eq!(problem.to_string(), format!("`{}…` {}…", "k".repeat(200), "m".repeat(1000)));
}
