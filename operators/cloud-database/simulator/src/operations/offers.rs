//! `DescribeDBEngineVersions`, `DescribeOrderableDBInstanceOptions` and `DescribeCertificates`: the catalogue of RDS.

use jiff::ToSpan;
use serde_json::{Value, json};

use crate::catalogue;
use crate::fields::Fields;
use crate::operations::call::Call;
use crate::operations::page::{page, page_of};
use crate::protocol::fault::Fault;
use crate::state::resources::CERTIFICATES;

/// Storage type with its bounds (`CreateDBInstance`, `AllocatedStorage` and `Iops`).
struct Storage {
    name: &'static str,
    /// Least and greatest size, in GiB.
    size: (i64, i64),
    /// Least and greatest number of provisioned IOPS.
    iops: Option<(i64, i64)>,
}

const STORAGE: [Storage; 4] = [
    Storage {
        name: "gp2",
        size: (20, 65_536),
        iops: None,
    },
    Storage {
        name: "gp3",
        size: (20, 65_536),
        iops: Some((12_000, 64_000)),
    },
    Storage {
        name: "io1",
        size: (100, 65_536),
        iops: Some((1_000, 256_000)),
    },
    Storage {
        name: "io2",
        size: (100, 65_536),
        iops: Some((1_000, 256_000)),
    },
];

/// Returns engine versions with their upgrade targets.
pub(crate) fn engine_versions(call: &Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let catalogue = &call.config.catalogue;
    let wanted_engine = parameters.given_text("Engine");
    let wanted_version = parameters.given_text("EngineVersion");
    let family = parameters.given_text("DBParameterGroupFamily");
    let default_only = parameters.flag("DefaultOnly");
    let include_all = parameters.flag("IncludeAll");
    let mut entries = Vec::new();
    for engine in catalogue.engines() {
        for (position, version) in catalogue.versions(engine).iter().enumerate() {
            let major = catalogue::major(engine, version);
            let own_family = format!("{engine}{major}");
            let is_wanted = wanted_engine.is_none_or(|it| it == engine)
                && wanted_version.is_none_or(|it| it == version || it == major)
                && family.is_none_or(|it| it == own_family)
                && (!default_only || catalogue.default_of_major(engine, major) == Some(version));
            let is_deprecated = catalogue.is_deprecated(engine, version);
            if !is_wanted || is_deprecated && !include_all {
                continue;
            }
            let targets = catalogue.targets(engine, version).into_iter();
            let targets = targets.map(|target| {
                json!({
                    "Engine": engine,
                    "EngineVersion": target,
                    "AutoUpgrade": false,
                    "IsMajorVersionUpgrade": catalogue::major(engine, target) != major,
                })
            });
            let entry = json!({
                "Engine": engine,
                "EngineVersion": version,
                "MajorEngineVersion": major,
                "DBParameterGroupFamily": own_family,
                "DBEngineDescription": engine,
                "DBEngineVersionDescription": format!("{engine} {version}"),
                "Status": if is_deprecated { "deprecated" } else { "available" },
                "SupportsReadReplica": true,
                "ValidUpgradeTarget": targets.collect::<Vec<_>>(),
            });
            entries.push((format!("{engine} {position:04}"), entry));
        }
    }
    page("DBEngineVersions", entries, parameters)
}

/// Returns the combinations of engine version, class and storage type that can be created.
pub(crate) fn orderable(call: &Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let engine = parameters.text("Engine");
    let catalogue = &call.config.catalogue;
    catalogue.require_engine(engine)?;
    let wanted_version = parameters.given_text("EngineVersion");
    let wanted_class = parameters.given_text("DBInstanceClass");
    let region = &call.region.place.name;
    let zones = ["a", "b", "c"].map(|zone| json!({"Name": format!("{region}{zone}")}));
    let mut entries = Vec::new();
    for version in catalogue.versions(engine) {
        let is_other = wanted_version.is_some_and(|it| it != version);
        if is_other || catalogue.is_deprecated(engine, version) {
            continue;
        }
        for class in catalogue::classes(engine, version) {
            if wanted_class.is_some_and(|it| it != class) {
                continue;
            }
            for storage in &STORAGE {
                let key = format!("{version} {class} {}", storage.name);
                entries.push((key, (version, class.clone(), storage)));
            }
        }
    }
    // There are thousands, of which a page shows a hundred.
    page_of(
        "OrderableDBInstanceOptions",
        entries,
        parameters,
        |(version, class, storage)| {
            let mut option = json!({
                "Engine": engine,
                "EngineVersion": version,
                "DBInstanceClass": class,
                "LicenseModel": catalogue::license(engine),
                "StorageType": storage.name,
                "MinStorageSize": storage.size.0,
                "MaxStorageSize": storage.size.1,
                "AvailabilityZones": zones,
                "MultiAZCapable": true,
                "ReadReplicaCapable": true,
                "SupportsStorageEncryption": true,
                "SupportsStorageAutoscaling": true,
                "SupportsIops": storage.iops.is_some(),
                "SupportsStorageThroughput": storage.name == "gp3",
                "SupportsEnhancedMonitoring": true,
                "SupportsPerformanceInsights": true,
                "SupportsIAMDatabaseAuthentication": true,
                "SupportsDedicatedLogVolume": storage.name.starts_with("io"),
                "Vpc": true,
            });
            if let Some((min, max)) = storage.iops {
                option["MinIopsPerDbInstance"] = min.into();
                option["MaxIopsPerDbInstance"] = max.into();
            }
            option
        },
    )
}

/// Returns the certificate authorities.
pub(crate) fn certificates(call: &Call<'_>, parameters: &Fields) -> Result<Value, Fault> {
    let wanted = parameters.given_text("CertificateIdentifier");
    let certificates = CERTIFICATES.iter();
    let certificates = certificates.filter(|it| wanted.is_none_or(|wanted| wanted == **it));
    let entries: Vec<_> = certificates
        .map(|id| {
            let entry = json!({
                "CertificateIdentifier": id,
                "CertificateType": "CA",
                "CertificateArn": call.region.place.arn("cert", id),
                "ValidFrom": (call.now - (24 * 365).hours()).to_string(),
                "ValidTill": (call.now + (24 * 365 * 30).hours()).to_string(),
            });
            ((*id).to_owned(), entry)
        })
        .collect();
    if let Some(id) = wanted.filter(|_| entries.is_empty()) {
        let message = format!("Certificate not found: {id}");
        return Err(Fault::new("CertificateNotFound", message));
    }
    let mut page = page("Certificates", entries, parameters)?;
    page["DefaultCertificateForNewLaunches"] = CERTIFICATES[0].into();
    Ok(page)
}
