//! Common part of the operations that create an instance: defaults, checks and quotas.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::catalogue;
use crate::fields::Fields;
use crate::operations::call::Call;
use crate::protocol::fault::Fault;
use crate::rules::{identifier, limits, storage, tags, window};
use crate::state::instance::Instance;
use crate::state::phase::{Effect, Phase};
use crate::state::reported;
use crate::state::resources::{CERTIFICATES, DEFAULT_GROUP, SECRET_KEY, STORAGE_KEY};

/// Parameters that are no settings of the instance.
const TRANSIENT: &[&str] = &["MasterUserPassword", "TagSpecifications", "Tags"];

/// Instance that is about to be created.
pub(crate) struct Launch {
    pub(crate) settings: Fields,
    pub(crate) password: Option<String>,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) backup_tags: BTreeMap<String, String>,
    /// Resource ID of the instance of which the new one is a replica.
    pub(crate) source: Option<String>,
}

impl Launch {
    /// Takes the settings, password and tags from the parameters of a request.
    pub(crate) fn from(parameters: &Fields) -> Result<Self, Fault> {
        let mut settings = parameters.clone();
        let transient = settings.split_off(TRANSIENT);
        let tags = tags::read(transient.get("Tags"))?;
        tags::check_number(&tags)?;
        let backup_tags = backup_tags(transient.get("TagSpecifications"))?;
        let password = transient.given_text("MasterUserPassword");
        Ok(Self {
            settings,
            password: password.map(String::from),
            tags,
            backup_tags,
            source: None,
        })
    }

    /// Adds the defaults of RDS, checks everything, and begins to create the instance.
    pub(crate) fn run(mut self, call: &mut Call<'_>) -> Result<Value, Fault> {
        let id = self.settings.text("DBInstanceIdentifier");
        let id = identifier::check("DBInstanceIdentifier", id, identifier::INSTANCE)?;
        self.settings.set("DBInstanceIdentifier", id.clone());
        complete(call, &mut self.settings)?;
        if call.region.has_instance(&id) {
            return Err(Fault::new(
                "DBInstanceAlreadyExists",
                "DB instance already exists",
            ));
        }
        check_quotas(call, &self.settings)?;
        let resource_id = call.region.next_resource_id();
        let mut instance = Instance::new(self.settings, resource_id, call.now);
        instance.password = self.password;
        if instance.settings.flag("ManageMasterUserPassword") {
            instance.generate_password();
        }
        instance.tags = self.tags;
        instance.backup_tags = self.backup_tags;
        instance.source = self.source;
        instance.listed_from = call.now + call.config.timing.listing_delay;
        for (status, effect) in phases(&instance.settings) {
            let length = call.config.timing.of(status);
            instance.add(Phase::of(status, length, effect), call.now);
        }
        let reported = reported::instance(call.region, &instance, call.now);
        call.region.instances.push(instance);
        Ok(json!({"DBInstance": reported}))
    }
}

/// Returns the tags of the automated backups from the parameter `TagSpecifications`.
fn backup_tags(specifications: Option<&Value>) -> Result<BTreeMap<String, String>, Fault> {
    let mut found = BTreeMap::new();
    let specifications = specifications.and_then(Value::as_array);
    for specification in specifications.into_iter().flatten() {
        let type_ = specification["ResourceType"].as_str().unwrap_or_default();
        if type_ != "auto-backup" {
            return Err(Fault::value(format!("Invalid resource type: {type_}")));
        }
        found.extend(tags::read(specification.get("Tags"))?);
    }
    tags::check_number(&found)?;
    Ok(found)
}

/// Returns the states through which a new instance goes.
fn phases(settings: &Fields) -> Vec<(&'static str, Effect)> {
    let mut phases = vec![("creating", Effect::Created)];
    if settings.number("BackupRetentionPeriod") != Some(0) {
        phases.push(("backing-up", Effect::BackedUp));
    }
    if settings.number("MonitoringInterval") != Some(0) {
        phases.push(("configuring-enhanced-monitoring", Effect::Nothing));
    }
    if settings.has("EnableCloudwatchLogsExports") {
        phases.push(("configuring-log-exports", Effect::Nothing));
    }
    phases
}

/// Adds the defaults of RDS to the settings of a new instance, and checks them.
fn complete(call: &Call<'_>, settings: &mut Fields) -> Result<(), Fault> {
    let engine = settings.text("Engine").to_owned();
    let catalogue = &call.config.catalogue;
    catalogue.require_engine(&engine)?;
    let version = catalogue.resolve(&engine, settings.given_text("EngineVersion"))?;
    catalogue::require_class(&engine, &version, settings.text("DBInstanceClass"))?;
    settings.set("EngineVersion", version.clone());
    if let Some(name) = settings.given_text("DBName") {
        identifier::check_database(&engine, name)?;
    }
    if settings.flag("MultiAZ") && settings.has("AvailabilityZone") {
        return Err(Fault::combination(
            "Requesting a specific availability zone is not valid for Multi-AZ instances.",
        ));
    }
    let (backup, maintenance) = window::check(
        settings.given_text("PreferredBackupWindow"),
        settings.given_text("PreferredMaintenanceWindow"),
    )?;
    settings.set("PreferredBackupWindow", backup);
    settings.set("PreferredMaintenanceWindow", maintenance);
    limits::check_role(settings, settings)?;
    limits::check(settings)?;
    storage::complete(settings)?;
    lifecycle(settings, &engine, &version)?;
    add_defaults(settings, &engine, &call.region.place.name);
    call.region.resources.check(settings)?;
    call.region.resources.check_network_type(settings)?;
    encryption(call, settings)
}

/// Enrols the instance in Extended Support unless the request excludes it.
fn lifecycle(settings: &mut Fields, engine: &str, version: &str) -> Result<(), Fault> {
    const ENROLLED: &str = "open-source-rds-extended-support";
    if engine == "mariadb" {
        if settings.has("EngineLifecycleSupport") {
            return Err(Fault::combination(
                "EngineLifecycleSupport isn't supported for the DB engine mariadb.",
            ));
        }
        return Ok(());
    }
    settings.set_default("EngineLifecycleSupport", ENROLLED);
    let is_over = engine == "mysql" && catalogue::major(engine, version) == "5.7";
    if is_over && settings.text("EngineLifecycleSupport") != ENROLLED {
        return Err(Fault::combination(format!(
            "{engine} {version} is past its end of standard support. Creating the DB instance requires Extended Support"
        )));
    }
    Ok(())
}

fn add_defaults(settings: &mut Fields, engine: &str, region: &str) {
    // Without a subnet group, or with the default one, RDS creates a public instance.
    let subnets = settings.given_text("DBSubnetGroupName");
    let is_public = subnets.is_none_or(|name| name == "default");
    settings.set_default("PubliclyAccessible", is_public);
    for name in [
        "CopyTagsToSnapshot",
        "DedicatedLogVolume",
        "DeletionProtection",
        "EnableIAMDatabaseAuthentication",
        "EnablePerformanceInsights",
        "ManageMasterUserPassword",
        "MultiAZ",
        "StorageEncrypted",
    ] {
        settings.set_default(name, false);
    }
    settings.set_default("AutoMinorVersionUpgrade", true);
    settings.set_default("AvailabilityZone", format!("{region}a"));
    settings.set_default("BackupRetentionPeriod", 1);
    settings.set_default("BackupTarget", "region");
    settings.set_default("CACertificateIdentifier", CERTIFICATES[0]);
    settings.set_default("DatabaseInsightsMode", "standard");
    settings.set_default("LicenseModel", catalogue::license(engine));
    settings.set_default("MonitoringInterval", 0);
    settings.set_default("NetworkType", "IPV4");
    settings.set_default("Port", catalogue::default_port(engine));
    if settings.texts("VpcSecurityGroupIds").is_empty() {
        settings.set("VpcSecurityGroupIds", json!([DEFAULT_GROUP]));
    }
    if settings.flag("EnablePerformanceInsights") {
        settings.set_default("PerformanceInsightsRetentionPeriod", 7);
    }
}

/// Resolves the keys of an instance.
fn encryption(call: &Call<'_>, settings: &mut Fields) -> Result<(), Fault> {
    let resources = &call.region.resources;
    if settings.flag("StorageEncrypted") {
        let key = resources.key(settings.given_text("KmsKeyId").unwrap_or(STORAGE_KEY))?;
        settings.set("KmsKeyId", key);
    } else if settings.has("KmsKeyId") {
        return Err(Fault::combination(
            "You can't specify a KMS key for an instance that is not encrypted.",
        ));
    }
    if settings.flag("ManageMasterUserPassword") {
        let key = resources.key(
            settings
                .given_text("MasterUserSecretKmsKeyId")
                .unwrap_or(SECRET_KEY),
        )?;
        settings.set("MasterUserSecretKmsKeyId", key);
    } else if settings.has("MasterUserSecretKmsKeyId") {
        return Err(Fault::combination(
            "You can't specify MasterUserSecretKmsKeyId unless ManageMasterUserPassword is enabled.",
        ));
    }
    Ok(())
}

fn check_quotas(call: &Call<'_>, settings: &Fields) -> Result<(), Fault> {
    let quotas = &call.config.quotas;
    if call.region.instances.len() >= quotas.instances {
        return Err(Fault::new(
            "InstanceQuotaExceeded",
            "DB Instance quota exceeded",
        ));
    }
    require_storage(
        call,
        settings.number("AllocatedStorage").unwrap_or_default(),
    )
}

/// Returns an error if the quota does not allow some more storage.
pub(crate) fn require_storage(call: &Call<'_>, more: i64) -> Result<(), Fault> {
    let used = call.region.instances.iter();
    let used = used.filter_map(|it| it.settings.number("AllocatedStorage"));
    if used.sum::<i64>() + more > call.config.quotas.storage {
        return Err(Fault::new("StorageQuotaExceeded", "Storage quota exceeded"));
    }
    Ok(())
}
