use std::path::Path;

use super::*;

/// Returns a manifest with the dependencies of a reconciler, and the notes.
fn completed(text: &str) -> Result<(String, Vec<String>), &'static str> {
    let manifest = Manifest::parse(Path::new("Cargo.toml"), text).expect("TOML");
    let mut edits = Edits::of(text);
    let notes = add_dependencies(&manifest, &mut edits)?;
    let text = edits.apply();
    // Nothing is added twice.
    let again = Manifest::parse(Path::new("Cargo.toml"), &text).expect("TOML");
    let mut edits = Edits::of(&text);
    assert_eq!(add_dependencies(&again, &mut edits).as_ref(), Ok(&notes));
    assert_eq!(edits.apply(), text);
    Ok((text, notes))
}

/// Every dependency but tokio.
const OTHERS: &str = "async-trait = \"0.1\"\naxum = \"0.8\"\nhttp-body-util = \"0.1\"\n\
                      hyper = { version = \"1\", features = [\"full\"] }\n\
                      hyper-util = { version = \"0.1.5\", features = [\"full\"] }\n";

/// Asserts the change of a dependency on tokio.
fn assert_tokio(before: &str, after: &str) {
    let (completed, notes) =
        completed(&format!("[dependencies]\n{OTHERS}{before}")).expect("a place");
    assert_eq!(completed, format!("[dependencies]\n{OTHERS}{after}"));
    assert_eq!(notes, Vec::<String>::new());
}

#[test]
fn dependencies_are_added_between_the_others() {
    let text = "[package]\nname = \"a\"\n\n[dependencies] # of the program\n# Kubernetes\nhyper.version = \"1\"\n\
                hyper.features = [\"client\", \"http1\"] # HTTP\nkube = \"5\" # the client\n\n# Data\nserde = { version = \"1\" }\n\n\
                [dependencies.schemars]\nversion = \"1\"\n\n[dev-dependencies]\ntokio = \"1\"\n";
    let expected = "[package]\nname = \"a\"\n\n[dependencies] # of the program\nasync-trait = \"0.1\"\n\
                    axum = { version = \"0.8\", default-features = false, features = [\"http1\", \"json\", \"tokio\"] }\n\
                    http-body-util = \"0.1\"\n# Kubernetes\nhyper.version = \"1\"\n\
                    hyper.features = [\"client\", \"http1\"] # HTTP\n\
                    hyper-util = { version = \"0.1\", features = [\"client-legacy\", \"http1\"] }\nkube = \"5\" # the client\n\n\
                    # Data\nserde = { version = \"1\" }\n\
                    tokio = { version = \"1\", features = [\"net\", \"rt\", \"time\"] }\n\n\
                    [dependencies.schemars]\nversion = \"1\"\n\n[dev-dependencies]\ntokio = \"1\"\n";
    assert_eq!(completed(text), Ok((expected.to_owned(), Vec::new())));
    let crlf = |text: &str| text.replace('\n', "\r\n");
    let marked = format!("\u{feff}{}", crlf(text));
    let expected = format!("\u{feff}{}", crlf(expected));
    assert_eq!(completed(&marked), Ok((expected, Vec::new())));
}

#[test]
fn dependencies_follow_those_that_have_no_order() {
    let text = "[dependencies]\nserde = \"1\"\nkube = \"5\"";
    let (completed, _) = completed(text).expect("a place");
    assert!(
        completed.starts_with(&format!("{text}\nasync-trait = ")),
        "{completed}"
    );
}

#[test]
fn the_section_may_have_other_forms() {
    let text = "# a\n[dependencies.serde]\nversion = \"1\"\n";
    let (completed_text, _) = completed(text).expect("a place");
    assert!(
        completed_text.starts_with("# a\n[dependencies]\nasync-trait"),
        "{completed_text}"
    );
    assert!(
        completed_text.ends_with("\n\n[dependencies.serde]\nversion = \"1\"\n"),
        "{completed_text}"
    );

    let text = "dependencies.kube = \"5\"\ndependencies.tokio.version = \"1\"\n\n[package]\nname = \"a\"\n";
    let (completed_text, _) = completed(text).expect("a place");
    for part in [
        "dependencies.kube = \"5\"\ndependencies.async-trait = \"0.1\"\n",
        "\ndependencies.tokio.version = \"1\"\ndependencies.tokio.features = [\"net\", \"rt\", \"time\"]\n\n[package]",
    ] {
        assert!(completed_text.contains(part), "{completed_text}");
    }

    let text = "[dependencies]\n[features]\n";
    let (completed_text, _) = completed(text).expect("a place");
    assert!(
        completed_text.starts_with("[dependencies]\nasync-trait"),
        "{completed_text}"
    );
    assert!(
        completed_text.ends_with("\"time\"] }\n[features]\n"),
        "{completed_text}"
    );

    for text in ["[package]\n", "dependencies = { kube = \"5\" }\n"] {
        assert_eq!(completed(text), Err(MISSING));
    }
}

#[test]
fn missing_features_are_added_where_the_dependency_is() {
    let features = "features = [\"net\", \"rt\", \"time\"]";
    assert_tokio(
        "tokio = '1.40' # async\n",
        &format!("tokio = {{ version = '1.40', {features} }} # async\n"),
    );
    assert_tokio(
        "tokio   =   {version=\"1\"}\n",
        &format!("tokio   =   {{version=\"1\", {features}}}\n"),
    );
    assert_tokio(
        "tokio.version = \"1\" # async\n\n[features]\n",
        &format!("tokio.version = \"1\" # async\ntokio.{features}\n\n[features]\n"),
    );
    assert_tokio(
        "\n[dependencies.tokio] # async\nversion = \"1\"\n\n[features]\n",
        &format!("\n[dependencies.tokio] # async\nversion = \"1\"\n{features}\n\n[features]\n"),
    );
    assert_tokio(
        "[dependencies.tokio]\nversion = \"1\"\nfeatures = []\n",
        &format!("[dependencies.tokio]\nversion = \"1\"\n{features}\n"),
    );
    assert_tokio(
        "tokio = { features = [ \"rt\", \"macros\" ], version = \"1\" }\n",
        "tokio = { features = [ \"rt\", \"macros\", \"net\", \"time\" ], version = \"1\" }\n",
    );
    assert_tokio(
        "tokio = { version = \"1\", features = [\n  \"rt\",\n  \"net\", # sockets\n] }\n",
        "tokio = { version = \"1\", features = [\n  \"rt\",\n  \"net\", # sockets\n  \"time\",\n] }\n",
    );
    assert_tokio(
        "tokio.version = \"1\"\ntokio.features = [\n\t\"rt\" # tasks\n]\n",
        "tokio.version = \"1\"\ntokio.features = [\n\t\"rt\", # tasks\n\t\"net\",\n\t\"time\"\n]\n",
    );
    assert_tokio(
        "tokio = { version = \"1\", features = [\"full\"] }\n",
        "tokio = { version = \"1\", features = [\"full\"] }\n",
    );
    let text = format!("[dependencies]\n{OTHERS}tokio = {{ version = \"1\", {features} }}\n");
    let (with_axum, _) = completed(&text.replace(
        "axum = \"0.8\"",
        "axum = { version = \"0.8\", default-features = false }",
    ))
    .expect("a place");
    assert!(
        with_axum
            .contains("default-features = false, features = [\"http1\", \"json\", \"tokio\"] }\n"),
        "{with_axum}"
    );
}

#[test]
fn a_dependency_that_is_defined_elsewhere_gets_the_features() {
    let features = "features = [\"net\", \"rt\", \"time\"]";
    let of_workspace = "`tokio` is a dependency of the workspace: the reconciler needs version 1.";
    let optional = "`tokio` is optional: the reconciler needs it.";
    let old = "`tokio` has the version 0.3: the reconciler is written for 1.";
    for (tokio, completed_tokio, expected) in [
        (
            "tokio.workspace = true\n",
            &*format!("tokio.workspace = true\ntokio.{features}\n"),
            &[of_workspace][..],
        ),
        (
            "tokio = { workspace = true, optional = true, features = [\"net\"] }\n",
            &format!("tokio = {{ workspace = true, optional = true, {features} }}\n"),
            &[optional, of_workspace],
        ),
        (
            "tokio = { git = \"https://example.com/tokio\" }\n",
            &format!("tokio = {{ git = \"https://example.com/tokio\", {features} }}\n"),
            &["`tokio` comes from a Git repository: the reconciler needs version 1."],
        ),
        (
            "[dependencies.tokio]\npath = \"../tokio\"\n",
            &format!("[dependencies.tokio]\npath = \"../tokio\"\n{features}\n"),
            &["`tokio` comes from a folder: the reconciler needs version 1."],
        ),
        (
            "tokio = { path = \"../tokio\", version = \"1.2\", features = [\"full\"] }\n",
            "tokio = { path = \"../tokio\", version = \"1.2\", features = [\"full\"] }\n",
            &[],
        ),
        (
            "tokio = { version = \"0.3\", features = [\"full\"], optional = true }\n",
            "tokio = { version = \"0.3\", features = [\"full\"], optional = true }\n",
            &[optional, old],
        ),
    ] {
        let text = format!("[dependencies]\n{OTHERS}{tokio}");
        let (completed, notes) = completed(&text).expect("a place");
        assert_eq!(
            completed,
            format!("[dependencies]\n{OTHERS}{completed_tokio}")
        );
        assert_eq!(notes, expected);
    }
    let others = OTHERS.replace("axum = \"0.8\"", "axum.workspace = true");
    let text = format!("[dependencies]\n{others}tokio = {{ version = \"1\", {features} }}\n");
    let (completed, _) = completed(&text).expect("a place");
    let features = "axum.features = [\"http1\", \"json\", \"tokio\"]\n";
    assert!(completed.contains(features), "{completed}");
}
