//! Validation rules of CloudDatabase that neither the schema nor CEL can express.

mod allowed;
mod computed;
mod connection_secret;
mod database_name;
mod effects;
mod engine_versions;
mod groups;
mod growth;
mod monitoring;
mod offers;
mod replicas;
mod reserved_words;
mod risks;
mod tags;
mod upgrades;

use std::cmp::Ordering;

use lockstep_shared_validation::{Diagnostics, FieldError, FieldPath, Rule, RuleContext, Severity};

use crate::engine::{Engine, compare_versions};
use crate::references::CREATE;
use crate::reserved_names;
use crate::spec::CloudDatabase;
use crate::window::Window;

const UPGRADES: &str =
    "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_UpgradeDBInstance.Upgrading.html";
const AUTOSCALING: &str =
    "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_PIOPS.Autoscaling.html";

const PUBLIC_ACCESS: &str = "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_VPC.WorkingWithRDSInstanceinaVPC.html";
const ENCRYPTION: &str =
    "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/Overview.Encryption.html";

/// Instance classes without support for encryption, from the RDS User Guide ([`ENCRYPTION`], Availability): families
/// and single classes.
const CLASSES_WITHOUT_ENCRYPTION: &[&str] = &["db.m1.", "db.m2.", "db.t1.", "db.t2.micro"];

/// Minimum length of a window in RDS, in minutes.
const SHORTEST_WINDOW: u32 = 30;

pub(crate) fn all() -> Vec<Rule<CloudDatabase>> {
    let mut all = Vec::from(OWN);
    all.extend(allowed::rules());
    all.extend(connection_secret::rules());
    all.extend(database_name::rules());
    all.extend(engine_versions::rules());
    all.extend(risks::rules());
    all.extend(upgrades::rules());
    all.extend(monitoring::rules());
    all.extend(groups::rules());
    all.extend(growth::rules());
    all.extend(effects::rules());
    all.extend(offers::rules());
    all.extend(tags::rules());
    all.extend(replicas::rules());
    all.extend(reserved_words::rules());
    all
}

const OWN: [Rule<CloudDatabase>; 9] = [
    Rule {
        id: "username-reserved",
        description: "The master username must not be reserved by the engine or by RDS.",
        severity: Severity::Error,
        reference: CREATE,
        fields: &["spec.credentials.username", "spec.engine"],
        validate: username_reserved,
    },
    // Not in CEL: the API server compares with the stored object. If that has a reserved name, because it was
    // stored without the webhook, the name could never be corrected.
    Rule {
        id: "username-immutable",
        description: "A master username in the spec is immutable: RDS sets it at creation only.",
        severity: Severity::Error,
        reference: CREATE,
        fields: &["spec.credentials.username"],
        validate: username_immutable,
    },
    Rule {
        id: "engine-version-downgrade",
        description: "The engine version must not be lowered: RDS cannot downgrade an instance.",
        severity: Severity::Error,
        reference: UPGRADES,
        fields: &["spec.engine", "spec.engineVersion"],
        validate: engine_version_only_rises,
    },
    Rule {
        id: "backup-window-length",
        description: "The backup window must last at least 30 minutes.",
        severity: Severity::Error,
        reference: CREATE,
        fields: &["spec.backup.window"],
        validate: backup_window_length,
    },
    Rule {
        id: "maintenance-window-length",
        description: "The maintenance window must last at least 30 minutes.",
        severity: Severity::Error,
        reference: CREATE,
        fields: &["spec.maintenanceWindow"],
        validate: maintenance_window_length,
    },
    Rule {
        id: "overlapping-windows",
        description: "The backup window and the maintenance window must not overlap.",
        severity: Severity::Error,
        reference: CREATE,
        fields: &["spec.backup.window", "spec.maintenanceWindow"],
        validate: windows_disjoint,
    },
    Rule {
        id: "autoscaling-headroom",
        description: "`maxSizeGib` should be at least 26 % above `sizeGib`, as RDS recommends.",
        severity: Severity::Warning,
        reference: AUTOSCALING,
        fields: &["spec.storage.sizeGib", "spec.storage.maxSizeGib"],
        validate: autoscaling_headroom,
    },
    Rule {
        id: "publicly-accessible",
        description: "The instance should not be publicly accessible.",
        severity: Severity::Warning,
        reference: PUBLIC_ACCESS,
        fields: &["spec.network.publiclyAccessible"],
        validate: publicly_accessible,
    },
    Rule {
        id: "encryption-not-supported",
        description: "The instance class must support encryption if encryption is enabled.",
        severity: Severity::Error,
        reference: ENCRYPTION,
        fields: &["spec.encryption.enabled", "spec.instanceClass"],
        validate: encryption_not_supported,
    },
];

fn username_reserved(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let spec = &context.object.spec;
    if let Some(name) = &spec.credentials.username
        && let Some(detail) = username_problem(spec.engine, name)
    {
        diagnostics.invalid("spec.credentials.username", name.as_str(), detail);
    }
}

fn username_immutable(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let old = context
        .old
        .and_then(|old| old.spec.credentials.username.as_deref());
    let new = context.object.spec.credentials.username.as_deref();
    if let Some(old) = old
        && new != Some(old)
    {
        let detail = format!("is immutable: RDS sets it at creation only; restore '{old}'");
        diagnostics.invalid("spec.credentials.username", new, detail);
    }
}

fn username_problem(engine: Engine, name: &str) -> Option<String> {
    reserved_names::is_reserved(engine, name).then(|| {
        format!(
            "is reserved by {} or RDS; choose another name",
            engine.as_str()
        )
    })
}

/// Validates a username from the Secret by the same rules as one in the spec. The controller calls it during
/// reconciliation. The errors do not contain the username.
#[must_use]
pub fn check_username(object: &CloudDatabase, name: &str) -> Vec<FieldError> {
    let path = || FieldPath::new("spec.credentials.selectors.username");
    let mut errors = Vec::new();
    let well_formed = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.len() <= 16
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !well_formed {
        errors.push(FieldError::invalid_hidden(
            path(),
            "the username in the Secret must start with a letter and have at most 16 letters, digits and '_'",
        ));
    }
    if let Some(detail) = username_problem(object.spec.engine, name) {
        let detail = format!("the username in the Secret {detail} [username-reserved]");
        errors.push(FieldError::invalid_hidden(path(), detail));
    }
    errors
}

/// Validates a password from the Secret. The error does not contain the password.
#[must_use]
pub fn check_password(object: &CloudDatabase, password: &str) -> Option<FieldError> {
    let max = object.spec.engine.max_password_length();
    let printable = password
        .chars()
        .all(|c| matches!(c, '!'..='~') && !matches!(c, '/' | '"' | '@'));
    let fits = (8..=max).contains(&password.chars().count());
    (!printable || !fits).then(|| {
        let detail = format!(
            "the password in the Secret must have 8 to {max} printable ASCII characters without '/', '\"', '@' and spaces; change the Secret"
        );
        FieldError::invalid_hidden(FieldPath::new("spec.credentials.selectors.password"), detail)
    })
}

fn engine_version_only_rises(
    context: &RuleContext<'_, CloudDatabase>,
    diagnostics: &mut Diagnostics,
) {
    let status = context.object.status.as_ref();
    let running = status.and_then(|status| status.engine_version.as_deref());
    if let (Some(running), Some(new)) = (running, context.object.spec.engine_version.as_deref()) {
        // A version that the instance never ran, because RDS has rejected it or it waits, can be taken back.
        if context.old.is_some() && compare_versions(new, running) == Ordering::Less {
            let detail = format!(
                "must not be lower than '{running}', which the instance runs: RDS cannot downgrade it"
            );
            diagnostics.invalid("spec.engineVersion", new, detail);
        }
        return;
    }
    let same_engine = |old: &&CloudDatabase| old.spec.engine == context.object.spec.engine;
    let old = context
        .old
        .filter(same_engine)
        .and_then(|old| old.spec.engine_version.as_deref());
    if let (Some(old), Some(new)) = (old, context.object.spec.engine_version.as_deref())
        && compare_versions(new, old) == Ordering::Less
    {
        let detail = format!("must not be lower than '{old}': RDS cannot downgrade an instance");
        diagnostics.invalid("spec.engineVersion", new, detail);
    }
}

fn backup_window_length(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let window = context.object.spec.backup.window.as_deref();
    window_length(window, Window::daily, "spec.backup.window", diagnostics);
}

fn maintenance_window_length(
    context: &RuleContext<'_, CloudDatabase>,
    diagnostics: &mut Diagnostics,
) {
    let window = context.object.spec.maintenance_window.as_deref();
    window_length(
        window,
        Window::weekly,
        "spec.maintenanceWindow",
        diagnostics,
    );
}

fn window_length(
    text: Option<&str>,
    read: fn(&str) -> Option<Window>,
    path: &str,
    diagnostics: &mut Diagnostics,
) {
    if let Some(text) = text
        && read(text).is_some_and(|window| window.minutes < SHORTEST_WINDOW)
    {
        let detail = format!("must last at least {SHORTEST_WINDOW} minutes");
        diagnostics.invalid(path, text, detail);
    }
}

fn windows_disjoint(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let spec = &context.object.spec;
    let (Some(backup), Some(maintenance)) = (&spec.backup.window, &spec.maintenance_window) else {
        return;
    };
    let (Some(daily), Some(weekly)) = (Window::daily(backup), Window::weekly(maintenance)) else {
        return;
    };
    if Window::daily_overlaps_weekly(daily, weekly) {
        let detail = format!("must not overlap the backup window '{backup}'; move one of them");
        diagnostics.invalid("spec.maintenanceWindow", maintenance.as_str(), detail);
    }
}

fn autoscaling_headroom(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    let storage = &context.object.spec.storage;
    if let Some(max) = storage.max_size_gib
        && i64::from(max) * 100 < i64::from(storage.size_gib) * 126
    {
        let detail = "is less than 26 % above `sizeGib`: RDS may run out of storage before it can increase it";
        diagnostics.invalid("spec.storage.maxSizeGib", max, detail);
    }
}

fn publicly_accessible(context: &RuleContext<'_, CloudDatabase>, diagnostics: &mut Diagnostics) {
    if context.object.spec.network.publicly_accessible {
        let detail = "gives the instance a public IP address: any client that its security groups allow can connect; \
            set it to false unless clients outside the VPC need it";
        diagnostics.invalid("spec.network.publiclyAccessible", true, detail);
    }
}

fn encryption_not_supported(
    context: &RuleContext<'_, CloudDatabase>,
    diagnostics: &mut Diagnostics,
) {
    // An instance that was created without encryption stays unencrypted, also if a later release has another default.
    let status = context.object.status.as_ref();
    let exists = status.is_some_and(|status| status.endpoint.is_some() || status.arn.is_some());
    if exists && status.and_then(|status| status.storage_encrypted) != Some(true) {
        return;
    }
    let spec = &context.object.spec;
    let class = spec.instance_class.as_str();
    let is_without = |prefix: &&str| class.starts_with(prefix);
    if spec.encryption.enabled && CLASSES_WITHOUT_ENCRYPTION.iter().any(is_without) {
        let detail = "does not support encryption; choose a newer class, such as 'db.t4g.micro', \
            or set `encryption.enabled` to false when the instance is created";
        diagnostics.invalid("spec.instanceClass", class, detail);
    }
}
