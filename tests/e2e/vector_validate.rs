//! The command line of `lockstep vector validate`, which replaces `vector validate --no-environment`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::check::text;

/// Exit code of Vector for a configuration that it rejects.
const REJECTED: Option<i32> = Some(78);

const VALID: &str = "sources: {in: {type: stdin}}\nsinks: {out: {type: blackhole, inputs: [in]}}\n";

/// Creates a folder with files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content).expect("a file");
    }
    folder
}

/// Runs the program in a folder, without the environment variables of Vector except these.
fn run(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .arg("vector")
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(variables.iter().copied())
        .output()
        .expect("the program runs")
}

fn validate(folder: &Path, arguments: &[&str]) -> Output {
    run(
        folder,
        &[&["validate", "--no-environment"], arguments].concat(),
        &[],
    )
}

#[test]
fn the_report_of_a_valid_configuration_is_that_of_vector() {
    let folder = folder(&[("vector.yaml", VALID)]);
    let output = validate(folder.path(), &["--skip-healthchecks", "vector.yaml"]);
    let expected = "√ Loaded [\"vector.yaml\"]\n√ Transforms configuration\n--------------------------\n                 Validated\n";
    assert_eq!(text(&output.stdout), expected);
    assert_eq!(output.status.code(), Some(0));
    let output = run(
        folder.path(),
        &["--color", "always", "validate", "vector.yaml"],
        &[],
    );
    assert!(
        text(&output.stdout).starts_with("\u{1b}[32m√\u{1b}[0m Loaded"),
        "{output:?}"
    );
    let never = ["validate", "--color=never", "vector.yaml"];
    let output = run(folder.path(), &never, &[("VECTOR_COLOR", "always")]);
    assert_eq!(text(&output.stdout), expected);
    let output = validate(folder.path(), &["--start", "vector.yaml"]);
    assert!(
        text(&output.stdout).contains("\n√ Component configuration\n"),
        "{output:?}"
    );
}

/// Exit codes of Vector 0.57: its command line is parsed by `clap`, which ends the process with 2.
#[test]
fn the_command_line_has_the_exit_codes_of_vector() {
    let folder = folder(&[("vector.yaml", VALID)]);
    let code = |arguments: &[&str], variables: &[(&str, &str)]| {
        run(folder.path(), arguments, variables).status.code()
    };
    for (arguments, expected) in [
        (&["validate", "--unknown", "vector.yaml"][..], Some(2)),
        (&["validate", "--config-yaml"], Some(2)),
        (
            &["--color", "sometimes", "validate", "vector.yaml"],
            Some(2),
        ),
        (
            &["--require-healthy", "maybe", "validate", "vector.yaml"],
            Some(2),
        ),
        (&["validate", "--help"], Some(0)),
        (&["validate", "missing.yaml"], REJECTED),
        (&["validate", "[.yaml"], REJECTED),
        (&["validate", "vector.yaml"], Some(0)),
        // Arguments of a Vector that runs, in front of the subcommand.
        (
            &["--require-healthy=false", "validate", "vector.yaml"],
            Some(0),
        ),
        (
            &[
                "-qq",
                "-v",
                "-w",
                "--threads",
                "2",
                "--log-format",
                "json",
                "validate",
                "vector.yaml",
            ],
            Some(0),
        ),
        (&["validate", "-q", "vector.yaml"], Some(2)),
    ] {
        assert_eq!(code(arguments, &[]), expected, "{arguments:?}");
    }
    let validate = ["validate", "vector.yaml"];
    let color = |color| code(&validate, &[("VECTOR_COLOR", color)]);
    assert_eq!((color("never"), color("sometimes")), (Some(0), Some(2)));
}

#[test]
fn errors_have_the_headings_of_vector_and_its_exit_code() {
    let folder = folder(&[
        (
            "load.yaml",
            "sources: {in: {type: stdin}}\nsinks: {out: {type: blackhole, inputs: [no]}}\n",
        ),
        ("syntax.yaml", "sources: ["),
        (
            "transform.yaml",
            "sources: {in: {type: stdin}}\ntransforms: {t: {type: remap, inputs: [in], source: '.a = to_int(.b)'}}\nsinks: {out: {type: blackhole, inputs: [t]}}\n",
        ),
        (
            "component.yaml",
            "sources: {in: {type: stdin}}\nsinks: {out: {type: blackhole, inputs: [in], buffer: {type: disk, max_size: 1}}}\n",
        ),
        (
            "ignored.yaml",
            "sources: {in: {type: demo_logs, format: json, nope: 1}}\nsinks: {out: {type: blackhole, inputs: [in]}}\n",
        ),
    ]);
    for (arguments, lines) in [
        (
            &["load.yaml"][..],
            &[
                "Failed to load [\"load.yaml\"]",
                "----------------------------",
                "x sinks[out].inputs[0]: Invalid value: \"no\": ",
            ][..],
        ),
        (
            &["syntax.yaml"],
            &[
                "Failed to load [\"syntax.yaml\"]",
                "x syntax.yaml: line 2, column 1: the YAML cannot be read: ",
            ],
        ),
        (
            &["transform.yaml"],
            &[
                "√ Loaded [\"transform.yaml\"]",
                "Transform errors",
                "x transforms[t].source: ",
            ],
        ),
        (
            &["--start", "component.yaml"],
            &[
                "√ Loaded [\"component.yaml\"]",
                "√ Transforms configuration",
                "Component errors",
                "x sinks[out].buffer.max_size: ",
            ],
        ),
    ] {
        let output = validate(folder.path(), arguments);
        let printed = text(&output.stdout);
        assert_eq!(output.status.code(), REJECTED, "{printed}");
        let mut rest = printed.lines();
        for line in lines {
            assert!(
                rest.any(|found| found.starts_with(line)),
                "no `{line}`: {printed}"
            );
        }
        assert!(!printed.contains("Validated"), "{printed}");
    }
    let output = validate(folder.path(), &["component.yaml"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // Vector ignores the option.
    let output = validate(folder.path(), &["--deny-warnings", "ignored.yaml"]);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(
        printed.contains("√ Loaded [\"ignored.yaml\"]\n")
            && printed.contains("\nAdvice\n------\n~ sources[in]"),
        "{printed}"
    );
}

#[test]
fn each_output_without_consumers_is_a_warning_that_can_be_denied() {
    let config = "
sources:
  in: {type: stdin}
  unused: {type: internal_logs}
  otlp: {type: opentelemetry, grpc: {address: '0.0.0.0:1'}, http: {address: '0.0.0.0:2'}}
transforms:
  routed: {type: route, inputs: [in, otlp.logs], route: {a: 'true', b: 'true'}}
  mapped: {type: remap, inputs: [routed.a], source: '.a = 1', reroute_dropped: true}
sinks:
  out: {type: blackhole, inputs: [mapped, 'otlp.tr*']}
";
    let folder = folder(&[("vector.yaml", config)]);
    let warned = |lines: &str, sign: &str| -> Vec<String> {
        let lines = lines.lines().filter(|line| line.starts_with(sign));
        let names = lines.map(|line| line.split('`').nth(1).unwrap_or_default().to_owned());
        names.collect()
    };
    let expected = [
        "mapped.dropped",
        "otlp.metrics",
        "routed._unmatched",
        "routed.b",
        "unused",
    ];
    let output = validate(folder.path(), &["vector.yaml"]);
    let printed = text(&output.stdout);
    assert!(
        printed.starts_with("Loaded with warnings [\"vector.yaml\"]\n"),
        "{printed}"
    );
    assert_eq!(warned(&printed, "~ "), expected, "{printed}");
    assert_eq!(output.status.code(), Some(0), "{printed}");
    let output = validate(folder.path(), &["-d", "vector.yaml"]);
    let printed = text(&output.stdout);
    assert!(
        printed.starts_with("Failed to load [\"vector.yaml\"]\n"),
        "{printed}"
    );
    assert_eq!(warned(&printed, "x "), expected, "{printed}");
    assert_eq!(output.status.code(), REJECTED, "{printed}");
}

#[test]
fn paths_are_lists_patterns_and_folders_in_the_order_of_vector() {
    let folder = folder(&[
        ("a.yaml", "sources: {in: {type: stdin}}\n"),
        (
            "b.conf",
            r#"{"sinks": {"out": {"type": "blackhole", "inputs": ["in"]}}}"#,
        ),
        ("more/c.toml", "data_dir = '/c'"),
        (
            "more/transforms/t.yaml",
            "{type: filter, inputs: [in], condition: .a == 1}\n",
        ),
        ("more/sinks/second.yaml", "{type: blackhole, inputs: [t]}\n"),
    ]);
    for (arguments, loaded) in [
        (
            &["a.yaml", "--config-json", "b.conf"][..],
            r#"["a.yaml", "b.conf"]"#,
        ),
        (
            &["?.yaml,a.yaml", "--config-json=*.conf"],
            r#"["a.yaml", "b.conf"]"#,
        ),
        (
            &["-C", "more", "--config-json=b.conf", "a.yaml"],
            r#"["a.yaml", "b.conf", "more"]"#,
        ),
        (
            &[
                "--config-json=b.conf",
                "--config-yaml=a.yaml,a.yaml",
                "--config-dir",
                "mo*",
            ],
            r#"["a.yaml", "b.conf", "more"]"#,
        ),
    ] {
        let output = validate(folder.path(), arguments);
        let printed = text(&output.stdout);
        assert!(
            printed.starts_with(&format!("√ Loaded {loaded}\n")),
            "{arguments:?}: {output:?}"
        );
        assert_eq!(output.status.code(), Some(0), "{printed}");
    }
    let output = validate(folder.path(), &["no/*.yaml"]);
    assert_eq!(output.status.code(), REJECTED);
    assert_eq!(
        text(&output.stderr),
        "lockstep: the configuration file no/*.yaml does not exist; check its path\n"
    );
    let output = validate(folder.path(), &[]);
    assert_eq!(output.status.code(), REJECTED);
    assert!(
        text(&output.stderr).contains("/etc/vector/vector.yaml"),
        "{output:?}"
    );
}

#[test]
fn paths_and_variables_come_from_the_environment() {
    let folder = folder(&[
        ("a.yaml", "sources: {in: {type: stdin}}\n"),
        (
            "b.conf",
            r#"{"sinks": {"out": {"type": "blackhole", "inputs": ["${INPUT}"]}}}"#,
        ),
        ("c.yaml", VALID),
    ]);
    let paths = [
        ("VECTOR_CONFIG", "a.yaml"),
        ("VECTOR_CONFIG_JSON", "b.conf"),
        ("INPUT", "in"),
    ];
    let output = run(folder.path(), &["validate"], &paths);
    assert_eq!(
        output.status.code(),
        REJECTED,
        "variables are not replaced: {output:?}"
    );
    let flag = "--dangerously-allow-env-var-interpolation";
    let output = run(folder.path(), &["validate", flag], &paths);
    assert!(
        text(&output.stdout).starts_with("√ Loaded [\"a.yaml\", \"b.conf\"]\n"),
        "{output:?}"
    );
    let allowed = ("VECTOR_DANGEROUSLY_ALLOW_ENV_VAR_INTERPOLATION", "true");
    let output = run(
        folder.path(),
        &["validate"],
        &[&paths[..], &[allowed]].concat(),
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let output = run(folder.path(), &["validate", flag], &paths[..2]);
    assert!(
        text(&output.stdout).contains("x b.conf: the environment variable INPUT is not set; "),
        "{output:?}"
    );
    // A path on the command line replaces those in the variable of its kind.
    let output = run(
        folder.path(),
        &["validate", "c.yaml"],
        &[("VECTOR_CONFIG", "a.yaml")],
    );
    assert!(
        text(&output.stdout).starts_with("√ Loaded [\"c.yaml\"]\n"),
        "{output:?}"
    );
}

/// Vector reads these files while it compiles a program.
#[test]
fn the_files_that_programs_name_are_those_of_this_machine() {
    let config = |program: &str| {
        format!(
            "sources: {{in: {{type: stdin}}}}\ntransforms: {{t: {{type: remap, inputs: [in], source: '{program}'}}}}\nsinks: {{out: {{type: blackhole, inputs: [t]}}}}\n"
        )
    };
    let aliases = r#"{"name": "%{WORD:name}"}"#;
    for (program, content) in [
        (r#".e = parse_proto!("x", "FILE", "A")"#, "x"),
        (r#".e = encode_proto!({}, "FILE", "A")"#, "x"),
        (r#".e = parse_etld!("a.com", psl: "FILE")"#, "com"),
        (
            r#".e = parse_groks!("x", patterns: ["%{name}"], alias_sources: ["FILE"])"#,
            aliases,
        ),
    ] {
        let present = config(&program.replace("FILE", "file"));
        let absent = config(&program.replace("FILE", "none"));
        let folder = folder(&[
            ("present.yaml", &present),
            ("absent.yaml", &absent),
            ("file", content),
        ]);
        let output = validate(folder.path(), &["present.yaml"]);
        assert_eq!(output.status.code(), Some(0), "{program}: {output:?}");
        let output = validate(folder.path(), &["absent.yaml"]);
        assert_eq!(output.status.code(), REJECTED, "{program}: {output:?}");
        assert!(text(&output.stdout).contains("none"), "{output:?}");
    }
    // The schema is read with the first event.
    let schema = config(r#".e = validate_json_schema!("{}", "none", false)"#);
    let folder = folder(&[("vector.yaml", &schema)]);
    let output = validate(folder.path(), &["vector.yaml"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

/// The parser of YAML takes a time that grows with the square of the depth.
#[test]
fn a_text_of_any_depth_is_rejected_with_the_limit() {
    for (name, begin, part) in [
        ("vector.yaml", "", "["),
        ("vector.yaml", "a: ", "{b: "),
        ("vector.yaml", "", "- "),
        ("vector.json", "{\"a\":", "["),
        ("vector.json", "", "{\"a\":"),
        ("vector.toml", "a = ", "["),
    ] {
        let deep = format!("{begin}{}", part.repeat(100_000));
        let folder = folder(&[(name, &deep)]);
        let output = validate(folder.path(), &[name]);
        assert_eq!(output.status.code(), REJECTED, "{part}: {output:?}");
        let printed = text(&output.stdout);
        let limit = if name.ends_with("toml") {
            "at most 80 levels"
        } else {
            "at most 128 levels"
        };
        assert!(printed.contains(limit), "{part}: {printed}");
    }
}

/// `vector validate` does not apply these options.
#[test]
fn global_options_with_which_vector_does_not_start_are_rejected() {
    for global in [
        "expire_metrics_secs: 0",
        "expire_metrics: {secs: 1, nanos: 0}\nexpire_metrics_secs: 1",
        "metrics_storage_refresh_period: 0",
        "proxy: {http: 'http://a b'}",
        "secret: {b: {type: exec, command: []}}",
        "enrichment_tables: {t: {type: memory, flush_interval: 0}}",
    ] {
        let sinks = "sinks: {out: {type: http, inputs: [in], uri: 'http://h', encoding: {codec: json}, auth: {strategy: bearer, token: 'SECRET[b.k]'}}}";
        let secret = if global.contains("secret") {
            ""
        } else {
            "secret: {b: {type: test, replacement: x}}\n"
        };
        let config = format!("{global}\n{secret}sources: {{in: {{type: stdin}}}}\n{sinks}\n");
        let folder = folder(&[("vector.yaml", &config)]);
        let output = validate(folder.path(), &["vector.yaml"]);
        assert_eq!(output.status.code(), Some(0), "{global}: {output:?}");
        let output = validate(folder.path(), &["--start", "vector.yaml"]);
        assert_eq!(output.status.code(), REJECTED, "{global}: {output:?}");
    }
}
