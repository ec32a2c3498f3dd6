//! Files of data that a browser sends for a new job: who may send them, how much, and what is left of them.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use crate::{
    folder,
    host_page::{Browser, text},
    serve::AssimilatorConfig,
    world::{World, blob},
};
use sojourn_codec::{Tensor, encode};
use sojourn_protocol::{
    jobfile,
    manifest::{DataManifest, Labels, Scaling, Shard, Targets},
    view::JobView,
};
use sojourn_server::{
    BytesRead, DataStep, DraftFiles, DraftedColumn, DraftedJob, JobFiles, PrepareJob, PreparedJob,
};
use std::{collections::BTreeMap, fs, path::Path, sync::Arc, time::Duration};
use tokio::time::timeout;

/// So long that a test that waits for it has failed.
const LONG: Duration = Duration::from_secs(60);
const FILE: &str = "name = \"sent\"\n[data]\ntrain = \"parts/t.csv\"\nlabel = \"y\"\n[[model]]\n\
                    arch = \"mlp\"\nhidden = [3]\n[training]\nepochs = 1\n";

/// Makes two shards of whatever `parts/t.csv` has, unless that says that it is wrong, or has no end, or becomes more and more bytes
/// of one kind.
#[derive(Debug)]
struct Reads;

impl PrepareJob for Reads {
    fn prepare(
        &self,
        files: JobFiles<'_>,
        tell: &mut dyn FnMut(BytesRead),
    ) -> Result<PreparedJob, Vec<String>> {
        let train =
            fs::read(files.folder.join("parts/t.csv")).map_err(|_| ["no t.csv".to_owned()])?;
        if train.starts_with(b"wrong") {
            return Err(vec!["line 1 is <wrong>".to_owned(), "so is line 2".to_owned()]);
        }
        tell(BytesRead { bytes: 1, of: 2 });
        let step = match train.as_slice() {
            b"endless" => Some(DataStep::Read(100)),
            b"unpacks" => Some(DataStep::Unpacked(100)),
            b"decodes" => Some(DataStep::Decoded(100)),
            b"writes" => Some(DataStep::Written(100)),
            _ => None,
        };
        if let Some(step) = step {
            let mut steps = 0_u64;
            while files.bounds.admit(step).is_ok() {
                steps += 1;
                std::thread::yield_now();
            }
            // The first reason stays.
            assert!(files.bounds.admit(DataStep::Read(0)).is_err());
            return Err(vec![format!("after {steps} steps")]);
        }
        assert!(!files.bounds.admits_url("http://127.0.0.1/t.csv"));
        let mut made = BTreeMap::new();
        let mut shard = |number: u8| {
            let x = [f32::from(number); 20];
            let tensors = [Tensor::f32("x", [10u64, 2], &x), Tensor::i64("y", [10u64], &[0; 10])];
            let bytes = encode(&tensors).unwrap();
            let path = files.shards.join(number.to_string());
            fs::write(&path, &bytes).unwrap();
            made.insert(blob(&bytes).sha256, path);
            Shard { blob: blob(&bytes), rows: 10 }
        };
        let (train, valid) = (vec![shard(train[0]), shard(train[1])], vec![shard(0)]);
        let data = DataManifest {
            columns: Vec::new(),
            shape: vec![2],
            features: vec!["a".to_owned(), "b".to_owned()],
            labels: Labels::Classes(vec!["no".to_owned(), "yes".to_owned()]),
            categories: Vec::new(),
            fill: Vec::new(),
            scaling: Scaling::None,
            targets: Targets::Plain,
            train,
            valid,
            test: vec![],
        };
        let mut spec = jobfile::parse(files.text).unwrap();
        spec.name_data_seed();
        spec.data.shards = Some(2);
        Ok(PreparedJob { spec, data, files: made })
    }

    fn draft(
        &self,
        files: DraftFiles<'_>,
        tell: &mut dyn FnMut(BytesRead),
    ) -> Result<DraftedJob, Vec<String>> {
        let data = fs::read(files.folder.join(files.data)).map_err(|_| ["no data".to_owned()])?;
        if data.starts_with(b"wrong") {
            return Err(vec!["no column <can> be the label".to_owned()]);
        }
        tell(BytesRead { bytes: 1, of: 1 });
        if data.starts_with(b"endless") {
            while files.bounds.admit(DataStep::Read(100)).is_ok() {
                std::thread::yield_now();
            }
            return Err(vec!["it was read to its end".to_owned()]);
        }
        let column = |name: &str, taken: &str| DraftedColumn {
            name: name.to_owned(),
            holds: "numbers".to_owned(),
            taken: taken.to_owned(),
        };
        Ok(DraftedJob {
            text: FILE.to_owned(),
            label: Some(files.label.unwrap_or("y").to_owned()),
            columns: vec![column("x", "a <feature>"), column("y", "the label")],
            remarks: vec!["a remark".to_owned()],
        })
    }
}

async fn world(folder: &Path, limit: u64) -> World {
    let mut config = World::config(folder, AssimilatorConfig::default());
    config.prepare = Some(Arc::new(Reads));
    config.max_data_uploads = limit;
    World::with(config).await
}

fn form(file: &str) -> String {
    let encoded = file.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
    format!("text={encoded}")
}

/// The bytes of all files of uploads.
fn left(folder: &Path) -> u64 {
    let mut bytes = 0;
    let mut folders = vec![folder.join("data-uploads")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                _ => bytes += entry.metadata().map_or(0, |of| of.len()),
            }
        }
    }
    bytes
}

async fn is_empty(folder: &Path) {
    timeout(LONG, async {
        while left(folder) > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

/// Begins an upload: its address.
async fn begin(user: &Browser<'_>) -> String {
    let begun = user.post("/jobs/new/data", "").await;
    assert_eq!(begun.status, 200, "{}", text(&begun));
    format!("/jobs/new/data/{}", text(&begun))
}

async fn put(user: &Browser<'_>, upload: &str, name: &str, bytes: &[u8]) -> (u16, String) {
    let answer = user.send("PUT", &format!("{upload}?name={name}"), "same-origin", bytes).await;
    (answer.status, text(&answer))
}

/// The page of the upload when it has ended, well or not.
async fn outcome(user: &Browser<'_>, upload: &str) -> String {
    timeout(LONG, async {
        loop {
            let shown = text(&user.get(upload).await);
            if !shown.contains("data-making") {
                return shown;
            }
        }
    })
    .await
    .unwrap()
}

async fn jobs(world: &World) -> Vec<JobView> {
    world.get("/v1/jobs", &world.admin).await.json()
}

#[tokio::test]
async fn a_job_begins_over_files_that_were_sent_and_nothing_stays_of_them() {
    let folder = folder();
    let world = world(folder.path(), 1_000).await;
    let user = Browser::sign_in(&world, "administer").await;
    assert!(text(&user.get("/jobs/new").await).contains("type=\"file\""));
    let check = format!("over=files&{}", form(FILE));
    let checked = text(&user.post("/jobs/new?part=check", &check).await);
    assert!(checked.contains("data-file=\"parts/t.csv\""), "{checked}");

    let upload = begin(&user).await;
    assert_eq!(put(&user, &upload, "parts/t.csv", b"wrong").await.0, 204);
    assert!(text(&user.post(&upload, &form(FILE)).await).contains("data-making"));
    let refused = outcome(&user, &upload).await;
    assert!(refused.contains("2 problems") && refused.contains("&lt;wrong&gt;"), "{refused}");
    // A job file that is wrong is refused before any data is read.
    let wrong = text(&user.post(&upload, &form(&FILE.replace("epochs", "epocs"))).await);
    assert!(wrong.contains("data-line=\"8\"") && !wrong.contains("data-making"), "{wrong}");
    assert_eq!(put(&user, &upload, "parts/t.csv", b"ab").await.0, 204);
    user.post(&upload, &form(FILE)).await;
    let made = outcome(&user, &upload).await;
    let jobs = jobs(&world).await;
    assert_eq!((jobs.len(), jobs[0].name.as_str()), (1, "sent"), "{made}");
    assert!(made.contains(&format!("class=\"made\" href=\"/jobs/{}\"", jobs[0].job)), "{made}");
    is_empty(folder.path()).await;
    assert_eq!(user.post(&upload, &form(FILE)).await.status, 409);
    // The same files again are the same job.
    let upload = begin(&user).await;
    put(&user, &upload, "parts/t.csv", b"ab").await;
    user.post(&upload, &form(FILE)).await;
    assert_eq!(outcome(&user, &upload).await, made);
    world.server.stop().await;
}

#[tokio::test]
async fn a_job_file_is_written_for_files_that_were_sent_and_makes_a_job() {
    let folder = folder();
    let world = world(folder.path(), 1_000).await;
    let user = Browser::sign_in(&world, "administer").await;
    let upload = begin(&user).await;
    let draft = format!("{upload}/draft");
    for (data, name) in [("..%2Fa", "leads up"), ("%2Fetc%2Fpasswd", "is elsewhere")] {
        let refused = user.post(&draft, &format!("data={data}")).await;
        assert_eq!(refused.status, 400, "{name}: {}", text(&refused));
    }
    put(&user, &upload, "parts/t.csv", b"wrong").await;
    assert!(text(&user.post(&draft, "data=parts/t.csv").await).contains("data-making"));
    let refused = outcome(&user, &upload).await;
    assert!(refused.contains("1 problem") && refused.contains("&lt;can&gt;"), "{refused}");
    // Another file in its place, and another column for the labels.
    assert_eq!(put(&user, &upload, "parts/t.csv", b"ab").await.0, 204);
    user.post(&draft, "data=parts/t.csv").await;
    let drafted = outcome(&user, &upload).await;
    for part in ["data-text=\"name = &quot;sent&quot;", "value=\"y\" selected", "a remark"] {
        assert!(drafted.contains(part), "{part}: {drafted}");
    }
    assert!(drafted.contains("a &lt;feature&gt;"), "{drafted}");
    user.post(&draft, "data=parts/t.csv&label=x").await;
    let other = outcome(&user, &upload).await;
    assert!(other.contains("value=\"x\" selected"), "{other}");
    // The files are there still.
    user.post(&upload, &form(FILE)).await;
    assert!(outcome(&user, &upload).await.contains("class=\"made\""));
    assert_eq!(user.post(&draft, "data=parts/t.csv").await.status, 409);
    is_empty(folder.path()).await;
    // What nobody waits for is read no further.
    let upload = begin(&user).await;
    put(&user, &upload, "parts/t.csv", b"endless").await;
    user.post(&format!("{upload}/draft"), "data=parts/t.csv").await;
    let is_read = async || text(&user.get(&upload).await).contains("Reading the data");
    timeout(LONG, async { while !is_read().await {} }).await.unwrap();
    assert_eq!(user.send("DELETE", &upload, "same-origin", b"").await.status, 204);
    is_empty(folder.path()).await;
    world.server.stop().await;
}

#[tokio::test]
async fn names_sizes_and_job_files_that_may_not_be_are_refused() {
    let folder = folder();
    let world = world(folder.path(), 1_000).await;
    let user = Browser::sign_in(&world, "administer").await;
    let upload = begin(&user).await;
    for name in
        ["..%2F..%2Fescaped", "%2Fetc%2Fpasswd", "a%2F..%2Fb", "~%2Fx", "", "a%00b", "a%5C..%5Cb"]
    {
        let (status, said) = put(&user, &upload, name, b"x").await;
        assert!(status == 400 && said.contains("role=\"alert\""), "{name}: {status} {said}");
    }
    assert!(!folder.path().join("escaped").exists());
    assert_eq!(put(&user, &upload, "a", &[7; 600]).await.0, 204);
    let (status, said) = put(&user, &upload, "b", &[7; 401]).await;
    assert!(status == 413 && said.contains("`sojourn submit`"), "{status} {said}");
    let large = user.post("/jobs/new/data?bytes=401", "").await;
    assert_eq!(large.status, 413, "{}", text(&large));
    // Whoever comes beside gets none of the room that is taken.
    let other = begin(&user).await;
    assert_eq!(put(&user, &other, "c", &[7; 500]).await.0, 413);
    assert_eq!(left(folder.path()), 600);
    for (file, why) in [
        (FILE.replace("parts/t.csv", "/etc/passwd"), "`data.train`"),
        (FILE.replace("parts/t.csv", "http://127.0.0.1/x.csv"), "is a URL"),
        (FILE.replace("\"mlp\"\nhidden = [3]", "\"graph\"\nentry = \"m.py:M\""), "runs your code"),
    ] {
        let said = text(&user.post(&upload, &form(&file)).await);
        assert!(said.contains(why) && !said.contains("data-making"), "{why}: {said}");
    }
    assert_eq!(jobs(&world).await.len(), 0);
    for upload in [&upload, &other] {
        let ended = user.send("DELETE", upload, "same-origin", b"").await;
        assert_eq!(ended.status, 204);
        assert_eq!(user.get(upload).await.status, 404);
        assert_eq!(put(&user, upload, "a", b"x").await.0, 404);
    }
    is_empty(folder.path()).await;
    world.server.stop().await;
}

#[tokio::test]
async fn only_administrators_send_files_and_only_from_pages_of_the_server() {
    let folder = folder();
    let world = world(folder.path(), 1_000).await;
    let user = Browser::sign_in(&world, "administer").await;
    let upload = begin(&user).await;
    for (method, below) in [("PUT", ""), ("POST", ""), ("DELETE", ""), ("POST", "/draft")] {
        let path = format!("{upload}{below}?name=t.csv");
        for site in ["cross-site", "same-site"] {
            assert_eq!(user.send(method, &path, site, b"x").await.status, 403, "{method} {site}");
        }
        for rights in ["read", "submit"] {
            let other = Browser::sign_in(&world, rights).await;
            assert_eq!(
                other.send(method, &path, "same-origin", b"x").await.status,
                403,
                "{method} {rights}"
            );
        }
    }
    let submitter = Browser::sign_in(&world, "submit").await;
    assert_eq!(submitter.post("/jobs/new/data", "").await.status, 403);
    assert!(!text(&submitter.get("/jobs/new").await).contains("type=\"file\""));
    assert_eq!(user.get(&upload).await.status, 200);
    assert_eq!(user.get(&format!("{upload}0")).await.status, 404);
    world.server.stop().await;
}

#[tokio::test]
async fn data_is_read_no_longer_than_its_upload_and_the_server_are_there() {
    let folder = folder();
    let world = world(folder.path(), 1_000).await;
    let user = Browser::sign_in(&world, "administer").await;
    let endless = async || {
        let upload = begin(&user).await;
        put(&user, &upload, "parts/t.csv", b"endless").await;
        user.post(&upload, &form(FILE)).await;
        let is_read = async || text(&user.get(&upload).await).contains("Reading the data");
        timeout(LONG, async { while !is_read().await {} }).await.unwrap();
        upload
    };
    let first = endless().await;
    // Data is read for one job at a time.
    let next = begin(&user).await;
    put(&user, &next, "parts/t.csv", b"ab").await;
    let waiting = text(&user.post(&next, &form(FILE)).await);
    assert!(waiting.contains("Waiting until"), "{waiting}");
    assert_eq!(user.send("DELETE", &first, "same-origin", b"").await.status, 204);
    assert!(outcome(&user, &next).await.contains("class=\"made\""));
    is_empty(folder.path()).await;
    endless().await;
    timeout(LONG, world.server.stop()).await.unwrap();
    is_empty(folder.path()).await;
}

#[tokio::test]
async fn data_that_becomes_more_than_may_be_is_read_no_further() {
    let folder = folder();
    let world = world(folder.path(), 1_000).await;
    let user = Browser::sign_in(&world, "administer").await;
    for (file, most, what) in [
        ("unpacks", 8_000, "unpack to"),
        ("decodes", 8_000, "rows take"),
        ("writes", 1_000, "shards take"),
    ] {
        let upload = begin(&user).await;
        put(&user, &upload, "parts/t.csv", file.as_bytes()).await;
        user.post(&upload, &form(FILE)).await;
        let said = outcome(&user, &upload).await;
        let why = format!("{what} more than {most} bytes");
        assert!(said.contains(&why) && said.contains("--max-data-uploads"), "{file}: {said}");
        assert_eq!(user.send("DELETE", &upload, "same-origin", b"").await.status, 204);
    }
    is_empty(folder.path()).await;
    assert_eq!(jobs(&world).await.len(), 0);
    world.server.stop().await;
}

#[tokio::test]
async fn a_server_that_is_told_so_takes_no_files() {
    let folder = folder();
    let world = world(folder.path(), 0).await;
    let user = Browser::sign_in(&world, "administer").await;
    assert!(!text(&user.get("/jobs/new").await).contains("type=\"file\""));
    let refused = user.post("/jobs/new/data", "").await;
    assert!(refused.status == 404 && text(&refused).contains("`sojourn submit`"));
    world.server.stop().await;
}
