//! Resources of other services and of RDS itself to which instances refer.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::catalogue;
use crate::fields::Fields;
use crate::protocol::fault::Fault;

/// Names of resources that exist in a region.
#[derive(Clone, Debug)]
pub(crate) struct Resources {
    pub(crate) subnet_groups: BTreeSet<String>,
    /// Subnet groups with IPv6 in all subnets.
    pub(crate) dual_stack_groups: BTreeSet<String>,
    pub(crate) security_groups: BTreeSet<String>,
    pub(crate) option_groups: BTreeSet<String>,
    /// Families of parameter groups, by name.
    pub(crate) parameter_groups: BTreeMap<String, String>,
    /// ARNs of the KMS keys that RDS can use, by every name that they have.
    pub(crate) kms_keys: BTreeMap<String, String>,
    /// Instance classes without capacity.
    pub(crate) exhausted: BTreeSet<String>,
    /// Storage types that RDS does not offer in the Availability Zones of this region.
    pub(crate) missing_storage_types: BTreeSet<String>,
}

/// Key with which RDS encrypts storage if a request names none.
pub(crate) const STORAGE_KEY: &str = "alias/aws/rds";

/// Key with which RDS encrypts the secret of a master user if a request names none.
pub(crate) const SECRET_KEY: &str = "alias/aws/secretsmanager";

/// Security group of the default VPC.
pub(crate) const DEFAULT_GROUP: &str = "sg-0d15ea5e0000000001";

/// Certificate authorities, the default first.
pub(crate) const CERTIFICATES: &[&str] =
    &["rds-ca-rsa2048-g1", "rds-ca-rsa4096-g1", "rds-ca-ecc384-g1"];

impl Resources {
    pub(crate) fn new(account: &str, region: &str) -> Self {
        let mut resources = Self {
            subnet_groups: BTreeSet::from(["default".to_owned()]),
            dual_stack_groups: BTreeSet::new(),
            security_groups: BTreeSet::from([DEFAULT_GROUP.to_owned()]),
            option_groups: BTreeSet::new(),
            parameter_groups: BTreeMap::new(),
            kms_keys: BTreeMap::new(),
            exhausted: BTreeSet::new(),
            missing_storage_types: BTreeSet::new(),
        };
        resources.add_key(account, region, STORAGE_KEY);
        resources.add_key(account, region, SECRET_KEY);
        resources
    }

    /// Adds a KMS key with an alias, and returns its ARN.
    pub(crate) fn add_key(&mut self, account: &str, region: &str, alias: &str) -> String {
        let number = self.kms_keys.len() / 4 + 1;
        let id = format!("00000000-0000-4000-8000-{number:012}");
        let prefix = format!("arn:aws:kms:{region}:{account}");
        let arn = format!("{prefix}:key/{id}");
        for name in [alias, &id, &arn, &format!("{prefix}:{alias}")] {
            self.kms_keys.insert(name.to_owned(), arn.clone());
        }
        arn
    }

    /// Removes all names of a KMS key: it is disabled, or RDS has no permission to use it.
    pub(crate) fn remove_key(&mut self, name: &str) {
        let arn = self.kms_keys.get(name).cloned();
        self.kms_keys.retain(|_, key| Some(&*key) != arn.as_ref());
    }

    /// Returns the ARN of a KMS key.
    pub(crate) fn key(&self, name: &str) -> Result<String, Fault> {
        self.kms_keys.get(name).cloned().ok_or_else(|| {
            Fault::new(
                "KMSKeyNotAccessibleFault",
                format!("The specified KMS key [{name}] does not exist, is not enabled or you do not have permissions to access it."),
            )
        })
    }

    /// Checks that the resources exist to which settings refer.
    pub(crate) fn check(&self, settings: &Fields) -> Result<(), Fault> {
        if let Some(group) = settings.given_text("DBSubnetGroupName")
            && !self.subnet_groups.contains(group)
        {
            return Err(Fault::new(
                "DBSubnetGroupNotFoundFault",
                format!("DB subnet group '{group}' does not exist."),
            ));
        }
        let groups = settings.texts("VpcSecurityGroupIds").into_iter();
        let mut unknown = groups.filter(|group| !self.security_groups.contains(*group));
        if let Some(group) = unknown.next() {
            return Err(Fault::value(format!(
                "Invalid security group , groupId= {group}, groupName=."
            )));
        }
        if let Some(group) = settings.texts("DBSecurityGroups").first() {
            return Err(Fault::new(
                "DBSecurityGroupNotFound",
                format!("DBSecurityGroup not found: {group}"),
            ));
        }
        if let Some(domain) = settings.given_text("Domain") {
            let message = format!("Domain {domain} not found.");
            return Err(Fault::new("DomainNotFoundFault", message));
        }
        self.check_parameter_group(settings)?;
        if let Some(name) = settings.given_text("OptionGroupName")
            && !name.starts_with("default:")
            && !self.option_groups.contains(name)
        {
            let message = format!("Specified OptionGroupName: {name} not found.");
            return Err(Fault::new("OptionGroupNotFoundFault", message));
        }
        if let Some(certificate) = settings.given_text("CACertificateIdentifier")
            && !CERTIFICATES.contains(&certificate)
        {
            let message = format!("Certificate not found: {certificate}");
            return Err(Fault::new("CertificateNotFound", message));
        }
        self.check_capacity(settings)?;
        let type_ = settings.text("StorageType");
        if self.missing_storage_types.contains(type_) {
            return Err(Fault::new(
                "StorageTypeNotSupported",
                format!("The storage type {type_} is not supported in this Region."),
            ));
        }
        Ok(())
    }

    /// Returns an error if the subnet group of an instance does not support its network type.
    pub(crate) fn check_network_type(&self, settings: &Fields) -> Result<(), Fault> {
        let group = settings
            .given_text("DBSubnetGroupName")
            .unwrap_or("default");
        if settings.text("NetworkType") == "DUAL" && !self.dual_stack_groups.contains(group) {
            return Err(Fault::new(
                "NetworkTypeNotSupported",
                format!("The network type DUAL isn't supported by the DB subnet group {group}."),
            ));
        }
        Ok(())
    }

    /// Returns an error if there is no capacity for an instance class.
    pub(crate) fn check_capacity(&self, settings: &Fields) -> Result<(), Fault> {
        let class = settings.text("DBInstanceClass");
        if self.exhausted.contains(class) {
            return Err(Fault::new(
                "InsufficientDBInstanceCapacity",
                format!(
                    "We currently do not have sufficient {class} capacity in the Availability Zone you requested. Please try again later."
                ),
            ));
        }
        Ok(())
    }

    fn check_parameter_group(&self, settings: &Fields) -> Result<(), Fault> {
        let Some(name) = settings.given_text("DBParameterGroupName") else {
            return Ok(());
        };
        let family = family(settings);
        let found = match name.strip_prefix("default.") {
            Some(family) => Some(family),
            None => self.parameter_groups.get(name).map(String::as_str),
        };
        let Some(found) = found else {
            let message = format!("DBParameterGroup not found: {name}");
            return Err(Fault::new("DBParameterGroupNotFound", message));
        };
        if found != family {
            return Err(Fault::combination(format!(
                "The parameter group {name} with DBParameterGroupFamily {found} cannot be used for this instance. Please use a parameter group with DBParameterGroupFamily {family}."
            )));
        }
        Ok(())
    }
}

/// Returns the family of parameter groups of an engine version.
pub(crate) fn family(settings: &Fields) -> String {
    let engine = settings.text("Engine");
    let major = catalogue::major(engine, settings.text("EngineVersion"));
    format!("{engine}{major}")
}

/// Returns the name of the default option group of an engine version.
pub(crate) fn option_group(settings: &Fields) -> String {
    let engine = settings.text("Engine");
    let major = catalogue::major(engine, settings.text("EngineVersion"));
    let major = major.replace('.', "-");
    let default = format!("default:{engine}-{major}");
    let name = settings.given_text("OptionGroupName");
    name.map_or(default, String::from)
}

/// Returns a subnet group as RDS reports it.
pub(crate) fn subnet_group(name: &str, region: &str) -> Value {
    let subnets = ["a", "b", "c"].map(|zone| {
        json!({
            "SubnetIdentifier": format!("subnet-{zone}"),
            "SubnetAvailabilityZone": {"Name": format!("{region}{zone}")},
            "SubnetStatus": "Active",
        })
    });
    json!({
        "DBSubnetGroupName": name,
        "DBSubnetGroupDescription": name,
        "VpcId": "vpc-0d15ea5e",
        "SubnetGroupStatus": "Complete",
        "Subnets": subnets,
    })
}
