use super::*;
use crate::assembly::render_all;
use crate::pipeline::RunnablePipeline;
use crate::precedence::PublishedParts;
use lockstep_vector_api::{InProcessCompiler, VectorVersion, WorkloadRole};

fn agent() -> AssemblyOptions {
    AssemblyOptions::new(WorkloadRole::Agent)
}

fn pipeline(namespace: &str, program: &str, sink: &Value) -> RunnablePipeline {
    RunnablePipeline {
        namespace: Some(namespace.to_owned()),
        name: "p".to_owned(),
        spec: json!({
            "sources": {"in": {"type": "kubernetes_logs"}},
            "transforms": {"t": {"type": "remap", "inputs": ["in"], "source": program}},
            "sinks": {"out": sink},
        }),
        ..RunnablePipeline::default()
    }
}

fn valid(namespace: &str) -> RunnablePipeline {
    let sink = json!({"type": "blackhole", "inputs": ["t"]});
    pipeline(namespace, ".a = 1", &sink)
}

fn check(
    compiler: fn() -> Box<dyn Compiler>,
    unmeasured: Option<VectorVersion>,
    passed: &mut BTreeSet<String>,
    options: &AssemblyOptions,
    pipelines: &[RunnablePipeline],
) -> Result<Assembly, StartError> {
    let mut check = StartCheck {
        environment: &VrlEnvironment::shared(compiler),
        interpolation: Interpolation::Off,
        unmeasured,
        extent: Extent::Everything,
        requires_all: true,
        present: PresentState::none(),
        passed,
    };
    let checked = check.assemble(options, render_all(options, pipelines, &[]));
    checked.map(|it| it.assembly)
}

fn checked(options: &AssemblyOptions, pipelines: &[RunnablePipeline]) -> Assembly {
    let passed = &mut BTreeSet::new();
    check(InProcessCompiler::boxed, None, passed, options, pipelines).expect("a configuration")
}

fn names(assembly: &Assembly) -> Vec<String> {
    let names = assembly.parts.iter().map(|part| part.pipeline.to_string());
    names.collect()
}

#[test]
fn pipelines_with_which_vector_does_not_start_are_left_out() {
    let file =
        json!({"type": "file", "inputs": ["t"], "path": "{{ a }}", "encoding": {"codec": "json"}});
    let unknown = json!({"type": "blackhole", "inputs": ["t"], "rates": 1});
    let loki = json!({
        "type": "loki", "inputs": ["t"], "endpoint": "example:3100", "labels": {"a": "b"},
        "encoding": {"codec": "json"},
    });
    let sink = json!({"type": "blackhole", "inputs": ["t"]});
    let pipelines = [
        pipeline("confinement", ".a = 1", &file),
        pipeline("options", ".a = 1", &unknown),
        pipeline("program", ".a = to_int(.b)", &sink),
        pipeline("start", ".a = 1", &loki),
        valid("valid"),
    ];
    let found = checked(&agent(), &pipelines);
    assert_eq!(names(&found), ["valid/p"]);
    let messages = found.problems.iter().map(|it| it.message.as_str());
    let messages: Vec<_> = messages.collect();
    for (message, part) in messages.iter().zip([
        "spec.sinks[out].path",
        "spec.sinks[out].rates",
        "spec.transforms[t].source",
        "spec.sinks[out].endpoint",
    ]) {
        assert!(message.starts_with(part), "{message}");
    }
    assert_eq!(messages.len(), 4);
}

#[test]
fn a_workload_without_pipelines_starts() {
    let found = checked(&agent(), &[]);
    assert_eq!(
        found.config["sources"]["defaultSource"]["type"],
        "kubernetes_logs"
    );
    assert_eq!(found.problems, []);
}

/// The endpoint is a rule of all versions, and the beginning of a template one of 0.57.
#[test]
fn rules_of_other_versions_do_not_count() {
    let sink = |endpoint: &str| {
        json!({
            "type": "loki", "inputs": ["t"], "endpoint": endpoint, "labels": {"a": "{{ x }}"},
            "encoding": {"codec": "json"},
        })
    };
    let pipelines = [
        pipeline("a", ".a = 1", &sink("http://example:3100")),
        pipeline("b", ".a = 1", &sink("example:3100")),
    ];
    let found = |version: &str| {
        let (passed, version) = (&mut BTreeSet::new(), VectorVersion::parse(version));
        let compiler = InProcessCompiler::boxed;
        let found = check(compiler, version, passed, &agent(), &pipelines);
        names(&found.expect("a configuration"))
    };
    assert_eq!(found("0.57"), [""; 0]);
    assert_eq!(found("0.48"), ["a/p"]);
    assert_eq!(found("0.39"), ["a/p", "b/p"]);
}

/// Compiler that is out of resources.
struct BusyCompiler;

impl Compiler for BusyCompiler {
    fn compile(&mut self, _: &Program<'_>) -> Result<Vec<VrlDiagnostic>, String> {
        Err("busy".to_owned())
    }
}

#[test]
fn a_part_that_passed_is_not_compiled_again() {
    let mut passed = BTreeSet::new();
    let busy: fn() -> Box<dyn Compiler> = || Box::new(BusyCompiler);
    let unclear = check(busy, None, &mut passed, &agent(), &[valid("a")]);
    let error = unclear.expect_err("it is busy").to_string();
    assert!(
        error.starts_with("a/p could not be checked: spec.transforms[t]"),
        "{error}"
    );
    let both = [valid("a"), valid("b")];
    let first = check(InProcessCompiler::boxed, None, &mut passed, &agent(), &both);
    let first = first.expect("a configuration");
    assert_eq!(passed.len(), 2);
    assert_eq!(check(busy, None, &mut passed, &agent(), &both), Ok(first));
    let one = check(busy, None, &mut passed, &agent(), &both[..1]);
    assert_eq!(names(&one.expect("a configuration")), ["a/p"]);
    assert_eq!(passed.len(), 1);
    let unclear = check(busy, None, &mut passed, &agent(), &[valid("a"), valid("c")]);
    assert!(matches!(unclear, Err(StartError::Unclear(_))));
    assert_eq!(passed.len(), 1);
    let changed = check(busy, None, &mut passed, &agent(), &[valid("c")]);
    assert!(matches!(changed, Err(StartError::Unclear(_))));
}

#[test]
fn more_pipelines_than_one_validation_allows_are_checked() {
    let pipelines: Vec<_> = (0..400).map(|index| valid(&format!("n{index}"))).collect();
    let found = checked(&agent(), &pipelines);
    assert_eq!(found.problems, []);
    assert_eq!(found.parts.len(), 400);
}

#[test]
fn of_parts_that_are_valid_alone_and_not_together_the_last_is_to_blame() {
    let part = |name: &str, port: u16| {
        let pipeline = RunnablePipeline {
            name: name.to_owned(),
            spec: json!({
                "sources": {"in": {"type": "vector", "address": format!("0.0.0.0:{port}")}},
                "sinks": {"out": {"type": "blackhole", "inputs": ["in"]}},
            }),
            ..RunnablePipeline::default()
        };
        crate::render(
            &AssemblyOptions::new(WorkloadRole::Aggregator),
            &pipeline,
            None,
        )
        .expect("a part")
    };
    let parts = [
        part("a", 1),
        part("b", 9000),
        part("c", 2),
        part("d", 3),
        part("e", 9000),
        part("f", 4),
    ];
    let check = StartCheck {
        environment: &VrlEnvironment::shared(InProcessCompiler::boxed),
        interpolation: Interpolation::Off,
        unmeasured: None,
        extent: Extent::Everything,
        requires_all: true,
        present: PresentState::none(),
        passed: &mut BTreeSet::new(),
    };
    let options = AssemblyOptions::new(WorkloadRole::Aggregator);
    let culprits = check.culprits_of(&options, &parts);
    assert_eq!(culprits.len(), 1, "{culprits:?}");
    assert_eq!(culprits[0].pipeline.name, "e");
    assert!(culprits[0].message.contains("already used"), "{culprits:?}");
    let others = [&parts[..4], &parts[5..]].concat();
    assert_eq!(check.culprits_of(&options, &others), []);
}

#[test]
fn merged_sources_compile_and_start() {
    let options = AssemblyOptions {
        merge_sources: true,
        ..agent()
    };
    for number in [2, 17, 40] {
        let pipelines: Vec<_> = (0..number).map(|it| valid(&format!("n{it}"))).collect();
        let found = checked(&options, &pipelines);
        assert_eq!(found.problems, []);
        let sources = found.config["sources"].as_object().expect("sources");
        assert_eq!(sources.len(), 1, "{sources:?}");
        let environment = VrlEnvironment::shared(InProcessCompiler::boxed);
        let problems = validate_config(
            &options.catalogue,
            &found.config,
            &BTreeSet::new(),
            &environment,
            ProgramScope::Start,
        );
        assert_eq!(problems, []);
    }
}

/// Returns a pipeline whose sink has the URI of a Secret.
fn with_secret(namespace: &str) -> RunnablePipeline {
    let sink = json!({
        "type": "http", "inputs": ["t"], "uri": "SECRET[s.u]", "encoding": {"codec": "json"},
    });
    let mut pipeline = pipeline(namespace, ".a = 1", &sink);
    pipeline.spec["secret"] = json!({"s": {"type": "kubernetes_secret", "name": "own"}});
    pipeline
}

fn checked_with(
    compiler: fn() -> Box<dyn Compiler>,
    extent: Extent,
    pipelines: &[RunnablePipeline],
    values: &SecretValues,
    published: &PublishedParts,
) -> Result<Checked, StartError> {
    let mut check = StartCheck {
        environment: &VrlEnvironment::shared(compiler),
        interpolation: Interpolation::Off,
        unmeasured: None,
        extent,
        requires_all: false,
        present: PresentState { values, published },
        passed: &mut BTreeSet::new(),
    };
    check.assemble(&agent(), render_all(&agent(), pipelines, &[]))
}

#[test]
fn values_of_secrets_are_part_of_what_starts() {
    let published = PublishedParts::default();
    let pipelines = [with_secret("a"), valid("b")];
    for extent in [Extent::Everything, Extent::SecretValues] {
        for (value, is_valid) in [
            ("http://example.com/", true),
            (":::not a uri", false),
            ("/secret/path", false),
            ("http://{{ x }}/", false),
        ] {
            let values = SecretValues::from([("a__p__s.u".to_owned(), value.into())]);
            let compiler = InProcessCompiler::boxed;
            let found = checked_with(compiler, extent, &pipelines, &values, &published);
            let found = found.expect("a configuration").assembly;
            if is_valid {
                assert_eq!(names(&found), ["a/p", "b/p"], "{value}");
                // What is published has the reference.
                assert!(found.config.to_string().contains("SECRET[k8s.a__p__s.u]"));
                continue;
            }
            assert_eq!(names(&found), ["b/p"], "{value}");
            let message = &found.problems[0].message;
            assert!(message.contains("spec.sinks[out].uri"), "{message}");
            assert!(message.contains("(`own`)"), "{message}");
            assert!(!message.contains(value), "{message}");
        }
    }
}

#[test]
fn values_of_secrets_do_not_hide_the_errors_of_a_pipeline() {
    let published = PublishedParts::default();
    let mut wrong = with_secret("a");
    wrong.spec["sinks"]["out"]["wrong"] = 1.into();
    let values = SecretValues::from([("a__p__s.u".to_owned(), b"http://x/".to_vec())]);
    let compiler = InProcessCompiler::boxed;
    let found = |extent| {
        let pipelines = std::slice::from_ref(&wrong);
        let found = checked_with(compiler, extent, pipelines, &values, &published);
        found.expect("a configuration").assembly
    };
    let everything = found(Extent::Everything);
    let message = &everything.problems[0].message;
    assert!(message.starts_with("spec.sinks[out].wrong"), "{message}");
    // Pods check all else.
    assert_eq!(names(&found(Extent::SecretValues)), ["a/p"]);
}

#[test]
fn a_part_that_cannot_be_checked_concerns_its_pipeline_only() {
    let busy: fn() -> Box<dyn Compiler> = || Box::new(BusyCompiler);
    let values = SecretValues::new();
    let running = checked(&agent(), &[valid("a")]).parts;
    let running = running.into_iter();
    let running = running.map(|part| (part.pipeline.clone(), part)).collect();
    let published = PublishedParts::new(&running, &values);
    let changed = |namespace| {
        pipeline(
            namespace,
            ".b = 1",
            &json!({"type": "blackhole", "inputs": ["t"]}),
        )
    };
    let found = |pipelines: &[RunnablePipeline]| {
        let found = checked_with(busy, Extent::Everything, pipelines, &values, &published);
        let Checked {
            assembly,
            is_incomplete,
        } = found.expect("a configuration");
        let problems = assembly.problems.iter();
        let problems: Vec<_> = problems.map(|it| it.pipeline.to_string()).collect();
        (names(&assembly), problems, is_incomplete)
    };
    let of = |names: &[&str]| names.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
    // It runs on, although the compiler is busy.
    assert_eq!(found(&[valid("a")]), (of(&["a/p"]), of(&["a/p"]), true));
    let both = [valid("a"), changed("b")];
    assert_eq!(found(&both), (of(&["a/p"]), of(&["a/p", "b/p"]), true));
    assert_eq!(found(&[changed("a")]), (of(&[]), of(&["a/p"]), true));
}

#[test]
fn what_only_pods_have_checked_is_checked_where_the_controller_does() {
    let options = agent();
    // Of all checks of the controller, only this one compiles programs.
    let sink = json!({"type": "blackhole", "inputs": ["t"]});
    let pipelines = [pipeline("a", ".a = to_int(.b)", &sink)];
    let mut passed = BTreeSet::new();
    let mut run = |extent| {
        let mut check = StartCheck {
            environment: &VrlEnvironment::shared(InProcessCompiler::boxed),
            interpolation: Interpolation::Off,
            unmeasured: None,
            extent,
            requires_all: false,
            present: PresentState::none(),
            passed: &mut passed,
        };
        let checked = check.assemble(&options, render_all(&options, &pipelines, &[]));
        names(&checked.expect("a configuration").assembly)
    };
    assert_eq!(run(Extent::SecretValues), ["a/p"]);
    assert_eq!(run(Extent::Everything), [""; 0]);
}

#[test]
fn a_uri_that_only_later_versions_refuse_drops_nothing_that_runs() {
    let uri = |value: &str| SecretValues::from([("a__p__s.u".to_owned(), value.into())]);
    let pipelines = [with_secret("a")];
    let running = render_all(&agent(), &pipelines, &[]).parts.into_iter();
    let running = running.map(|part| (part.pipeline.clone(), part)).collect();
    let found = |value: &str, published: &str| {
        let published = PublishedParts::new(&running, &uri(published));
        let (compiler, extent) = (InProcessCompiler::boxed, Extent::Everything);
        let found = checked_with(compiler, extent, &pipelines, &uri(value), &published);
        names(&found.expect("a configuration").assembly)
    };
    assert_eq!(found("/path", "/path"), ["a/p"]);
    assert_eq!(found("/path", "http://other/"), [""; 0]);
    assert_eq!(found("http://other/", "/path"), ["a/p"]);
}

#[test]
fn a_uri_without_a_reference_is_that_of_its_author() {
    // Vector replaces the variable.
    let mut pipeline = with_secret("a");
    pipeline.spec["sinks"]["out"]["uri"] = "http://${VECTOR_SELF_NODE_NAME}:8080/".into();
    pipeline.spec["sinks"]["out"]["auth"] = json!({"strategy": "bearer", "token": "SECRET[s.u]"});
    let values = SecretValues::from([("a__p__s.u".to_owned(), b"token".to_vec())]);
    let published = PublishedParts::default();
    let mut check = StartCheck {
        environment: &VrlEnvironment::shared(InProcessCompiler::boxed),
        interpolation: Interpolation::On,
        unmeasured: None,
        extent: Extent::Everything,
        requires_all: false,
        present: PresentState {
            values: &values,
            published: &published,
        },
        passed: &mut BTreeSet::new(),
    };
    let checked = check.assemble(&agent(), render_all(&agent(), &[pipeline], &[]));
    let checked = checked.expect("a configuration").assembly;
    assert_eq!(checked.problems, []);
    assert_eq!(names(&checked), ["a/p"]);
}
