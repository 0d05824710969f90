//! Calls that read what RDS offers.

use rds_catalogue::{EngineVersions, OrderableOptions};

use crate::aws::call_error::CallError;
use crate::aws::descriptions::PAGE_SIZE;
use crate::aws::rds_client::RdsClient;
use crate::offers::answers;

impl RdsClient {
    /// Returns a page of the versions of an engine, also deprecated ones, and the marker of the next page.
    pub(crate) async fn engine_versions(
        &self,
        engine: &str,
        marker: Option<String>,
    ) -> Result<(EngineVersions, Option<String>), CallError> {
        self.acquire().await;
        let call = self.client.describe_db_engine_versions().engine(engine);
        let call = call.include_all(true).max_records(PAGE_SIZE.into());
        let call = call.set_marker(marker);
        let page = self.api.describe_db_engine_versions(call).await?;
        let versions = answers::versions(page.db_engine_versions());
        Ok((versions, next(page.marker())))
    }

    /// Returns a page of the options of an engine, and the marker of the next page.
    pub(crate) async fn orderable_options(
        &self,
        engine: &str,
        marker: Option<String>,
    ) -> Result<(OrderableOptions, Option<String>), CallError> {
        self.acquire().await;
        let call = self.client.describe_orderable_db_instance_options();
        let call = call.engine(engine).max_records(PAGE_SIZE.into());
        let call = call.set_marker(marker);
        let page = self
            .api
            .describe_orderable_db_instance_options(call)
            .await?;
        let options = answers::options(page.orderable_db_instance_options());
        Ok((options, next(page.marker())))
    }
}

fn next(marker: Option<&str>) -> Option<String> {
    marker
        .filter(|marker| !marker.is_empty())
        .map(str::to_owned)
}
