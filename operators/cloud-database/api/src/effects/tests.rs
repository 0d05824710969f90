use serde_json::json;

use super::*;

fn spec(changes: &Value) -> CloudDatabaseSpec {
    let mut spec = json!({
        "engine": "postgres",
        "engineVersion": "16.4",
        "instanceClass": "db.m7g.large",
        "storage": {"sizeGib": 100},
        "credentials": {"username": "app", "secretName": "orders-db"},
        "port": 5432,
    });
    let changes = changes.as_object().expect("fields");
    for (field, value) in changes {
        spec[field] = value.clone();
    }
    serde_json::from_value(spec).expect("a spec")
}

/// Returns the changed fields, with the words for their effects.
fn words(old: &Value, new: &Value) -> Vec<String> {
    let effects = effects(&spec(old), &spec(new));
    let words = effects
        .iter()
        .map(|it| format!("{}: {}", it.field, it.words()));
    words.collect()
}

#[test]
fn a_change_of_the_class_restarts_the_database_or_fails_over() {
    let change = |extra: &Value| {
        let mut new = extra.clone();
        new["instanceClass"] = json!("db.m7g.xlarge");
        words(extra, &new)
    };
    assert_eq!(
        change(&json!({})),
        ["instanceClass: now, with a restart of the database"]
    );
    assert_eq!(
        change(&json!({"multiAz": true, "applyChanges": "MaintenanceWindow"})),
        ["instanceClass: in the maintenance window, with a failover to the standby"]
    );
}

#[test]
fn storage_and_a_standby_are_added_without_an_outage() {
    let new = json!({
        "multiAz": true,
        "storage": {"sizeGib": 500, "type": "io1", "iops": 5000},
    });
    let expected = [
        "storage.type: now, without an outage",
        "storage.sizeGib: now, without an outage",
        "storage.iops: now, without an outage",
        "multiAz: now, without an outage",
    ];
    assert_eq!(words(&json!({}), &new), expected);
}

#[test]
fn the_port_is_changed_at_once_or_not_at_all() {
    let now = words(&json!({}), &json!({"port": 5433}));
    assert_eq!(now, ["port: now, with a restart of the database"]);
    let new = json!({"port": 5433, "applyChanges": "MaintenanceWindow"});
    let effects = effects(&spec(&json!({})), &spec(&new));
    assert_eq!(effects[0].effect, Effect::NotRequested);
}

#[test]
fn backups_interrupt_clients_only_if_they_become_enabled_or_disabled() {
    let days = |days: i32| json!({"backup": {"retentionDays": days}});
    let brief = "backup.retentionDays: now, with a brief outage";
    assert_eq!(words(&days(7), &days(0)), [brief]);
    assert_eq!(words(&days(0), &days(7)), [brief]);
    assert_eq!(
        words(&days(3), &days(7)),
        ["backup.retentionDays: now, without an outage"]
    );
    assert!(words(&days(3), &json!({})).is_empty(), "left alone");
}

#[test]
fn an_upgrade_to_another_major_version_needs_consent() {
    let effect = |old: &Value, new: &Value| {
        let effects = effects(&spec(old), &spec(new));
        let all = effects.iter().map(|it| (it.field, it.effect));
        all.collect::<Vec<_>>()
    };
    let version = json!({"engineVersion": "17"});
    let allowed = json!({"engineVersion": "17", "allowMajorVersionUpgrade": "17"});
    let other = json!({"engineVersion": "17", "allowMajorVersionUpgrade": "18"});
    let not_requested = [("engineVersion", Effect::NotRequested)];
    assert_eq!(effect(&json!({}), &version), not_requested);
    assert_eq!(effect(&json!({}), &other)[0], not_requested[0]);
    let both = [
        ("engineVersion", Effect::Restart),
        ("allowMajorVersionUpgrade", Effect::Restart),
    ];
    assert_eq!(effect(&json!({}), &allowed), both);
    assert_eq!(effect(&version, &allowed), both[1..]);
    let minor = json!({"engineVersion": "16.10"});
    assert_eq!(effect(&json!({}), &minor), both[..1]);
    let lower = json!({"engineVersion": "15"});
    assert_eq!(
        effect(&json!({}), &lower),
        [("engineVersion", Effect::Denied)]
    );
}

#[test]
fn automatic_upgrades_interrupt_clients_once_a_newer_version_is_there() {
    let enabled =
        |enabled: bool| json!({"engineVersion": "16", "autoMinorVersionUpgrade": enabled});
    assert_eq!(
        words(&enabled(false), &enabled(true)),
        [
            "autoMinorVersionUpgrade: now, with a possible outage (in the maintenance window, if RDS has enabled automatic upgrades to a newer minor version)"
        ]
    );
    assert_eq!(
        words(&enabled(true), &enabled(false)),
        ["autoMinorVersionUpgrade: now, without an outage"]
    );
}

#[test]
fn a_maintenance_window_that_begins_now_applies_what_waits() {
    let window = |window: &str| json!({"maintenanceWindow": window});
    assert_eq!(
        words(
            &window("sun:05:00-sun:06:00"),
            &window("mon:05:00-mon:06:00")
        ),
        [
            "maintenanceWindow: now, with a possible outage (if it includes the current time and a pending action restarts the database)"
        ]
    );
}

#[test]
fn a_parameter_group_waits_for_a_restart() {
    assert_eq!(
        words(&json!({}), &json!({"parameterGroup": "tuned"})),
        ["parameterGroup: at the next restart of the database, which is not requested"]
    );
    let with_class = json!({"parameterGroup": "tuned", "instanceClass": "db.m7g.xlarge"});
    assert_eq!(
        words(&json!({}), &with_class)[0],
        "parameterGroup: now, with a restart of the database (that of the new version or class)"
    );
}

#[test]
fn options_can_restart_mysql_and_certificates_any_engine() {
    let new = |engine: &str| json!({"engine": engine, "engineVersion": "8.4", "optionGroup": "audited", "caCertificate": "rds-ca-rsa4096-g1"});
    let old = |engine: &str| json!({"engine": engine, "engineVersion": "8.4"});
    let effects = |engine: &str| {
        let effects = effects(&spec(&old(engine)), &spec(&new(engine)));
        effects.iter().map(|it| it.effect).collect::<Vec<_>>()
    };
    assert_eq!(effects("mysql"), [Effect::PossibleOutage; 2]);
    assert_eq!(effects("postgres")[0], Effect::Online);
}

#[test]
fn the_table_has_each_field_once_and_no_field_of_the_schema_is_missing() {
    let mut fields: Vec<_> = SETTINGS.iter().map(|it| it.field).collect();
    fields.extend(WITHOUT_EFFECT);
    let number = fields.len();
    fields.sort_unstable();
    fields.dedup();
    assert_eq!(fields.len(), number, "a field is there twice");
    let crd = crate::crd::crd();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let mut leaves = Vec::new();
    collect(schema, "", &mut leaves);
    assert!(leaves.len() > 40, "{leaves:?}");
    for leaf in leaves {
        let is_in = |field: &&&str| leaf == **field || leaf.starts_with(&format!("{field}."));
        assert!(
            fields.iter().find(is_in).is_some(),
            "spec.{leaf} is neither in SETTINGS nor in WITHOUT_EFFECT"
        );
    }
}

/// Returns the row of a field in the documentation.
fn row(setting: &Setting) -> String {
    let words = |effect: Effect, timing: Timing, reason: &str| {
        let when = match (effect, timing) {
            (_, Timing::NextRestart) => return "at the next restart".to_owned(),
            (Effect::NotRequested | Effect::Denied, _) => "",
            (_, Timing::Now) => "now, ",
            (_, Timing::AsApplyChanges) => "as `applyChanges` says, ",
        };
        let reason = match reason {
            "" => String::new(),
            reason => format!(" ({reason})"),
        };
        format!("{when}{}{reason}", effect.words())
    };
    let exceptions = setting.exceptions.iter().map(|it| {
        let words = words(it.effect, it.timing, it.reason);
        format!("; if {}: {words}", it.circumstance.words())
    });
    let exceptions: String = exceptions.collect();
    let effect = words(setting.effect, setting.timing, setting.reason);
    format!(
        "| `{}` | `{}` | {effect}{exceptions} |\n",
        setting.field, setting.parameter
    )
}

#[test]
fn the_documentation_has_the_table() {
    const BEGIN: &str = "<!-- effects: generated -->\n";
    const END: &str = "<!-- end of effects -->";
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/cloud-database.md"
    );
    let page = std::fs::read_to_string(path).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("the beginning of the table");
    let (table, after) = rest.split_once(END).expect("the end of the table");
    let rows: String = SETTINGS.iter().map(row).collect();
    let expected =
        format!("| field | parameter of RDS | a change is applied |\n|---|---|---|\n{rows}");
    if std::env::var_os("LOCKSTEP_UPDATE").is_some() {
        let page = format!("{before}{BEGIN}{expected}{END}{after}");
        std::fs::write(path, page).expect("the page is written");
        return;
    }
    assert!(table == expected, "write the table with LOCKSTEP_UPDATE=1");
}

/// Collects the paths of the fields of a schema that have no fields of their own.
fn collect(schema: &Value, path: &str, leaves: &mut Vec<String>) {
    let Some(properties) = schema["properties"].as_object() else {
        leaves.push(path.to_owned());
        return;
    };
    for (name, schema) in properties {
        let dot = if path.is_empty() { "" } else { "." };
        collect(schema, &format!("{path}{dot}{name}"), leaves);
    }
}
