//! Repository of an operator that is a reconciler.

use std::fs;

use crate::workspace::Workspace;

const NAME: &str = "zone-operator";

/// Builds the program with the features that its libraries have in tests.
const BUILD: &str = "cargo build --workspace --bin zone-operator --test zone_record";

const TEST: &str =
    "cargo test --workspace --bin zone-operator --test cases --test zone_record --test label";

#[test]
fn a_repository_with_a_reconciler_builds_passes_its_tests_and_runs() {
    let workspace = Workspace::lock();
    let run = |command: &str| {
        let output = workspace.shell(NAME, command);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "`{command}`: {printed}");
        printed
    };
    let lockstep = |arguments: &str| {
        let program = env!("CARGO_BIN_EXE_lockstep");
        run(&format!("{program} {arguments}"))
    };
    let kind = ["--kind", "ZoneRecord", "--group", "dns.example.com"];
    workspace.create(NAME, &[&kind[..], &["--reconciler"]].concat());
    lockstep("add kind Label --group dns.example.com");

    for layer in ["schema", "cel", "rust"] {
        lockstep(&format!(
            "add rule new-{layer} --kind ZoneRecord --layer {layer}"
        ));
    }
    has_own_fields(&workspace);
    for (name, layer, field) in [
        ("nested-rust", "rust", "spec.web_link.type"),
        ("nested-cel", "cel", "spec.webLink.label-text"),
        ("flattened-schema", "schema", "ShortNote"),
    ] {
        lockstep(&format!(
            "add rule {name} --kind Label --layer {layer} --field {field}"
        ));
    }
    lockstep("add case greeting --kind Label --set 'spec.text=Good day, {user}!'");
    lockstep(
        "add case note --kind Label --set spec.ShortNote=Hello --set spec.words.0.text=a --set spec.words.1.text=b",
    );
    lockstep(
        "add case text-too-long --kind ZoneRecord --invalid --rule spec.text/maxLength --field spec.text \
         --type FieldValueTooLong --set spec.text=$(printf '%0281d' 0 | tr 0 a)",
    );
    run("cargo fmt --check");

    let built = run(BUILD);
    assert!(!built.contains("warning"), "{built}");
    let tested = run(TEST);
    for test in [
        "every_case_gets_the_expected_result_everywhere",
        "the_operator_survives_chaos",
        "the_text_is_stored_in_a_config_map",
    ] {
        assert!(tested.contains(&format!("test {test} ... ok")), "{tested}");
    }
    has_a_chart(&workspace, run);
    let shown = run("../target/debug/zone-operator dev --once");
    for line in [
        "Started the zonerecords API",
        "admitted     examples/valid/zone-record.yaml",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
}

/// The author adds fields whose names in JSON are others than in Rust, and a case with them.
fn has_own_fields(workspace: &Workspace) {
    const FIELDS: &str = "    /// Link.
    #[serde(default)]
    pub web_link: Option<Link>,
    /// Words.
    #[serde(default)]
    pub words: Vec<Word>,
    /// Shared fields.
    #[serde(flatten)]
    pub shared: Shared,
";
    const STRUCTS: &str = "
/// Link.
#[derive(KubeSchema, Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = \"SCREAMING-KEBAB-CASE\")]
pub struct Link {
    /// Type of the link.
    pub r#type: String,
    /// Label.
    #[serde(default, rename = \"label-text\")]
    pub label: Option<String>,
}

/// Word.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Word {
    /// Text.
    pub text: String,
}

/// Shared fields.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = \"PascalCase\")]
pub struct Shared {
    /// Note.
    pub short_note: Option<String>,
}
";
    const CASE: &str = "object:
  apiVersion: dns.example.com/v1alpha1
  kind: Label
  metadata:
    name: link
  spec:
    text: Hello with a link
    webLink:
      TYPE: web
";
    let resource = workspace.path(NAME, "src/label/resource.rs");
    let text = fs::read_to_string(&resource).expect("the resource");
    let fields = format!("pub struct LabelSpec {{\n{FIELDS}");
    let changed = text.replace("pub struct LabelSpec {\n", &fields);
    assert_ne!(changed, text);
    fs::write(resource, changed + STRUCTS).expect("a file");
    fs::write(workspace.path(NAME, "tests/cases/label-link.yaml"), CASE).expect("a file");
}

/// The command creates a chart, and the files that the author has changed stay.
fn has_a_chart(workspace: &Workspace, run: impl Fn(&str) -> String) {
    let manifests = format!("../target/debug/{NAME} manifests --charts chart");
    run(&manifests);
    let chart = workspace.path(NAME, &format!("chart/{NAME}"));
    let values = chart.join("values.yaml");
    let text = fs::read_to_string(&values).expect("the values");
    let changed = text.replace("replicas: 2\n", "replicas: 3\n");
    assert_ne!(changed, text);
    fs::write(&values, &changed).expect("a file");
    run(&format!(
        "rm chart/{NAME}/templates/service.yaml && {manifests} && {manifests} --check"
    ));
    assert_eq!(fs::read_to_string(&values).expect("the values"), changed);

    let helm = |arguments: &[&str]| {
        let mut helm = lockstep_envtest::helm().expect("helm is built");
        let output = helm
            .args(arguments)
            .arg(&chart)
            .output()
            .expect("helm runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    helm(&["lint", "--strict"]);
    let rendered = helm(&["template", NAME, "--namespace", "zone-operator-system"]);
    for part in [
        "name: zonerecords.dns.example.com",
        "name: zone-operator-webhook",
        "name: zonerecords-api",
        "replicas: 3",
        "kind: Service",
        "/run/lockstep/tls",
    ] {
        assert!(rendered.contains(part), "{part}: {rendered}");
    }
}
