//! Rules on what RDS offers: versions, classes, storage and upgrades.
//!
//! Only what is requested from RDS is compared with a catalogue: a new instance, and what a change concerns. An instance that
//! runs with something that is not offered any more keeps it.

mod class;
mod extended_support;
pub(super) mod finding;
mod request;
mod storage;
mod version;

use lockstep_shared_validation::{Diagnostics, Rule, RuleContext, Severity};

use self::finding::Finding;
use self::request::{NotOffered, Request};
use crate::offers::{OfferCatalogues, OfferContext};
use crate::origin::ManagementPolicy;
use crate::spec::CloudDatabase;
use crate::status::CloudDatabaseStatus;
use crate::validation::computed::Computed;

const OFFERS: &str = "https://docs.aws.amazon.com/AmazonRDS/latest/APIReference/API_DescribeOrderableDBInstanceOptions.html";
const VERSIONS: &str =
    "https://docs.aws.amazon.com/AmazonRDS/latest/APIReference/API_DescribeDBEngineVersions.html";

const EXTENDED_SUPPORT: &str =
    "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/extended-support-overview.html";

pub(super) fn rules() -> Vec<Rule<CloudDatabase>> {
    vec![
        Rule {
            id: "not-offered",
            description: "RDS must offer the version, class, storage and upgrade in the account and region.",
            severity: Severity::Error,
            reference: OFFERS,
            fields: &["spec"],
            validate: |context, diagnostics| report(context, diagnostics, true),
        },
        Rule {
            id: "not-in-catalogue",
            description: "The version, class, storage and upgrade should be in the catalogue of RDS.",
            severity: Severity::Warning,
            reference: OFFERS,
            fields: &["spec"],
            validate: |context, diagnostics| report(context, diagnostics, false),
        },
        Rule {
            id: "engine-version-deprecated",
            description: "The engine version should not be deprecated.",
            severity: Severity::Warning,
            reference: VERSIONS,
            fields: &["spec.engine", "spec.engineVersion"],
            validate: deprecated,
        },
        Rule {
            id: "extended-support",
            description: "RDS should not charge for Extended Support unless `engineLifecycleSupport` names it.",
            severity: Severity::Warning,
            reference: EXTENDED_SUPPORT,
            fields: &[
                "spec.engine",
                "spec.engineLifecycleSupport",
                "spec.engineVersion",
            ],
            validate: extended_support,
        },
    ]
}

/// Returns what RDS does not offer. A problem of the version hides those of the class, and one of the class those of the
/// storage.
fn findings(request: &Request<'_>) -> Vec<NotOffered> {
    let mut found: Vec<_> = version::unknown(request).into_iter().collect();
    if found.is_empty() {
        found.extend(version::no_target(request));
        found.extend(version::without_classes(request));
    }
    if !found.is_empty() {
        return found;
    }
    let with_version = class::with_version(request);
    found.extend(class::not_offered(request, with_version.as_deref()));
    if found.is_empty() {
        found.extend(class::not_offered_with_running(request));
    }
    if found.is_empty() {
        let class = request.spec.instance_class.as_str();
        let groups = with_version.unwrap_or_default().into_iter();
        let of_class: Vec<_> = groups
            .filter(|group| group.classes.contains(class))
            .collect();
        found.extend(storage::not_offered(request, &of_class));
        found.extend(class::without_capabilities(request, &of_class));
    }
    found
}

/// Returns the status of the instance. A manifest has none, but the stored object that it changes has one.
fn status_of<'a>(context: &RuleContext<'a, CloudDatabase>) -> Option<&'a CloudDatabaseStatus> {
    let stored = context.old.and_then(|old| old.status.as_ref());
    stored.or(context.object.status.as_ref())
}

/// Calls a function with the catalogues.
fn with_catalogues<T>(
    context: &RuleContext<'_, CloudDatabase>,
    run: impl FnOnce(&OfferCatalogues) -> T,
) -> T {
    match context.extension::<OfferContext>() {
        Some(offers) => run(&offers.catalogues()),
        None => run(&OfferCatalogues::default()),
    }
}

fn report(
    context: &RuleContext<'_, CloudDatabase>,
    diagnostics: &mut Diagnostics,
    is_binding: bool,
) {
    let all = Computed::of_rules(context).offers(|| not_offered(context));
    for finding in all.iter().filter(|one| one.is_binding == is_binding) {
        let Finding {
            path,
            value,
            detail,
            ..
        } = finding;
        diagnostics.invalid(*path, value.clone(), detail.clone());
    }
}

/// Returns everything in the request of an object that RDS does not offer.
fn not_offered(context: &RuleContext<'_, CloudDatabase>) -> Vec<Finding> {
    let object = context.object;
    let (spec, status) = (&object.spec, status_of(context));
    let old = context.old.map(|old| &old.spec);
    let is_requested =
        status.is_some_and(|it| it.region.is_some() || it.arn.is_some() || it.endpoint.is_some());
    // An adopted instance runs as it is, and one that was requested before is not requested again.
    let is_existing = is_requested || spec.adopt.is_some();
    let is_observed = spec.management_policy == ManagementPolicy::Observe;
    // A changed engine is an error of its own.
    let is_other_engine = old.is_some_and(|old| old.engine != spec.engine);
    if is_observed || is_other_engine || old.is_none() && is_existing {
        return Vec::new();
    }
    with_catalogues(context, |catalogues| {
        let Some(offers) = catalogues.of_object(context.object, status) else {
            return Vec::new();
        };
        let request = Request {
            spec,
            old,
            status,
            offers: &offers,
        };
        let found = findings(&request).into_iter().map(|found| Finding {
            path: found.path,
            value: found.value,
            detail: format!(
                "{}, by the {}; {}",
                found.problem,
                offers.words(),
                found.alternatives
            ),
            is_binding: offers.is_binding && found.is_certain,
        });
        found.collect()
    })
}

fn deprecated(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let spec = &context.object.spec;
    with_catalogues(context, |catalogues| {
        let offers = catalogues.of_object(context.object, status_of(context));
        let found = offers.and_then(|offers| version::deprecated(spec, &offers));
        if let Some(found) = found {
            diagnostics.invalid(found.path, found.value, found.problem);
        }
    });
}

fn extended_support(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let spec = &context.object.spec;
    let is_new = context.old.is_none() && spec.adopt.is_none();
    with_catalogues(context, |catalogues| {
        let offers = catalogues.of_object(context.object, status_of(context));
        let today = offers.map(|offers| offers.of_engine().date.as_str());
        let problem = today.and_then(|today| extended_support::problem(spec, is_new, today));
        if let (Some(problem), Some(version)) = (problem, spec.engine_version.as_deref()) {
            diagnostics.invalid("spec.engineVersion", version, problem);
        }
    });
}

#[cfg(test)]
mod tests;
