//! EC2's instance metadata, version 2: each question shows a token.
//!
//! <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html>

use super::{
    Announcement, When,
    service::{Service, ServiceError},
};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use std::time::Duration;

const TOKEN: &str = "latest/api/token";
/// Six hours, the longest there is.
const TOKEN_LIFE: (&str, &str) = ("X-aws-ec2-metadata-token-ttl-seconds", "21600");
const SHOWN: &str = "X-aws-ec2-metadata-token";
const ACTION: &str = "latest/meta-data/spot/instance-action";
const REBALANCE: &str = "latest/meta-data/events/recommendations/rebalance";
/// An action is announced two minutes before, and a hibernation as it begins.
const MAX_NOTICE: Duration = Duration::from_secs(120);

/// An EC2 instance.
#[derive(Debug)]
pub(crate) struct Aws {
    token: String,
}

/// The announced action on a spot instance.
#[derive(Deserialize)]
struct InstanceAction {
    /// `terminate`, `stop` or `hibernate`.
    action: String,
    time: jiff::Timestamp,
}

impl Aws {
    /// Is this machine one?
    pub(crate) async fn find(service: &Service) -> Result<Self, ServiceError> {
        match service.ask(Method::PUT, TOKEN, TOKEN_LIFE).await? {
            // Others may answer any path with a page.
            Some(token)
                if !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) =>
            {
                Ok(Self { token })
            }
            _ => Err(ServiceError::Garbage("there is no token".to_owned())),
        }
    }

    /// The notice, where there is one.
    pub(crate) async fn ask(
        &mut self,
        service: &Service,
    ) -> Result<Option<Announcement>, ServiceError> {
        if let Some(text) = self.get(service, ACTION).await? {
            return action(&text).map(Some);
        }
        // It is likelier now; when, nobody says.
        let what = "rebalance recommendation";
        let recommended = self.get(service, REBALANCE).await?;
        Ok(recommended.map(|_| Announcement { what: what.to_owned(), when: When::Unknown }))
    }

    async fn get(&mut self, service: &Service, path: &str) -> Result<Option<String>, ServiceError> {
        match service.get(path, (SHOWN, &self.token)).await {
            Err(ServiceError::Refused(StatusCode::UNAUTHORIZED)) => {
                *self = Self::find(service).await?;
                service.get(path, (SHOWN, &self.token)).await
            }
            answer => answer,
        }
    }
}

fn action(text: &str) -> Result<Announcement, ServiceError> {
    let InstanceAction { action, time } =
        serde_json::from_str(text).map_err(|error| ServiceError::Garbage(error.to_string()))?;
    Ok(Announcement { what: action, when: When::At { time, at_most: MAX_NOTICE } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_has_its_time() {
        let announcement =
            action(r#"{"action": "terminate", "time": "2017-09-18T08:22:00Z"}"#).unwrap();
        let time = jiff::Timestamp::from_second(1_505_722_920).unwrap();
        let when = When::At { time, at_most: MAX_NOTICE };
        assert_eq!(announcement, Announcement { what: "terminate".to_owned(), when });
        for garbage in
            ["", "<html>", r#"{"action": "stop"}"#, r#"{"action": "stop", "time": "soon"}"#]
        {
            action(garbage).unwrap_err();
        }
    }
}
