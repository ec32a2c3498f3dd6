//! The meaning of EC2's errors for a fleet: decided by their codes, never by their texts.
//!
//! The codes are those of the API reference ("Error codes for the Amazon EC2 API"). No text of a request gets into an error:
//! it has enrolment tokens.

use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use sojourn_fleet::cloud::CloudError;
use std::error::Error;

/// The subject of an error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A pool has no machine left, or none for this price or image.
    Capacity,
    /// The account may have no more.
    Quota,
    /// Too many requests.
    Throttled,
    /// The client token was used for other parameters, or for a machine that has ended.
    Token,
    /// The launch template is gone.
    NoTemplate,
    /// The launch template is there already.
    TemplateExists,
    /// An instance isn't known, or not any more.
    NoInstance,
    /// A volume isn't known, or not any more.
    NoVolume,
    /// The named thing isn't known: it is gone, or was made a moment ago.
    Gone,
    /// The thing is there already.
    Exists,
    /// Something else needs it still.
    InUse,
    /// A parameter can't be; also a name that isn't known everywhere yet.
    Parameter,
    /// EC2 itself failed.
    Away,
    /// Anything else: what was asked can't be, or may not.
    Refused,
}

/// The meaning of a code.
pub(crate) fn meaning(code: &str) -> Meaning {
    match code {
        "InsufficientInstanceCapacity"
        | "InsufficientHostCapacity"
        | "InsufficientCapacity"
        | "InsufficientCapacityOnHost"
        | "InsufficientFreeAddressesInSubnet"
        | "ReservationCapacityExceeded"
        | "UnfulfillableCapacity"
        | "SpotMaxPriceTooLow"
        | "Unsupported" => Meaning::Capacity,
        "MaxSpotInstanceCountExceeded"
        | "MaxSpotFleetRequestCountExceeded"
        | "SpotInstanceCountLimitExceeded"
        | "VcpuLimitExceeded"
        | "InstanceLimitExceeded"
        | "ReservedInstancesLimitExceeded"
        | "VolumeLimitExceeded"
        | "MaxIOPSLimitExceeded" => Meaning::Quota,
        "RequestLimitExceeded"
        | "Throttling"
        | "ThrottlingException"
        | "ThrottledException"
        | "RequestThrottled"
        | "RequestThrottledException"
        | "TooManyRequestsException"
        | "EC2ThrottledException"
        | "BandwidthLimitExceeded"
        | "SlowDown" => Meaning::Throttled,
        "IdempotentParameterMismatch" | "IdempotentInstanceTerminated" => Meaning::Token,
        "InvalidLaunchTemplateId.NotFound"
        | "InvalidLaunchTemplateName.NotFoundException"
        | "InvalidLaunchTemplateId.NotFoundException" => Meaning::NoTemplate,
        "InvalidLaunchTemplateName.AlreadyExistsException" => Meaning::TemplateExists,
        "InvalidInstanceID.NotFound" | "InvalidInstanceID.Malformed" | "InvalidInstanceId" => {
            Meaning::NoInstance
        }
        "InvalidVolume.NotFound" => Meaning::NoVolume,
        "InvalidVpcID.NotFound"
        | "InvalidSubnetID.NotFound"
        | "InvalidSubnetId.NotFound"
        | "InvalidGroup.NotFound"
        | "InvalidGroupId.NotFound"
        | "InvalidPermission.NotFound"
        | "InvalidInternetGatewayID.NotFound"
        | "InvalidInternetGatewayId.NotFound"
        | "Gateway.NotAttached"
        | "InvalidRouteTableID.NotFound"
        | "InvalidRouteTableId.NotFound"
        | "InvalidAssociationID.NotFound"
        | "InvalidAllocationID.NotFound"
        | "InvalidNetworkInterfaceID.NotFound"
        | "NoSuchEntity" => Meaning::Gone,
        "InvalidPermission.Duplicate"
        | "RouteAlreadyExists"
        | "Resource.AlreadyAssociated"
        | "EntityAlreadyExists" => Meaning::Exists,
        "DependencyViolation"
        | "DeleteConflict"
        | "InvalidIPAddress.InUse"
        | "InvalidNetworkInterface.InUse"
        | "VolumeInUse"
        | "IncorrectState"
        | "IncorrectInstanceState" => Meaning::InUse,
        "InvalidParameterValue" => Meaning::Parameter,
        "InternalError" | "InternalFailure" | "ServiceUnavailable" | "Unavailable"
        | "ServerInternal" | "RequestTimeout" => Meaning::Away,
        _ => Meaning::Refused,
    }
}

/// An error of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) meaning: Meaning,
    /// The code and the text of EC2, or why there was no answer.
    pub(crate) message: String,
}

impl Failure {
    /// From what the SDK says of a call, after its retries.
    pub(crate) fn of<E>(action: &str, error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        let SdkError::ServiceError(answer) = error else {
            let meaning = match error {
                // Nothing was sent: the request itself is at fault.
                SdkError::ConstructionFailure(_) => Meaning::Refused,
                _ => Meaning::Away,
            };
            return Self { meaning, message: format!("{action}: {}", chain(error)) };
        };
        let failed = answer.raw().status().is_server_error();
        let code = answer.err().code().unwrap_or_default();
        let meaning = match meaning(code) {
            Meaning::Refused if failed => Meaning::Away,
            known => known,
        };
        let text = answer.err().message().unwrap_or("no text");
        Self { meaning, message: format!("{action}: {code}: {text}") }
    }

    /// As an error of a call that isn't about pools.
    pub(crate) fn cloud(self) -> CloudError {
        match self.meaning {
            Meaning::Throttled => CloudError::Throttled,
            Meaning::Token => CloudError::TokenReused,
            Meaning::Away => CloudError::Away(self.message),
            _ => CloudError::Refused(self.message),
        }
    }
}

/// An error's causes, without what `Debug` would add: that has headers and bodies.
fn chain(error: &dyn Error) -> String {
    let mut texts = vec![error.to_string()];
    let mut source = error.source();
    while let Some(cause) = source {
        texts.push(cause.to_string());
        source = cause.source();
    }
    texts.dedup();
    texts.join(": ")
}
