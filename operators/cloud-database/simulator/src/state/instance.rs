//! Instance: settings that are in force, modifications that wait, and the states ahead.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;

use crate::fields::Fields;
use crate::protocol::fault::Fault;
use crate::rules::window;
use crate::state::config::Timing;
use crate::state::phase::{Effect, End, Phase};

/// Status of an instance without anything in progress.
pub(crate) const AVAILABLE: &str = "available";

/// Status of an instance whose storage is being reorganized after a modification.
pub(crate) const OPTIMIZING: &str = "storage-optimization";

const REBOOTING: &str = "rebooting";

/// Instance. The settings have the names of the parameters of `CreateDBInstance`.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    pub(crate) settings: Fields,
    /// Modifications that RDS applies as soon as possible, and shows nowhere except for those of the password and of
    /// log types.
    pub(crate) soon: Fields,
    /// Modifications that wait for the maintenance window, or that are being applied.
    pub(crate) pending: Fields,
    /// Members of the reported instance that a test has set.
    pub(crate) overrides: Fields,
    pub(crate) tags: BTreeMap<String, String>,
    /// Tags of the automated backups, which do not follow those of the instance.
    pub(crate) backup_tags: BTreeMap<String, String>,
    pub(crate) resource_id: String,
    pub(crate) password: Option<String>,
    /// Number of passwords that RDS has generated for the secret in Secrets Manager.
    generated_passwords: u32,
    /// Time of creation, once the instance has been created.
    pub(crate) created: Option<Timestamp>,
    pub(crate) listed_from: Timestamp,
    pub(crate) backed_up: Option<Timestamp>,
    /// If true, the automated backups are retained when the instance is deleted.
    pub(crate) retains_backups: bool,
    pub(crate) storage_modified: Option<Timestamp>,
    pub(crate) next_window: Option<Timestamp>,
    /// Resource ID of the instance of which this one is a replica.
    pub(crate) source: Option<String>,
    /// Modifications that RDS applies at the next reboot.
    pub(crate) at_reboot: Fields,
    /// Settings whose changes RDS accepts, applies and takes back.
    pub(crate) rolled_back: Vec<String>,
    /// Time at which the server certificate was issued.
    pub(crate) certified: Timestamp,
    /// If true, parameters of the parameter group are applied at the next reboot.
    pub(crate) needs_reboot: bool,
    pub(crate) phases: VecDeque<Phase>,
    /// Time at which the first of the phases began.
    pub(crate) entered: Timestamp,
}

impl Instance {
    /// Creates an instance that goes through some phases.
    pub(crate) fn new(settings: Fields, resource_id: String, now: Timestamp) -> Self {
        Self {
            settings,
            soon: Fields::default(),
            pending: Fields::default(),
            overrides: Fields::default(),
            tags: BTreeMap::new(),
            backup_tags: BTreeMap::new(),
            resource_id,
            password: None,
            generated_passwords: 0,
            created: None,
            listed_from: now,
            backed_up: None,
            retains_backups: false,
            storage_modified: None,
            next_window: None,
            source: None,
            at_reboot: Fields::default(),
            rolled_back: Vec::new(),
            certified: now,
            needs_reboot: false,
            phases: VecDeque::new(),
            entered: now,
        }
    }

    pub(crate) fn id(&self) -> &str {
        self.settings.text("DBInstanceIdentifier")
    }

    /// Replaces the password by one that RDS generates, and keeps in Secrets Manager.
    pub(crate) fn generate_password(&mut self) {
        self.generated_passwords += 1;
        self.password = Some(format!("generated-by-rds-{}", self.generated_passwords));
    }

    pub(crate) fn status(&self) -> &str {
        self.phases.front().map_or(AVAILABLE, |phase| &phase.status)
    }

    /// Adds a phase behind those that are ahead.
    pub(crate) fn add(&mut self, phase: Phase, now: Timestamp) {
        if self.phases.is_empty() {
            self.entered = now;
        }
        self.phases.push_back(phase);
    }

    /// Adds a phase of the usual length behind those that are ahead.
    pub(crate) fn add_timed(
        &mut self,
        status: &str,
        effect: Effect,
        timing: &Timing,
        now: Timestamp,
    ) {
        self.add(Phase::of(status, timing.of(status), effect), now);
    }

    /// Sets a phase before those that are ahead.
    pub(crate) fn interrupt(&mut self, phase: Phase, now: Timestamp) {
        self.entered = now;
        self.phases.push_front(phase);
    }

    /// Ends the present phase, and returns its effect.
    pub(crate) fn end_phase(&mut self, at: Timestamp) -> Option<Effect> {
        let phase = self.phases.pop_front()?;
        self.entered = at;
        Some(phase.effect)
    }

    /// Ends a phase whose time is over. Returns when it was over, and its effect.
    pub(crate) fn due(&mut self, timing: &Timing, now: Timestamp) -> Option<(Timestamp, Effect)> {
        let Some(phase) = self.phases.front() else {
            let opened = self.next_window.filter(|opening| *opening <= now)?;
            self.next_window = None;
            self.apply_pending(timing, opened);
            return Some((opened, Effect::Nothing));
        };
        let End::After(length) = phase.end else {
            return None;
        };
        let over = self.entered + length;
        if over > now {
            return None;
        }
        let effect = self.end_phase(over)?;
        Some((over, effect))
    }

    /// Ends a state that ends with a call of an operation.
    pub(crate) fn called(&mut self, operation: &str, now: Timestamp) {
        if self.is_ended_by(operation) {
            self.end_phase(now);
        }
    }

    fn is_ended_by(&self, operation: &str) -> bool {
        let front = self.phases.front();
        front.is_some_and(|phase| phase.end == End::Call(operation.to_owned()))
    }

    /// Returns an error if RDS does not accept an operation in the present state.
    pub(crate) fn require_status(
        &self,
        operation: &str,
        allowed: &[&str],
        message: impl FnOnce(&Self) -> String,
    ) -> Result<(), Fault> {
        if allowed.contains(&self.status()) || self.is_ended_by(operation) {
            return Ok(());
        }
        Err(Fault::new("InvalidDBInstanceState", message(self)))
    }

    /// Lets the pending modifications wait for the next maintenance window.
    pub(crate) fn wait_for_window(&mut self, now: Timestamp) {
        let window = self.settings.text("PreferredMaintenanceWindow");
        self.next_window = Some(window::next_opening(window, now));
    }

    /// Begins to apply all modifications that wait.
    pub(crate) fn apply_pending(&mut self, timing: &Timing, now: Timestamp) {
        self.next_window = None;
        self.apply(timing, now, true);
    }

    /// Begins to apply the modifications that RDS applies as soon as possible, and those that wait for the maintenance
    /// window if that is set.
    pub(crate) fn apply(&mut self, timing: &Timing, now: Timestamp, with_pending: bool) {
        let mut changed = self.soon.clone();
        if with_pending {
            changed.overlay(&self.pending);
        }
        let mut states: Vec<_> = STATES
            .iter()
            .filter(|(names, _)| names.iter().any(|name| changed.has(name)))
            .map(|(_, status)| *status)
            .collect();
        states.dedup();
        let Some(last) = states.pop() else {
            return;
        };
        // The optimization of storage takes hours, and other modifications do not wait for it.
        let is_optimizing = self.status() == OPTIMIZING;
        let before = if is_optimizing { OPTIMIZING } else { AVAILABLE };
        let optimization = if is_optimizing {
            std::mem::take(&mut self.phases)
        } else {
            VecDeque::new()
        };
        self.add(Phase::of(before, timing.lag, Effect::Nothing), now);
        for status in states {
            self.add_timed(status, Effect::Nothing, timing, now);
        }
        let effect = Effect::Modified { with_pending };
        self.add_timed(last, effect, timing, now);
        if changed.has("NewDBInstanceIdentifier") {
            self.add_timed(REBOOTING, Effect::Nothing, timing, now);
        }
        if [
            "AllocatedStorage",
            "StorageType",
            "Iops",
            "StorageThroughput",
        ]
        .iter()
        .any(|name| changed.has(name))
        {
            let length = timing.of(OPTIMIZING);
            self.add(Phase::of(OPTIMIZING, length, Effect::Optimized), now);
        }
        self.phases.extend(optimization);
    }

    /// Puts into force what waits for a reboot.
    pub(crate) fn rebooted(&mut self) {
        self.needs_reboot = false;
        self.settings.overlay(&std::mem::take(&mut self.at_reboot));
    }

    /// Returns true if automated backups are taken.
    pub(crate) fn has_backups(&self) -> bool {
        self.settings.number("BackupRetentionPeriod") != Some(0)
    }

    /// Puts modifications into force.
    pub(crate) fn modified(&mut self, with_pending: bool, at: Timestamp) {
        let mut changed = std::mem::take(&mut self.soon);
        if with_pending {
            changed.overlay(&std::mem::take(&mut self.pending));
        }
        for name in &self.rolled_back {
            changed.take(name);
        }
        if let Some(name) = changed.take("NewDBInstanceIdentifier") {
            self.settings.set("DBInstanceIdentifier", name);
        }
        let is_rotated = changed.take("RotateMasterUserPassword").is_some();
        if is_rotated || changed.given_flag("ManageMasterUserPassword") == Some(true) {
            self.generate_password();
        }
        if let Some(password) = changed.take("MasterUserPassword") {
            self.password = password.as_str().map(String::from);
        }
        if changed.given_flag("ManageMasterUserPassword") == Some(false) {
            self.settings.take("MasterUserSecretKmsKeyId");
        }
        if changed.has("StorageType") {
            self.settings.split_off(&["Iops", "StorageThroughput"]);
        }
        if changed.number("Iops") == Some(0) {
            changed.take("Iops");
        }
        if changed.has("AllocatedStorage") || changed.has("StorageType") {
            self.storage_modified = Some(at);
        }
        // Both restart the database, which applies the parameters of the parameter group.
        if changed.has("EngineVersion") || changed.has("DBInstanceClass") {
            self.needs_reboot = false;
        }
        if changed.number("BackupRetentionPeriod") == Some(0) {
            self.backed_up = None;
        }
        if changed.given_flag("EnablePerformanceInsights") == Some(false) {
            self.settings.take("PerformanceInsightsRetentionPeriod");
        }
        if changed.has("CACertificateIdentifier") {
            self.certified = at;
        }
        self.settings.overlay(&changed);
    }
}

/// States in which RDS applies parameters, in the order in which an instance goes through them.
const STATES: &[(&[&str], &str)] = &[
    (
        &[
            "MasterUserPassword",
            "ManageMasterUserPassword",
            "RotateMasterUserPassword",
        ],
        "resetting-master-credentials",
    ),
    (&["EnableCloudwatchLogsExports"], "configuring-log-exports"),
    (
        &["MonitoringInterval", "MonitoringRoleArn"],
        "configuring-enhanced-monitoring",
    ),
    (
        &["EnableIAMDatabaseAuthentication"],
        "configuring-iam-database-auth",
    ),
    (&["EngineVersion"], "upgrading"),
    (
        &[
            "AllocatedStorage",
            "BackupRetentionPeriod",
            "CACertificateIdentifier",
            "DBInstanceClass",
            "DBSubnetGroupName",
            "DatabaseInsightsMode",
            "EnablePerformanceInsights",
            "Iops",
            "LicenseModel",
            "MultiAZ",
            "NetworkType",
            "OptionGroupName",
            "PerformanceInsightsKMSKeyId",
            "PerformanceInsightsRetentionPeriod",
            "Port",
            "ProcessorFeatures",
            "PubliclyAccessible",
            "StorageThroughput",
            "StorageType",
            "VpcSecurityGroupIds",
        ],
        "modifying",
    ),
    (&["NewDBInstanceIdentifier"], "renaming"),
];
