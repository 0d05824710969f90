//! Clients of the RDS API: one for each region and role.

use aws_config::sts::AssumeRoleProvider;
use aws_config::{Region, SdkConfig};
use aws_credential_types::provider::SharedCredentialsProvider;
use lockstep_controller::Leadership;

use crate::access::{Access, AssumedRole};
use crate::access_pool::AccessPool;
use crate::aws_environment;
use crate::aws_metrics::AwsRequests;
use crate::rate_limits::RateLimits;
use crate::rds_client::{CALL_DEADLINE, RdsClient};

/// Maximum number of clients. If there are more regions and roles, the client that was not used for longest is
/// created anew when it is needed again: only its descriptions and the account of its credentials are lost.
pub(crate) const MAX_CLIENTS: usize = 500;

/// Clients of the RDS API, which are created when they are needed. They are shared by clones.
#[derive(Clone)]
pub struct RdsClients {
    config: SdkConfig,
    leadership: Leadership,
    limits: RateLimits,
    cluster_name: Option<String>,
    requests: AwsRequests,
    clients: AccessPool<RdsClient>,
}

impl RdsClients {
    /// Creates clients from the environment: region, credentials and endpoints come from the usual sources of AWS tools.
    ///
    /// A call that modifies something is not sent if it might be executed after the `leadership` has ended. Every call takes
    /// a token of the bucket that `limits` have for its account and region. Instances are tagged with the name of the
    /// cluster, if it has one. The `requests` count the calls to RDS and STS.
    pub async fn from_environment(
        leadership: Leadership,
        limits: RateLimits,
        cluster_name: Option<String>,
        requests: AwsRequests,
    ) -> Self {
        let config = aws_environment::load(None, CALL_DEADLINE).await;
        Self::of(config, leadership, limits, cluster_name, requests)
    }

    pub(crate) fn of(
        config: SdkConfig,
        leadership: Leadership,
        limits: RateLimits,
        cluster_name: Option<String>,
        requests: AwsRequests,
    ) -> Self {
        Self {
            config,
            leadership,
            limits,
            cluster_name,
            requests,
            clients: AccessPool::new(MAX_CLIENTS),
        }
    }

    /// Returns the client of a [normalized](Self::normalized) access. Each access has one at a time.
    pub(crate) async fn get(&self, access: &Access) -> RdsClient {
        if let Some(client) = self.clients.get(access) {
            return client;
        }
        let created = self.create(access).await;
        self.clients.add(access.clone(), created)
    }

    /// Returns the region of the controller.
    pub(crate) fn region(&self) -> Option<String> {
        self.config.region().map(ToString::to_string)
    }

    /// Returns the access with the region of the controller left out, so that an access has one form.
    pub(crate) fn normalized(&self, access: &Access) -> Access {
        let own = self.config.region().map(AsRef::as_ref);
        let region = access.region.as_deref().filter(|it| Some(*it) != own);
        Access {
            region: region.map(String::from),
            role: access.role.clone(),
        }
    }

    async fn create(&self, access: &Access) -> RdsClient {
        let mut builder = self.config.clone().into_builder();
        if let Some(role) = &access.role {
            let provider = assume(role, access.region.clone(), &self.config).await;
            builder.set_credentials_provider(Some(SharedCredentialsProvider::new(provider)));
        }
        if let Some(region) = &access.region {
            builder.set_region(Some(Region::new(region.clone())));
        }
        RdsClient::of(
            builder.build(),
            self.leadership.clone(),
            self.limits.clone(),
            self.cluster_name.clone(),
            self.requests.clone(),
        )
    }
}

/// Returns the credentials of a role. The SDK calls STS again before they expire, in the region of the controller if it has
/// one.
async fn assume(
    role: &AssumedRole,
    region: Option<String>,
    config: &SdkConfig,
) -> AssumeRoleProvider {
    let mut builder = AssumeRoleProvider::builder(&role.arn)
        .configure(config)
        .external_id(&role.external_id)
        .session_name(&role.session_name);
    if let Some(region) = region.filter(|_| config.region().is_none()) {
        builder = builder.region(Region::new(region));
    }
    builder.build().await
}
