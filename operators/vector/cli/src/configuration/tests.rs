use std::fs;
use std::path::{Path, PathBuf};

use lockstep_vector_api::{Catalogue, VectorVersion};
use serde_json::json;

use super::*;

const PLAIN: Reading = Reading {
    interpolates: false,
    version: VectorVersion::V0_57,
};

fn file(path: &Path) -> ConfigPath {
    ConfigPath::File(path.to_owned(), None)
}

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

#[test]
fn nulls_are_read_from_0_58_on_and_infinite_numbers_no_longer() {
    let folder = folder(&[
        ("null.yaml", "sinks: {a: {b: null, c: [null, 1]}}\n"),
        (
            "null.json",
            r#"{"sinks": {"a": {"b": null, "c": [null, 1]}}}"#,
        ),
        ("infinite.yaml", "sinks: {a: {b: .inf}}\n"),
    ]);
    let read = |name: &str, version| {
        let reading = Reading { version, ..PLAIN };
        read(&[file(&folder.path().join(name))], reading)
    };
    let nulls = json!({"sinks": {"a": {"b": null, "c": [null, 1]}}});
    for name in ["null.yaml", "null.json"] {
        assert!(read(name, VectorVersion::V0_57).is_err(), "{name}");
        assert_eq!(
            read(name, VectorVersion::V0_58),
            Ok(nulls.clone()),
            "{name}"
        );
    }
    assert!(read("infinite.yaml", VectorVersion::V0_57).is_ok());
    assert!(read("infinite.yaml", VectorVersion::V0_58).is_err());
}

#[test]
fn all_formats_yield_the_same_configuration() {
    let folder = folder(&[
        (
            "a.yaml",
            "sources:\n  in:\n    type: stdin\n    max_length: 10\n",
        ),
        (
            "a.json",
            r#"{"sources": {"in": {"type": "stdin", "max_length": 10}}}"#,
        ),
        (
            "a.toml",
            "[sources.in]\ntype = \"stdin\"\nmax_length = 10\n",
        ),
        ("none", "[sources.in]\ntype = \"stdin\"\nmax_length = 10\n"),
    ]);
    for name in ["a.yaml", "a.json", "a.toml", "none"] {
        assert_eq!(
            read(&[file(&folder.path().join(name))], PLAIN),
            Ok(json!({"sources": {"in": {"type": "stdin", "max_length": 10}}})),
            "{name}"
        );
    }
}

#[test]
fn an_error_names_its_location_the_problem_and_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = |name: &str, content: Option<&[u8]>| {
        let path = folder.path().join(name);
        if let Some(content) = content {
            fs::write(&path, content).expect("a file");
        }
        let errors = read(&[file(&path)], PLAIN).expect_err("the file is invalid");
        let prefix = format!("{}: ", path.display());
        errors[0]
            .strip_prefix(&prefix)
            .expect("the path")
            .to_owned()
    };
    fs::create_dir(folder.path().join("folder.toml")).expect("a folder");
    assert_eq!(
        error("none.toml", None),
        "the file cannot be read: it does not exist; check its path"
    );
    assert_eq!(
        error("folder.toml", None),
        "the file cannot be read: it is a folder; name a file in it"
    );
    assert_eq!(
        error("a.toml", Some(b"a = \"\xff\"")),
        "the file cannot be read: it is not UTF-8 text; save it as UTF-8"
    );
    for (name, content, expected) in [
        (
            "a.toml",
            "[sources]\nin = 1\nin = 2\n",
            "line 3, column 1: the key is duplicated; remove one of them",
        ),
        (
            "a.toml",
            "# \u{e9}\n[sources.in\n",
            "line 2, column 12: the TOML cannot be read: ",
        ),
        (
            "a.toml",
            "a = nine\n",
            "line 1, column 5: the TOML cannot be read: ",
        ),
        (
            "a.json",
            "{\"a\": }",
            "line 1, column 7: the JSON cannot be read: ",
        ),
        (
            "a.json",
            "{\"a\": {\"b\": null}}",
            "a.b: Vector does not accept null; remove the option",
        ),
        (
            "a.json",
            "[]",
            "the configuration must be a mapping with `sources`",
        ),
        (
            "a.yaml",
            "a: [",
            "line 2, column 1: the YAML cannot be read: ",
        ),
        (
            "a.yaml",
            "- a",
            "the configuration must be a mapping with `sources`",
        ),
        (
            "a.yaml",
            "b:\n  a: 1\n  a: 2\n",
            "line 2, column 3: the key \"a\" is duplicated; remove one of them",
        ),
        (
            "a.yaml",
            "a:\n  b c: [1, ~]\n",
            "a[b c][1]: Vector does not accept null; remove the option",
        ),
        (
            "a.yaml",
            "a: {1: x}\n",
            "a: the key 1 is not a text; write \"1\"",
        ),
        (
            "a.yaml",
            "a: !b c\n",
            "a: Vector does not accept the tag !b; remove it",
        ),
        (
            "a.yaml",
            "a: 9223372036854775808\n",
            "a: Vector does not accept integers above 9223372036854775807",
        ),
    ] {
        let found = error(name, Some(content.as_bytes()));
        assert!(found.starts_with(expected), "{found}");
        assert!(!found.contains('\n'), "no excerpt of the parser: {found}");
    }
}

#[test]
fn files_are_merged_and_conflicts_name_their_file() {
    let folder = folder(&[
        ("a.yaml", "sources: {a: {type: stdin}}"),
        ("b.json", r#"{"sources": {"b": {"type": "stdin"}}}"#),
        ("c.toml", "[sources.a]\ntype = 'stdin'"),
    ]);
    let paths = |names: &[&str]| -> Vec<_> {
        names
            .iter()
            .map(|name| file(&folder.path().join(name)))
            .collect()
    };
    let both = json!({"sources": {"a": {"type": "stdin"}, "b": {"type": "stdin"}}});
    assert_eq!(read(&paths(&["a.yaml", "b.json"]), PLAIN), Ok(both));
    let problems = read(&paths(&["a.yaml", "b.json", "c.toml"]), PLAIN).expect_err("a conflict");
    let at = folder.path().join("c.toml");
    let expected = format!(
        "{}: sources[a]: the name is already used in another file; rename one of them",
        at.display()
    );
    assert_eq!(problems, [expected]);
}

#[test]
fn a_folder_has_files_and_folders_of_components() {
    let folder = folder(&[
        (
            "a.yaml",
            "data_dir: /a\nsources: {in: {type: stdin, max_length: 1}, gone: {type: stdin}}",
        ),
        ("b.toml", "[sources.in]\nmax_length = 2"),
        ("README.md", "no configuration"),
        ("sources/gone.yaml", "type: file"),
        ("sources/nested/no.yaml", "type: file"),
        ("transforms/parse.yaml", "type: remap"),
        ("transforms/parse/source.toml", "x = 1"),
        ("transforms/.hidden/no.yaml", "type: remap"),
        ("transforms/group/filter.json", r#"{"a": 1}"#),
        ("sinks/out.json", r#"{"type": "blackhole"}"#),
        ("tests/one.yaml", "name: one"),
        ("enrichment_tables/table.yaml", "type: file"),
    ]);
    assert_eq!(
        read(&[ConfigPath::Folder(folder.path().to_owned())], PLAIN),
        Ok(json!({
            "data_dir": "/a",
            "sources": {"in": {"type": "stdin", "max_length": 2}, "gone": {"type": "file"}},
            "transforms": {
                "parse": {"type": "remap", "source": {"x": 1}},
                "group": {"filter": {"a": 1}},
            },
            "sinks": {"out": {"type": "blackhole"}},
            "tests": [{"name": "one"}],
            "enrichment_tables": {"table": {"type": "file"}},
        }))
    );
}

#[test]
fn errors_in_a_folder_name_their_file() {
    let folder = folder(&[
        ("a.yaml", "a: 1"),
        ("b.yaml", "a: [1]"),
        ("sinks/out.yaml", "a: ~"),
    ]);
    let at = |name: &str| folder.path().join(name).display().to_string();
    let errors = |path: PathBuf| read(&[ConfigPath::Folder(path)], PLAIN).expect_err("an error");
    let found = errors(folder.path().to_owned());
    assert_eq!(
        found,
        [format!(
            "{}: b: two files have values of different types at a: integer and array; remove one of them",
            at("").trim_end_matches('/')
        )]
    );
    let found = errors(folder.path().join("a.yaml"));
    assert!(
        found[0].starts_with(&format!("{}: it is not a folder", at("a.yaml"))),
        "{found:?}"
    );
    fs::remove_file(folder.path().join("b.yaml")).expect("removed");
    let found = errors(folder.path().to_owned());
    assert_eq!(
        found,
        [format!(
            "{}: a: Vector does not accept null; remove the option",
            at("sinks/out.yaml")
        )]
    );
}

#[test]
fn variables_are_replaced_only_on_request() {
    let folder = folder(&[("a.yaml", "data_dir: ${LOCKSTEP_NONE:-/a}/${HOSTNAME}")]);
    let path = [file(&folder.path().join("a.yaml"))];
    assert_eq!(
        read(&path, PLAIN),
        Ok(json!({"data_dir": "${LOCKSTEP_NONE:-/a}/${HOSTNAME}"}))
    );
    let replaced = read(
        &path,
        Reading {
            interpolates: true,
            ..PLAIN
        },
    )
    .expect("a configuration");
    let replaced = replaced["data_dir"].as_str().expect("text");
    assert!(
        replaced.starts_with("/a/") && replaced.len() > 3,
        "{replaced}"
    );
}

/// JSON has neither infinite numbers nor one that is not a number.
#[test]
fn a_number_that_json_does_not_have_is_judged_as_by_vector() {
    let half_life = "buffer_utilization_ewma_half_life_seconds";
    let sample = |ratio: &str| {
        format!(
            "sources: {{in: {{type: stdin}}}}\ntransforms: {{s: {{type: sample, inputs: [in], ratio: {ratio}}}}}\nsinks: {{out: {{type: blackhole, inputs: [s]}}}}\n"
        )
    };
    let valid = sample("0.1");
    for (text, is_valid) in [
        (format!("{half_life}: .inf\n{valid}"), true),
        (format!("{half_life}: -.inf\n{valid}"), false),
        (format!("{half_life}: .nan\n{valid}"), false),
        (format!("latency_ewma_alpha: .nan\n{valid}"), false),
        (format!("latency_ewma_alpha: .inf\n{valid}"), false),
        (sample(".nan"), true),
        (sample(".inf"), true),
        (sample("-.inf"), false),
    ] {
        let folder = folder(&[("a.yaml", &text)]);
        let config = read(&[file(&folder.path().join("a.yaml"))], PLAIN).expect("a configuration");
        let problems = crate::problems::problems(Catalogue::shipped(), &config, false);
        let errors = problems.iter().filter(|it| !it.check.is_warning());
        assert_eq!(errors.count() == 0, is_valid, "{text}: {problems:?}");
    }
}
