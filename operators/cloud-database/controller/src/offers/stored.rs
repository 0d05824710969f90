//! Content of the `ConfigMap` with the catalogue of the account and region.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::civil::Date;
use lockstep_controller::MAX_CONFIG_MAP_BYTES;
use rds_catalogue::{Catalogue, EngineOffers, Origin};

use crate::aws::location::Location;

/// Label of objects that this program writes.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Maximum size of a catalogue, in bytes.
const MAX_CATALOGUE_BYTES: u64 = 16 << 20;

/// Age at which the date of an unchanged catalogue is renewed, in days. Rules deny nothing by a catalogue that is older than
/// three days.
const RENEWAL_DAYS: i32 = 1;

/// Returns the catalogue of a place from the present `ConfigMap`, or an empty one. What cannot be read is replaced.
pub(crate) fn catalogue(config_map: Option<&ConfigMap>, place: &Location) -> Catalogue {
    let contents = config_map.and_then(|it| it.binary_data.as_ref());
    let content = contents.and_then(|contents| contents.get(&key(place)));
    let stored = content.and_then(|ByteString(content)| {
        let mut text = String::new();
        let mut decoder = GzDecoder::new(content.as_slice()).take(MAX_CATALOGUE_BYTES);
        decoder.read_to_string(&mut text).ok()?;
        Catalogue::load(&text).ok()
    });
    let stored = stored.filter(|stored| stored.origin == origin(place));
    stored.unwrap_or_else(|| empty(place))
}

/// Puts the offers of an engine into a catalogue. Returns false if it has them already, from a day that is not long ago.
pub(crate) fn merge(catalogue: &mut Catalogue, engine: &str, offers: EngineOffers) -> bool {
    let known = catalogue.engines.get(engine);
    let is_same = known.is_some_and(|known| {
        let same_day = EngineOffers {
            date: offers.date.clone(),
            ..known.clone()
        };
        same_day == offers && is_recent(&known.date, &offers.date)
    });
    if !is_same {
        catalogue.engines.insert(engine.to_owned(), offers);
    }
    !is_same
}

fn is_recent(stored: &str, today: &str) -> bool {
    let (Ok(stored), Ok(today)) = (stored.parse::<Date>(), today.parse::<Date>()) else {
        return false;
    };
    let age = (today - stored).get_days();
    (0..RENEWAL_DAYS).contains(&age)
}

/// Returns the content for server-side apply, or the size of catalogues that do not fit. The catalogues of `others`, which were
/// not read, are empty.
pub(crate) fn config_map<'a>(
    catalogue: &Catalogue,
    place: &Location,
    others: impl IntoIterator<Item = &'a Location>,
) -> Result<ConfigMap, usize> {
    let others = others.into_iter().filter(|other| *other != place);
    let empty = |other| (key(other), compressed(&empty(other)));
    let mut contents: BTreeMap<_, _> = others.map(empty).collect();
    contents.insert(key(place), compressed(catalogue));
    let sizes = contents.iter().map(|(key, it)| key.len() + it.0.len());
    let bytes = sizes.sum();
    if bytes > MAX_CONFIG_MAP_BYTES {
        return Err(bytes);
    }
    let labels = [(MANAGED_BY.to_owned(), "lockstep".to_owned())];
    Ok(ConfigMap {
        metadata: ObjectMeta {
            labels: Some(labels.into()),
            ..ObjectMeta::default()
        },
        binary_data: Some(contents),
        ..ConfigMap::default()
    })
}

fn compressed(catalogue: &Catalogue) -> ByteString {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(catalogue.text().as_bytes());
    let content = written.and_then(|()| encoder.finish());
    ByteString(content.expect("a write to memory does not fail"))
}

fn empty(place: &Location) -> Catalogue {
    Catalogue::new(origin(place), BTreeMap::new())
}

fn origin(place: &Location) -> Origin {
    Origin::of_answers(Some(place.account_id.clone()), Some(place.region.clone()))
}

fn key(place: &Location) -> String {
    format!("{}.{}.json.gz", place.account_id, place.region)
}

#[cfg(test)]
mod tests {
    use rds_catalogue::{VersionName, VersionOffer};

    use super::*;

    fn place(region: &str) -> Location {
        Location {
            region: region.to_owned(),
            account_id: "123456789012".to_owned(),
        }
    }

    fn offers(date: &str, version: &str) -> EngineOffers {
        EngineOffers {
            date: date.to_owned(),
            versions: [(VersionName::new(version), VersionOffer::default())].into(),
            ..EngineOffers::default()
        }
    }

    #[test]
    fn what_is_written_is_read_again_for_the_same_place_only() {
        let mut made = catalogue(None, &place("a"));
        assert!(merge(&mut made, "mysql", offers("2026-11-26", "8.4.6")));
        let stored = config_map(&made, &place("a"), []).expect("it fits");
        assert_eq!(catalogue(Some(&stored), &place("a")), made);
        assert!(catalogue(Some(&stored), &place("b")).engines.is_empty());
        // The same content has the same bytes.
        assert_eq!(config_map(&made, &place("a"), []), Ok(stored));
    }

    #[test]
    fn other_places_have_empty_catalogues() {
        let mut made = catalogue(None, &place("a"));
        merge(&mut made, "mysql", offers("2026-11-26", "8.4.6"));
        let others = [place("a"), place("b")];
        let stored = config_map(&made, &place("a"), &others).expect("it fits");
        assert_eq!(catalogue(Some(&stored), &place("a")), made);
        let keys = stored.binary_data.as_ref().expect("contents").keys();
        let expected = ["123456789012.a.json.gz", "123456789012.b.json.gz"];
        assert_eq!(keys.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_unchanged_catalogue_is_written_again_only_to_renew_its_date() {
        let mut made = catalogue(None, &place("a"));
        assert!(merge(&mut made, "mysql", offers("2026-11-26", "8.4.6")));
        assert!(!merge(&mut made, "mysql", offers("2026-11-26", "8.4.6")));
        assert_eq!(made.engines["mysql"].date, "2026-11-26");
        assert!(merge(&mut made, "mysql", offers("2026-11-27", "8.4.6")));
        assert_eq!(made.engines["mysql"].date, "2026-11-27");
        assert!(merge(&mut made, "mysql", offers("2026-11-29", "8.4.6")));
        assert!(merge(&mut made, "mysql", offers("2026-11-29", "8.4.7")));
        assert!(merge(&mut made, "postgres", offers("2026-11-29", "17.6")));
        assert_eq!(made.engines.len(), 2);
    }

    #[test]
    fn a_catalogue_that_does_not_fit_is_not_written() {
        let mut made = catalogue(None, &place("a"));
        // Text that cannot be compressed much.
        let mut state = 1_u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state.to_string()
        };
        let versions = (0..200_000).map(|_| (VersionName::new(random()), VersionOffer::default()));
        let offers = EngineOffers {
            versions: versions.collect(),
            ..offers("2026-11-26", "1")
        };
        merge(&mut made, "mysql", offers);
        assert!(
            config_map(&made, &place("a"), []).is_err_and(|bytes| bytes > MAX_CONFIG_MAP_BYTES)
        );
    }
}
