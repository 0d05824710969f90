//! Tests of the files that commands write: no file of others is replaced, and each command says what it wrote.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn lockstep(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lockstep"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the program runs")
}

fn succeeds(folder: &Path, arguments: &[&str]) -> String {
    let output = lockstep(folder, arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the error of a command that refuses to write.
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let before = content(folder);
    let output = lockstep(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(content(folder), before, "files have changed");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).expect("text")
}

/// Returns everything below a folder, without following links: the content of files, and the targets of links.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let metadata = path.symlink_metadata().expect("metadata");
        if metadata.is_dir() {
            all.insert(path.clone(), Vec::new());
            all.extend(content(&path));
        } else if metadata.is_symlink() {
            let target = fs::read_link(&path).expect("a link");
            all.insert(path, target.into_os_string().into_encoded_bytes());
        } else {
            all.insert(path.clone(), fs::read(&path).unwrap_or_default());
        }
    }
    all
}

#[test]
fn what_manifests_has_written_is_listed_and_written_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let listed = succeeds(folder, &["manifests"]);
    let files = content(folder);
    let names = files.keys().filter(|path| path.is_file());
    for name in names {
        let name = name.strip_prefix(folder).expect("below the folder");
        let line = format!("Wrote {}\n", name.display());
        assert!(listed.contains(&line), "{line}{listed}");
    }
    let next = "Next:\n\n  kubectl apply -k manifests/config/crds\n  kubectl apply -k manifests/config/crd-protection\n  \
                kubectl apply -k manifests/config\n";
    assert!(listed.ends_with(next), "{listed}");

    let again = succeeds(folder, &["manifests"]);
    assert!(!again.contains("Wrote"), "{again}");
    assert!(again.contains("files were up to date"), "{again}");
    assert_eq!(content(folder), files);

    // Of an earlier version: other objects, and a schema without a comment.
    let rbac = folder.join("manifests/config/rbac.yaml");
    let header = "# Written by `lockstep manifests`; do not edit.\n";
    fs::write(&rbac, format!("{header}kind: Role\n")).expect("a file");
    let schema = folder.join("manifests/config/schemas/clouddatabase_v1alpha1.json");
    let text = fs::read_to_string(&schema).expect("a schema");
    let lines = text.split_inclusive('\n');
    let earlier: String = lines
        .filter(|line| !line.contains("\"$comment\""))
        .collect();
    assert_ne!(earlier, text);
    fs::write(&schema, earlier).expect("a file");
    fs::remove_file(folder.join("manifests/config/service.yaml")).expect("a file");
    let upgraded = succeeds(folder, &["manifests"]);
    for name in [
        "rbac.yaml",
        "service.yaml",
        "schemas/clouddatabase_v1alpha1.json",
    ] {
        assert!(
            upgraded.contains(&format!("Wrote manifests/config/{name}\n")),
            "{upgraded}"
        );
    }
    assert_eq!(content(folder), files);
}

#[test]
fn manifests_replaces_no_file_of_others() {
    let schema = "schemas/clouddatabase_v1alpha1.json";
    for (name, text) in [
        ("kustomization.yaml", "resources: [mine.yaml]\n"),
        (
            "crds/clouddatabases.yaml",
            "kind: CustomResourceDefinition\n",
        ),
        ("rbac.yaml", ""),
        (
            "rbac.yaml",
            "# Written by `greeter manifests`; do not edit.\nkind: Role\n",
        ),
        (
            "service.yaml",
            "kind: Service\n# Written by `lockstep manifests`; do not edit.\n",
        ),
        (schema, "{\"title\": \"CloudDatabase\"}\n"),
        (schema, "no JSON"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let path = folder.join("base").join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        let error = refused(folder, &["manifests", "base"]);
        assert!(
            error.contains(&format!("  base/{name}: it does not have")),
            "{error}"
        );
        assert!(error.contains("nothing was written"), "{error}");
        fs::remove_file(&path).expect("a file");
        succeeds(folder, &["manifests", "base"]);
    }
}

#[test]
fn manifests_writes_through_links_to_its_own_files_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (link, target) = (folder.join("base/rbac.yaml"), folder.join("target.yaml"));
    fs::create_dir(folder.join("base")).expect("a folder");
    symlink("../target.yaml", &link).expect("a link");
    let dangling = refused(folder, &["manifests", "base"]);
    assert!(
        dangling.contains("base/rbac.yaml: it cannot be read"),
        "{dangling}"
    );

    fs::write(&target, "mine: true\n").expect("a file");
    refused(folder, &["manifests", "base"]);

    fs::write(&target, "# Written by `lockstep manifests`; do not edit.\n").expect("a file");
    succeeds(folder, &["manifests", "base"]);
    assert!(link.is_symlink());
    let written = fs::read_to_string(&target).expect("a file");
    assert!(written.contains("kind: ClusterRole"), "{written}");
}

#[test]
fn manifests_needs_folders_where_it_creates_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::create_dir(folder.join("base")).expect("a folder");
    fs::write(folder.join("base/crds"), "mine").expect("a file");
    let error = refused(folder, &["manifests", "base"]);
    assert!(error.contains("base/crds"), "{error}");
    fs::remove_file(folder.join("base/crds")).expect("a file");

    symlink("nowhere", folder.join("base/crds")).expect("a link");
    let error = refused(folder, &["manifests", "base"]);
    assert!(error.contains("base/crds is not a folder"), "{error}");
    fs::remove_file(folder.join("base/crds")).expect("a link");

    fs::create_dir(folder.join("base/rbac.yaml")).expect("a folder");
    let error = refused(folder, &["manifests", "base"]);
    assert!(
        error.contains("base/rbac.yaml: it cannot be read"),
        "{error}"
    );
}

#[test]
fn generated_files_of_the_charts_are_recognized_and_others_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::create_dir_all(folder.join("charts/lockstep")).expect("a folder");
    let arguments = ["manifests", "base", "--charts", "charts"];
    let listed = succeeds(folder, &arguments);
    let helm = "  helm upgrade --install lockstep charts/lockstep --namespace lockstep-system --create-namespace\n";
    assert!(listed.ends_with(helm), "{listed}");
    let files = content(folder);

    // Early versions wrote it without a first line that names them.
    let readme = folder.join("charts/lockstep/README.md");
    let text = fs::read_to_string(&readme).expect("a page");
    let (_, earlier) = text.split_once('\n').expect("two lines");
    fs::write(&readme, earlier.replace("Installs", "Installs all of")).expect("a file");
    succeeds(folder, &arguments);
    assert_eq!(content(folder), files);

    for (name, text) in [
        ("lockstep/README.md", "# lockstep\n\nMine.\n"),
        (
            "lockstep-crds/templates/_crds.tpl",
            "{{- define \"mine\" -}}\n",
        ),
        ("lockstep/files/rbac.yaml", "mine: true\n"),
    ] {
        let path = folder.join("charts").join(name);
        let own = fs::read(&path).expect("a file");
        fs::write(&path, text).expect("a file");
        let error = refused(folder, &arguments);
        assert!(error.contains(&format!("  charts/{name}: ")), "{error}");
        fs::write(&path, own).expect("a file");
    }
}

#[test]
fn commands_that_write_files_name_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let written = succeeds(folder, &["rules", "--output-file", "rules.md"]);
    assert_eq!(written, "Wrote rules.md\n");
    let pages = succeeds(folder, &["man", "pages"]);
    for entry in fs::read_dir(folder.join("pages")).expect("a folder") {
        let name = entry.expect("a file").file_name();
        let line = format!("Wrote pages/{}\n", name.display());
        assert!(pages.contains(&line), "{line}{pages}");
    }
    assert!(pages.contains("Wrote pages/lockstep.1\n"), "{pages}");
    for (name, list) in [
        ("versions.json", "DBEngineVersions"),
        ("options.json", "OrderableDBInstanceOptions"),
    ] {
        fs::write(folder.join(name), format!("{{\"{list}\": []}}")).expect("a file");
    }
    let catalogue = succeeds(
        folder,
        &[
            "rds",
            "catalogue",
            "--engine-versions",
            "versions.json",
            "--orderable-options",
            "options.json",
            "--output-file",
            "catalogue.json",
        ],
    );
    assert_eq!(catalogue, "Wrote catalogue.json\n");
}
