//! The account and region of a site: clients, names and tags, and what is known of the parts on the way.

use super::plan::Part;
use crate::{
    connection,
    errors::{Failure, Meaning},
    region::filter,
    settings::{Ec2Settings, FLEET_TAG, RegionSettings, ServerSettings},
    tags,
};
use aws_config::{Region, SdkConfig};
use aws_sdk_ec2::types::{Filter, ResourceType, TagSpecification};
use sojourn_clouds::State;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// How long AWS may take until it knows everywhere what was just made.
const SETTLES: Duration = Duration::from_secs(90);
/// Between two calls until then.
const PAUSE: Duration = Duration::from_secs(2);

/// The account and region of a site.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) ec2: aws_sdk_ec2::Client,
    pub(super) iam: aws_sdk_iam::Client,
    pub(super) sts: aws_sdk_sts::Client,
    pub(super) config: SdkConfig,
    pub(super) settings: Ec2Settings,
    /// The region's name.
    pub(super) name: String,
    pub(super) region: RegionSettings,
    pub(super) server: ServerSettings,
}

impl Account {
    pub(super) fn new(
        config: &SdkConfig,
        settings: Ec2Settings,
        name: String,
        region: RegionSettings,
        server: ServerSettings,
    ) -> Self {
        let at = Region::new(name.clone());
        let iam = aws_sdk_iam::config::Builder::from(config).region(at.clone()).build();
        let sts = aws_sdk_sts::config::Builder::from(config).region(at).build();
        Self {
            ec2: connection::client(config, &name),
            iam: aws_sdk_iam::Client::from_conf(iam),
            sts: aws_sdk_sts::Client::from_conf(sts),
            config: config.clone(),
            settings,
            name,
            region,
            server,
        }
    }

    /// The name of a part.
    pub(super) fn name_of(&self, part: &Part) -> String {
        part.name(&self.settings.fleet)
    }

    /// The filter that finds everything with the fleet's tag.
    pub(super) fn ours(&self) -> Filter {
        filter(&format!("tag:{FLEET_TAG}"), [&self.settings.fleet])
    }

    /// The tags with which a part is made.
    pub(super) fn tags(&self, kind: ResourceType) -> TagSpecification {
        tags::of_site(&self.settings, kind)
    }

    /// The same for IAM.
    pub(super) fn iam_tags(&self) -> Vec<aws_sdk_iam::types::Tag> {
        let pairs = tags::site(&self.settings).into_iter();
        let tag = |(key, value)| aws_sdk_iam::types::Tag::builder().key(key).value(value).build();
        pairs.filter_map(|pair| tag(pair).ok()).collect()
    }

    /// Whether something of IAM has the fleet's tag.
    pub(super) fn has_tag(&self, tags: &[aws_sdk_iam::types::Tag]) -> bool {
        tags.iter().any(|tag| tag.key() == FLEET_TAG && tag.value() == self.settings.fleet)
    }
}

/// The ids of the parts that were visited.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) network: Option<String>,
    pub(super) gateway: Option<String>,
    pub(super) routes: Option<String>,
    /// The subnet of each zone.
    pub(super) subnets: BTreeMap<String, String>,
    pub(super) machine_groups: Vec<String>,
    pub(super) server_group: Option<String>,
    pub(super) role: Option<String>,
    pub(super) profile: Option<String>,
    /// The allocation of the public address, and the address.
    pub(super) address: Option<(String, String)>,
    pub(super) server: Option<String>,
}

/// A part that is visited: only looked at, or made where it is missing.
#[derive(Debug)]
pub(super) struct Visit {
    makes: bool,
    pub(super) state: State,
}

impl Visit {
    pub(super) const fn new(makes: bool) -> Self {
        Self { makes, state: State::There }
    }

    /// The part is missing; is it to be made?
    #[must_use]
    pub(super) const fn missing(&mut self) -> bool {
        self.state = State::Missing;
        self.makes
    }

    /// The part isn't as it should be; is that to be changed?
    #[must_use]
    pub(super) fn unfinished(&mut self) -> bool {
        self.state = self.state.min(State::Unfinished);
        self.makes
    }
}

/// Repeats a call for as long as AWS may not know everywhere what was just made.
pub(super) async fn settled<T>(call: impl AsyncFn() -> Result<T, Failure>) -> Result<T, Failure> {
    repeated(|failure| failure.meaning == Meaning::Gone, call).await
}

/// Repeats a call while its failure may be of this kind.
pub(super) async fn repeated<T>(
    passes: impl Fn(&Failure) -> bool,
    call: impl AsyncFn() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let since = Instant::now();
    loop {
        match call().await {
            Err(failure) if passes(&failure) && since.elapsed() < SETTLES => {
                tokio::time::sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}

/// A part that was there before isn't an error: another `up` has made it.
pub(super) fn or_there<T>(made: Result<T, Failure>) -> Result<(), Failure> {
    match made {
        Err(failure) if failure.meaning != Meaning::Exists => Err(failure),
        _ => Ok(()),
    }
}

/// The failure of an answer that lacks something that it always has.
pub(super) fn lacks(action: &str, what: &str) -> Failure {
    Failure { meaning: Meaning::Away, message: format!("{action}: the answer has no {what}") }
}
