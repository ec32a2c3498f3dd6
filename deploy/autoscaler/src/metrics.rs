//! Figures for Prometheus, and the port where they are read.

use sojourn_fleet::{
    cloud::{CloudError, CloudMachine, MachineState},
    planner::{Outlook, Plan},
};
use sojourn_http::CallError;
use sojourn_protocol::{
    money::MicroUsd,
    quantity::{SaturatingFrom as _, to_u64},
    time::UnixMillis,
};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};
use tracing::debug;

/// Bytes of a request's head that are looked at.
const MAX_HEAD: usize = 4096;
/// How long a reader has for its request and our answer.
const READER_TIMEOUT: Duration = Duration::from_secs(5);
/// Readers at a time.
const MAX_READERS: usize = 8;

/// A kind of failure, as a metric's label says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failed {
    /// The cloud had no machine left.
    NoCapacity,
    /// The account's quota is used up.
    Quota,
    /// The cloud asked for fewer requests.
    Throttled,
    /// The cloud refused.
    Refused,
    /// The cloud didn't answer.
    CloudAway,
    /// The server didn't answer, or can't now.
    ServerAway,
    /// The server refused.
    ServerRefused,
}

impl Failed {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::NoCapacity,
        Self::Quota,
        Self::Throttled,
        Self::Refused,
        Self::CloudAway,
        Self::ServerAway,
        Self::ServerRefused,
    ];

    /// As the label has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoCapacity => "no-capacity",
            Self::Quota => "quota",
            Self::Throttled => "throttled",
            Self::Refused => "refused",
            Self::CloudAway => "cloud-away",
            Self::ServerAway => "server-away",
            Self::ServerRefused => "server-refused",
        }
    }

    /// Of a call of the cloud.
    #[must_use]
    pub const fn of_cloud(error: &CloudError) -> Self {
        match error {
            CloudError::NoCapacity { .. } => Self::NoCapacity,
            CloudError::Quota { .. } => Self::Quota,
            CloudError::Throttled => Self::Throttled,
            CloudError::TokenReused | CloudError::Refused(_) => Self::Refused,
            CloudError::Away(_) => Self::CloudAway,
        }
    }

    /// Of a call of the server.
    #[must_use]
    pub const fn of_server(error: &CallError) -> Self {
        if error.is_away() { Self::ServerAway } else { Self::ServerRefused }
    }
}

/// The figures.
#[derive(Debug, Default)]
pub struct Metrics {
    figures: Mutex<Figures>,
}

#[derive(Debug, Default)]
struct Figures {
    leads: bool,
    machines: BTreeMap<(&'static str, &'static str, String), u64>,
    outlook: Outlook,
    planned_at: Option<UnixMillis>,
    plans: u64,
    orders: u64,
    bought: u64,
    drained: u64,
    ended: u64,
    interruptions: u64,
    failures: BTreeMap<Failed, u64>,
}

impl Metrics {
    /// A panic while they were held leaves whole numbers.
    fn lock(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn standby(&self) {
        let mut figures = self.lock();
        figures.leads = false;
        figures.machines.clear();
        figures.outlook = Outlook::default();
    }

    pub(crate) fn planned(
        &self,
        now: UnixMillis,
        plan: &Plan,
        machines: &[CloudMachine],
        interruptions: u64,
    ) {
        let mut figures = self.lock();
        figures.leads = true;
        figures.plans += 1;
        figures.planned_at = Some(now);
        figures.outlook = plan.outlook.clone();
        figures.interruptions += interruptions;
        figures.machines.clear();
        for machine in machines {
            let state = match machine.state {
                MachineState::Pending => "pending",
                MachineState::Running => "running",
                MachineState::Ending => "ending",
                MachineState::Ended => continue,
            };
            let key = (state, machine.market.name(), machine.pool.instance_type.clone());
            *figures.machines.entry(key).or_default() += 1;
        }
    }

    pub(crate) fn bought(&self, machines: usize) {
        let mut figures = self.lock();
        figures.orders += 1;
        figures.bought += to_u64(machines);
    }

    pub(crate) fn drained(&self) {
        self.lock().drained += 1;
    }

    pub(crate) fn ended(&self) {
        self.lock().ended += 1;
    }

    pub(crate) fn failed(&self, failed: Failed) {
        *self.lock().failures.entry(failed).or_default() += 1;
    }

    /// The text that Prometheus reads.
    #[must_use]
    pub fn text(&self, now: UnixMillis) -> String {
        let figures = self.lock();
        let mut text = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, values: &[(String, String)]| {
            // Writing into a text can't fail.
            let _ = writeln!(text, "# HELP sojourn_fleet_{name} {help}");
            let _ = writeln!(text, "# TYPE sojourn_fleet_{name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(text, "sojourn_fleet_{name}{labels} {value}");
            }
        };
        let one = |value: &dyn ToString| vec![(String::new(), value.to_string())];
        let outlook = &figures.outlook;
        metric("leads", "gauge", "Whether this process leads.", &one(&u8::from(figures.leads)));
        let machines: Vec<_> = figures
            .machines
            .iter()
            .map(|((state, market, kind), count)| {
                let labels =
                    format!("{{state=\"{state}\",market=\"{market}\",type=\"{}\"}}", plain(kind));
                (labels, count.to_string())
            })
            .collect();
        metric("machines", "gauge", "Machines that the cloud has.", &machines);
        metric(
            "ordered_machines",
            "gauge",
            "Machines that were ordered and aren't seen yet.",
            &one(&outlook.ordered),
        );
        metric(
            "vcpus",
            "gauge",
            "Virtual processors of all machines, ordered ones too.",
            &one(&outlook.vcpus),
        );
        metric("wanted_slots", "gauge", "Slots that would be of use.", &one(&outlook.wanted_slots));
        metric(
            "working_slots",
            "gauge",
            "Slots of machines that have enrolled and aren't to end.",
            &one(&outlook.working_slots),
        );
        metric(
            "hourly_dollars",
            "gauge",
            "What an hour of all machines costs, ordered ones too.",
            &one(&dollars(outlook.hourly)),
        );
        metric(
            "spent_dollars",
            "gauge",
            "What all machines have cost, with what draining ones still will.",
            &one(&dollars(outlook.spent)),
        );
        metric("plans_total", "counter", "Plans that were made.", &one(&figures.plans));
        let age = figures.planned_at.map(|at| (now - at).0 / 1000);
        let age: Vec<_> = age.iter().map(|age| (String::new(), age.to_string())).collect();
        metric("plan_age_seconds", "gauge", "How long ago the last plan was made.", &age);
        metric(
            "orders_total",
            "counter",
            "Orders that were sent to the cloud.",
            &one(&figures.orders),
        );
        metric(
            "bought_machines_total",
            "counter",
            "Machines that were bought.",
            &one(&figures.bought),
        );
        metric(
            "drained_machines_total",
            "counter",
            "Machines that were told to give their units back.",
            &one(&figures.drained),
        );
        metric(
            "ended_machines_total",
            "counter",
            "Machines that the cloud was asked to end.",
            &one(&figures.ended),
        );
        metric(
            "interruptions_total",
            "counter",
            "Machines that the cloud took back.",
            &one(&figures.interruptions),
        );
        let failures: Vec<_> = Failed::ALL
            .iter()
            .map(|kind| {
                let count = figures.failures.get(kind).copied().unwrap_or(0);
                (format!("{{kind=\"{}\"}}", kind.name()), count.to_string())
            })
            .collect();
        metric(
            "failures_total",
            "counter",
            "Calls of cloud and server that failed, and orders that weren't filled.",
            &failures,
        );
        text
    }
}

/// Dollars with all their digits.
fn dollars(amount: MicroUsd) -> String {
    format!("{}.{:06}", amount.0 / 1_000_000, amount.0 % 1_000_000)
}

/// A name without what a label can't hold.
fn plain(name: &str) -> String {
    name.chars().filter(|letter| !matches!(letter, '"' | '\\' | '\n')).collect()
}

/// Serves the figures until it is dropped.
///
/// # Errors
/// Where the port can't be had.
pub async fn listen(
    address: SocketAddr,
    metrics: Arc<Metrics>,
    now: fn() -> UnixMillis,
) -> std::io::Result<(SocketAddr, impl Future<Output = ()> + Send)> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    let readers = Arc::new(Semaphore::new(MAX_READERS));
    let serve = async move {
        loop {
            let Ok(permit) = readers.clone().acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let metrics = metrics.clone();
                    tokio::spawn(async move {
                        let answered = timeout(READER_TIMEOUT, answer(stream, &metrics, now)).await;
                        if let Ok(Err(error)) = answered {
                            debug!(%error, "a reader of metrics has gone");
                        }
                        drop(permit);
                    });
                }
                // Too many open files, for one: the next may come later.
                Err(_) => tokio::time::sleep(Duration::from_secs(1)).await,
            }
        }
    };
    Ok((bound, serve))
}

/// Answers one request: `GET /metrics`.
async fn answer(
    mut stream: TcpStream,
    metrics: &Metrics,
    now: fn() -> UnixMillis,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MAX_HEAD {
        let mut more = [0; 1024];
        let read = stream.read(&mut more).await?;
        if read == 0 {
            break;
        }
        head.extend(more.iter().take(read));
    }
    let is_asked = head.starts_with(b"GET /metrics ") || head.starts_with(b"GET /metrics?");
    let (status, body) = if is_asked {
        ("200 OK", metrics.text(now()))
    } else {
        ("404 Not Found", "metrics are at /metrics\n".to_owned())
    };
    let length = u64::saturating_from(body.len());
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::machines::Market;

    #[tokio::test]
    async fn figures_are_read_over_http() {
        let metrics = Arc::new(Metrics::default());
        metrics.bought(3);
        metrics.failed(Failed::Quota);
        let now = || UnixMillis(5000);
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let (address, serve) = listen(any, metrics.clone(), now).await.unwrap();
        let server = tokio::spawn(serve);
        let read = async |request: &str| {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let answer = read("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("\nsojourn_fleet_bought_machines_total 3\n"), "{answer}");
        assert!(answer.contains("\nsojourn_fleet_failures_total{kind=\"quota\"} 1\n"), "{answer}");
        assert!(read("GET / HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 404 "));
        server.abort();
    }

    #[test]
    fn every_metric_says_what_it_is() {
        let metrics = Metrics::default();
        let key = ("running", Market::Spot.name(), "c\"6i".to_owned());
        metrics.lock().machines.insert(key, 2);
        metrics.lock().planned_at = Some(UnixMillis(1000));
        metrics.lock().outlook.hourly = MicroUsd(1_250_001);
        let text = metrics.text(UnixMillis(4000));
        assert!(text.contains(
            "sojourn_fleet_machines{state=\"running\",market=\"spot\",type=\"c6i\"} 2\n"
        ));
        assert!(text.contains("sojourn_fleet_hourly_dollars 1.250001\n"));
        assert!(text.contains("sojourn_fleet_plan_age_seconds 3\n"));
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        for sample in samples {
            let name = sample.split(['{', ' ']).next().unwrap();
            assert!(text.contains(&format!("# TYPE {name} ")), "{sample}");
        }
    }
}
