//! Configuration of AWS clients from the environment.

use std::time::Duration;

use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};

/// Returns a configuration whose region, credentials and endpoints come from the usual sources of AWS tools. A region takes
/// precedence over that of the environment. A call ends after the time-out.
pub(crate) async fn load(region: Option<String>, timeout: Duration) -> SdkConfig {
    let http = Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .build_https();
    let timeouts = TimeoutConfig::builder().operation_timeout(timeout).build();
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .http_client(http)
        .timeout_config(timeouts);
    if let Some(region) = region {
        loader = loader.region(Region::new(region));
    }
    loader.load().await
}
