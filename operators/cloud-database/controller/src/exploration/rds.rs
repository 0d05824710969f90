//! Model of RDS: instances, their transitions, and calls that may take effect late.

use std::collections::BTreeSet;

use aws_sdk_rds::primitives::DateTime;
use aws_sdk_rds::types::{DbInstance, DbSnapshot, Endpoint, PendingModifiedValues};

use rds_simulator::Simulator;

use crate::clock;
use crate::instance::tags::{self, OBJECT_TAG, OWNER_TAG};

/// Region and account of all instances.
pub(super) const REGION: &str = Simulator::REGION;
pub(super) const ACCOUNT: &str = "123456789012";

/// Version of all instances before their objects are changed.
pub(super) const VERSION: &str = "16.4";

/// Password of what instances are restored from, and of what they replicate.
pub(super) const SOURCE_PASSWORD: &str = "of-the-source";

/// Progress of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Phase {
    Creating,
    Available,
    Modifying,
    Deleting,
}

/// Changes that can interrupt clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Disruption {
    pub(super) class: Option<String>,
    pub(super) version: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Instance {
    pub(super) id: String,
    pub(super) resource_id: String,
    /// UID and name of the object in its tags.
    pub(super) owner: Option<String>,
    pub(super) object: Option<String>,
    pub(super) phase: Phase,
    pub(super) class: String,
    pub(super) version: String,
    pub(super) is_public: bool,
    pub(super) is_encrypted: bool,
    pub(super) is_protected: bool,
    pub(super) password: String,
    /// Identifier of the instance that it replicates.
    pub(super) source: Option<String>,
    /// Change that is in progress, or that waits.
    pub(super) change: Disruption,
    /// Final snapshot that is taken while it is deleted.
    pub(super) final_snapshot: Option<String>,
}

/// Effect of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Effect {
    Create(Box<Instance>),
    Modify {
        id: String,
        change: Disruption,
        /// If false, the change waits for the maintenance window.
        is_immediate: bool,
        is_public: Option<bool>,
        is_protected: Option<bool>,
        password: Option<String>,
    },
    Promote {
        id: String,
    },
    Delete {
        id: String,
        final_snapshot: Option<String>,
    },
    Tag {
        id: String,
        owner: Option<String>,
        object: Option<String>,
    },
    TagSnapshot {
        name: String,
    },
    Untag {
        id: String,
        keys: Vec<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Snapshot {
    pub(super) name: String,
    /// Identifier of the instance.
    pub(super) instance: String,
    pub(super) is_encrypted: bool,
}

/// Refusal of a call: the code of RDS.
pub(super) type Refusal = &'static str;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Rds {
    pub(super) instances: Vec<Instance>,
    pub(super) snapshots: Vec<Snapshot>,
    /// Instances before the last effect, which an outdated description shows.
    pub(super) before: Vec<Instance>,
    /// Effects of calls whose answers were lost.
    pub(super) late: Vec<Effect>,
    pub(super) created: u8,
    /// UIDs of the objects for which instances were created.
    pub(super) created_for: BTreeSet<String>,
}

impl Effect {
    /// Returns the identifier of the instance that is changed.
    pub(super) fn changed(&self) -> Option<&str> {
        match self {
            Self::Create(_) | Self::TagSnapshot { .. } => None,
            Self::Modify { id, .. }
            | Self::Promote { id }
            | Self::Delete { id, .. }
            | Self::Tag { id, .. }
            | Self::Untag { id, .. } => Some(id),
        }
    }
}

impl Rds {
    /// Returns the service with one instance.
    pub(super) fn with(instance: Instance) -> Self {
        Self {
            before: vec![instance.clone()],
            instances: vec![instance],
            ..Self::default()
        }
    }

    pub(super) fn instance(&self, id: &str) -> Option<&Instance> {
        self.instances.iter().find(|instance| instance.id == id)
    }

    /// Returns true if there is an instance with this identifier, and it is encrypted.
    pub(super) fn is_encrypted(&self, id: Option<&String>) -> bool {
        let found = id.and_then(|id| self.instance(id));
        found.is_some_and(|instance| instance.is_encrypted)
    }

    /// Applies the effect of a call, unless RDS refuses it.
    pub(super) fn apply(&mut self, effect: &Effect) -> Result<(), Refusal> {
        let before = self.instances.clone();
        self.change(effect)?;
        self.before = before;
        Ok(())
    }

    fn change(&mut self, effect: &Effect) -> Result<(), Refusal> {
        match effect {
            Effect::Create(instance) => self.create(instance)?,
            Effect::Modify {
                id,
                change,
                is_immediate,
                is_public,
                is_protected,
                password,
            } => {
                let instance = self.found(id)?;
                if instance.phase != Phase::Available {
                    return Err("InvalidDBInstanceState");
                }
                instance.is_public = is_public.unwrap_or(instance.is_public);
                instance.is_protected = is_protected.unwrap_or(instance.is_protected);
                if let Some(password) = password {
                    instance.password.clone_from(password);
                }
                if *change != Disruption::default() {
                    instance.change = change.clone();
                    if *is_immediate {
                        instance.phase = Phase::Modifying;
                    }
                }
            }
            Effect::Promote { id } => {
                let instance = self.found(id)?;
                if instance.phase != Phase::Available || instance.source.is_none() {
                    return Err("InvalidDBInstanceState");
                }
                instance.source = None;
                instance.phase = Phase::Modifying;
            }
            Effect::Delete { id, final_snapshot } => self.delete(id, final_snapshot.as_ref())?,
            Effect::Tag { id, owner, object } => {
                let instance = self.found(id)?;
                instance.owner = owner.clone().or(instance.owner.take());
                instance.object = object.clone().or(instance.object.take());
            }
            Effect::TagSnapshot { name } => {
                let mut snapshots = self.snapshots.iter();
                let found = snapshots.find(|snapshot| snapshot.name == *name);
                found.ok_or("DBSnapshotNotFound")?;
            }
            Effect::Untag { id, keys } => {
                let instance = self.found(id)?;
                let has = |key: &str| keys.iter().any(|name| name == key);
                instance.owner.take_if(|_| has(OWNER_TAG));
                instance.object.take_if(|_| has(OBJECT_TAG));
            }
        }
        Ok(())
    }

    fn create(&mut self, instance: &Instance) -> Result<(), Refusal> {
        if self.instance(&instance.id).is_some() {
            return Err("DBInstanceAlreadyExists");
        }
        self.created += 1;
        self.created_for.extend(instance.owner.clone());
        let mut instance = Instance::clone(instance);
        instance.resource_id = format!("db-{}", self.created);
        self.instances.push(instance);
        Ok(())
    }

    fn found(&mut self, id: &str) -> Result<&mut Instance, Refusal> {
        let mut instances = self.instances.iter_mut();
        let found = instances.find(|instance| instance.id == id);
        found.ok_or("DBInstanceNotFound")
    }

    fn delete(&mut self, id: &str, final_snapshot: Option<&String>) -> Result<(), Refusal> {
        let taken = |name: &String| self.snapshots.iter().any(|other| other.name == *name);
        let is_taken = final_snapshot.is_some_and(taken);
        let instance = self.found(id)?;
        if is_taken {
            return Err("DBSnapshotAlreadyExists");
        }
        if instance.is_protected {
            return Err("InvalidParameterCombination");
        }
        if instance.phase != Phase::Available {
            return Err("InvalidDBInstanceState");
        }
        instance.phase = Phase::Deleting;
        instance.final_snapshot = final_snapshot.cloned();
        Ok(())
    }

    /// Lets the calls take effect whose answers were lost.
    pub(super) fn land(&mut self) {
        for effect in std::mem::take(&mut self.late) {
            // It may be refused by now.
            let _ = self.apply(&effect);
        }
    }

    /// Ends what is in progress. If `reverts`, changes are taken back.
    pub(super) fn progress(&mut self, reverts: bool) {
        self.land();
        self.before.clone_from(&self.instances);
        for instance in &mut self.instances {
            let change = std::mem::take(&mut instance.change);
            if !reverts {
                instance.class = change.class.unwrap_or(std::mem::take(&mut instance.class));
                instance.version = change
                    .version
                    .unwrap_or(std::mem::take(&mut instance.version));
            }
            if instance.phase != Phase::Deleting {
                instance.phase = Phase::Available;
            }
        }
        let (gone, kept) = std::mem::take(&mut self.instances)
            .into_iter()
            .partition(|instance: &Instance| instance.phase == Phase::Deleting);
        self.instances = kept;
        for instance in gone {
            if let Some(name) = instance.final_snapshot {
                self.snapshots.push(Snapshot {
                    name,
                    instance: instance.id,
                    is_encrypted: instance.is_encrypted,
                });
            }
        }
        self.before
            .retain(|instance| instance.phase != Phase::Deleting);
    }
}

impl Instance {
    /// Returns the instance as RDS describes it.
    pub(super) fn described(&self) -> DbInstance {
        let tag =
            |key: &str, value: &Option<String>| value.as_ref().map(|value| tags::tag(key, value));
        let owner = [tag(OWNER_TAG, &self.owner), tag(OBJECT_TAG, &self.object)];
        let status = match self.phase {
            Phase::Creating => "creating",
            Phase::Available => "available",
            Phase::Modifying => "modifying",
            Phase::Deleting => "deleting",
        };
        let pending = PendingModifiedValues::builder()
            .set_db_instance_class(self.change.class.clone())
            .set_engine_version(self.change.version.clone())
            .build();
        let has_pending = self.change != Disruption::default();
        let endpoint = Endpoint::builder().address("host").port(5_432).build();
        DbInstance::builder()
            .db_instance_identifier(&self.id)
            .dbi_resource_id(&self.resource_id)
            .db_instance_arn(format!("arn:aws:rds:{REGION}:{ACCOUNT}:db:{}", self.id))
            .db_instance_status(status)
            .set_endpoint((self.phase != Phase::Creating).then_some(endpoint))
            .set_pending_modified_values(has_pending.then_some(pending))
            .engine("postgres")
            .engine_version(&self.version)
            .db_instance_class(&self.class)
            .master_username("app")
            .storage_type("gp3")
            .allocated_storage(20)
            .iops(3_000)
            .storage_throughput(125)
            .backup_retention_period(7)
            .multi_az(false)
            .auto_minor_version_upgrade(false)
            .copy_tags_to_snapshot(true)
            .network_type("IPV4")
            .publicly_accessible(self.is_public)
            .storage_encrypted(self.is_encrypted)
            .deletion_protection(self.is_protected)
            .set_read_replica_source_db_instance_identifier(self.source.clone())
            .set_tag_list(Some(owner.into_iter().flatten().collect()))
            .build()
    }
}

impl Snapshot {
    /// Returns the snapshot as RDS describes it.
    pub(super) fn described(&self) -> DbSnapshot {
        let Self { name, instance, .. } = self;
        DbSnapshot::builder()
            .db_snapshot_identifier(name)
            .db_instance_identifier(instance)
            .db_snapshot_arn(format!("arn:aws:rds:{REGION}:{ACCOUNT}:snapshot:{name}"))
            .status("available")
            .encrypted(self.is_encrypted)
            .snapshot_create_time(DateTime::from_secs(clock::now().as_second()))
            .tag_list(tags::tag(OBJECT_TAG, "shop/orders"))
            .build()
    }
}
