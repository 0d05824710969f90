//! Catalogues of what RDS offers, and which of them applies to an object.

use std::sync::{Arc, PoisonError, RwLock};

use rds_catalogue::{
    Catalogue, ClassOffer, EngineOffers, IndexedCatalogue, IndexedEngine, MatchingVersions, Origin,
};

use crate::location::{REGION, ROLE_ARN, account_of_role};
use crate::spec::CloudDatabase;
use crate::status::CloudDatabaseStatus;

/// Catalogues of what RDS offers: the one that is compiled into the program, and those of AWS accounts.
#[derive(Clone, Debug, Default)]
pub struct OfferCatalogues {
    of_accounts: Vec<Arc<IndexedCatalogue>>,
    /// First day of the data that is not too old to deny an object, such as `2026-11-26`.
    fresh_since: String,
}

impl OfferCatalogues {
    /// Returns the shipped catalogue with those of accounts. What one of them does not offer is denied if its data is of the
    /// day `fresh_since`, such as `2026-11-26`, or later; otherwise users are warned.
    #[must_use]
    pub fn new(of_accounts: Vec<Arc<Catalogue>>, fresh_since: impl Into<String>) -> Self {
        let of_accounts = of_accounts.into_iter().map(IndexedCatalogue::new);
        Self {
            of_accounts: of_accounts.map(Arc::new).collect(),
            fresh_since: fresh_since.into(),
        }
    }

    /// Returns the offers that apply to an object: those of the account and region of its instance, or of the only one that it
    /// can have while it has no instance. The shipped ones apply if there are no others.
    pub(crate) fn of_object<'a>(
        &'a self,
        object: &'a CloudDatabase,
        status: Option<&'a CloudDatabaseStatus>,
    ) -> Option<ApplicableOffers<'a>> {
        let engine = object.spec.engine;
        let region = status.and_then(|status| status.region.as_deref());
        let region = region.or_else(|| annotation(object, REGION));
        let account = status.and_then(|status| status.account_id.as_deref());
        let account = account.or_else(|| account_of_role(annotation(object, ROLE_ARN)?));
        let is_of = |of_catalogue: &Option<String>, of_object: Option<&str>| {
            of_object.is_none() || of_catalogue.is_none() || of_catalogue.as_deref() == of_object
        };
        let of_accounts = self.of_accounts.iter().filter(|catalogue| {
            let origin = &catalogue.catalogue().origin;
            is_of(&origin.region, region) && is_of(&origin.account, account)
        });
        let of_accounts: Vec<_> = of_accounts.collect();
        // The Namespace of a new object may choose another region or account, of which there is an empty catalogue.
        let is_unique = of_accounts.len() == 1;
        let of_accounts = of_accounts.into_iter().filter_map(|catalogue| {
            let engine = catalogue.engine(engine.as_str())?;
            Some((&catalogue.catalogue().origin, engine))
        });
        let found = of_accounts.max_by_key(|(_, engine)| &engine.offers.date);
        if let Some((origin, engine)) = found {
            return Some(ApplicableOffers {
                engine,
                origin,
                region,
                is_binding: is_unique && engine.offers.date >= self.fresh_since,
            });
        }
        let shipped = IndexedCatalogue::shipped();
        Some(ApplicableOffers {
            engine: shipped.engine(engine.as_str())?,
            origin: &shipped.catalogue().origin,
            region,
            is_binding: false,
        })
    }
}

fn annotation<'a>(object: &'a CloudDatabase, name: &str) -> Option<&'a str> {
    let value = object.metadata.annotations.as_ref()?.get(name)?.trim();
    (!value.is_empty()).then_some(value)
}

/// Offers that apply to an object.
pub(crate) struct ApplicableOffers<'a> {
    engine: IndexedEngine<'a>,
    pub(crate) origin: &'a Origin,
    /// Region of the instance, if it has one.
    pub(crate) region: Option<&'a str>,
    /// If true, what is not offered is denied: the data is that of the account, and not too old.
    pub(crate) is_binding: bool,
}

impl<'a> ApplicableOffers<'a> {
    /// Returns the offers of the engine.
    pub(crate) fn of_engine(&self) -> &'a EngineOffers {
        self.engine.offers
    }

    /// Returns the versions of the catalogue that a version of a spec stands for: all, if the spec has none. None if there is
    /// no such version.
    pub(crate) fn versions(&self, wanted: Option<&str>) -> Option<&'a MatchingVersions> {
        self.engine.versions(wanted)
    }

    /// Returns the classes with their storage and capabilities with which versions are offered, if they are known.
    pub(crate) fn classes_of(&self, versions: &MatchingVersions) -> Option<Vec<&'a ClassOffer>> {
        self.engine.classes_of(versions)
    }

    /// Returns the words by which messages name the catalogue.
    pub(crate) fn words(&self) -> String {
        let date = &self.engine.offers.date;
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
    use serde_json::{Value, json};

    use super::*;
    use crate::engine::Engine;

    fn object(engine: Engine, annotations: &Value) -> CloudDatabase {
        let object = json!({
            "apiVersion": "database.example.com/v1alpha1", "kind": "CloudDatabase",
            "metadata": {"name": "orders", "annotations": annotations},
            "spec": {
                "engine": engine, "instanceClass": "db.t4g.micro", "storage": {"sizeGib": 20},
                "credentials": {"username": "app", "secretName": "s"},
            },
        });
        serde_json::from_value(object).expect("a database")
    }

    #[test]
    fn the_shipped_catalogue_has_every_engine() {
        for engine in Engine::ALL {
            let catalogues = OfferCatalogues::default();
            let object = object(engine, &json!({}));
            let found = catalogues.of_object(&object, None).expect("offers");
            assert!(!found.is_binding && !found.of_engine().versions.is_empty());
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
            let object = object(engine, &json!({}));
            let found = catalogues.of_object(&object, Some(&status));
            let found = found.expect("offers");
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

    #[test]
    fn an_object_that_may_be_elsewhere_is_compared_with_no_certainty() {
        let other = Origin::of_answers(Some("2".to_owned()), Some("b".to_owned()));
        let other = Catalogue::new(other, [].into());
        let own = of_account("a", "2026-02-01");
        let alone = OfferCatalogues::new(vec![Arc::clone(&own)], "2026-01-15");
        let both = OfferCatalogues::new(vec![own, Arc::new(other)], "2026-01-15");
        let found = |catalogues: &OfferCatalogues, annotations: Value| {
            let object = object(Engine::Mysql, &annotations);
            let found = catalogues.of_object(&object, None).expect("offers");
            (found.origin.region.clone(), found.is_binding)
        };
        let own_region = || Some("a".to_owned());
        assert_eq!(found(&alone, json!({})), (own_region(), true));
        // The Namespace may have the annotation.
        assert_eq!(found(&both, json!({})), (own_region(), false));
        for catalogues in [&alone, &both] {
            assert_eq!(found(catalogues, json!({REGION: "b"})), (None, false));
            let role = json!({ROLE_ARN: "arn:aws:iam::2:role/r", REGION: "a"});
            assert_eq!(found(catalogues, role), (None, false));
            let explicit = json!({REGION: "a"});
            assert_eq!(found(catalogues, explicit), (own_region(), true));
        }
    }
}
