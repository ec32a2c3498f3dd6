//! Grown up: Redis, an object store, two servers, two assimilators and four clients, each of which is killed or
//! stopped now and then, Redis too; and every trial ends as its replay does.

use crate::{
    redis_server::RedisServer,
    s3::{BUCKET, StandIn},
    site::{Process, Site},
};
use rustix::process::Signal;
use sojourn_protocol::seeds;
use tokio::runtime::Runtime;

const CLIENTS: usize = 4;
const EPOCHS: u32 = 10;
const FAULTS: u64 = 14;

/// All but the store, which the test's own process has.
struct Deployment {
    site: Site,
    redis: RedisServer,
    servers: [Process; 2],
    listen: [String; 2],
    assimilators: Vec<Process>,
    clients: Vec<Process>,
}

fn server(n: usize) -> String {
    format!("server-{n}")
}

fn assimilator(n: usize) -> String {
    format!("assimilator-{n}")
}

fn client(n: usize) -> String {
    format!("client-{n}")
}

impl Deployment {
    fn start(store: &StandIn) -> Self {
        let redis = RedisServer::start();
        let blobs = format!("s3://{BUCKET}/grown");
        let mut site = Site::start_shared(&redis.url(), &blobs, store.environment());
        // All servers are alike: those that are killed have folders of their own.
        let (one, first) = site.other_server(&server(0), "127.0.0.1:0");
        let (two, second) = site.other_server(&server(1), "127.0.0.1:0");
        assert_eq!(site.server.end(), Some(0));
        site.url = format!("http://{first},http://{second}");
        let assimilators = (0..2).map(|n| site.assimilator(&assimilator(n))).collect();
        let clients = (0..CLIENTS).map(|n| site.client(&client(n))).collect();
        let (servers, listen) = ([one, two], [first, second]);
        Self { site, redis, servers, listen, assimilators, clients }
    }

    fn restart_server(&mut self, n: usize) {
        self.servers[n].kill();
        let (process, listen) = self.site.other_server(&server(n), &self.listen[n]);
        assert_eq!(listen, self.listen[n]);
        self.servers[n] = process;
    }

    /// One of them is killed and started again, or stopped while the others go on for a while.
    fn fault(&mut self, kind: u32, which: usize, job: &str) {
        match kind {
            0 => self.restart_server(which % 2),
            1 => {
                self.servers[which % 2].signal(Signal::STOP);
                // Past its lease, where it was the active one.
                self.goes_on(job, 3);
                self.servers[which % 2].signal(Signal::CONT);
            }
            2 => {
                self.redis.kill();
                self.redis.start_again();
            }
            3 => {
                let n = which % 2;
                self.assimilators[n].kill();
                self.assimilators[n] = self.site.assimilator(&assimilator(n));
            }
            4 => {
                let n = which % 2;
                self.assimilators[n].signal(Signal::STOP);
                self.goes_on(job, 2);
                self.assimilators[n].signal(Signal::CONT);
            }
            5 => drop(self.clients[which % CLIENTS].kill_children()),
            _ => {
                let n = which % CLIENTS;
                self.clients[n].kill();
                self.clients[n] = self.site.client(&client(n));
            }
        }
    }

    /// So many hops more are there, or the job has ended.
    fn goes_on(&self, job: &str, hops: u64) {
        let before = self.site.job(job)["hops"].as_u64().unwrap();
        self.site.wait(job, |view| {
            view["hops"].as_u64().unwrap() >= before + hops || view["state"] != "running"
        });
    }
}

#[test]
fn every_trial_equals_its_replay_whichever_process_is_killed_or_stopped() {
    let runtime = Runtime::new().unwrap();
    let store = runtime.block_on(StandIn::start());
    let mut all = Deployment::start(&store);
    let job = all.site.submit(31, EPOCHS);
    let hops = u64::from(4 * EPOCHS * 3);
    let mut chance = seeds::stream("grown", &[31]);
    for n in 0..FAULTS {
        // The instants are random in the job's own time; every kind comes.
        let after = hops * n / (FAULTS + 2) + u64::from(seeds::below(&mut chance, 3));
        all.site.wait(&job, |view| {
            view["hops"].as_u64().unwrap() >= after || view["state"] != "running"
        });
        let kind = u32::try_from(n % 7).unwrap();
        let which = usize::try_from(seeds::below(&mut chance, 4)).unwrap();
        all.fault(kind, which, &job);
    }
    let view = all.site.wait(&job, |view| view["state"] != "running");
    assert_eq!(view["state"], "finished", "{view}\n{}", all.site.log("server"));
    assert_eq!(view["hops"].as_u64(), Some(hops), "each result once: {view}");
    for trial in all.site.json(&["trials", &job]).as_array().unwrap() {
        let number = trial["trial"].to_string();
        let replay = all.site.json(&["replay", &job, "--trial", &number]);
        assert_eq!(replay["verdict"], "identical", "trial {number}: {replay}");
        assert_eq!(replay["sha256"], trial["checkpoint"]["sha256"]);
    }
    let taken: u64 = all.redis.ask(&["HGET", "{sojourn}:meta", "fence"]);
    assert!(taken > 2, "servers took over from each other: {taken}");
    for process in all.clients.iter_mut().chain(&mut all.assimilators).chain(&mut all.servers) {
        assert_eq!(process.end(), Some(0), "all end well when they are told to");
    }
}
