//! The file of a fleet: what it may say, what it means, and what is wrong with it.
//!
//! `docs/operate/autoscaler.md` has every key. Paths are taken from the folder of the file.
//!
//! | file | holds |
//! |---|---|
//! | `cloud` | the table of the file's cloud |
//! | `site` | a file whose server's machine `up` makes |
//! | `size` | sizes with their units |
//! | `words` | what a file means, in sentences |

mod cloud;
mod site;
mod size;
mod words;

pub use cloud::CloudTable;
pub use site::filled;
pub use words::words;

use size::size;
use sojourn_clouds::Providers;
use sojourn_fleet::{
    limits::Limits,
    settings::{Markets, Settings, Times, Types},
};
use sojourn_forms::{Node, Problem, Section};
use sojourn_protocol::{money::MicroUsd, time::Millis};
use std::{
    fmt, fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
};

/// Characters of a fleet's name: names of machines begin with it.
pub const MAX_FLEET_CHARS: usize = 24;
/// The variable that names another file with the token: that of a service, for example.
pub const TOKEN_FILE_VARIABLE: &str = "SOJOURN_TOKEN_FILE";
/// Bytes of a file, at most.
const MAX_BYTES: u64 = 1 << 20;
/// For how long offers are taken to be those of now, unless the file says otherwise.
const PRICES: Millis = Millis::from_secs(120);

/// All that a file says.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The fleet's name: machines carry it in a tag.
    pub fleet: String,
    /// The address of the server; of several servers all of them, with commas between.
    pub server: String,
    /// The file with the token of a user who may administer.
    pub token_file: PathBuf,
    /// A PEM file with the authority to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// Where metrics are served: a port of this machine.
    pub metrics: Option<SocketAddr>,
    /// For how long offers are taken to be those of now.
    pub prices: Millis,
    /// How the fleet is planned.
    pub settings: Settings,
    /// The settings that machines are told at their first start.
    pub machine: MachineConfig,
    /// Whether `up` makes the server's machine: what the file doesn't say is as on that machine.
    pub has_site: bool,
    /// The table of the file's cloud.
    pub cloud: CloudTable,
}

/// The settings that machines are told at their first start, by the placeholders of their user data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineConfig {
    /// The server's address as machines see it.
    pub server: String,
    /// A PEM file with the authority that machines trust for it.
    pub ca: Option<PathBuf>,
    /// A machine without work for so long ends itself.
    pub idle: Millis,
    /// The client among the server's programs, by its name there or its SHA-256.
    pub client: String,
    /// The trainer among the server's programs, by its name there or its SHA-256.
    pub trainer: String,
}

/// A file that can't be used.
#[derive(Debug)]
pub enum ConfigError {
    /// The file can't be read.
    Unread {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file was read, and has problems.
    Wrong {
        /// The file.
        path: PathBuf,
        /// The problems, in the order of the lines; never empty.
        problems: Vec<Problem>,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread { path, source } => write!(f, "`{}`: {source}", path.display()),
            Self::Wrong { path, problems } => {
                for (index, problem) in problems.iter().enumerate() {
                    let separator = if index > 0 { "\n" } else { "" };
                    let line = problem.line();
                    write!(f, "{separator}`{}`, line {line}: {problem}", path.display())?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unread { source, .. } => Some(source),
            Self::Wrong { .. } => None,
        }
    }
}

impl Config {
    /// Reads a file, which has the table of one of these clouds. The environment's token file goes over the file's.
    ///
    /// # Errors
    /// Where it can't be read, and with all that is wrong with it.
    pub fn read(path: &Path, providers: Providers<'_>) -> Result<Self, ConfigError> {
        let unread = |source| ConfigError::Unread { path: path.to_owned(), source };
        let bytes = fs::metadata(path).map_err(unread)?.len();
        if bytes > MAX_BYTES {
            return Err(unread(io::Error::other("a file of at most 1 MiB is wanted")));
        }
        let text = fs::read_to_string(path).map_err(unread)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut config = Self::parse(&text, folder, providers)
            .map_err(|problems| ConfigError::Wrong { path: path.to_owned(), problems })?;
        if let Some(file) = std::env::var_os(TOKEN_FILE_VARIABLE).filter(|file| !file.is_empty()) {
            config.token_file = file.into();
        }
        Ok(config)
    }

    /// Reads a file's text. The only table that is known to nobody is taken for that of a cloud without which the program was built.
    ///
    /// # Errors
    /// All that is wrong with it, in the order of its lines.
    pub fn parse(
        text: &str,
        folder: &Path,
        providers: Providers<'_>,
    ) -> Result<Self, Vec<Problem>> {
        sojourn_forms::read(text, "can't be read as a fleet", |root| {
            read(&Section::from(root), text, folder, providers)
        })
    }
}

/// Reads all tables; none only after a problem was reported.
fn read(root: &Section<'_>, text: &str, folder: &Path, providers: Providers<'_>) -> Option<Config> {
    let fleet = root.required("fleet", "the fleet's name, as `fleet = \"team\"`");
    let fleet = fleet.filter(|name| is_name(root, name));
    // The same text, as the table that a provider takes.
    let file: toml::Table = text.parse().unwrap_or_default();
    let present = cloud::present(root, providers);
    let defaults = cloud::defaults(&present, &file);
    let at = |path: &str| folder.join(path);
    let ca = root.text("ca").map(at);
    let (server, token_file, ca) = if let Some(of_site) = defaults {
        let ca = ca.or_else(|| (!root.has("server")).then(|| of_site.ca.into()));
        let token_file = root.text("token_file").unwrap_or(of_site.token_file);
        (root.text("server").or(Some(of_site.server)), Some(token_file), ca)
    } else {
        let server = "the server's address, as `https://sojourn.example.org`";
        let server = root.required("server", server);
        let token = "the file with the token of a user who may administer";
        (server, root.required("token_file", token), ca)
    };
    let metrics: Option<SocketAddr> = root.parsed("metrics");
    if metrics.is_some_and(|address| !address.ip().is_loopback()) {
        root.refuse("metrics", "is no address of this machine alone, as `127.0.0.1:9464` is");
    }
    let prices = root.parsed("prices").unwrap_or(PRICES);
    let mut settings = Settings::new(limits(&root.section("limits")));
    if let Some(fleet) = fleet {
        fleet.clone_into(&mut settings.prefix);
    }
    let types_table = root.section("types");
    settings.types = types(&types_table);
    if settings.limits.vcpus.is_some_and(|most| settings.types.vcpus.0 > most) {
        types_table.refuse("vcpus", "begins above `limits.vcpus`: no machine could be bought");
    }
    let Types { names, except, .. } = &settings.types;
    if !names.is_empty() && names.iter().all(|name| except.contains(name)) {
        types_table.refuse("except", "has all of `types.names`: no machine could be bought");
    }
    drop(types_table);
    let markets_table = root.section("markets");
    settings.markets = markets(&markets_table);
    if let Some(percent) = markets_table.number("interruptions_percent", 0..=100) {
        settings.interruptions = percent * 10;
    }
    if settings.markets.floor > settings.limits.machines {
        markets_table.refuse("floor", "is more than `limits.machines`");
    }
    let Markets { spot, fallback, floor, .. } = settings.markets;
    if !spot && !fallback && floor == 0 {
        let nothing = "is `false`, and so is `markets.fallback`, without a `markets.floor`: nothing could be bought";
        markets_table.refuse("spot", nothing);
    }
    drop(markets_table);
    let times_table = root.section("times");
    settings.times = times(&times_table);
    if settings.times.enrol <= settings.times.boot {
        times_table.refuse(
            "enrol",
            "has to be longer than `times.boot`: a machine joins once it has started",
        );
    }
    drop(times_table);
    if let Some(interval) = root.parsed("interval") {
        settings.times.interval = interval;
    }
    // The lease is renewed with a plan: it has to last from one to the next.
    if !(5_000..=120_000).contains(&settings.times.interval.0) {
        root.refuse("interval", "is wrong: between 5s and 2min are wanted");
    }
    let machine = machine(&root.section("machine"), server, ca.as_ref(), folder);
    let name = cloud::name(root, &present, providers);
    Some(Config {
        fleet: fleet?.to_owned(),
        server: server?.to_owned(),
        token_file: at(token_file?),
        ca,
        metrics,
        prices,
        settings,
        machine: machine?,
        has_site: defaults.is_some(),
        cloud: CloudTable {
            table: cloud::table(file, name.as_deref()?)?,
            name: name?,
            folder: folder.to_owned(),
        },
    })
}

fn is_name(root: &Section<'_>, name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_name = (1..=MAX_FLEET_CHARS).contains(&name.len()) && name.bytes().all(fits);
    if !is_name {
        let wanted = "1 to 24 lower-case letters, digits and `-` are wanted";
        root.refuse("fleet", format!("is wrong: {wanted}"));
    }
    is_name
}

fn limits(table: &Section<'_>) -> Limits {
    let machines = table.number("machines", 0..=10_000);
    if !table.has("machines") {
        table.refuse("machines", "is missing: the most machines at a time");
    }
    let (total, job): (Option<MicroUsd>, Option<MicroUsd>) =
        (table.parsed("total"), table.parsed("job"));
    if let Some((total, _)) = total.zip(job).filter(|(total, job)| job > total) {
        table.refuse(
            "job",
            format!("is more than `limits.total`, {total}: no job could cost so much"),
        );
    }
    Limits {
        machines: machines.unwrap_or(0),
        vcpus: table.number("vcpus", 0..=u32::MAX),
        hourly: table.parsed("hourly"),
        total,
        job,
    }
}

fn types(table: &Section<'_>) -> Types {
    let default = Types::default();
    let numbers = |key| table.range(key, "a range, as `[2, 16]`,", Node::as_integer);
    Types {
        names: table.list("names").unwrap_or_default(),
        except: table.list("except").unwrap_or_default(),
        vcpus: numbers("vcpus").unwrap_or(default.vcpus),
        memory: table
            .range("memory", "a range, as `[\"4GiB\", \"64GiB\"]`,", size)
            .unwrap_or(default.memory),
        gpus: numbers("gpus").unwrap_or(default.gpus),
        vcpus_per_slot: table.number("vcpus_per_slot", 1..=1024),
        reserved_memory: table
            .number("reserved_mib", 0..=1_000_000)
            .map_or(default.reserved_memory, |mib| u64::from(mib) << 20),
        vcpu_gflops: table.number("vcpu_gflops", 1..=1_000_000).unwrap_or(default.vcpu_gflops),
        gpu_gflops: table.number("gpu_gflops", 1..=100_000_000).unwrap_or(default.gpu_gflops),
        gflops: table.numbers("gflops").unwrap_or_default(),
    }
}

fn markets(table: &Section<'_>) -> Markets {
    let default = Markets::default();
    let percent = |key, most| table.number(key, 0..=most);
    Markets {
        spot: table.flag("spot").unwrap_or(default.spot),
        floor: table.number("floor", 0..=10_000).unwrap_or(default.floor),
        fallback: table.flag("fallback").unwrap_or(default.fallback),
        fallback_after: table.parsed("fallback_after").unwrap_or(default.fallback_after),
        return_after: table.parsed("return_after").unwrap_or(default.return_after),
        max_spot_percent: percent("max_spot_percent", 100).unwrap_or(default.max_spot_percent),
        price_margin_percent: percent("price_margin_percent", 1000)
            .unwrap_or(default.price_margin_percent),
        replace_percent: percent("replace_percent", 100).unwrap_or(default.replace_percent),
    }
}

fn times(table: &Section<'_>) -> Times {
    let default = Times::default();
    let time = |key, default| table.parsed(key).unwrap_or(default);
    Times {
        interval: default.interval,
        boot: time("boot", default.boot),
        enrol: time("enrol", default.enrol),
        alone: time("alone", default.alone),
        drain: time("drain", default.drain),
        lost: time("lost", default.lost),
        idle: time("idle", default.idle),
        settle: time("settle", default.settle),
        min_use: time("min_use", default.min_use),
        visible: time("visible", default.visible),
        silent: time("silent", default.silent),
        no_capacity: time("no_capacity", default.no_capacity),
        no_capacity_max: time("no_capacity_max", default.no_capacity_max),
        avoid: time("avoid", default.avoid),
    }
}

fn machine(
    table: &Section<'_>,
    server: Option<&str>,
    ca: Option<&PathBuf>,
    folder: &Path,
) -> Option<MachineConfig> {
    let own = table.text("server");
    let idle: Millis = table.parsed("idle").unwrap_or(Millis::from_secs(600));
    if idle.0 < 60_000 {
        table.refuse("idle", "is wrong: a minute or more is wanted");
    }
    Some(MachineConfig {
        ca: table.text("ca").map(|path| folder.join(path)).or_else(|| ca.cloned()),
        idle,
        client: table.text("client").unwrap_or("sojourn-daemon").to_owned(),
        trainer: table.text("trainer").unwrap_or("sojourn-trainer").to_owned(),
        server: own.or(server)?.to_owned(),
    })
}
