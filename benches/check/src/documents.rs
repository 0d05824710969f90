//! Generated `CloudDatabase` documents: valid ones of every size, and ones with a planted error.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// YAML document.
pub(crate) struct Document {
    pub(crate) text: String,
    /// Layer of the planted error, if any.
    pub(crate) planted: Option<Planted>,
}

/// Layer that a planted error violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planted {
    /// The schema, which every validator checks.
    Schema,
    /// A CEL rule of the CRD.
    Cel,
    /// A rule that neither schema nor CEL can express.
    Rust,
}

/// Percentage of invalid documents.
const INVALID_PERCENT: u8 = 30;

/// The schema allows 40, and a planted error may add one.
const MANY_TAGS: usize = 39;

/// Generates documents. The same seed gives the same documents.
pub(crate) fn generate(count: usize, seed: u64) -> anyhow::Result<Vec<Document>> {
    let mut rng = Rng::with_seed(seed);
    let documents = (0..count).map(|index| {
        let mut object = valid(&mut rng, index);
        let planted = (rng.u8(..100) < INVALID_PERCENT).then(|| plant(&mut object, &mut rng));
        let text = serde_saphyr::to_string(&object)?;
        Ok(Document { text, planted })
    });
    documents.collect()
}

/// Returns a valid object. The number of its fields determines its size.
fn valid(rng: &mut Rng, index: usize) -> Value {
    let engine = one(rng, &["postgres", "mysql", "mariadb"]);
    let mut spec = json!({
        "engine": engine,
        "instanceClass": format!(
            "db.{}.{}",
            one(rng, &["t4g", "m7g", "r7g", "x2g"]),
            one(rng, &["micro", "large", "xlarge", "4xlarge"])
        ),
        "storage": storage(rng),
        "credentials": {"secretName": format!("{}-credentials", label(rng))},
    });
    if rng.bool() {
        spec["engineVersion"] = match engine {
            "postgres" => one(rng, &["16", "17", "16.9", "15.10"]),
            "mysql" => one(rng, &["8.0", "8.4", "8.0.36"]),
            _ => one(rng, &["10.11", "11.4", "10.6.19"]),
        }
        .into();
    }
    if rng.bool() {
        spec["databaseName"] = format!("shop_{}", rng.u16(..)).into();
    }
    if rng.bool() {
        spec["credentials"]["username"] = format!("owner_{}", rng.u8(..)).into();
    }
    if rng.u8(..4) == 0 {
        spec["credentials"]["selectors"] =
            json!({"username": "user.name", "password": "pass-word"});
    }
    if rng.bool() {
        spec["multiAz"] = rng.bool().into();
    }
    if rng.bool() {
        spec["backup"] = json!({"retentionDays": rng.u8(..=35), "window": "02:00-03:30"});
    }
    if rng.bool() {
        let day = one(rng, &["mon", "tue", "wed", "thu", "fri", "sat", "sun"]);
        spec["maintenanceWindow"] = format!("{day}:04:00-{day}:05:{}", rng.u8(10..60)).into();
    }
    if rng.bool() {
        spec["port"] = rng.u16(1150..).into();
    }
    if rng.bool() {
        spec["deletionProtection"] = rng.bool().into();
        spec["deletionPolicy"] = one(rng, &["Snapshot", "Retain", "Delete"]).into();
    }
    // Only a few documents have many tags. They are the largest.
    let most = *rng
        .choice(&[0, 0, 3, 6, MANY_TAGS])
        .expect("the choices are not empty");
    if most > 0 {
        let tags = (0..rng.usize(1..=most)).map(|n| {
            let length = rng.usize(4..=if most == MANY_TAGS { 200 } else { 24 });
            let value: String = (0..length).map(|_| rng.alphanumeric()).collect();
            (
                format!("example.com/{}-{n}", label(rng)),
                Value::from(value),
            )
        });
        spec["tags"] = Value::Object(tags.collect::<Map<_, _>>());
    }
    json!({
        "apiVersion": "database.example.com/v1alpha1",
        "kind": "CloudDatabase",
        "metadata": {
            "name": format!("database-{index}"),
            "namespace": label(rng),
            "labels": {"app.kubernetes.io/name": label(rng), "app.kubernetes.io/part-of": label(rng)},
        },
        "spec": spec,
    })
}

fn storage(rng: &mut Rng) -> Value {
    let kind = one(rng, &["gp2", "gp3", "io1", "io2"]);
    let size = rng.u32(400..4000);
    let mut storage = json!({"type": kind, "sizeGib": size});
    if kind.starts_with("io") || (kind == "gp3" && rng.bool()) {
        storage["iops"] = rng.u32(size.max(1000)..size * 25).into();
    }
    if kind == "gp3" && rng.bool() {
        storage["throughputMibps"] = rng.u32(125..=4000).into();
    }
    if rng.bool() {
        storage["maxSizeGib"] = (size * 2).into();
    }
    storage
}

/// Plants one error.
fn plant(object: &mut Value, rng: &mut Rng) -> Planted {
    let spec = &mut object["spec"];
    match rng.u8(..4) {
        0 => {
            match rng.u8(..4) {
                0 => {
                    let size = spec["storage"]["sizeGib"].as_u64().unwrap_or_default();
                    spec["storage"]["iops"] = (size * 60).into();
                }
                1 => spec["storage"] = json!({"type": "io2", "sizeGib": 200}),
                2 => spec["storage"]["maxSizeGib"] = spec["storage"]["sizeGib"].clone(),
                _ => spec["tags"]["aws:owner"] = "x".into(),
            }
            Planted::Cel
        }
        1 => {
            match rng.u8(..3) {
                0 => spec["credentials"]["username"] = "rdsadmin".into(),
                1 => spec["backup"]["window"] = "02:00-02:10".into(),
                _ => {
                    spec["backup"]["window"] = "02:00-03:30".into();
                    spec["maintenanceWindow"] = "sun:03:00-sun:04:00".into();
                }
            }
            Planted::Rust
        }
        _ => {
            match rng.u8(..7) {
                0 => spec["engine"] = "oracle".into(),
                1 => spec["port"] = 80.into(),
                2 => spec["storage"]["sizeGib"] = "100".into(),
                3 => spec["credentials"] = json!({"username": "owner"}),
                4 => spec["instanceClass"] = "t4g.micro".into(),
                5 => spec["multiAZ"] = true.into(),
                _ => spec["backup"] = json!({"retentionDays": 36}),
            }
            Planted::Schema
        }
    }
}

fn one(rng: &mut Rng, choices: &[&'static str]) -> &'static str {
    rng.choice(choices).copied().unwrap_or_default()
}

/// Returns a random DNS label.
fn label(rng: &mut Rng) -> String {
    let length = rng.usize(3..16);
    (0..length).map(|_| rng.lowercase()).collect()
}
