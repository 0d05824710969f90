//! AWS account of the credentials of this process.

use std::sync::{Arc, Mutex, PoisonError};

use aws_config::{Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::future::ProvideCredentials as ProvideFuture;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_sdk_sts::Client;
use tokio::time::Instant;

use crate::aws::call_error::CallError;
use crate::aws::metrics::CountRequests;

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
/// STS is called once, and once more each time the credentials have changed. One call at a time answers all questions that were
/// asked before its end, also by an error.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    sts: Client,
    last: LastAccessKey,
    /// Last response of STS.
    known: Arc<Mutex<Option<Known>>>,
    /// Held during a call, with the last error.
    calls: Arc<tokio::sync::Mutex<Option<(Instant, CallError)>>>,
}

/// Response of STS.
#[derive(Clone, Debug)]
struct Known {
    /// Access key that the response is valid for.
    access_key: Option<String>,
    id: String,
}

impl Account {
    /// Returns the account, and a configuration for clients that use its credentials. STS is called in a region, which need
    /// not be that of the other clients. `count` counts the calls to STS.
    pub(crate) fn of(
        config: SdkConfig,
        region: Option<Region>,
        count: CountRequests,
    ) -> (Self, SdkConfig) {
        let last = LastAccessKey::default();
        let provider = config.credentials_provider().map(|provider| Recording {
            provider,
            last: last.clone(),
        });
        let provider = provider.map(SharedCredentialsProvider::new);
        let mut builder = config.into_builder();
        builder.set_credentials_provider(provider);
        let config = builder.build();
        let region = region.or_else(|| config.region().cloned());
        let counted = aws_sdk_sts::config::Builder::from(&config).region(region);
        let counted = counted.interceptor(count);
        let account = Self {
            sts: Client::from_conf(counted.build()),
            last,
            known: Arc::default(),
            calls: Arc::default(),
        };
        (account, config)
    }

    /// Returns the ID of the account, if STS has returned it.
    pub(crate) fn known_id(&self) -> Option<String> {
        self.known().map(|known| known.id)
    }

    /// Returns the ID of the account.
    pub(crate) async fn id(&self) -> Result<String, CallError> {
        if let Some(id) = self.valid_id() {
            return Ok(id);
        }
        let asked = Instant::now();
        // The lock is held during the call, so that concurrent reconciliations wait for one response.
        let mut failed = self.calls.lock().await;
        if let Some(id) = self.valid_id() {
            return Ok(id);
        }
        if let Some((at, error)) = &*failed
            && *at >= asked
        {
            return Err(error.clone());
        }
        let response = match self.sts.get_caller_identity().send().await {
            Ok(response) => response,
            Err(error) => {
                let error = CallError::from(error);
                *failed = Some((Instant::now(), error.clone()));
                return Err(error);
            }
        };
        let id = response.account.unwrap_or_default();
        let known = Known {
            access_key: self.last.get(),
            id: id.clone(),
        };
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        *failed = None;
        Ok(id)
    }

    /// Knows the account without a call.
    #[cfg(test)]
    pub(crate) fn know(&self, id: &str) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(Known {
            access_key: self.last.get(),
            id: id.to_owned(),
        });
    }

    /// Returns the ID of the account if STS has returned it for the present credentials.
    fn valid_id(&self) -> Option<String> {
        let known = self.known()?;
        (known.access_key == self.last.get()).then_some(known.id)
    }

    fn known(&self) -> Option<Known> {
        let known = self.known.lock();
        known.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use aws_config::retry::RetryConfig;
    use aws_config::{BehaviorVersion, Region};
    use aws_smithy_runtime_api::client::http::{
        HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn,
    };
    use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
    use futures::future::join_all;

    use super::*;

    /// STS that counts its calls and returns the number of the call as the account.
    #[derive(Clone, Debug, Default)]
    struct Sts {
        calls: Arc<AtomicUsize>,
        fails: Arc<AtomicBool>,
    }

    impl Sts {
        fn calls(&self) -> usize {
            self.calls.load(Ordering::SeqCst)
        }

        async fn config(&self, credentials: impl ProvideCredentials + 'static) -> SdkConfig {
            let connector = self.clone();
            aws_config::defaults(BehaviorVersion::latest())
                .region(Region::new("eu-central-1"))
                .credentials_provider(credentials)
                .retry_config(RetryConfig::disabled())
                .http_client(http_client_fn(move |_, _| {
                    SharedHttpConnector::new(connector.clone())
                }))
                .load()
                .await
        }
    }

    impl HttpConnector for Sts {
        fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
            assert!(request.uri().contains("sts.us-east-1."), "{request:?}");
            let nth = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
            let body = format!(
                "<GetCallerIdentityResponse><GetCallerIdentityResult><Account>00000000000{nth}</Account>\
                 </GetCallerIdentityResult></GetCallerIdentityResponse>"
            );
            let mut response = http::Response::new(body.into());
            if self.fails.load(Ordering::SeqCst) {
                *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
            }
            HttpConnectorFuture::new(async {
                // Others ask in the meantime.
                tokio::task::yield_now().await;
                Ok(HttpResponse::try_from(response).expect("an answer"))
            })
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
        let config = sts.config(keys.clone()).await;
        let region = Some(Region::new("us-east-1"));
        let (account, config) = Account::of(config, region, CountRequests::default());
        let id = async || account.id().await.expect("an answer");
        assert_eq!((id().await, id().await).1, "000000000001");
        assert_eq!(sts.calls(), 1);
        // Another client of the same configuration gets new credentials.
        keys.0.set("AKIA2");
        let other = aws_sdk_sts::config::Builder::from(&config).region(Region::new("us-east-1"));
        let other = Client::from_conf(other.build());
        other.get_caller_identity().send().await.expect("an answer");
        assert_eq!((id().await, id().await).1, "000000000003");
        assert_eq!(sts.calls(), 3);
    }

    #[tokio::test]
    async fn an_error_of_sts_answers_all_questions_that_waited_for_it() {
        let sts = Sts::default();
        sts.fails.store(true, Ordering::SeqCst);
        let keys = Credentials::new("AKIA1", "secret", None, None, "tests");
        let config = sts.config(keys).await;
        let region = Some(Region::new("us-east-1"));
        let (account, _) = Account::of(config, region, CountRequests::default());
        let answers = join_all([(); 5].map(|()| account.id())).await;
        assert!(answers.iter().all(Result::is_err));
        assert_eq!((sts.calls(), account.known_id()), (1, None));
        sts.fails.store(false, Ordering::SeqCst);
        assert_eq!(account.id().await.expect("an answer"), "000000000002");
        assert_eq!(account.known_id().as_deref(), Some("000000000002"));
    }
}
