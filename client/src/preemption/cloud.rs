//! Which cloud this machine is in.

use super::{
    Announcement,
    aws::Aws,
    azure::Azure,
    gcp::Gcp,
    service::{Service, ServiceError},
};

/// A cloud whose notices are understood.
#[derive(Debug)]
pub(crate) enum Cloud {
    Aws(Aws),
    Gcp(Gcp),
    Azure(Azure),
}

impl Cloud {
    /// The one that answers.
    pub(crate) async fn find(service: &Service) -> Option<Self> {
        let (aws, gcp, azure) =
            tokio::join!(Aws::find(service), Gcp::find(service), Azure::find(service));
        // GCP and Azure answer to their own headers alone.
        gcp.map(Self::Gcp).or_else(|_| azure.map(Self::Azure)).or_else(|_| aws.map(Self::Aws)).ok()
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Aws(_) => "AWS",
            Self::Gcp(_) => "GCP",
            Self::Azure(_) => "Azure",
        }
    }

    /// The notice, where there is one.
    pub(crate) async fn ask(
        &mut self,
        service: &Service,
    ) -> Result<Option<Announcement>, ServiceError> {
        match self {
            Self::Aws(aws) => aws.ask(service).await,
            Self::Gcp(gcp) => gcp.ask(service).await,
            Self::Azure(azure) => azure.ask(service).await,
        }
    }
}
