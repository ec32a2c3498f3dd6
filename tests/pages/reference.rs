//! The reference pages are whole: `docs/commands.md` beside `--help`, `docs/job-file.md` beside the reader's keys,
//! `docs/models/operators.md` beside the table of operators.

use crate::page::Page;
use sojourn_protocol::jobfile::TABLES;
use std::{collections::BTreeSet, process::Command};

/// The words that `sojourn WORDS --help` lists.
struct Help {
    commands: Vec<String>,
    flags: BTreeSet<String>,
    variables: BTreeSet<String>,
}

fn help(words: &[String]) -> Help {
    let output =
        Command::new(env!("CARGO_BIN_EXE_sojourn")).args(words).arg("--help").output().unwrap();
    assert!(output.status.success(), "{words:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut heading = "";
    let mut help = Help { commands: vec![], flags: BTreeSet::new(), variables: BTreeSet::new() };
    for line in text.lines() {
        if !line.starts_with(' ') {
            // Options with longer texts have empty lines between them.
            heading = if line.is_empty() { heading } else { line };
            continue;
        }
        let first = line.split_whitespace().next().unwrap_or_default();
        let indent = line.len() - line.trim_start().len();
        // The program's own help has its commands in groups.
        let is_list = match words {
            [] => !["Usage:", "Options:"].contains(&heading),
            _ => heading == "Commands:",
        };
        if is_list && indent == 2 && first != "help" {
            help.commands.push(first.to_owned());
        }
        if heading == "Options:" && first.starts_with('-') && indent <= 6 {
            help.flags.extend(long_flags(line));
        }
        for part in line.split("[env: ").skip(1) {
            let name = part.split(['=', ']']).next().unwrap_or_default();
            help.variables.insert(name.to_owned());
        }
    }
    help
}

/// The long flags that a text names.
fn long_flags(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let words = text.split(|c: char| !is_part(c));
    let is_flag = |word: &str| {
        word.strip_prefix("--")
            .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
    };
    words.filter(|word| is_flag(word)).map(str::to_owned).collect()
}

/// Every command, by its words.
fn commands() -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![Vec::new()];
    while let Some(words) = open.pop() {
        for command in help(&words).commands {
            let words: Vec<String> = words.iter().cloned().chain([command]).collect();
            open.push(words.clone());
            found.push(words);
        }
    }
    found
}

#[test]
fn every_command_and_flag_has_its_line() {
    let page = Page::read("docs/commands.md");
    let shared = page.section("## Shared rules").unwrap();
    let section = |words: &[String]| {
        let name = words.join(" ");
        ["##", "###"].iter().find_map(|signs| page.section(&format!("{signs} `sojourn {name}`")))
    };
    let mut missing = Vec::new();
    let commands = commands();
    assert!(commands.len() > 30, "{commands:?}");
    for words in &commands {
        let name = words.join(" ");
        let Some(own) = section(words) else {
            missing.push(format!("`sojourn {name}` has no section"));
            continue;
        };
        // A flag of a command is a flag of the commands below it.
        let above = (1..words.len()).filter_map(|length| section(&words[..length]));
        let all = above.fold(shared.clone() + &own, |all, section| all + &section);
        let (said, help) = (long_flags(&all), help(words));
        let unsaid = help.flags.iter().filter(|flag| !said.contains(*flag));
        missing.extend(unsaid.map(|flag| format!("{name} {flag}")));
        let unsaid = help.variables.iter().filter(|variable| !all.contains(*variable));
        missing.extend(unsaid.map(|variable| format!("{name} {variable}")));
        // A section of a command may name flags of the commands below it.
        let below = commands.iter().filter(|other| other.starts_with(words));
        let real: BTreeSet<String> = below.flat_map(|words| self::help(words).flags).collect();
        let said = long_flags(&own);
        let stale = said.iter().filter(|flag| !real.contains(*flag));
        missing.extend(stale.map(|flag| format!("{name}: there is no {flag}")));
    }
    assert!(missing.is_empty(), "docs/commands.md lacks\n{}", missing.join("\n"));
}

#[test]
fn every_key_of_a_job_file_has_its_line() {
    let page = Page::read("docs/job-file.md");
    let mut missing = Vec::new();
    for (table, keys) in TABLES {
        let heading = match table.split('.').next().unwrap() {
            "" => "## Top level".to_owned(),
            "model" => "## `[[model]]`".to_owned(),
            table => format!("## `[{table}]`"),
        };
        let section = page.section(&heading).unwrap_or_else(|| panic!("no {heading}"));
        // The tables of the file have sections of their own.
        let headings: String = page.headings().join("\n");
        let text = if table.is_empty() { section + &headings } else { section };
        let spans: BTreeSet<String> = text
            .split('`')
            .skip(1)
            .step_by(2)
            .flat_map(|span| span.split(|c: char| !c.is_alphanumeric() && c != '_'))
            .map(str::to_owned)
            .collect();
        let unsaid = keys.iter().filter(|key| !spans.contains(**key));
        missing.extend(unsaid.map(|key| format!("{table}.{key}")));
    }
    assert!(missing.is_empty(), "docs/job-file.md lacks {missing:?}");
}

/// The name of a graph's operator as the page has it: `aten.conv2d.default` is `conv2d`.
fn short_name(operator: &str) -> &str {
    let name = operator.strip_prefix("aten.").unwrap_or(operator);
    name.strip_suffix(".default").unwrap_or(name)
}

#[test]
fn every_operator_of_graphs_is_listed_and_no_other() {
    let page = Page::read("docs/models/operators.md");
    let lists = page.text.lines().filter(|line| line.starts_with('`'));
    let listed: BTreeSet<&str> =
        lists.flat_map(|line| line.split('`').skip(1).step_by(2)).collect();
    let known: BTreeSet<&str> = sojourn_graph::operators().map(short_name).collect();
    assert_eq!(listed, known);
}
