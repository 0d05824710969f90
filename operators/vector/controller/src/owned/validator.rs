//! Validator: a Pod that keeps running beside the Vector of a workload's image, and checks configurations within
//! milliseconds.
//!
//! It has everything on which the result of a check depends: image, environment, volumes and service account of the
//! [Pods that check one configuration](crate::owned::config_check). Vector runs in it only during a check.

use std::collections::BTreeMap;

use lockstep_vector_api::{ConfigCheck, Workload, WorkloadRole};
use lockstep_vector_assembly::fingerprint;
use lockstep_vector_validator::{CERTIFICATE, HEALTH, KEY, PORT, READY, TOKEN};
use serde_json::{Value, json};

use crate::owned::children::OwnedObjectsError;
use crate::owned::cluster::Cluster;
use crate::owned::fields::Fields;
use crate::owned::labels::{self, Component};
use crate::owned::owned_workload::{self, OwnedWorkload, object};
use crate::owned::publication::{Publication, Validator};
use crate::owned::{config_check, configuration_secret, container, image, pod, volumes};

/// Label of the Pods with a fingerprint of their template. A Pod of an earlier template would check configurations with
/// another image or environment.
const TEMPLATE: &str = "lockstep.dev/validator-template";

/// Number of characters of the fingerprint.
const TEMPLATE_CHARACTERS: usize = 16;

/// Name of the container.
const CONTAINER: &str = "validator";

/// Volume with the program, which an init container copies, and its path.
const PROGRAM: (&str, &str) = ("lockstep-program", "/lockstep/program");

/// Volume with the certificate, the key and the token, and its path.
const CREDENTIALS: (&str, &str) = ("lockstep-credentials", "/lockstep/credentials");

/// Volume of the configurations, and its path. It is in memory: configurations contain the values of Secrets.
const WORK: (&str, &str) = ("lockstep-work", "/lockstep/work");

/// Maximum size of the files of a configuration. That of a request is smaller.
const WORK_SIZE: &str = "32Mi";

/// Returns the name of the objects of the validator of a workload. `object_name` is that of the objects that run Vector.
pub(crate) fn name(object_name: &str) -> String {
    format!("{object_name}-validator")
}

/// Returns true if a child is part of a validator.
pub(crate) fn is_part(child: &Value) -> bool {
    child["metadata"]["labels"]["app.kubernetes.io/name"] == labels::VALIDATOR
}

/// Returns the labels of the Pods that can check the configurations of a workload.
pub(crate) fn pod_labels(
    role: WorkloadRole,
    name: &str,
    namespace: &str,
    settings: &Workload,
    cluster: &Cluster,
    validator: &Validator,
) -> BTreeMap<String, String> {
    let nothing = Publication::default();
    let workload = OwnedWorkload {
        role,
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        settings,
        publication: &nothing,
        cluster,
        check: None,
    };
    let mut labels = match_labels(&workload);
    let (_, fingerprint) = template(&workload, validator);
    labels.insert(TEMPLATE.to_owned(), fingerprint);
    labels
}

/// Returns the objects of the validator, if the workload has one.
pub(crate) fn desired(workload: &OwnedWorkload<'_>) -> Result<Vec<Value>, OwnedObjectsError> {
    let check = workload.settings.config_check.as_ref();
    let is_wanted = check.is_some_and(|check| check.is_warm());
    let validator = workload.publication.validator.as_ref();
    let Some(validator) = validator.filter(|it| is_wanted || it.is_for_schema) else {
        return Ok(Vec::new());
    };
    let match_labels = match_labels(workload);
    let name = name(&workload.object_name());
    let metadata = || workload.metadata_with_labels(&name, &match_labels);
    let values = [
        (CERTIFICATE, &validator.certificate),
        (KEY, &validator.key),
        (TOKEN, &validator.token),
    ];
    let values = values.map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec()));
    let mut secret =
        configuration_secret::secret(workload, name.clone(), &values.into(), "set warm to false")?;
    // Not those of the workload: its Pods do not mount this Secret.
    secret["metadata"]["labels"] = json!(match_labels);
    let (template, _) = template(workload, validator);
    let spec = json!({
        "replicas": 1,
        "selector": {"matchLabels": match_labels},
        "template": template,
    });
    let deployment = object("apps/v1", "Deployment", metadata()).with("spec", spec);
    let policy = object("networking.k8s.io/v1", "NetworkPolicy", metadata());
    let policy = policy.with("spec", network_policy(&match_labels, validator));
    Ok(vec![secret, policy.into(), deployment.into()])
}

/// Returns the labels that select the Pods.
fn match_labels(workload: &OwnedWorkload<'_>) -> BTreeMap<String, String> {
    labels::match_labels(&workload.name, Component::Validator(workload.role))
}

/// Lets only the controller in. What Vector does during a check may need the network, such as to get credentials from the
/// metadata server of a cloud: outgoing connections are those of a Pod that checks one configuration.
fn network_policy(match_labels: &BTreeMap<String, String>, validator: &Validator) -> Value {
    let from = validator.clients.as_ref().map(|clients| {
        json!([{
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": clients.namespace}},
            "podSelector": {"matchLabels": clients.labels},
        }])
    });
    let port = json!({"port": PORT, "protocol": "TCP"});
    let ingress = Fields::new().with("ports", vec![port]);
    let ingress = Value::from(ingress.with_some("from", from));
    json!({
        "podSelector": {"matchLabels": match_labels},
        "policyTypes": ["Ingress"],
        "ingress": [ingress],
    })
}

/// Returns the Pod template, and the fingerprint that it has as a label.
fn template(of_workload: &OwnedWorkload<'_>, validator: &Validator) -> (Value, String) {
    let mut settings = config_check::checking(of_workload.settings);
    let check = of_workload.settings.config_check.as_ref();
    if validator.is_for_schema && !check.is_some_and(ConfigCheck::is_warm) {
        // The image for checks may have another version.
        settings.image.clone_from(&of_workload.settings.image);
    }
    // A request has the files as they are.
    settings.compress_config_file = None;
    let nothing = Publication::default();
    let account = config_check::account_name(of_workload);
    let workload = OwnedWorkload {
        role: of_workload.role,
        name: of_workload.name.clone(),
        namespace: of_workload.namespace.clone(),
        settings: &settings,
        publication: &nothing,
        cluster: of_workload.cluster,
        check: None,
    };
    let secret = name(&of_workload.object_name());
    let spec = pod::scheduling(&settings, None)
        .with("serviceAccountName", account)
        .with("volumes", all_volumes(&workload, &secret))
        .with("initContainers", vec![copy_program(&workload, validator)])
        .with("containers", vec![server(&workload)]);
    let mut labels = labels::merge(match_labels(of_workload), &settings.labels);
    let spec = Value::from(spec);
    let mut fingerprint = fingerprint(&json!([spec, labels, settings.annotations]));
    fingerprint.truncate(TEMPLATE_CHARACTERS);
    labels.insert(TEMPLATE.to_owned(), fingerprint.clone());
    let metadata = Value::from(owned_workload::metadata(&labels, &settings.annotations));
    (json!({"metadata": metadata, "spec": spec}), fingerprint)
}

/// Returns the init container, with the image of this program.
fn copy_program(workload: &OwnedWorkload<'_>, validator: &Validator) -> Value {
    let (volume, path) = PROGRAM;
    Fields::new()
        .with("name", "copy-program")
        .with("image", validator.image.as_str())
        .with_some(
            "imagePullPolicy",
            image::pull_policy(workload.settings.image_pull_policy),
        )
        .with("args", vec!["vector", "copy-program", path])
        .with(
            "volumeMounts",
            vec![json!({"name": volume, "mountPath": path})],
        )
        .with(
            "resources",
            json!({"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "128Mi"}}),
        )
        .with(
            "securityContext",
            json!({
                "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": true,
            }),
        )
        .into()
}

/// Returns the container that runs this program and, for each check, Vector.
fn server(workload: &OwnedWorkload<'_>) -> Value {
    let (_, program) = PROGRAM;
    let command = [
        format!("{program}/loader"),
        // A dynamic loader knows no `--library-path=…`.
        "--library-path".to_owned(),
        format!("{program}/lib"),
        format!("{program}/lockstep"),
    ];
    let credentials = format!("--credentials={}", CREDENTIALS.1);
    let work = format!("--work-dir={}", WORK.1);
    let mut args = vec!["vector", "serve-validation", &credentials, &work, "--"];
    args.extend(config_check::ARGUMENTS);
    let mut mounts = volumes::mounts(workload);
    mounts.extend([
        json!({"name": PROGRAM.0, "mountPath": PROGRAM.1, "readOnly": true}),
        json!({"name": CREDENTIALS.0, "mountPath": CREDENTIALS.1, "readOnly": true}),
        json!({"name": WORK.0, "mountPath": WORK.1}),
    ]);
    let probe = |path: &str, period_seconds: u32| {
        json!({
            "httpGet": {"path": path, "port": PORT, "scheme": "HTTPS"},
            "periodSeconds": period_seconds, "timeoutSeconds": 5,
        })
    };
    container::with_command(workload, CONTAINER, &args)
        .with("command", command.to_vec())
        .with("volumeMounts", mounts)
        .with("resources", resources(workload.settings))
        .with(
            "ports",
            vec![json!({"name": "https", "containerPort": PORT, "protocol": "TCP"})],
        )
        .with("readinessProbe", probe(READY, 2))
        .with("livenessProbe", probe(HEALTH, 20))
        .into()
}

/// Returns the resources: those of the check, or few, since Vector runs only now and then. A process of Vector 0.57 that
/// validates uses up to 142 MB.
fn resources(settings: &Workload) -> Value {
    let of_check = settings.config_check.as_ref();
    let of_check = of_check.and_then(|check| check.resources.clone());
    of_check.map_or_else(
        || json!({"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "512Mi"}}),
        Value::Object,
    )
}

/// Returns the volumes of a Pod that checks one configuration, with a directory for configurations in place of it.
fn all_volumes(workload: &OwnedWorkload<'_>, secret: &str) -> Vec<Value> {
    let mut all = config_check::volumes(workload);
    for volume in &mut all {
        if volume["name"] == volumes::CONFIG {
            *volume = json!({"name": volumes::CONFIG, "emptyDir": {}});
        }
    }
    all.extend([
        json!({"name": PROGRAM.0, "emptyDir": {}}),
        json!({"name": CREDENTIALS.0, "secret": {"secretName": secret}}),
        json!({"name": WORK.0, "emptyDir": {"medium": "Memory", "sizeLimit": WORK_SIZE}}),
    ]);
    all
}
