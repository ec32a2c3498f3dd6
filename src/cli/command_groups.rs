//! The list of commands in `sojourn --help`, grouped by the task that a person has.

use crate::cli::terminal::columns::{of_help, wrapped};
use clap::Command;

/// The width of the list where no terminal says one: that of clap's other texts.
const DEFAULT_COLUMNS: usize = 100;
/// Where fewer columns are left beside a name, the text stands below it.
const MIN_TEXT_COLUMNS: usize = 36;
/// The line of the command that clap adds.
const HELP: &str = "Print this list, or the help of a command";

/// The groups, in the order in which a new user needs them.
const GROUPS: [(&str, &[&str]); 7] = [
    (
        "Start a job and watch it",
        &["init", "validate", "submit", "jobs", "status", "trials", "top", "events", "share"],
    ),
    (
        "Change a job",
        &["pause", "resume", "extend", "search", "set", "rollback", "cancel", "delete"],
    ),
    ("Models and results", &["check", "export", "report", "evaluate", "predict"]),
    ("Lend machines", &["client", "service", "hosts", "block", "unblock", "revoke"]),
    (
        "Run a server",
        &["serve", "assimilate", "backlog", "traffic", "token", "gc", "backup", "migrate", "cloud"],
    ),
    ("Lab", &["replay", "simulate", "demo"]),
    ("Connect programs", &["openapi", "completions", "help"]),
];

/// The command line with its commands in groups.
pub(crate) fn in_groups(command: Command) -> Command {
    let columns = of_help().unwrap_or(DEFAULT_COLUMNS);
    let styles = command.get_styles();
    let (heading, name) = (*styles.get_header(), *styles.get_literal());
    let lines = lines(&command, columns).into_iter().map(|line| match line {
        Line::Heading(text) => format!("{heading}{text}:{heading:#}\n"),
        Line::Command { indent, command, gap, text } => {
            format!("{indent}{name}{command}{name:#}{gap}{text}\n")
        }
        Line::Text(text) => format!("{text}\n"),
    });
    let list: String = lines.collect();
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}\n{heading}Options:{heading:#}\n{{options}}{{after-help}}"
    ))
}

/// A line of the list.
enum Line {
    Heading(&'static str),
    Command { indent: &'static str, command: &'static str, gap: String, text: String },
    Text(String),
}

fn lines(command: &Command, columns: usize) -> Vec<Line> {
    const INDENT: &str = "  ";
    let names = GROUPS.iter().flat_map(|(_, commands)| commands.iter());
    let longest = names.map(|name| name.len()).max().unwrap_or(0);
    let beside = INDENT.len() + longest + 2;
    let is_narrow = columns < beside + MIN_TEXT_COLUMNS;
    let margin = if is_narrow { 2 * INDENT.len() } else { beside };
    let room = columns.saturating_sub(margin).max(1);
    let mut lines = Vec::new();
    for (number, (heading, commands)) in GROUPS.iter().enumerate() {
        if number > 0 {
            lines.push(Line::Text(String::new()));
        }
        lines.push(Line::Heading(heading));
        for name in *commands {
            let about = about(command, name);
            let mut texts = wrapped(&about, u16::try_from(room).unwrap_or(u16::MAX)).into_iter();
            let (gap, text) = match is_narrow {
                true => (String::new(), String::new()),
                false => {
                    let gap = " ".repeat(beside - INDENT.len() - name.len());
                    (gap, texts.next().unwrap_or_default())
                }
            };
            lines.push(Line::Command { indent: INDENT, command: name, gap, text });
            lines.extend(texts.map(|text| Line::Text(format!("{}{text}", " ".repeat(margin)))));
        }
    }
    lines
}

/// The first line of a command's help.
fn about(command: &Command, name: &str) -> String {
    match command.find_subcommand(name).and_then(Command::get_about) {
        Some(about) => about.to_string(),
        None => HELP.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command_line::command;

    /// The names of the commands that clap shows, `help` among them.
    fn shown() -> Vec<String> {
        let mut command = command();
        command.build();
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        shown.map(|command| command.get_name().to_owned()).collect()
    }

    #[test]
    fn each_command_is_in_one_group() {
        let grouped =
            GROUPS.iter().flat_map(|(_, names)| names.iter().map(|name| name.to_string()));
        let mut grouped: Vec<String> = grouped.collect();
        let mut shown = shown();
        grouped.sort();
        shown.sort();
        assert_eq!(grouped, shown);
    }

    #[test]
    fn the_help_lists_each_command_once_with_its_line() {
        let command = command();
        let help = in_groups(command.clone()).render_help().to_string();
        for name in shown() {
            let beginning = format!("  {name} ");
            let lines: Vec<&str> =
                help.lines().filter(|line| line.starts_with(&beginning)).collect();
            assert_eq!(lines.len(), 1, "{name}:\n{help}");
            let about = about(&command, &name);
            let first = about.split_whitespace().next().unwrap();
            assert!(lines[0].contains(first), "{}", lines[0]);
        }
        for (heading, _) in GROUPS {
            assert!(help.contains(&format!("\n{heading}:\n")), "{help}");
        }
        assert!(help.contains("\nOptions:\n  -h, --help"), "{help}");
    }

    #[test]
    fn a_narrow_terminal_has_the_text_below_the_name() {
        let command = command();
        for columns in [40, 80, 100] {
            let lines = lines(&command, columns).into_iter().map(|line| match line {
                Line::Heading(text) => text.to_owned(),
                Line::Command { indent, command, gap, text } => {
                    format!("{indent}{command}{gap}{text}")
                }
                Line::Text(text) => text,
            });
            let lines: Vec<String> = lines.collect();
            let widest = lines.iter().map(|line| line.chars().count()).max();
            assert!(widest <= Some(columns), "{}", lines.join("\n"));
            assert_eq!(lines.contains(&"  validate".to_owned()), columns == 40);
        }
    }
}
