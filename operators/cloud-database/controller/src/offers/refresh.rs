//! Refresh of the catalogue: reads what RDS offers, and writes what differs.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use lockstep_cloud_database_api::Engine;
use lockstep_controller::NamedConfigMap;
use rds_catalogue::{Catalogue, CatalogueBuilder, EngineOffers, Origin};
use tokio::time::Instant;

use crate::aws::access::{Access, AssumedRole};
use crate::aws::call_error::CallError;
use crate::aws::location::Location;
use crate::aws::rds_client::RdsClient;
use crate::offers::attempts::Attempts;
use crate::offers::metrics::OfferMetrics;
use crate::offers::stored;

/// Field manager of the `ConfigMap`.
const MANAGER: &str = "lockstep-rds-catalogue";

/// Interval of the attempts to write that there are other regions and accounts.
const OTHERS_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// Refresh of the catalogue of the account and region.
///
/// # Guarantees
///
/// - Only the engines of existing objects are read, each once in an interval and when the process starts.
/// - At most one call is in flight for each engine, and each takes a token of the rate limiter.
/// - Nothing is written if nothing has changed, except a new date every day.
/// - A failure has no effect on databases: it is logged and counted, and the last catalogue is kept.
#[derive(Clone)]
pub struct OfferRefresh(Arc<Inner>);

struct Inner {
    rds: RdsClient,
    config_map: NamedConfigMap,
    interval: Duration,
    metrics: OfferMetrics,
    attempts: Mutex<Attempts>,
    /// Other regions and accounts in which objects can have instances.
    others: Mutex<Others>,
    /// One at a time: each write begins with what the last one has written.
    writes: tokio::sync::Mutex<()>,
}

/// Region and account, of which one may be that of the controller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    region: Option<String>,
    account_id: Option<String>,
}

impl Place {
    fn location(&self, own: &Location) -> Location {
        Location {
            region: self.region.as_ref().unwrap_or(&own.region).clone(),
            account_id: self.account_id.as_ref().unwrap_or(&own.account_id).clone(),
        }
    }
}

/// Other regions and accounts in which objects can have instances.
#[derive(Default)]
struct Others {
    places: BTreeSet<Place>,
    /// True while a task writes them. It begins again if others are added meanwhile.
    is_writing: bool,
}

/// Attempt to read the offers of an engine. It ends when it is dropped, also by a panic: otherwise the engine would never be
/// read again.
struct Attempt<'a> {
    inner: &'a Inner,
    engine: &'static str,
    is_done: bool,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let (now, interval) = (Instant::now(), self.inner.interval);
        let mut attempts = self.inner.attempts();
        attempts.end(self.engine, self.is_done, interval, now);
    }
}

/// Reason why the catalogue was not refreshed.
#[derive(Debug)]
enum RefreshError {
    Rds(CallError),
    Other(String),
}

impl From<CallError> for RefreshError {
    fn from(error: CallError) -> Self {
        Self::Rds(error)
    }
}

impl From<String> for RefreshError {
    fn from(error: String) -> Self {
        Self::Other(error)
    }
}

impl OfferRefresh {
    /// Returns the refresh in an interval. It writes the `ConfigMap` with this name in a namespace.
    pub fn new(
        rds: RdsClient,
        client: Client,
        namespace: &str,
        config_map: &str,
        interval: Duration,
        metrics: OfferMetrics,
    ) -> Self {
        Self(Arc::new(Inner {
            rds,
            config_map: NamedConfigMap::new(client, namespace, config_map, MANAGER),
            interval,
            metrics,
            attempts: Mutex::default(),
            others: Mutex::default(),
            writes: tokio::sync::Mutex::default(),
        }))
    }

    /// Records an access that objects can have. If it leads to another region or account, the catalogue says nothing about new
    /// objects any more, which may be there.
    pub(crate) fn add_access(&self, access: &Access) {
        let account_id = access.role.as_ref().and_then(AssumedRole::account_id);
        let (region, account_id) = (access.region.clone(), account_id.map(String::from));
        // Objects can choose one of both themselves.
        let places = [
            (region.clone(), account_id.clone()),
            (region, None),
            (None, account_id),
        ];
        let places = places.into_iter().filter(|it| *it != (None, None));
        let places = places.map(|(region, account_id)| Place { region, account_id });
        let mut others = self.0.others();
        let before = others.places.len();
        others.places.extend(places);
        if others.places.len() == before || std::mem::replace(&mut others.is_writing, true) {
            return;
        }
        drop(others);
        let inner = Arc::clone(&self.0);
        tokio::spawn(async move {
            loop {
                let count = inner.others().places.len();
                if let Err(error) = inner.write_others().await {
                    tracing::warn!(
                        error,
                        "the catalogue of RDS does not name the regions and accounts of all Namespaces yet; retrying"
                    );
                    tokio::time::sleep(OTHERS_AGAIN_AFTER).await;
                    continue;
                }
                let mut others = inner.others();
                if others.places.len() == count {
                    others.is_writing = false;
                    return;
                }
            }
        });
    }

    /// Begins to read the offers of an engine, of which an object exists, if it is due.
    pub(crate) fn of_engine(&self, engine: Engine) {
        let engine = engine.as_str();
        if !self.0.attempts().begin(engine, Instant::now()) {
            return;
        }
        let inner = Arc::clone(&self.0);
        tokio::spawn(async move {
            let mut attempt = Attempt {
                inner: &inner,
                engine,
                is_done: false,
            };
            let result = inner.refresh(engine).await;
            attempt.is_done = result.is_ok();
            match result {
                Ok(true) => {
                    tracing::info!(engine, "the catalogue of RDS was written");
                    inner.metrics.count(engine, "written");
                }
                Ok(false) => inner.metrics.count(engine, "unchanged"),
                Err(error) => {
                    let error = match error {
                        RefreshError::Rds(error) => error.text(),
                        RefreshError::Other(error) => error,
                    };
                    tracing::warn!(
                        engine,
                        error,
                        "the catalogue of RDS could not be refreshed; the last one is kept, and nothing else is affected"
                    );
                    inner.metrics.count(engine, "failed");
                }
            }
        });
    }
}

impl Inner {
    /// Reads the offers of an engine. Returns true if they are written.
    async fn refresh(&self, engine: &'static str) -> Result<bool, RefreshError> {
        let place = self.rds.location().await;
        let place = place.map_err(|error| error.to_string())?;
        let offers = self.read(engine).await?;
        self.metrics
            .record_read(engine, Timestamp::now().as_second());
        let _alone = self.writes.lock().await;
        let present = self.config_map.read().await?;
        let mut catalogue = stored::catalogue(present.as_ref(), &place);
        if !stored::merge(&mut catalogue, engine, offers) {
            return Ok(false);
        }
        self.write(&catalogue, &place).await?;
        Ok(true)
    }

    /// Writes that there are other places, unless no catalogue was written yet.
    async fn write_others(&self) -> Result<(), String> {
        let place = self.rds.location().await;
        let place = place.map_err(|error| error.to_string())?;
        let _alone = self.writes.lock().await;
        let present = self.config_map.read().await?;
        let catalogue = stored::catalogue(present.as_ref(), &place);
        if catalogue.engines.is_empty() {
            return Ok(());
        }
        self.write(&catalogue, &place).await
    }

    async fn write(&self, catalogue: &Catalogue, place: &Location) -> Result<(), String> {
        let others: Vec<_> = self
            .others()
            .places
            .iter()
            .map(|it| it.location(place))
            .collect();
        let content = stored::config_map(catalogue, place, &others);
        let content = content.map_err(|bytes| {
            format!("the catalogue has {bytes} bytes, and does not fit into a ConfigMap")
        })?;
        self.config_map.apply(content).await
    }

    /// Reads all pages.
    async fn read(&self, engine: &str) -> Result<EngineOffers, RefreshError> {
        let today = Timestamp::now().strftime("%Y-%m-%d").to_string();
        let mut builder = CatalogueBuilder::new(Origin::default(), today);
        let mut marker = None;
        loop {
            let (versions, next) = self.rds.engine_versions(engine, marker).await?;
            builder.add_versions(versions);
            marker = next;
            if marker.is_none() {
                break;
            }
        }
        loop {
            let (options, next) = self.rds.orderable_options(engine, marker).await?;
            builder.add_options(options);
            marker = next;
            if marker.is_none() {
                break;
            }
        }
        let mut engines = builder.finish().engines;
        let offers = engines.remove(engine);
        // An answer without versions would deny every object.
        let offers = offers.filter(|offers| offers.offers.iter().any(|it| !it.is_empty()));
        let missing = || RefreshError::Other(format!("RDS offers no version of {engine}"));
        offers.ok_or_else(missing)
    }

    fn others(&self) -> MutexGuard<'_, Others> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
