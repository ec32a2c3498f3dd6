//! Hosts that have trained: each with one lease of a merged model, whose result is uploaded and not yet reported.

use crate::{Shape, connection::Connection, result_file};
use serde_json::json;
use sojourn_model::{Lineage, initial_checkpoint};
use sojourn_protocol::{
    api::{BYTES_HEADER, EnrolAnswer, ReportAnswer, SHA256_HEADER, WorkAnswer, WorkRequest},
    digest::{BlobRef, Digest},
    inventory::{CPU, Demand, Device, Inventory},
    report::{Outcome, Report, ReportState, Sums, Trained},
    time::Millis,
    unit::{Lease, Unit},
};
use std::{fs, net::SocketAddr, path::Path};

/// One of them.
pub(crate) struct Host {
    access: Access,
    report: Report,
}

/// How it speaks to the server: a connection that is silent for a while is closed.
struct Access {
    address: SocketAddr,
    token: String,
}

impl Access {
    fn open(&self) -> Connection {
        Connection::open(self.address, &self.token)
    }
}

/// As many as there are results; these lie in the folder too.
pub(crate) fn trained(address: SocketAddr, token: &str, shape: Shape, folder: &Path) -> Vec<Host> {
    let all = 0..shape.models * shape.results;
    let leases: Vec<(Access, Lease)> =
        all.clone().map(|number| ask(enrol(address, token, number))).collect();
    let uploaded = all.zip(leases).map(|(number, (access, lease))| {
        let (report, bytes) = train(&lease);
        let Outcome::Trained(Trained { checkpoint, .. }) = &report.outcome else { panic!("a hop") };
        let path = format!("/v1/leases/{}/checkpoint?offset=0", lease.id);
        let headers = format!(
            "{SHA256_HEADER}: {}\r\n{BYTES_HEADER}: {}\r\n",
            checkpoint.sha256, checkpoint.bytes
        );
        access.open().call("PUT", &path, &headers, &bytes);
        fs::write(result_file(folder, number), bytes).unwrap();
        Host { access, report }
    });
    uploaded.collect()
}

impl Host {
    /// From now on it is for assimilators.
    pub(crate) fn report(&mut self) {
        let body = serde_json::to_vec(&self.report).unwrap();
        let mut connection = self.access.open();
        let answer = connection.call("POST", "/v1/results", "", &body);
        let answer: ReportAnswer = serde_json::from_slice(answer).unwrap();
        assert_eq!(answer.state, ReportState::Acknowledged);
    }
}

fn enrol(address: SocketAddr, token: &str, number: u32) -> Access {
    let body = json!({ "name": format!("host-{number}") }).to_string();
    let mut connection = Connection::open(address, token);
    let answer = connection.call("POST", "/v1/enrol", "", body.as_bytes());
    let EnrolAnswer { token, .. } = serde_json::from_slice(answer).unwrap();
    Access { address, token }
}

fn ask(access: Access) -> (Access, Lease) {
    let inventory = Inventory {
        devices: vec![Device::new(CPU, Digest::of(b"class"), 1e9)],
        client: "bench".to_owned(),
        ..Inventory::default()
    };
    let request = WorkRequest {
        demand: vec![Demand { device: CPU.into(), slots: 1, idle: 1, wanted: 1 }],
        holding: Vec::new(),
        reported: Vec::new(),
        wait: Millis::from_secs(20),
        inventory: Some(inventory),
    };
    let body = serde_json::to_vec(&request).unwrap();
    let mut connection = access.open();
    let answer: WorkAnswer =
        serde_json::from_slice(connection.call("POST", "/v1/work", "", &body)).unwrap();
    let lease = answer.leases.into_iter().next();
    (access, lease.unwrap_or_else(|| panic!("each host gets a shard of a model")))
}

/// A plausible result of it.
fn train(lease: &Lease) -> (Report, Vec<u8>) {
    let Unit::Train(hop) = &lease.unit else { panic!("there is nothing to evaluate yet") };
    let end = hop.position_after(hop.to_train());
    let lineage = Lineage { hop_seed: hop.seed, trial: hop.trial, position: end };
    let bytes = initial_checkpoint(&hop.context, lease.id.0, lineage).unwrap();
    let checkpoint =
        BlobRef { sha256: Digest::of(&bytes), bytes: u64::try_from(bytes.len()).unwrap() };
    let rows = hop.rows_to(end).unwrap();
    let sums = Sums { rows, loss: 4.0, correct: Some(1), ..Sums::default() };
    let base = hop.base.version();
    let trained = Trained { base, checkpoint, end, sums, train_micros: 1_000 };
    (Report { lease: lease.id, outcome: Outcome::Trained(trained) }, bytes)
}
