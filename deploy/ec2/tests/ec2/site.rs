//! A fleet's site against `moto`: made, made again, made after a crash, and removed without a trace.

use crate::{
    moto::Moto,
    support::{REGION, settings},
    wire::{Cut, Wire},
};
use aws_sdk_ec2::{
    Client,
    config::{Builder, Region},
    types::{InstanceStateName, Tag},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::read::GzDecoder;
use sojourn_ec2::{
    Ec2Settings, Leaving, LeavingKind, Part, PartState, Placement, ServerFiles, Site, SiteError,
    SiteServer, State, offline,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read as _,
};

/// An image that `moto` has in all regions.
const IMAGE: &str = "ami-03cf127a";
/// The calls that make a whole site with two zones.
const MAKES: usize = 25;

pub(crate) const SERVER: &str = r#"
    [server]
    allowed = ["192.0.2.0/24", "198.51.100.7/32"]
    zones = 2
    release = { url = "https://example.org/release.tar.gz", sha256 = "0000000000000000000000000000000000000000000000000000000000000000" }
    programs = { url = "https://example.org/programs.tar", sha256 = "1111111111111111111111111111111111111111111111111111111111111111" }
"#;

pub(crate) fn fleet(name: &str, endpoint: &str, server: &str, region: &str) -> Ec2Settings {
    settings(&format!(
        r#"
        fleet = "{name}"
        user_data = "x"
        tags = {{ team = "vision" }}
        endpoint = "{endpoint}"
        {server}
        [regions.eu-west-1]
        image = "{IMAGE}"
        {region}
        on_demand = {{ "t3.small" = "0.0228 usd" }}
        "#
    ))
}

pub(crate) fn site(wire: &Wire, settings: Ec2Settings) -> Site {
    let endpoint = settings.endpoint.clone();
    Site::new(&offline(wire.client(), endpoint.as_deref()), settings).unwrap()
}

/// The site `night` of a server.
pub(crate) fn night(moto: &Moto, wire: &Wire) -> Site {
    site(wire, fleet("night", &moto.url, SERVER, ""))
}

fn files(placement: &Placement) -> ServerFiles {
    ServerFiles { fleet: format!("# {placement:?} {{{{private_address}}}}\n"), user_data: None }
}

pub(crate) async fn up(site: &Site) -> Result<(SiteServer, Vec<PartState>), SiteError> {
    let mut seen = vec![];
    let server = site.up(files, |part| seen.push(part)).await?;
    Ok((server, seen))
}

/// Removes until nothing is left; what the first pass found.
async fn down(site: &Site) -> Vec<Leaving> {
    let first = site.remove_all().await.unwrap();
    for _ in 0..10 {
        if site.remove_all().await.unwrap().is_empty() {
            assert_eq!(site.leavings().await.unwrap(), []);
            return first;
        }
    }
    panic!("still there: {:?}", site.leavings().await.unwrap());
}

/// A client beside the fleet's, whose calls don't count.
pub(crate) struct Owner {
    pub(crate) ec2: Client,
    iam: aws_sdk_iam::Client,
}

pub(crate) fn owner(moto: &Moto) -> Owner {
    let config = offline(Wire::open().client(), Some(&moto.url));
    let iam = aws_sdk_iam::config::Builder::from(&config);
    Owner {
        ec2: Client::from_conf(Builder::from(&config).region(Region::new(REGION)).build()),
        iam: aws_sdk_iam::Client::from_conf(iam.region(Region::new(REGION)).build()),
    }
}

impl Owner {
    /// Everything that is in the account, of every kind that a site or a fleet may have. But for network interfaces: `moto` keeps
    /// those of machines that have ended.
    async fn everything(&self) -> BTreeMap<&'static str, BTreeSet<String>> {
        fn ids<T>(list: &[T], id: impl Fn(&T) -> Option<&str>) -> BTreeSet<String> {
            list.iter().filter_map(id).map(str::to_owned).collect()
        }
        let ec2 = &self.ec2;
        let instances = ec2.describe_instances().send().await.unwrap();
        let instances = instances.reservations().iter().flat_map(|r| r.instances());
        let ended = Some(&InstanceStateName::Terminated);
        let instances = instances.filter(|i| i.state().and_then(|state| state.name()) != ended);
        let instances: Vec<_> = instances.cloned().collect();
        let roles = self.iam.list_roles().send().await.unwrap();
        let profiles = self.iam.list_instance_profiles().send().await.unwrap();
        let own = self.iam.list_policies().scope(aws_sdk_iam::types::PolicyScopeType::Local);
        let policies = own.send().await.unwrap();
        BTreeMap::from([
            ("instances", ids(&instances, |i| i.instance_id())),
            ("vpcs", ids(ec2.describe_vpcs().send().await.unwrap().vpcs(), |v| v.vpc_id())),
            (
                "subnets",
                ids(ec2.describe_subnets().send().await.unwrap().subnets(), |s| s.subnet_id()),
            ),
            (
                "gateways",
                ids(
                    ec2.describe_internet_gateways().send().await.unwrap().internet_gateways(),
                    |g| g.internet_gateway_id(),
                ),
            ),
            (
                "routes",
                ids(ec2.describe_route_tables().send().await.unwrap().route_tables(), |t| {
                    t.route_table_id()
                }),
            ),
            (
                "groups",
                ids(ec2.describe_security_groups().send().await.unwrap().security_groups(), |g| {
                    g.group_id()
                }),
            ),
            (
                "addresses",
                ids(ec2.describe_addresses().send().await.unwrap().addresses(), |a| {
                    a.allocation_id()
                }),
            ),
            (
                "volumes",
                ids(ec2.describe_volumes().send().await.unwrap().volumes(), |v| v.volume_id()),
            ),
            (
                "templates",
                ids(
                    ec2.describe_launch_templates().send().await.unwrap().launch_templates(),
                    |t| t.launch_template_id(),
                ),
            ),
            ("roles", ids(roles.roles(), |role| Some(role.role_name()))),
            ("profiles", ids(profiles.instance_profiles(), |p| Some(p.instance_profile_name()))),
            ("policies", ids(policies.policies(), |policy| policy.arn())),
        ])
    }
}

fn count(everything: &BTreeMap<&'static str, BTreeSet<String>>) -> usize {
    everything.values().map(BTreeSet::len).sum()
}

#[tokio::test]
async fn a_site_is_made_once_and_goes_without_a_trace() {
    let moto = Moto::start().await;
    let owner = owner(&moto);
    let before = owner.everything().await;

    // A look changes nothing, and says what would be made.
    let wire = Wire::open();
    let night = night(&moto, &wire);
    night.check().unwrap();
    let looked = night.look().await.unwrap();
    assert!(
        looked.iter().all(|part| part.state == State::Missing && part.id.is_none()),
        "{looked:?}"
    );
    assert_eq!((looked.len(), wire.changes()), (11, vec![]));
    let (server, made) = up(&night).await.unwrap();
    let parts =
        |states: &[PartState]| states.iter().map(|one| one.part.clone()).collect::<Vec<_>>();
    assert_eq!(parts(&made), parts(&looked), "as it was said");
    assert!(made.iter().all(|part| part.state == State::Missing && part.id.is_some()), "{made:?}");
    assert_eq!(wire.changes().len(), MAKES, "{:?}", wire.changes());
    assert_eq!(server.url(), format!("https://{}:8642", server.address));

    // Every part has the fleet's tag from its birth on.
    let tagged = owner.ec2.describe_tags().send().await.unwrap();
    let value = |id: &str, key: &str| {
        let mut tags = tagged.tags().iter();
        let tag = tags.find(|tag| tag.resource_id() == Some(id) && tag.key() == Some(key));
        tag.and_then(|tag| tag.value()).map(str::to_owned)
    };
    for part in made.iter().filter(|one| !matches!(one.part, Part::Role | Part::Profile)) {
        let id = part.id.as_deref().unwrap();
        let tags = ["sojourn:fleet", "Name", "team"].map(|key| value(id, key));
        let tags: Vec<_> = tags.iter().map(|tag| tag.as_deref().unwrap_or("none")).collect();
        assert_eq!(tags, ["night", "sojourn-night", "vision"], "{part:?}");
    }
    assert!(wire.of("CreateTags").is_empty(), "tags come with what they are of");

    // Again: nothing is made, nothing changes.
    let there = owner.everything().await;
    let again = Wire::open();
    let (same, found) = up(&self::night(&moto, &again)).await.unwrap();
    assert_eq!((same, again.changes()), (server.clone(), vec![]));
    assert!(found.iter().all(|part| part.state == State::There), "{found:?}");
    assert_eq!(owner.everything().await, there);

    check_server(&owner, &server).await;

    // Down: all that is new is gone, of every kind.
    let gone = down(&night).await;
    let kinds: BTreeSet<&str> = gone.iter().map(|leaving| leaving.kind.word()).collect();
    for kind in ["server", "public address", "network", "role", "instance profile", "subnet"] {
        assert!(kinds.contains(kind), "{kind} in {kinds:?}");
    }
    assert_eq!(owner.everything().await, before);
    assert_eq!(night.remove_all().await.unwrap(), [], "again is no error");

    // And up once more.
    up(&night).await.unwrap();
    down(&night).await;
    assert_eq!(owner.everything().await, before);
}

/// The rights that AWS itself checks beside what is called, and those that a stopped machine or an interface left over would
/// need.
const IMPLIED: [&str; 11] = [
    "CreateTags",
    "DeleteLaunchTemplate",
    "DeleteNetworkInterface",
    "DeleteVolume",
    "GetObject",
    "PassRole",
    "RevokeSecurityGroupIngress",
    "StartInstances",
    "TagInstanceProfile",
    "TagRole",
    "ListBucket",
];

#[tokio::test]
async fn the_page_names_every_right_that_is_needed_and_no_other() {
    let moto = Moto::start().await;
    let wire = Wire::open();
    let night = night(&moto, &wire);
    up(&night).await.unwrap();
    down(&night).await;
    let page = include_str!("../../../../docs/operate/aws.md");
    let section = page.split("### What you may have to be allowed").nth(1).unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let named = rows.flat_map(|row| row.split('`').skip(3).step_by(2));
    let named: BTreeSet<String> = named.map(str::to_owned).collect();
    let mut needed = wire.actions();
    needed.extend(IMPLIED.map(str::to_owned));
    needed.extend(["PutObject", "DeleteObject"].map(str::to_owned));
    assert_eq!(named, needed, "left: the page, right: what is called and implied");
}

/// The user data of the server's machine, unpacked.
async fn user_data(owner: &Owner, server: &SiteServer) -> String {
    let attribute = aws_sdk_ec2::types::InstanceAttributeName::UserData;
    let data = owner.ec2.describe_instance_attribute().instance_id(&server.instance);
    let data = data.attribute(attribute).send().await.unwrap();
    let packed = STANDARD.decode(data.user_data().unwrap().value().unwrap()).unwrap();
    let mut text = String::new();
    GzDecoder::new(&*packed).read_to_string(&mut text).unwrap();
    text
}

/// The server's machine: its user data, its rights, its port, and that it is no machine of the fleet.
async fn check_server(owner: &Owner, server: &SiteServer) {
    let answer =
        owner.ec2.describe_instances().instance_ids(&server.instance).send().await.unwrap();
    let instance = &answer.reservations()[0].instances()[0];
    assert_eq!(instance.public_ip_address(), Some(&*server.address));
    let profile = instance.iam_instance_profile().unwrap().arn().unwrap();
    assert!(profile.ends_with("/sojourn-night-server"), "{profile}");
    let text = user_data(owner, server).await;
    assert!(text.contains(&format!("PUBLIC_ADDRESS=\"{}\"", server.address)), "{text}");
    let placed = text.lines().find(|line| line.contains("fleet.toml.sent")).is_some();
    assert!(placed, "{text}");
    let groups = owner.ec2.describe_security_groups().send().await.unwrap();
    let of = |name: &str| {
        let mut groups = groups.security_groups().iter();
        groups.find(|group| group.group_name() == Some(name)).unwrap().clone()
    };
    let (machines, servers) = (of("sojourn-night-machine"), of("sojourn-night-server"));
    assert_eq!(machines.ip_permissions(), [], "nothing reaches the machines");
    let rules = servers.ip_permissions();
    let ports: BTreeSet<_> = rules.iter().map(|rule| (rule.from_port(), rule.to_port())).collect();
    assert_eq!(ports, BTreeSet::from([(Some(8642), Some(8642))]));
    let networks: BTreeSet<_> =
        rules.iter().flat_map(|r| r.ip_ranges()).filter_map(|r| r.cidr_ip()).collect();
    assert_eq!(networks, BTreeSet::from(["192.0.2.0/24", "198.51.100.7/32"]));
    let from: Vec<_> =
        rules.iter().flat_map(|r| r.user_id_group_pairs()).map(|p| p.group_id()).collect();
    assert_eq!(from, [machines.group_id()]);
    let policy =
        owner.iam.get_role_policy().role_name("sojourn-night-server").policy_name("autoscaler");
    let policy = policy.send().await.unwrap();
    assert!(policy.policy_document().contains("TerminateInstances"), "{policy:?}");
}

#[tokio::test]
async fn after_a_crash_anywhere_up_finishes_and_makes_nothing_twice() {
    let moto = Moto::start().await;
    let owner = owner(&moto);
    let before = owner.everything().await;
    let whole = {
        up(&night(&moto, &Wire::open())).await.unwrap();
        count(&owner.everything().await)
    };
    down(&night(&moto, &Wire::open())).await;
    for passed in 0..MAKES {
        for cut in [Cut::Before(passed), Cut::After(passed)] {
            let crashed = up(&night(&moto, &Wire::cut(cut))).await;
            assert!(crashed.is_err(), "{cut:?}");
            let wire = Wire::open();
            let finished = up(&night(&moto, &wire)).await;
            let (_, states) = finished.unwrap_or_else(|error| panic!("{cut:?}: {error}"));
            assert!(states.iter().all(|part| part.id.is_some()), "{cut:?}: {states:?}");
            let lost = if matches!(cut, Cut::After(_)) { 1 } else { 0 };
            let made = wire.changes();
            assert_eq!(passed + lost + made.len(), MAKES, "{cut:?}: {made:?}");
            assert_eq!(count(&owner.everything().await), whole, "{cut:?}");
            let again = Wire::open();
            up(&night(&moto, &again)).await.unwrap();
            assert_eq!(again.changes(), Vec::<String>::new(), "{cut:?}");
            down(&night(&moto, &Wire::open())).await;
            assert_eq!(owner.everything().await, before, "{cut:?}");
        }
    }
}

#[tokio::test]
async fn what_a_crash_left_goes_too() {
    let moto = Moto::start().await;
    let owner = owner(&moto);
    let before = owner.everything().await;
    for passed in (1..MAKES).step_by(3) {
        up(&night(&moto, &Wire::cut(Cut::Before(passed)))).await.unwrap_err();
        // A `down` that crashes as well.
        let crashed = night(&moto, &Wire::cut(Cut::After(passed / 3)));
        let _ = crashed.remove_all().await;
        down(&night(&moto, &Wire::open())).await;
        assert_eq!(owner.everything().await, before, "{passed}");
    }
}

#[tokio::test]
async fn what_lacks_the_tag_is_not_touched() {
    let moto = Moto::start().await;
    let owner = owner(&moto);
    // A network and a machine of others, one with this fleet's name and another fleet's tag.
    let vpc = owner.ec2.create_vpc().cidr_block("10.64.0.0/16").send().await.unwrap();
    let vpc = vpc.vpc().unwrap().vpc_id().unwrap().to_owned();
    let name = Tag::builder().key("Name").value("sojourn-night").build();
    let other = Tag::builder().key("sojourn:fleet").value("night-two").build();
    owner.ec2.create_tags().resources(&vpc).tags(name).tags(other).send().await.unwrap();
    let machine = owner.ec2.run_instances().image_id(IMAGE).min_count(1).max_count(1);
    machine.send().await.unwrap();
    owner.ec2.allocate_address().send().await.unwrap();
    let before = owner.everything().await;
    let night = night(&moto, &Wire::open());
    let (_, made) = up(&night).await.unwrap();
    assert_ne!(made[0].id.as_deref(), Some(&*vpc));
    down(&night).await;
    assert_eq!(owner.everything().await, before);

    // A role of that name which isn't the fleet's.
    for fleet in [None, Some("night-two")] {
        let role = owner.iam.create_role().role_name("sojourn-night-server");
        let tag = fleet.map(|fleet| {
            aws_sdk_iam::types::Tag::builder().key("sojourn:fleet").value(fleet).build().unwrap()
        });
        let role = role.assume_role_policy_document("{}").set_tags(tag.map(|tag| vec![tag]));
        role.send().await.unwrap();
        let before = owner.everything().await;
        let refused = night.look().await.unwrap_err().to_string();
        assert!(refused.contains("a role `sojourn-night-server` is there"), "{refused}");
        up(&night).await.unwrap_err();
        down(&night).await;
        assert_eq!(owner.everything().await, before, "{fleet:?}");
        owner.iam.delete_role().role_name("sojourn-night-server").send().await.unwrap();
    }
    let profile = owner.iam.create_instance_profile().instance_profile_name("sojourn-night-server");
    profile.send().await.unwrap();
    let before = owner.everything().await;
    let refused = night.look().await.unwrap_err().to_string();
    assert!(refused.contains("an instance profile `sojourn-night-server` is there"), "{refused}");
    down(&night).await;
    assert_eq!(owner.everything().await, before);
}

#[tokio::test]
async fn a_network_that_is_given_is_used_and_stays() {
    let moto = Moto::start().await;
    let owner = owner(&moto);
    let subnets = owner.ec2.describe_subnets().send().await.unwrap();
    let subnets: Vec<&str> = subnets.subnets().iter().filter_map(|s| s.subnet_id()).collect();
    let before = owner.everything().await;
    let given = format!("subnets = [\"{}\", \"{}\"]", subnets[1], subnets[0]);
    let site = site(&Wire::open(), fleet("night", &moto.url, SERVER, &given));
    let mut placed = None;
    let files = |placement: &Placement| {
        placed = Some(placement.clone());
        files(placement)
    };
    let mut parts = vec![];
    let server = site.up(files, |one| parts.push(one.part)).await.unwrap();
    assert_eq!(parts[0], Part::MachineGroup, "no network is made");
    let answer =
        owner.ec2.describe_instances().instance_ids(&server.instance).send().await.unwrap();
    let instance = &answer.reservations()[0].instances()[0];
    assert_eq!(instance.subnet_id(), Some(subnets[1]), "the first of the file");
    let placed = placed.unwrap();
    assert_eq!(
        placed.subnets.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        BTreeSet::from([subnets[0], subnets[1]])
    );
    assert_eq!((placed.region.as_str(), placed.security_groups.len()), (REGION, 1));
    down(&site).await;
    assert_eq!(owner.everything().await, before);
}

#[tokio::test]
async fn a_server_is_no_machine_of_its_fleet() {
    use sojourn_fleet::cloud::Cloud as _;
    let moto = Moto::start().await;
    let settings = fleet("night", &moto.url, SERVER, "");
    let site = site(&Wire::open(), settings.clone());
    let (server, _) = up(&site).await.unwrap();
    // As the autoscaler sees it, who ends machines without a name.
    let ec2 = crate::support::ec2(&Wire::open(), settings);
    assert_eq!(ec2.machines().await.unwrap(), []);
    assert_eq!(ec2.remove_all().await.unwrap(), [], "neither the machine nor its disk");
    let left = site.leavings().await.unwrap();
    assert!(
        left.iter().any(|one| one.kind == LeavingKind::Server && one.id == server.instance),
        "{left:?}"
    );
    assert!(left.iter().any(|one| one.kind == LeavingKind::ServerDisk), "{left:?}");
}

#[tokio::test]
async fn archives_go_through_a_bucket_and_nothing_else_of_it_goes() {
    // The program does this as it starts.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let moto = Moto::start().await;
    let owner = owner(&moto);
    let http = reqwest::Client::new();
    let bucket = format!("{}/archives", moto.url);
    let put = async |path: &str, text: &'static str| {
        let sent = http.put(format!("{bucket}{path}")).body(text).send().await.unwrap();
        assert!(sent.status().is_success(), "{sent:?}");
    };
    put("", "").await;
    put("/sojourn-night-two/programs.tar", "another fleet's").await;
    let keys = async || http.get(&bucket).send().await.unwrap().text().await.unwrap();
    let before = keys().await.matches("<Key>").count();
    let dist = tempfile::tempdir().unwrap();
    let release = "sojourn-0.1.0-linux-x86_64.tar.gz";
    for (name, text) in [
        (release, "the small one"),
        ("sojourn-trainer-0.1.0-linux-x86_64.tar.gz", "the trainer"),
        ("programs.tar", "programs"),
    ] {
        std::fs::write(dist.path().join(name), text).unwrap();
    }
    let server = format!(
        "[server]\nallowed = [\"192.0.2.0/24\"]\ndist = \"{}\"\nbucket = \"s3://archives\"\n",
        dist.path().display()
    );
    let elsewhere = server.replace("s3://archives", "s3://missing");
    let missing = site(&Wire::open(), fleet("night", &moto.url, &elsewhere, ""));
    let refused = missing.look().await.unwrap_err().to_string();
    assert!(refused.contains("`aws s3 mb s3://missing` makes it"), "{refused}");
    let site = site(&Wire::open(), fleet("night", &moto.url, &server, ""));
    site.check().unwrap();
    site.look().await.unwrap();
    assert_eq!(keys().await.matches("<Key>").count(), before, "a look copies nothing");
    let (server, _) = up(&site).await.unwrap();
    let data = user_data(&owner, &server).await;
    let value = |name: &str| {
        let at = data.find(&format!("{name}=\"")).unwrap() + name.len() + 2;
        data[at..].split('"').next().unwrap().to_owned()
    };
    for (name, text) in [("RELEASE", "the small one"), ("PROGRAMS", "programs")] {
        let fetched = http.get(value(&format!("{name}_URL"))).send().await.unwrap();
        assert_eq!(fetched.text().await.unwrap(), text);
        let mut digest = sojourn_protocol::digest::Hasher::default();
        digest.update(text.as_bytes());
        assert_eq!(value(&format!("{name}_SHA256")), digest.finish().to_string());
    }
    assert!(value("RELEASE_URL").contains("X-Amz-Expires=3600"), "{}", value("RELEASE_URL"));
    assert_eq!(keys().await.matches("<Key>").count(), before + 2);
    let gone = down(&site).await;
    let archives = gone.iter().filter(|leaving| leaving.kind == LeavingKind::Archive);
    assert_eq!(archives.count(), 2, "{gone:?}");
    let left = keys().await;
    assert!(
        left.matches("<Key>").count() == before && left.contains("sojourn-night-two"),
        "{left}"
    );
    // Without its bucket all the rest can be removed.
    up(&site).await.unwrap();
    assert!(down(&missing).await.len() > 5);
}

#[tokio::test]
async fn what_cannot_be_is_refused_before_anything_is_made() {
    let moto = Moto::start().await;
    let owner = owner(&moto);
    let before = owner.everything().await;
    let wire = Wire::open();
    for (from, to, region, expected) in [
        ("zones = 2", "zones = 2\ninstance_type = \"t3.gigantic\"", "", "sells `t3.gigantic`"),
        ("zones = 2", "zones = 2\nimage = \"ami-00000000\"", "", "InvalidAMIID.NotFound"),
        ("zones = 2", "zones = 2", "subnets = [\"subnet-0badc0de\"]", "subnet-0badc0de"),
    ] {
        let site = site(&wire, fleet("night", &moto.url, &SERVER.replace(from, to), region));
        let refused = up(&site).await.unwrap_err().to_string();
        assert!(refused.contains(expected), "{expected}: {refused}");
    }
    assert_eq!(wire.changes(), Vec::<String>::new());
    assert_eq!(owner.everything().await, before);
}

#[test]
fn a_site_that_is_not_whole_is_refused() {
    let made = |settings: Ec2Settings| {
        let site = Site::new(&offline(Wire::open().client(), None), settings)?;
        site.check()
    };
    let plain = |server: &str, region: &str| fleet("night", "http://127.0.0.1:1", server, region);
    made(plain(SERVER, "")).unwrap();
    let two = format!("{SERVER}[regions.us-east-1]\nimage = \"{IMAGE}\"\n");
    let nobody = SERVER.replace("[\"192.0.2.0/24\", \"198.51.100.7/32\"]", "[]");
    let no_programs = SERVER.replace("programs = ", "# ");
    let bucket = "[server]\nallowed = [\"192.0.2.0/24\"]\nbucket = \"s3://archives\"\n";
    let nowhere = format!("{bucket}dist = \"/nowhere\"\n");
    for (settings, expected) in [
        (plain("", ""), "no table `[ec2.server]`"),
        (plain(&two, ""), "names 2 regions"),
        (plain(&nobody, ""), "nobody outside could reach the server"),
        (plain(&no_programs, ""), "`ec2.server.programs` is missing"),
        (plain("[server]\nallowed = [\"192.0.2.0/24\"]\n", ""), "`ec2.server.release` is missing"),
        (plain(bucket, ""), "`ec2.server.dist` is missing"),
        (plain(&nowhere, ""), "`/nowhere`"),
        (plain(SERVER, "security_groups = [\"sg-1\"]"), "no `subnets`"),
    ] {
        let refused = made(settings).unwrap_err().to_string();
        assert!(refused.contains(expected), "{expected}: {refused}");
    }
    let mut template = plain(SERVER, "");
    let region = template.regions.get_mut(REGION).unwrap();
    region.image = None;
    region.launch_template =
        Some(sojourn_ec2::GivenTemplate { id: "lt-1".into(), version: "1".into() });
    let refused = made(template).unwrap_err().to_string();
    assert!(refused.contains("give an `image`"), "{refused}");
}
