//! The flags of the log, which the programs have that run on: server, client, assimilators and autoscaler.

use clap::ValueEnum;

/// How the log is written.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct FormArgs {
    /// The form of the log on stderr: `text`, or `json` for a JSON object a line, with the trace that the line belongs to. JSON
    /// also has a line for each step of each unit.
    #[arg(long, env = "SOJOURN_LOG_FORMAT", value_name = "FORM", value_enum, default_value_t)]
    pub(super) log_format: LogFormat,
}

/// How the log is written, and where traces go.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct LogArgs {
    #[command(flatten)]
    pub(super) form: FormArgs,
    /// Export traces to this collector of OpenTelemetry, as OTLP over HTTP: `http://127.0.0.1:4318`, to which `/v1/traces` is added.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    otlp: Option<String>,
}

/// The form of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

impl LogArgs {
    /// The collector. An empty variable is as none: OpenTelemetry's specification of environment variables has it so.
    pub(super) fn collector(&self) -> Option<&str> {
        self.otlp.as_deref().filter(|url| !url.is_empty())
    }
}
