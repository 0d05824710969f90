//! AWS account of the credentials of this process.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use aws_config::SdkConfig;
use aws_credential_types::Credentials;
use aws_credential_types::provider::future::ProvideCredentials as ProvideFuture;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_sdk_sts::Client;
use aws_sdk_sts::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sts::operation::assume_role::AssumeRoleError;
use aws_sdk_sts::operation::get_caller_identity::GetCallerIdentityError;

use crate::aws_metrics::CountRequests;

/// Access key that a provider last returned.
#[derive(Clone, Debug, Default)]
struct LastAccessKey(Arc<Mutex<Option<String>>>);

impl LastAccessKey {
    fn get(&self) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set(&self, key: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(key.to_owned());
    }
}

/// Credentials provider that records the access key that it returns. The SDK caches credentials and calls the provider
/// again only when they expire.
#[derive(Debug)]
struct Recording {
    provider: SharedCredentialsProvider,
    last: LastAccessKey,
}

impl ProvideCredentials for Recording {
    fn provide_credentials<'a>(&'a self) -> ProvideFuture<'a>
    where
        Self: 'a,
    {
        ProvideFuture::new(async {
            let credentials = self.provider.provide_credentials().await?;
            self.last.set(credentials.access_key_id());
            Ok(credentials)
        })
    }

    fn fallback_on_interrupt(&self) -> Option<Credentials> {
        self.provider.fallback_on_interrupt()
    }
}

/// Account of the credentials in use.
///
/// # Guarantees
///
/// STS is called once, and once more each time the credentials have changed.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    sts: Client,
    last: LastAccessKey,
    /// Last response of STS.
    known: Arc<tokio::sync::Mutex<Option<Known>>>,
}

/// Response of STS.
#[derive(Debug)]
struct Known {
    /// Access key that the response is valid for.
    access_key: Option<String>,
    id: String,
}

impl Account {
    /// Returns the account, and a configuration for clients that use its credentials. `count` counts the calls to
    /// STS.
    pub(crate) fn of(config: SdkConfig, count: CountRequests) -> (Self, SdkConfig) {
        let last = LastAccessKey::default();
        let provider = config.credentials_provider().map(|provider| Recording {
            provider,
            last: last.clone(),
        });
        let provider = provider.map(SharedCredentialsProvider::new);
        let mut builder = config.into_builder();
        builder.set_credentials_provider(provider);
        let config = builder.build();
        let counted = aws_sdk_sts::config::Builder::from(&config).interceptor(count);
        let account = Self {
            sts: Client::from_conf(counted.build()),
            last,
            known: Arc::default(),
        };
        (account, config)
    }

    /// Returns the ID of the account, if STS has returned it before.
    pub(crate) async fn known(&self) -> Option<String> {
        let known = self.known.lock().await;
        known.as_ref().map(|known| known.id.clone())
    }

    /// Returns the ID of the account.
    pub(crate) async fn id(&self) -> Result<String, SdkError<GetCallerIdentityError>> {
        // The lock is held during the call, so that concurrent reconciliations wait for one response.
        let mut known = self.known.lock().await;
        if let Some(known) = &*known
            && known.access_key == self.last.get()
        {
            return Ok(known.id.clone());
        }
        let response = self.sts.get_caller_identity().send().await?;
        let id = response.account.unwrap_or_default();
        *known = Some(Known {
            access_key: self.last.get(),
            id: id.clone(),
        });
        Ok(id)
    }
}

/// Returns true if STS has denied to assume a role: the role does not exist, its trust policy demands another principal or
/// external ID, or the policy of the controller does not allow it. STS does not tell which.
pub(crate) fn is_role_denied(error: &(dyn Error + 'static)) -> bool {
    let chain = std::iter::successors(Some(error), |error| (*error).source());
    let mut assumptions = chain.filter_map(|it| it.downcast_ref::<SdkError<AssumeRoleError>>());
    assumptions.any(|error| error.code() == Some("AccessDenied"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use aws_config::{BehaviorVersion, Region};
    use aws_smithy_runtime_api::client::http::{
        HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn,
    };
    use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};

    use super::*;

    /// STS that counts its calls and returns the number of the call as the account.
    #[derive(Clone, Debug, Default)]
    struct Sts(Arc<AtomicUsize>);

    impl HttpConnector for Sts {
        fn call(&self, _: HttpRequest) -> HttpConnectorFuture {
            let nth = self.0.fetch_add(1, Ordering::SeqCst) + 1;
            let body = format!(
                "<GetCallerIdentityResponse><GetCallerIdentityResult><Account>00000000000{nth}</Account>\
                 </GetCallerIdentityResult></GetCallerIdentityResponse>"
            );
            let response = http::Response::new(body.into());
            HttpConnectorFuture::ready(Ok(HttpResponse::try_from(response).expect("an answer")))
        }
    }

    /// Credentials that have always expired already, so that the SDK requests new ones for each call.
    #[derive(Clone, Debug, Default)]
    struct Rotating(LastAccessKey);

    impl ProvideCredentials for Rotating {
        fn provide_credentials<'a>(&'a self) -> ProvideFuture<'a>
        where
            Self: 'a,
        {
            let key = self.0.get().unwrap_or_default();
            let expires = Some(std::time::SystemTime::UNIX_EPOCH);
            let credentials = Credentials::new(key, "secret", None, expires, "tests");
            ProvideFuture::ready(Ok(credentials))
        }
    }

    #[tokio::test]
    async fn sts_is_called_once_for_each_change_of_the_credentials() {
        let sts = Sts::default();
        let keys = Rotating::default();
        keys.0.set("AKIA1");
        let connector = sts.clone();
        let config = aws_config::defaults(BehaviorVersion::latest())
            .region(Region::new("eu-central-1"))
            .credentials_provider(keys.clone())
            .http_client(http_client_fn(move |_, _| {
                SharedHttpConnector::new(connector.clone())
            }))
            .load()
            .await;
        let (account, config) = Account::of(config, CountRequests::default());
        let id = async || account.id().await.expect("an answer");
        assert_eq!((id().await, id().await).1, "000000000001");
        assert_eq!(sts.0.load(Ordering::SeqCst), 1);
        // Another client of the same configuration gets new credentials.
        keys.0.set("AKIA2");
        let other = Client::new(&config).get_caller_identity().send().await;
        other.expect("an answer");
        assert_eq!((id().await, id().await).1, "000000000003");
        assert_eq!(sts.0.load(Ordering::SeqCst), 3);
    }
}
