//! How EC2 is reached: credentials, TLS, retries and time limits.

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_ec2::{
    Client,
    config::{Credentials, SharedCredentialsProvider, SharedHttpClient},
};
use aws_smithy_http_client::{
    Builder,
    tls::{Provider, rustls_provider::CryptoMode},
};
use aws_smithy_types::{retry::RetryConfig, timeout::TimeoutConfig};
use std::time::Duration;

/// How often a request is sent at most. EC2 carries a repeated order out once, by its token.
const MAX_ATTEMPTS: u32 = 4;
/// Before the first repetition; doubled each time, of which a part by chance.
const BACKOFF: Duration = Duration::from_millis(500);
/// Until a connection is there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Of one attempt. `CreateFleet` answers once machines are launched.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
/// Of a request with all its attempts.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The SDK's configuration, with credentials from where the AWS tools take them: environment, profile, web identity,
/// container, and the instance's role. `endpoint` is another address of the API, for stand-ins.
pub async fn connect(endpoint: Option<&str>) -> SdkConfig {
    connect_in(endpoint, None).await
}

/// The same for a region. Without one, the SDK looks for it in the environment, the profile and the metadata of a machine, which
/// only a machine of EC2 has.
pub async fn connect_in(endpoint: Option<&str>, region: Option<&str>) -> SdkConfig {
    let http = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    let mut loader = aws_config::defaults(BehaviorVersion::latest()).http_client(http);
    if let Some(region) = region {
        loader = loader.region(Region::new(region.to_owned()));
    }
    if let Some(endpoint) = endpoint {
        loader = loader.endpoint_url(endpoint);
    }
    loader.retry_config(retries()).timeout_config(timeouts()).load().await
}

/// A configuration over this HTTP client, with credentials that open nothing: for stand-ins and tests.
#[must_use]
pub fn offline(http: SharedHttpClient, endpoint: Option<&str>) -> SdkConfig {
    let nobody = Credentials::new("nobody", "opens-nothing", None, None, "offline");
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .credentials_provider(SharedCredentialsProvider::new(nobody))
        .http_client(http)
        .retry_config(retries())
        .timeout_config(timeouts());
    config.set_endpoint_url(endpoint.map(str::to_owned));
    config.build()
}

/// A client for a region.
pub(crate) fn client(config: &SdkConfig, region: &str) -> Client {
    let config = aws_sdk_ec2::config::Builder::from(config).region(Region::new(region.to_owned()));
    Client::from_conf(config.build())
}

fn retries() -> RetryConfig {
    RetryConfig::standard().with_max_attempts(MAX_ATTEMPTS).with_initial_backoff(BACKOFF)
}

fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .operation_attempt_timeout(ATTEMPT_TIMEOUT)
        .operation_timeout(TIMEOUT)
        .build()
}
