//! Region of an account, with its instances, snapshots and automated backups.

use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;

use crate::fields::Fields;
use crate::protocol::fault::Fault;
use crate::state::automated_backup::RetainedBackup;
use crate::state::config::{Config, Timing};
use crate::state::event::Event;
use crate::state::instance::Instance;
use crate::state::phase::Effect;
use crate::state::place::Place;
use crate::state::resources::Resources;
use crate::state::snapshot::Snapshot;

/// Region of an account.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) place: Place,
    pub(crate) instances: Vec<Instance>,
    pub(crate) snapshots: Vec<Snapshot>,
    /// Automated backups of deleted instances.
    pub(crate) retained: Vec<RetainedBackup>,
    pub(crate) events: Vec<Event>,
    pub(crate) resources: Resources,
    /// Pending maintenance actions that a test has set, with the identifiers of their instances.
    pub(crate) maintenance: Vec<(String, Fields)>,
    created: u64,
}

impl Region {
    pub(crate) fn new(place: Place) -> Self {
        Self {
            resources: Resources::new(&place.account, &place.name),
            place,
            instances: Vec::new(),
            snapshots: Vec::new(),
            retained: Vec::new(),
            events: Vec::new(),
            maintenance: Vec::new(),
            created: 0,
        }
    }

    /// Returns the instance with an identifier, which is not case-sensitive.
    pub(crate) fn instance(&mut self, id: &str) -> Result<&mut Instance, Fault> {
        let mut instances = self.instances.iter_mut();
        let found = instances.find(|it| it.id().eq_ignore_ascii_case(id));
        found.ok_or_else(|| not_found(id))
    }

    pub(crate) fn has_instance(&self, id: &str) -> bool {
        let mut instances = self.instances.iter();
        instances.any(|it| it.id().eq_ignore_ascii_case(id))
    }

    /// Returns the snapshot with an identifier.
    pub(crate) fn snapshot(&mut self, id: &str) -> Result<&mut Snapshot, Fault> {
        let mut snapshots = self.snapshots.iter_mut();
        let found = snapshots.find(|it| it.id.eq_ignore_ascii_case(id));
        found.ok_or_else(|| Fault::new("DBSnapshotNotFound", format!("DBSnapshot {id} not found.")))
    }

    /// Returns an error if another manual snapshot with an identifier cannot be created.
    pub(crate) fn require_new_snapshot(&self, id: &str, config: &Config) -> Result<(), Fault> {
        let mut snapshots = self.snapshots.iter();
        if snapshots.any(|it| it.id.eq_ignore_ascii_case(id)) {
            return Err(Fault::new(
                "DBSnapshotAlreadyExists",
                format!(
                    "Cannot create the snapshot because a snapshot with the identifier {id} already exists."
                ),
            ));
        }
        let manual = self.snapshots.iter().filter(|it| !it.is_automated).count();
        if manual >= config.quotas.snapshots {
            return Err(Fault::new(
                "SnapshotQuotaExceeded",
                "Cannot create more than the allowed number of manual snapshots",
            ));
        }
        Ok(())
    }

    /// Returns a resource ID that no instance has had.
    pub(crate) fn next_resource_id(&mut self) -> String {
        self.created += 1;
        let mut id = String::from("db-");
        for part in 0..2 {
            let mut hasher = DefaultHasher::new();
            (&self.place, self.created, part).hash(&mut hasher);
            id.push_str(&format!("{:013X}", hasher.finish() & 0xf_ffff_ffff_ffff));
        }
        id
    }

    /// Records an event of an instance.
    pub(crate) fn record(
        &mut self,
        id: &str,
        category: &'static str,
        message: &str,
        at: Timestamp,
    ) {
        self.events.push(Event {
            source: id.to_owned(),
            source_type: "db-instance",
            arn: self.place.arn("db", id),
            category,
            message: message.to_owned(),
            at,
        });
    }

    /// Carries out what the time up to now has brought.
    pub(crate) fn settle(&mut self, config: &Config, now: Timestamp) {
        let mut index = 0;
        while let Some(instance) = self.instances.get_mut(index) {
            let Some((at, effect)) = instance.due(&config.timing, now) else {
                index += 1;
                continue;
            };
            self.take_effect(index, &config.timing, &effect, at);
        }
        let expired = self.retained.extract_if(.., |it| it.is_expired(now));
        for backup in expired {
            remove_automated(&mut self.snapshots, &backup.instance);
        }
    }

    /// Removes an instance that has been deleted, with its automated backups unless they are retained.
    fn delete(&mut self, index: usize, at: Timestamp) {
        let deleted = self.instances.remove(index);
        // Replicas of a deleted instance become instances of their own.
        for replica in &mut self.instances {
            if replica.source.as_ref() == Some(&deleted.resource_id) {
                replica.source = None;
            }
        }
        if deleted.retains_backups && deleted.backed_up.is_some() {
            self.retained.push(RetainedBackup {
                instance: deleted,
                deleted: at,
            });
        } else {
            remove_automated(&mut self.snapshots, &deleted);
        }
    }

    /// Makes the change at the end of a state of an instance.
    pub(crate) fn take_effect(
        &mut self,
        index: usize,
        timing: &Timing,
        effect: &Effect,
        at: Timestamp,
    ) {
        let instance = &mut self.instances[index];
        let id = instance.id().to_owned();
        let event = match effect {
            Effect::Nothing => return,
            Effect::Created => {
                instance.created = Some(at);
                ("creation", "DB instance created")
            }
            Effect::BackedUp => {
                instance.backed_up.get_or_insert(at);
                let snapshot = Snapshot::automated(instance, at);
                self.snapshots.push(snapshot);
                ("backup", "Finished DB Instance backup")
            }
            Effect::Modified { with_pending } => {
                let had_backups = instance.has_backups();
                instance.modified(*with_pending, at);
                if instance.has_backups() && !had_backups {
                    instance.add_timed("backing-up", Effect::BackedUp, timing, at);
                }
                ("configuration change", "Finished applying modification")
            }
            Effect::Promoted => {
                instance.source = None;
                instance.modified(false, at);
                (
                    "configuration change",
                    "Promoted Read Replica instance to a stand-alone database instance.",
                )
            }
            Effect::Optimized => ("configuration change", "Finished storage optimization"),
            Effect::Rebooted => {
                instance.rebooted();
                ("availability", "DB instance restarted")
            }
            Effect::Stopped => {
                instance.add_timed("stopped", Effect::StartDue, timing, at);
                ("notification", "DB instance stopped")
            }
            Effect::StartDue => {
                instance.add_timed("starting", Effect::Rebooted, timing, at);
                (
                    "notification",
                    "DB instance is being started due to it exceeding the maximum allowed time being stopped.",
                )
            }
            Effect::Deleted => {
                self.delete(index, at);
                ("deletion", "DB instance deleted")
            }
        };
        self.record(&id, event.0, event.1, at);
    }
}

/// Removes the automated snapshots of an instance.
fn remove_automated(snapshots: &mut Vec<Snapshot>, instance: &Instance) {
    snapshots.retain(|it| !it.is_automated || it.resource_id != instance.resource_id);
}

/// Returns the error for an instance that does not exist.
pub(crate) fn not_found(id: &str) -> Fault {
    Fault::new("DBInstanceNotFound", format!("DBInstance {id} not found."))
}
