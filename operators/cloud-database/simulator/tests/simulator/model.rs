//! The committed models are those of the botocore that the tests install with moto. `LOCKSTEP_UPDATE=1` writes them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use lockstep_envtest::install_moto;
use rds_simulator::{Kind, Model, Operation, Shape};
use serde_json::Value;

/// Operations of RDS that the simulator answers.
const RDS: &[&str] = &[
    "AddTagsToResource",
    "CreateDBInstance",
    "CreateDBInstanceReadReplica",
    "CreateDBSnapshot",
    "DeleteDBInstance",
    "DeleteDBSnapshot",
    "DescribeCertificates",
    "DescribeDBEngineVersions",
    "DescribeDBInstanceAutomatedBackups",
    "DescribeDBInstances",
    "DescribeDBSnapshots",
    "DescribeEvents",
    "DescribeOrderableDBInstanceOptions",
    "DescribePendingMaintenanceActions",
    "ListTagsForResource",
    "ModifyDBInstance",
    "PromoteReadReplica",
    "RebootDBInstance",
    "RemoveTagsFromResource",
    "RestoreDBInstanceFromDBSnapshot",
    "RestoreDBInstanceToPointInTime",
    "StartDBInstance",
    "StopDBInstance",
];

/// Returns the folder of botocore in the virtual environment of moto.
pub(crate) fn botocore() -> PathBuf {
    let server = install_moto().expect("moto");
    let environment = server.parent().and_then(Path::parent);
    let library = environment.expect("a virtual environment").join("lib");
    let python = fs::read_dir(library).expect("Python").next();
    let python = python.expect("Python").expect("a folder").path();
    python.join("site-packages/botocore")
}

/// Returns the version that botocore has.
fn version(botocore: &Path) -> String {
    let source = fs::read_to_string(botocore.join("__init__.py")).expect("botocore");
    let (_, rest) = source.split_once("__version__ = '").expect("a version");
    rest.split('\'').next().expect("a version").to_owned()
}

/// Returns the service model in a folder of botocore.
pub(crate) fn service(botocore: &Path, folder: &str) -> Value {
    let path = botocore.join("data").join(folder).join("service-2.json.gz");
    let mut text = String::new();
    GzDecoder::new(File::open(path).expect("a model"))
        .read_to_string(&mut text)
        .expect("a compressed file");
    serde_json::from_str(&text).expect("JSON")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

/// Reads a shape. The members of structures must have no other names on the wire, because the simulator knows none.
fn shape(service: &Value, name: &str) -> Shape {
    let shape = &service["shapes"][name];
    let members = shape["members"].as_object().into_iter().flatten();
    let members = members.map(|(member, reference)| {
        assert!(reference["locationName"].is_null(), "{name}.{member}");
        (member.clone(), text(&reference["shape"]))
    });
    Shape {
        kind: serde_json::from_value(shape["type"].clone()).expect("a known kind"),
        members: members.collect(),
        required: texts(&shape["required"]),
        element: text(&shape["member"]["shape"]),
        element_name: text(&shape["member"]["locationName"]),
        values: texts(&shape["enum"]),
        sensitive: shape["sensitive"] == true,
    }
}

/// Extracts the model of some operations.
fn extract(service: &Value, operations: &[&str], source: String) -> Model {
    let mut model = Model {
        source,
        api_version: text(&service["metadata"]["apiVersion"]),
        namespace: text(&service["metadata"]["xmlNamespace"]),
        operations: Default::default(),
        errors: Default::default(),
        shapes: Default::default(),
    };
    let mut needed = BTreeSet::new();
    for name in operations {
        let operation = &service["operations"][name];
        let mut errors = Vec::new();
        for error in operation["errors"].as_array().into_iter().flatten() {
            let error = &service["shapes"][text(&error["shape"])]["error"];
            let status = error["httpStatusCode"].as_u64().expect("a status");
            let status = status.try_into().expect("a status");
            model.errors.insert(text(&error["code"]), status);
            errors.push(text(&error["code"]));
        }
        errors.sort();
        let input = text(&operation["input"]["shape"]);
        let output = operation["output"]["shape"].as_str().map(String::from);
        needed.insert(input.clone());
        needed.extend(output.clone());
        let operation = Operation {
            input,
            output,
            errors,
        };
        model.operations.insert((*name).to_owned(), operation);
    }
    while let Some(name) = needed.pop_first() {
        let shape = shape(service, &name);
        let inner = shape.members.values().chain([&shape.element]).cloned();
        let shapes = &model.shapes;
        needed.extend(inner.filter(|name| !name.is_empty() && !shapes.contains_key(name)));
        model.shapes.insert(name, shape);
    }
    model
}

/// Prints a model with a line for each operation and shape.
fn print(model: &Model) -> String {
    let value = serde_json::to_value(model).expect("JSON");
    let fields = value.as_object().expect("an object").iter();
    let fields = fields.map(|(name, value)| match value {
        Value::Object(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(name, entry)| format!("{name:?}:{entry}"));
            let entries: Vec<_> = entries.collect();
            format!("{name:?}:{{\n{}\n}}", entries.join(",\n"))
        }
        value => format!("{name:?}:{value}"),
    });
    let fields: Vec<_> = fields.collect();
    format!("{{\n{}\n}}\n", fields.join(",\n"))
}

fn is_current(file: &str, service: &Value, operations: &[&str], version: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("model")
        .join(file);
    let source = format!("botocore {version}");
    let printed = print(&extract(service, operations, source));
    if std::env::var_os("LOCKSTEP_UPDATE").is_some() {
        fs::write(&path, printed).expect("the file is written");
        return;
    }
    let committed = fs::read_to_string(&path).expect("the file");
    let first = committed.lines().zip(printed.lines()).find(|(a, b)| a != b);
    assert!(
        committed == printed,
        "{file} is not the model of {version}; write it with LOCKSTEP_UPDATE=1: {first:?}"
    );
}

#[test]
fn the_models_are_those_of_the_installed_botocore() {
    let botocore = botocore();
    let version = version(&botocore);
    is_current(
        "rds.json",
        &service(&botocore, "rds/2014-10-31"),
        RDS,
        &version,
    );
    let sts = service(&botocore, "sts/2011-06-15");
    is_current(
        "sts.json",
        &sts,
        &["AssumeRole", "GetCallerIdentity"],
        &version,
    );
}

#[test]
fn every_operation_of_the_models_has_parameters_that_are_a_structure() {
    for model in [Model::rds(), Model::sts()] {
        for (name, operation) in &model.operations {
            let input = model.shape(&operation.input);
            assert_eq!(input.kind, Kind::Structure, "{name}");
        }
    }
}
