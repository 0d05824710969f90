//! Classes that RDS does not offer, and capabilities that they lack.

use rds_catalogue::{Capability, Catalogue, ClassOffer, ClassSet, VersionName};

use super::request::{NotOffered, Request};
use crate::spec::CloudDatabaseSpec;

const PATH: &str = "spec.instanceClass";

/// Maximum number of classes that a message suggests.
const SUGGESTED: usize = 3;

/// Offers of classes with the version of a request. None if those of one of its versions are unknown.
pub(super) fn with_version<'a>(request: &'a Request<'_>) -> Option<Vec<&'a ClassOffer>> {
    let spec = request.spec;
    // The version of a restored or replicated instance is that of its source at first.
    let has_own_version = spec.restore_from.is_none() && spec.replica_of.is_none();
    let versions = if request.old.is_some() || has_own_version {
        request.versions()
    } else {
        request.offers.versions(None)
    };
    let groups = match versions {
        Some(versions) => request.offers.classes_of(versions)?,
        None => Vec::new(),
    };
    // RDS lists only the classes of new instances. An instance that has, or is upgraded to, a version without any can have
    // others.
    let is_known = request.old.is_none() || !groups.is_empty();
    is_known.then_some(groups)
}

/// Returns the class if it is not offered with the version, or not in the region.
pub(super) fn not_offered(
    request: &Request<'_>,
    with_version: Option<&[&ClassOffer]>,
) -> Option<NotOffered> {
    let class = request.spec.instance_class.as_str();
    let is_new = request.has_new_class() || request.has_new_version();
    let status = request.status;
    let runs = status.and_then(|it| it.instance_class.as_deref()) == Some(class);
    // The schema reports a class that is malformed.
    if !is_new || runs && !is_new_version(request) || class.split('.').count() != 3 {
        return None;
    }
    let absence = absence(request, with_version, class)?;
    Some(NotOffered {
        path: PATH,
        value: class.into(),
        problem: absence.problem(request),
        is_certain: is_known(request, class),
        // Sets are only made for a message: most classes are offered.
        alternatives: nearest(&absence.classes(), class),
    })
}

/// Returns the class if it is not offered with the version that the instance runs. RDS changes class and version in one
/// operation only if the running version is supported on the new class (`ModifyDBInstance`, `DBInstanceClass`), and changes
/// a class alone for the running version, too.
pub(super) fn not_offered_with_running(request: &Request<'_>) -> Option<NotOffered> {
    let old = request.old?;
    let class = request.spec.instance_class.as_str();
    let status = request.status;
    let runs = status.and_then(|it| it.instance_class.as_deref()) == Some(class);
    if runs || old.instance_class == class || class.split('.').count() != 3 {
        return None;
    }
    let running = match status {
        Some(status) => status.engine_version.as_deref()?,
        // A manifest of an instance.
        None => old.engine_version.as_deref()?,
    };
    let offers = request.offers.of_engine();
    let version = offers.versions.get(&VersionName::new(running))?;
    let groups = offers.offer_of(version)?;
    // RDS lists only the classes of new instances, and none of a version that is deprecated.
    if groups.is_empty() || groups.iter().any(|it| it.classes.contains(class)) {
        return None;
    }
    let alternatives = if is_new_version(request) {
        "change the version first, and the class once the instance runs it".to_owned()
    } else {
        let classes = groups.iter().flat_map(|it| it.classes.iter());
        nearest(&classes.collect(), class)
    };
    Some(NotOffered {
        path: PATH,
        value: class.into(),
        problem: format!(
            "is not offered with {} {running}, which the instance runs",
            request.spec.engine.as_str()
        ),
        is_certain: is_known(request, class),
        alternatives,
    })
}

/// Returns the words for the nearest of some classes.
fn nearest(classes: &ClassSet, class: &str) -> String {
    match classes.nearest(class, SUGGESTED).as_slice() {
        [] => "there is none".to_owned(),
        [only] => format!("the nearest is {only}"),
        nearest => format!("the nearest are {}", nearest.join(", ")),
    }
}

/// Part of a catalogue that lacks a class, with what it has instead.
enum Absence<'a> {
    Version(Vec<&'a ClassOffer>),
    Region(&'a str, &'a ClassSet),
    Engine(Vec<&'a ClassSet>),
}

/// Returns the part of the catalogue that lacks a class, if there is one.
fn absence<'a>(
    request: &'a Request<'_>,
    with_version: Option<&[&'a ClassOffer]>,
    class: &str,
) -> Option<Absence<'a>> {
    if let Some(groups) = with_version
        && !groups.iter().any(|group| group.classes.contains(class))
    {
        return Some(Absence::Version(groups.to_vec()));
    }
    let regions = &request.offers.of_engine().regions;
    // The region of a new instance is not known.
    let region = request.offers.region;
    let of_region = region.and_then(|region| Some((region, regions.get(region)?)));
    if let Some((region, classes)) = of_region {
        return (!classes.contains(class)).then_some(Absence::Region(region, classes));
    }
    let lacks = !regions.is_empty() && !regions.values().any(|it| it.contains(class));
    lacks.then(|| Absence::Engine(regions.values().collect()))
}

impl Absence<'_> {
    fn classes(&self) -> ClassSet {
        match self {
            Self::Version(groups) => {
                let classes = groups.iter().flat_map(|it| it.classes.iter());
                classes.collect()
            }
            Self::Region(_, classes) => (*classes).clone(),
            Self::Engine(all) => all.iter().flat_map(|it| it.iter()).collect(),
        }
    }

    fn problem(&self, request: &Request<'_>) -> String {
        let engine = request.spec.engine.as_str();
        match (self, request.spec.engine_version.as_deref()) {
            (Self::Region(region, _), _) => format!("is not offered in {region}"),
            (Self::Version(_), Some(version)) => format!("is not offered with {engine} {version}"),
            (Self::Version(_), None) | (Self::Engine(_), _) => {
                format!("is not offered with {engine}")
            }
        }
    }
}

/// Returns true if any version is offered with a class, or if it existed when this program was released: another one may be new.
fn is_known(request: &Request<'_>, class: &str) -> bool {
    let shipped = Catalogue::shipped()
        .engines
        .get(request.spec.engine.as_str());
    let all = [Some(request.offers.of_engine()), shipped];
    all.into_iter().flatten().any(|offers| {
        let with_versions = offers.offers.iter().flatten().map(|group| &group.classes);
        let mut classes = with_versions.chain(offers.regions.values());
        classes.any(|classes| classes.contains(class))
    })
}

fn is_new_version(request: &Request<'_>) -> bool {
    let running = request.status.and_then(|it| it.engine_version.as_deref());
    let wanted = request.spec.engine_version.as_deref();
    wanted.is_some_and(|wanted| {
        running.is_none_or(|running| !crate::engine::version_matches(wanted, running))
    })
}

/// Setting that needs a capability of the class.
struct Setting {
    capability: Capability,
    path: &'static str,
    name: &'static str,
    is_set: fn(&CloudDatabaseSpec) -> bool,
}

const SETTINGS: &[Setting] = &[
    Setting {
        capability: Capability::MultiAz,
        path: "spec.multiAz",
        name: "a standby (Multi-AZ)",
        is_set: |spec| spec.multi_az == Some(true),
    },
    Setting {
        capability: Capability::IamAuthentication,
        path: "spec.iamAuthentication",
        name: "authentication with IAM",
        is_set: |spec| spec.iam_authentication == Some(true),
    },
    Setting {
        capability: Capability::EnhancedMonitoring,
        path: "spec.monitoring.enhanced",
        name: "Enhanced Monitoring",
        is_set: |spec| {
            let monitoring = spec.monitoring.as_ref();
            let enhanced = monitoring.and_then(|it| it.enhanced.as_ref());
            enhanced.is_some_and(|it| it.interval_seconds > 0)
        },
    },
    Setting {
        capability: Capability::PerformanceInsights,
        path: "spec.monitoring.performanceInsights.enabled",
        name: "Performance Insights",
        is_set: |spec| {
            let monitoring = spec.monitoring.as_ref();
            let insights = monitoring.and_then(|it| it.performance_insights.as_ref());
            insights.is_some_and(|it| it.enabled)
        },
    },
    Setting {
        capability: Capability::DedicatedLogVolume,
        path: "spec.dedicatedLogVolume",
        name: "a dedicated log volume",
        is_set: |spec| spec.dedicated_log_volume == Some(true),
    },
];

/// Returns the settings that the class does not support. `groups` are the offers of the class.
pub(super) fn without_capabilities(
    request: &Request<'_>,
    groups: &[&ClassOffer],
) -> Vec<NotOffered> {
    if groups.is_empty() {
        return Vec::new();
    }
    let class = request.spec.instance_class.as_str();
    let has_new_class = request.has_new_class();
    let is_new = |setting: &Setting| {
        let is_set = setting.is_set;
        has_new_class || request.is_new(|old, new| is_set(old) == is_set(new))
    };
    let has_new_version = request.has_new_version();
    let set = SETTINGS
        .iter()
        .filter(|setting| (setting.is_set)(request.spec) && (has_new_version || is_new(setting)));
    let lacks = |setting: &&Setting| {
        groups.iter().all(|group| {
            let known = group.capabilities.as_ref();
            known.is_some_and(|known| !known.contains(&setting.capability))
        })
    };
    let lacking = set.filter(lacks).map(|setting| NotOffered {
        path: setting.path,
        value: true.into(),
        problem: format!("needs {}, which is not offered with {class}", setting.name),
        alternatives: "remove it, or choose another class or version".to_owned(),
        // RDS lists what a new instance can have. One that is upgraded may keep what it has.
        is_certain: is_new(setting),
    });
    lacking.collect()
}
