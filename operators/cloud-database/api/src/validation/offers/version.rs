//! Versions and upgrades that RDS does not offer.

use std::cmp::Ordering;

use rds_catalogue::{VersionName, VersionOffer};

use super::request::{NotOffered, Request};
use crate::engine::{compare_versions, version_matches};
use crate::offers::ApplicableOffers;
use crate::spec::CloudDatabaseSpec;

const PATH: &str = "spec.engineVersion";

/// Maximum number of upgrade targets in a message.
const MAX_TARGETS: usize = 20;

/// Maximum number of versions that a message suggests.
const SUGGESTED: usize = 4;

/// Returns the version of a spec, if it is well-formed. Other rules report one that is not.
fn wanted(spec: &CloudDatabaseSpec) -> Option<&str> {
    let version = spec.engine_version.as_deref()?;
    let is_number = |part: &str| part.parse::<u32>().is_ok();
    let mut components = version.split('.');
    let is_whole = components.next().is_some_and(is_number);
    let components = version.split('.').count();
    (is_whole && components >= spec.engine.major_components(version)).then_some(version)
}

/// Returns the version of a request, if it is new and not the one that the instance runs. A new instance with data of another
/// one has the version of that one.
fn requested<'a>(request: &'a Request<'_>) -> Option<&'a str> {
    let spec = request.spec;
    if request.old.is_none() && (spec.restore_from.is_some() || spec.replica_of.is_some()) {
        return None;
    }
    let version = wanted(spec)?;
    let running = request.status.and_then(|it| it.engine_version.as_deref());
    let runs = running.is_some_and(|running| version_matches(version, running));
    (request.has_new_version() && !runs).then_some(version)
}

/// Returns the version if the catalogue does not have it.
pub(super) fn unknown(request: &Request<'_>) -> Option<NotOffered> {
    let version = requested(request)?;
    if request.versions().is_some() {
        return None;
    }
    let engine = request.spec.engine.as_str();
    Some(NotOffered {
        path: PATH,
        value: version.into(),
        problem: format!("is no version of {engine} that RDS offers"),
        alternatives: suggestion(request.spec, request.offers, version),
        is_certain: has_later(request, version),
    })
}

/// Returns true if a catalogue has a later version: of the same major version, or of others if it has none of that one. AWS
/// does not add earlier versions.
fn has_later(request: &Request<'_>, version: &str) -> bool {
    let engine = request.spec.engine;
    let versions = request.offers.of_engine().versions.keys();
    let versions: Vec<_> = versions.map(VersionName::as_str).collect();
    let is_of_major = |it: &&&str| engine.major_version(it) == engine.major_version(version);
    let is_major_known = versions.iter().any(|it| is_of_major(&it));
    let mut compared = versions
        .iter()
        .filter(|it| !is_major_known || is_of_major(it));
    compared.any(|it| compare_versions(it, version) == Ordering::Greater)
}

/// Returns the version if no class is offered with it.
pub(super) fn without_classes(request: &Request<'_>) -> Option<NotOffered> {
    let version = requested(request)?;
    let versions = request.versions()?;
    if request.old.is_some() || !versions.have_no_classes {
        return None;
    }
    Some(NotOffered {
        path: PATH,
        value: version.into(),
        problem: "is offered with no instance class".to_owned(),
        alternatives: suggestion(request.spec, request.offers, version),
        is_certain: versions.are_deprecated,
    })
}

/// Returns the version if an instance cannot be upgraded to it.
pub(super) fn no_target(request: &Request<'_>) -> Option<NotOffered> {
    let version = requested(request)?;
    let running = request.status.and_then(|it| it.engine_version.as_deref());
    let before = request.old.and_then(|old| old.engine_version.as_deref());
    let running = running.or(before)?;
    // A lower version is an error of its own.
    if compare_versions(version, running) != Ordering::Greater {
        return None;
    }
    let versions = &request.offers.of_engine().versions;
    let known = versions.get(&VersionName::new(running));
    let targets = known?.targets()?;
    if targets.iter().any(|it| version_matches(version, it)) {
        return None;
    }
    let shown = targets.iter().take(MAX_TARGETS).copied();
    let shown = shown.collect::<Vec<_>>().join(", ");
    let rest = targets.len().saturating_sub(MAX_TARGETS);
    let alternatives = match (targets.is_empty(), rest) {
        (true, _) => "there is none".to_owned(),
        (false, 0) => format!("set one of {shown}"),
        (false, rest) => format!("set one of {shown}, and {rest} others"),
    };
    Some(NotOffered {
        path: PATH,
        value: version.into(),
        problem: format!("is no version to which RDS upgrades {running}"),
        alternatives,
        is_certain: request.versions().is_some(),
    })
}

/// Returns the version if RDS creates no new instances with it.
pub(super) fn deprecated(
    spec: &CloudDatabaseSpec,
    offers: &ApplicableOffers<'_>,
) -> Option<NotOffered> {
    let version = wanted(spec)?;
    if !offers.versions(Some(version))?.are_deprecated {
        return None;
    }
    Some(NotOffered {
        path: PATH,
        value: version.into(),
        problem: format!(
            "is deprecated, by the {}: RDS creates no new instances with it, and ends its support; {}",
            offers.words(),
            suggestion(spec, offers, version)
        ),
        alternatives: String::new(),
        is_certain: true,
    })
}

/// Returns the current versions that are nearest to one: the next ones of its major version, or the last ones of others.
fn suggestion(spec: &CloudDatabaseSpec, offers: &ApplicableOffers<'_>, version: &str) -> String {
    let engine = spec.engine;
    let major = |it: &VersionName| engine.major_version(it.as_str()).to_owned();
    let current = offers.of_engine().versions.iter();
    let current = current.filter(|(_, offer)| !offer.deprecated && !is_empty(offers, offer));
    let current: Vec<_> = current.map(|(name, _)| name).collect();
    let own = engine.major_version(version);
    let wanted = VersionName::new(version);
    let mut nearest: Vec<_> = current
        .iter()
        .copied()
        .filter(|it| major(it) == own)
        .collect();
    if nearest.is_empty() {
        let is_last = |at: &usize| {
            let next = current.get(at + 1);
            next.is_none_or(|next| major(next) != major(current[*at]))
        };
        let last = (0..current.len()).filter(is_last);
        nearest = last.map(|at| current[at]).collect();
    }
    let lower = nearest.iter().filter(|it| **it < &wanted).count();
    let first = lower.saturating_sub(SUGGESTED / 2);
    let first = first.min(nearest.len().saturating_sub(SUGGESTED));
    let shown = nearest.iter().skip(first).take(SUGGESTED);
    let shown: Vec<_> = shown.map(|it| it.as_str()).collect();
    match shown.as_slice() {
        [] => "there is none".to_owned(),
        [only] => format!("the nearest is {only}"),
        _ => format!("the nearest are {}", shown.join(", ")),
    }
}

fn is_empty(offers: &ApplicableOffers<'_>, version: &VersionOffer) -> bool {
    offers
        .of_engine()
        .offer_of(version)
        .is_some_and(<[_]>::is_empty)
}
