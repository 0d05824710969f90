//! Clients of the RDS API: one for each region and role.

use std::sync::Arc;

use aws_config::identity::IdentityCache;
use aws_config::sts::AssumeRoleProvider;
use aws_config::{Region, SdkConfig};
use aws_credential_types::provider::SharedCredentialsProvider;
use lockstep_controller::Leadership;
use tokio::sync::OnceCell;

use crate::aws::access::{Access, AccessRules, AssumedRole};
use crate::aws::environment;
use crate::aws::metrics::AwsRequests;
use crate::aws::rate_limits::RateLimits;
use crate::aws::rds_client::{CALL_DEADLINE, RdsClient};

/// Clients of the RDS API.
#[derive(Clone)]
pub struct RdsClients {
    config: SdkConfig,
    leadership: Leadership,
    limits: RateLimits,
    cluster_name: Option<String>,
    requests: AwsRequests,
    rules: AccessRules,
    /// Client with the region and the credentials of the controller.
    default_client: Arc<OnceCell<RdsClient>>,
}

impl RdsClients {
    /// Reads the configuration from the environment: region, credentials and endpoints come from the usual sources of AWS tools.
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
        let config = environment::load(None, CALL_DEADLINE).await;
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
            rules: AccessRules::default(),
            default_client: Arc::default(),
        }
        .with_allowed_regions(Vec::new())
    }

    /// Sets the regions that the objects of all Namespaces may choose, besides that of the controller.
    #[must_use]
    pub fn with_allowed_regions(mut self, mut regions: Vec<String>) -> Self {
        regions.extend(self.region());
        self.rules = self.rules.with_regions(regions);
        self
    }

    /// Uses the annotations of Namespaces with the external IDs of their roles.
    #[must_use]
    pub fn with_external_ids(mut self, are_allowed: bool) -> Self {
        self.rules.allows_external_ids = are_allowed;
        self
    }

    pub(crate) fn access_rules(&self) -> &AccessRules {
        &self.rules
    }

    /// Returns the client with the region and the credentials of the controller. All reconcilers of the process share its
    /// descriptions.
    pub async fn default_client(&self) -> RdsClient {
        let create = async || self.create(&Access::default()).await;
        self.default_client.get_or_init(create).await.clone()
    }

    /// Returns the client of a [normalized](Self::normalized) access.
    pub(crate) async fn client(&self, access: &Access) -> RdsClient {
        if *access == Access::default() {
            self.default_client().await
        } else {
            self.create(access).await
        }
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
        // A cache has a limited number of credentials: those of one client must not remove those of another.
        builder.set_identity_cache(Some(IdentityCache::lazy().build()));
        if let Some(role) = &access.role {
            let provider = assume(role, access.region.clone(), &self.config).await;
            builder.set_credentials_provider(Some(SharedCredentialsProvider::new(provider)));
        }
        if let Some(region) = &access.region {
            builder.set_region(Some(Region::new(region.clone())));
        }
        let own_region = self.config.region().cloned();
        RdsClient::of(
            builder.build(),
            own_region.or(access.region.clone().map(Region::new)),
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
