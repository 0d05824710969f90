//! Catalogues of what RDS offers, and which of them applies to an object.

use std::sync::{Arc, PoisonError, RwLock};

use rds_catalogue::{Catalogue, EngineOffers, Origin};

use crate::engine::Engine;
use crate::status::CloudDatabaseStatus;

/// Catalogues of what RDS offers: the one that is compiled into the program, and those of AWS accounts.
#[derive(Clone, Debug, Default)]
pub struct OfferCatalogues {
    of_accounts: Vec<Arc<Catalogue>>,
    /// First day of the data that is not too old to deny an object, such as `2026-11-26`.
    fresh_since: String,
}

impl OfferCatalogues {
    /// Returns the shipped catalogue with those of accounts. What one of them does not offer is denied if its data is of the
    /// day `fresh_since`, such as `2026-11-26`, or later; otherwise users are warned.
    #[must_use]
    pub fn new(of_accounts: Vec<Arc<Catalogue>>, fresh_since: impl Into<String>) -> Self {
        Self {
            of_accounts,
            fresh_since: fresh_since.into(),
        }
    }

    /// Returns the offers that apply to an object: those of the account and region of its instance, or of the controller while
    /// it has none. The shipped ones apply if there are no others.
    pub(crate) fn of_object<'a>(
        &'a self,
        engine: Engine,
        status: Option<&'a CloudDatabaseStatus>,
    ) -> Option<ApplicableOffers<'a>> {
        let region = status.and_then(|status| status.region.as_deref());
        let account = status.and_then(|status| status.account_id.as_deref());
        let is_of = |of_catalogue: &Option<String>, of_object: Option<&str>| {
            of_object.is_none() || of_catalogue.is_none() || of_catalogue.as_deref() == of_object
        };
        let of_accounts = self.of_accounts.iter().filter(|catalogue| {
            let origin = &catalogue.origin;
            is_of(&origin.region, region) && is_of(&origin.account, account)
        });
        let of_accounts = of_accounts.filter_map(|catalogue| {
            let offers = catalogue.engines.get(engine.as_str())?;
            Some((&catalogue.origin, offers))
        });
        let of_accounts: Vec<_> = of_accounts.collect();
        // A controller that was moved to another region leaves an older catalogue, which may be that of a new object, too.
        let is_unique = of_accounts.len() == 1;
        let found = of_accounts
            .into_iter()
            .max_by_key(|(_, offers)| &offers.date);
        if let Some((origin, offers)) = found {
            return Some(ApplicableOffers {
                offers,
                origin,
                region,
                is_binding: is_unique && offers.date >= self.fresh_since,
            });
        }
        let shipped = Catalogue::shipped();
        Some(ApplicableOffers {
            offers: shipped.engines.get(engine.as_str())?,
            origin: &shipped.origin,
            region,
            is_binding: false,
        })
    }
}

/// Offers that apply to an object.
pub(crate) struct ApplicableOffers<'a> {
    pub(crate) offers: &'a EngineOffers,
    pub(crate) origin: &'a Origin,
    /// Region of the instance, if it has one.
    pub(crate) region: Option<&'a str>,
    /// If true, what is not offered is denied: the data is that of the account, and not too old.
    pub(crate) is_binding: bool,
}

impl ApplicableOffers<'_> {
    /// Returns the words by which messages name the catalogue.
    pub(crate) fn words(&self) -> String {
        let date = &self.offers.date;
        match (&self.origin.account, &self.origin.region) {
            (Some(account), Some(region)) => {
                format!("catalogue of account {account} in {region} of {date}")
            }
            _ => format!("catalogue of {date} ({})", self.origin.source),
        }
    }
}

/// Catalogues that the rules of CloudDatabase read. It is the
/// [extension](lockstep_shared_validation::Ruleset::with_extension) of the ruleset; without it, only the shipped catalogue is
/// known.
#[derive(Debug, Default)]
pub struct OfferContext(RwLock<Arc<OfferCatalogues>>);

impl OfferContext {
    /// Returns the current catalogues.
    #[must_use]
    pub fn catalogues(&self) -> Arc<OfferCatalogues> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the catalogues.
    pub fn set(&self, catalogues: OfferCatalogues) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalogues);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_catalogue_has_every_engine() {
        for engine in Engine::ALL {
            let catalogues = OfferCatalogues::default();
            let found = catalogues.of_object(engine, None).expect("offers");
            assert!(!found.is_binding && !found.offers.versions.is_empty());
        }
        let shipped = Catalogue::shipped().engines.len();
        assert_eq!(shipped, Engine::ALL.len());
    }

    fn of_account(region: &str, date: &str) -> Arc<Catalogue> {
        let origin = Origin::of_answers(Some("1".to_owned()), Some(region.to_owned()));
        let offers = EngineOffers {
            date: date.to_owned(),
            ..EngineOffers::default()
        };
        let engines = [("mysql".to_owned(), offers)].into();
        Arc::new(Catalogue::new(origin, engines))
    }

    #[test]
    fn the_catalogue_is_that_of_the_account_and_region_of_the_instance() {
        let all = vec![of_account("a", "2026-01-01"), of_account("b", "2026-02-01")];
        let catalogues = OfferCatalogues::new(all, "2026-01-15");
        let found = |engine, region: Option<&str>, account: Option<&str>| {
            let status = CloudDatabaseStatus {
                region: region.map(str::to_owned),
                account_id: account.map(str::to_owned),
                ..CloudDatabaseStatus::default()
            };
            let found = catalogues.of_object(engine, Some(&status)).expect("offers");
            (found.origin.region.clone(), found.is_binding)
        };
        let of = |region: &str| Some(region.to_owned());
        assert_eq!(found(Engine::Mysql, Some("b"), Some("1")), (of("b"), true));
        // It may be that of another region.
        assert_eq!(found(Engine::Mysql, None, None), (of("b"), false));
        // It is too old.
        assert_eq!(found(Engine::Mysql, Some("a"), Some("1")), (of("a"), false));
        assert_eq!(found(Engine::Mysql, Some("c"), Some("1")), (None, false));
        assert_eq!(found(Engine::Mysql, Some("b"), Some("2")), (None, false));
        assert_eq!(found(Engine::Postgres, None, None), (None, false));
    }
}
