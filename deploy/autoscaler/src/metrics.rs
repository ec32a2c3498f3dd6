//! Figures for Prometheus.

use sojourn_fleet::{
    cloud::{CloudError, CloudMachine, MachineState},
    planner::{Outlook, Plan},
};
use sojourn_http::CallError;
use sojourn_programs::metrics::{
    self, Collector, DescriptorEncoder, Labels, MetricWriter, TextFormat, label, millionths,
};
use sojourn_protocol::{quantity::to_u64, time::UnixMillis};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Before each name.
const PREFIX: &str = "sojourn_fleet";

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

#[derive(Debug, Clone, Default)]
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
    ///
    /// # Errors
    /// Where a value can't be written, which is a fault of the program.
    pub fn text(&self, now: UnixMillis) -> Result<String, fmt::Error> {
        let scrape = Scrape { figures: self.lock().clone(), now };
        metrics::text(PREFIX, scrape, TextFormat::Prometheus)
    }
}

/// The figures at one moment.
#[derive(Debug)]
struct Scrape {
    figures: Figures,
    now: UnixMillis,
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let writer = &mut MetricWriter::new(encoder);
        self.figures.state(writer)?;
        self.figures.outlook(writer)?;
        self.figures.actions(writer, self.now)
    }
}

impl Figures {
    fn state(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        writer.gauge("leads", "Whether this process leads.", u32::from(self.leads))?;
        let machines = self.machines.iter().map(|((state, market, kind), count)| {
            let (state, market) = ((*state).to_owned(), (*market).to_owned());
            (vec![("state", state), ("market", market), ("type", plain(kind))], *count)
        });
        writer.gauges("machines", "Machines that the cloud has.", machines)
    }

    fn outlook(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let outlook = &self.outlook;
        let help = "Machines that were ordered and aren't seen yet.";
        writer.gauge("ordered_machines", help, outlook.ordered)?;
        let help = "Virtual processors of all machines, ordered ones too.";
        writer.gauge("vcpus", help, outlook.vcpus)?;
        writer.gauge("wanted_slots", "Slots that would be of use.", outlook.wanted_slots)?;
        let help = "Slots of machines that have enrolled and aren't to end.";
        writer.gauge("working_slots", help, outlook.working_slots)?;
        let help = "What an hour of all machines costs, ordered ones too.";
        writer.gauge("hourly_dollars", help, millionths(outlook.hourly.0))?;
        let help = "What all machines have cost, with what draining ones still will.";
        writer.gauge("spent_dollars", help, millionths(outlook.spent.0))
    }

    fn actions(&self, writer: &mut MetricWriter<'_>, now: UnixMillis) -> fmt::Result {
        writer.counter("plans", "Plans that were made.", self.plans)?;
        let age = self.planned_at.map(|at| (Labels::new(), (now - at).0 / 1000));
        writer.gauges("plan_age_seconds", "How long ago the last plan was made.", age)?;
        writer.counter("orders", "Orders that were sent to the cloud.", self.orders)?;
        writer.counter("bought_machines", "Machines that were bought.", self.bought)?;
        let help = "Machines that were told to give their units back.";
        writer.counter("drained_machines", help, self.drained)?;
        let help = "Machines that the cloud was asked to end.";
        writer.counter("ended_machines", help, self.ended)?;
        let help = "Machines that the cloud took back.";
        writer.counter("interruptions", help, self.interruptions)?;
        let failures = Failed::ALL.map(|kind| {
            let count = self.failures.get(&kind).copied().unwrap_or(0);
            (label("kind", kind.name()), count)
        });
        let help = "Calls of cloud and server that failed, and orders that weren't filled.";
        writer.counters("failures", help, failures)
    }
}

/// A name without what a label can't hold.
fn plain(name: &str) -> String {
    name.chars().filter(|letter| !matches!(letter, '"' | '\\' | '\n')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_protocol::{machines::Market, money::MicroUsd};
    use std::{net::SocketAddr, sync::Arc};
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
    };

    #[tokio::test]
    async fn figures_are_read_over_http() {
        let metrics = Arc::new(Metrics::default());
        metrics.bought(3);
        metrics.failed(Failed::Quota);
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let scrape = move || metrics.text(UnixMillis(5000));
        let (address, serve) = metrics::listen(any, scrape).await.unwrap();
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
        assert!(read("no request\r\n\r\n").await.starts_with("HTTP/1.1 400 "));
        let long = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n\r\n", "a".repeat(5000));
        assert!(read(&long).await.starts_with("HTTP/1.1 431 "));
        server.abort();
    }

    #[test]
    fn every_metric_says_what_it_is() {
        let metrics = Metrics::default();
        let key = ("running", Market::Spot.name(), "c\"6i".to_owned());
        metrics.lock().machines.insert(key, 2);
        metrics.lock().planned_at = Some(UnixMillis(1000));
        metrics.lock().outlook.hourly = MicroUsd(1_250_001);
        let text = metrics.text(UnixMillis(4000)).unwrap();
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
