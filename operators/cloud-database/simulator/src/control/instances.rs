//! Instances and snapshots, as a test reads and changes them behind the back of the clients.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::control::simulator::Simulator;
use crate::fields::Fields;
use crate::state::instance::{Instance, OPTIMIZING};
use crate::state::phase::{Effect, End, Phase};
use crate::state::reported;

impl Simulator {
    /// Returns the identifiers of all instances, listed or not.
    pub fn instance_ids(&self) -> Vec<String> {
        self.in_region(|region, _| {
            let ids = region.instances.iter().map(|it| it.id().to_owned());
            ids.collect()
        })
    }

    /// Creates an instance with the parameters of `CreateDBInstance`, without a call that the journal shows.
    pub fn create_instance(&self, parameters: Value) {
        let parameters = fields(parameters);
        let created = self
            .lock()
            .run("CreateDBInstance", &self.place, &parameters);
        created.unwrap_or_else(|fault| panic!("the instance is rejected: {fault:?}"));
    }

    /// Returns an instance as RDS reports it, with the names of the API (`DBInstanceStatus`), or `None` if it does not
    /// exist.
    pub fn instance(&self, id: &str) -> Option<Value> {
        self.in_region(|region, now| {
            let instance = region.instance(id).ok()?.clone();
            Some(reported::instance(region, &instance, now))
        })
    }

    /// Returns all events of instances up to now, in the format in which `EventBridge` delivers them.
    pub fn bridged_events(&self) -> Vec<Value> {
        self.in_region(|region, _| {
            let events = region.events.iter().enumerate();
            events.map(|(number, it)| it.bridged(number)).collect()
        })
    }

    /// Returns the password of the master user.
    pub fn password(&self, id: &str) -> Option<String> {
        self.with_instance(id, |instance, _| instance.password.clone())
    }

    /// Returns the snapshots as RDS reports them, listed or not.
    pub fn snapshots(&self) -> Vec<Value> {
        self.in_region(|region, now| {
            let snapshots = region.snapshots.iter();
            let snapshots = snapshots.map(|it| it.reported(&region.place, now));
            snapshots.collect()
        })
    }

    /// Sets the state of an instance, which can be any text, and what ends it. The states that lay ahead of the instance
    /// follow.
    pub fn force_status(&self, id: &str, status: &str, end: End) {
        self.with_instance(id, |instance, now| {
            let phase = Phase {
                status: status.to_owned(),
                end,
                effect: Effect::Nothing,
            };
            instance.interrupt(phase, now);
        });
    }

    /// Ends the present state of an instance, whatever its duration is.
    pub fn release(&self, id: &str) {
        let mut service = self.lock();
        let timing = service.config.timing.clone();
        let (region, _, now) = service.region(&self.place);
        let mut instances = region.instances.iter();
        let index = instances.position(|it| it.id() == id);
        let index = index.unwrap_or_else(|| panic!("there is no instance {id}"));
        if let Some(effect) = region.instances[index].end_phase(now) {
            region.take_effect(index, &timing, &effect, now);
        }
    }

    /// Opens the maintenance window of an instance: the modifications that wait for it are applied.
    pub fn open_maintenance_window(&self, id: &str) {
        let timing = self.lock().config.timing.clone();
        self.with_instance(id, |instance, now| instance.apply_pending(&timing, now));
    }

    /// Lets RDS take back each change of some settings of an instance: it accepts them, the instance goes through the states,
    /// and has the values from before. Without settings, changes are applied again. They have the names of the parameters
    /// of `CreateDBInstance`.
    pub fn roll_back(&self, id: &str, settings: &[&str]) {
        let settings = settings.iter().map(|name| (*name).to_owned()).collect();
        self.with_instance(id, |instance, _| instance.rolled_back = settings);
    }

    /// Lets RDS grow the storage of an instance automatically.
    pub fn autoscale(&self, id: &str, size: i64) {
        let timing = self.lock().config.timing.clone();
        self.with_instance(id, |instance, now| {
            instance.settings.set("AllocatedStorage", size);
            instance.storage_modified = Some(now);
            let length = timing.of(OPTIMIZING);
            instance.add(Phase::of(OPTIMIZING, length, Effect::Optimized), now);
        });
    }

    /// Changes settings of an instance behind the back of its clients. They have the names of the parameters of
    /// `CreateDBInstance`.
    pub fn change(&self, id: &str, settings: Value) {
        let settings = fields(settings);
        self.with_instance(id, |instance, _| instance.settings.overlay(&settings));
    }

    /// Changes what is reported of an instance, with the names of the members of `DBInstance`.
    pub fn report(&self, id: &str, members: Value) {
        let members = fields(members);
        self.with_instance(id, |instance, _| instance.overrides.overlay(&members));
    }

    /// Ends all changes of what is reported of an instance.
    pub fn clear_report(&self, id: &str) {
        self.with_instance(id, |instance, _| instance.overrides = Fields::default());
    }

    /// Replaces the tags of an instance.
    pub fn set_tags(&self, id: &str, tags: &[(&str, &str)]) {
        let tags = tags.iter();
        let tags = tags.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let tags: BTreeMap<_, _> = tags.collect();
        self.with_instance(id, |instance, _| instance.tags = tags);
    }

    /// Removes an instance at once, without a snapshot.
    pub fn remove_instance(&self, id: &str) {
        self.with_instance(id, |_, _| ());
        self.in_region(|region, _| region.instances.retain(|it| it.id() != id));
    }

    /// Adds a pending maintenance action of an instance, such as `system-update`.
    pub fn add_maintenance_action(&self, id: &str, action: &str, description: &str) {
        let action = fields(json!({"Action": action, "Description": description}));
        self.in_region(|region, _| region.maintenance.push((id.to_owned(), action)));
    }

    /// Sets the status of a snapshot.
    pub fn force_snapshot_status(&self, id: &str, status: &str) {
        self.in_region(|region, _| {
            let snapshot = region.snapshot(id);
            let snapshot = snapshot.unwrap_or_else(|_| panic!("there is no snapshot {id}"));
            snapshot.forced = Some(status.to_owned());
        });
    }

    /// Runs a function on an instance.
    fn with_instance<T>(&self, id: &str, run: impl FnOnce(&mut Instance, Timestamp) -> T) -> T {
        let found = self.in_region(|region, now| {
            let instance = region.instance(id).ok();
            instance.map(|instance| run(instance, now))
        });
        found.unwrap_or_else(|| panic!("there is no instance {id}"))
    }
}

fn fields(value: Value) -> Fields {
    match value {
        Value::Object(members) => Fields::from(members),
        value => panic!("{value} has no members"),
    }
}
