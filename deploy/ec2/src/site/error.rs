//! Why a site can't be made or removed.

use crate::{
    errors::Failure,
    settings::{ServerSettingsError, SettingsError},
};
use sojourn_fleet::cloud::CloudError;
use std::{io, path::PathBuf};

/// Why a site can't be made or removed.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// The settings.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The settings of the server.
    #[error(transparent)]
    Server(#[from] ServerSettingsError),
    /// A call of AWS.
    #[error(transparent)]
    Call(#[from] CloudError),
    /// The file has no table for the server.
    #[error(
        "the file has no table `[ec2.server]`, which says who reaches the server and where its programs are"
    )]
    NoServer,
    /// The network and the server are in one region.
    #[error("`ec2.regions` names {0} regions; a server that is made serves machines of one")]
    Regions(usize),
    /// A launch template has its own security groups.
    #[error(
        "`ec2.regions.{0}` has a launch template, which the server's port can't be opened to: give an `image`"
    )]
    Template(String),
    /// Groups are of a network.
    #[error("`ec2.regions.{0}` has `security_groups` and no `subnets`, whose network they are of")]
    Groups(String),
    /// A subnet of the file.
    #[error("there is no subnet {id}")]
    NoSubnet {
        /// The subnet.
        id: String,
    },
    /// The subnets of the file.
    #[error("the `subnets` are in several networks")]
    TwoNetworks,
    /// The server's type.
    #[error(
        "no zone of {region} that the file allows sells `{instance_type}`, the type of the server's machine"
    )]
    NotSold {
        /// The type.
        instance_type: String,
        /// The region.
        region: String,
    },
    /// The image has no root volume.
    #[error("image {image} has no root volume, and none is known")]
    NoDisk {
        /// The image.
        image: String,
    },
    /// Somebody else's.
    #[error(
        "{kind} `{name}` is there without this fleet's tag: it isn't touched; remove it, or name the fleet otherwise"
    )]
    Foreign {
        /// The kind of the thing, with its article.
        kind: &'static str,
        /// The thing's name.
        name: String,
    },
    /// The server's machine ended while it was waited for.
    #[error("the server's machine {id} ended as it started; the console's log says why")]
    Ended {
        /// The machine.
        id: String,
    },
    /// The server's machine doesn't run.
    #[error("the server's machine {id} doesn't run yet; the same command goes on with it")]
    Slow {
        /// The machine.
        id: String,
    },
    /// The user data.
    #[error(
        "the server's user data has {bytes} bytes even when packed; EC2 takes 16384: name fewer prices"
    )]
    Large {
        /// The size of the packed user data, in bytes.
        bytes: usize,
    },
    /// The user data.
    #[error("the server's user data can't be packed")]
    Pack(#[source] io::Error),
    /// An archive or its folder.
    #[error("`{}`", path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The folder of the archives.
    #[error("`{}` has not exactly one `sojourn-VERSION-linux-ARCH.tar.gz`; `make dist` makes it", folder.display())]
    Dist {
        /// The folder.
        folder: PathBuf,
    },
    /// The bucket isn't there.
    #[error("there is no bucket `{bucket}`: `aws s3 mb {bucket}` makes it")]
    NoBucket {
        /// As the file names it.
        bucket: String,
    },
    /// Nobody to be.
    #[error("there are no credentials of AWS: `aws configure` writes them")]
    NoCredentials,
    /// The bucket.
    #[error("the bucket")]
    Bucket(#[from] object_store::Error),
}

impl From<Failure> for SiteError {
    fn from(failure: Failure) -> Self {
        Self::Call(failure.cloud())
    }
}
