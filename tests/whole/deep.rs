//! Deeper nets from submission to replay: batch norm's statistics, dropout and random crops must come
//! through hops, machines and kills as the parameters do.

use crate::site::Site;
use std::fs;

#[test]
fn the_deeper_example_learns_and_replays_through_kills() {
    let site = Site::start();
    let mut clients = [site.client("client-1"), site.client("client-2")];
    for name in ["digits.csv", "resnet.toml"] {
        let from = format!("{}/examples/digits/{name}", env!("CARGO_MANIFEST_DIR"));
        fs::copy(from, site.path().join(name)).unwrap();
    }
    let job = site.json(&["submit", "resnet.toml"])["job"].to_string();
    for (after, client) in [(10, 0), (30, 1)] {
        site.wait(&job, |view| view["hops"].as_u64().unwrap() >= after);
        clients[client].kill();
        clients[client] = site.client(&format!("client-{}", client + 1));
    }
    let view = site.wait(&job, |view| view["state"] != "running");
    assert_eq!((&view["state"], &view["trials_finished"]), (&"finished".into(), &4.into()));
    // Evaluated by statistics that lag behind the weights, or by a batch's, it would be far less.
    let best = view["best"]["value"].as_f64().unwrap();
    assert!(best > 0.95, "{view}");
    for trial in site.json(&["trials", &job]).as_array().unwrap() {
        let number = trial["trial"].to_string();
        let replay = site.json(&["replay", &job, "--trial", &number]);
        assert_eq!(replay["verdict"], "identical", "{replay}");
        assert_eq!(replay["sha256"], trial["checkpoint"]["sha256"]);
    }
}
