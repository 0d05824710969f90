//! The container image: what it contains, how it runs, and how large it is.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;
use lockstep_image::{CA_CERTIFICATES, Compression, Image, Metadata};
use serde_json::{Value, json};

use crate::env::root;

/// Limit of the compressed layer of a release.
const LIMIT: usize = 27 << 20;

fn image_of(program: &Path) -> Image {
    let metadata = Metadata {
        repository: "lockstep".to_owned(),
        tag: "1.2.3".to_owned(),
        revision: Some("0123abc".to_owned()),
    };
    let image = Image::of_program(program, Path::new(CA_CERTIFICATES), metadata);
    image.unwrap_or_else(|error| panic!("{error}"))
}

/// Reads the files of an archive, or of a layer, by path.
fn files(tar: impl Read) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(tar);
    let entries = archive.entries().expect("a tar file");
    let entries = entries.map(|entry| entry.expect("an entry"));
    let files = entries.filter(|entry| entry.header().entry_type().is_file());
    files
        .map(|mut entry| {
            let path = entry.path().expect("a path").to_string_lossy().into_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).expect("content");
            (path, content)
        })
        .collect()
}

fn blob<'a>(archive: &'a BTreeMap<String, Vec<u8>>, descriptor: &Value) -> &'a [u8] {
    let digest = descriptor["digest"].as_str().expect("a digest");
    let content = &archive[&format!("blobs/{}", digest.replace(':', "/"))];
    assert_eq!(descriptor["size"], content.len());
    content
}

fn parsed(content: &[u8]) -> Value {
    serde_json::from_slice(content).expect("JSON")
}

#[test]
fn the_image_has_a_program_its_libraries_and_no_shell() {
    let directory = tempfile::tempdir().expect("a folder");
    let program = directory.path().join("lockstep");
    let mut strip = Command::new("strip");
    strip
        .arg("-o")
        .arg(&program)
        .arg(env!("CARGO_BIN_EXE_lockstep"));
    let status = strip.status().expect("binutils come with the linker");
    assert!(status.success());
    let path = directory.path().join("image.tar");
    let written = image_of(&program).write_archive(&path, Compression::none());
    let written = written.unwrap_or_else(|error| panic!("{error}"));

    let archive = files(File::open(&path).expect("the archive"));
    assert_eq!(
        parsed(&archive["oci-layout"]),
        json!({"imageLayoutVersion": "1.0.0"})
    );
    let index = parsed(&archive["index.json"]);
    let descriptor = &index["manifests"][0];
    assert_eq!(descriptor["digest"], written.digest);
    assert_eq!(descriptor["platform"]["os"], "linux");
    let name = &descriptor["annotations"]["io.containerd.image.name"];
    assert_eq!(name, "docker.io/library/lockstep:1.2.3");
    let manifest = parsed(blob(&archive, descriptor));
    let config = parsed(blob(&archive, &manifest["config"]));
    assert_eq!(
        config["architecture"],
        descriptor["platform"]["architecture"]
    );
    let process = &config["config"];
    assert_eq!(process["User"], "65532:65532");
    assert_eq!(process["Entrypoint"], json!(["/usr/local/bin/lockstep"]));
    let labels = &process["Labels"];
    assert_eq!(labels["org.opencontainers.image.version"], "1.2.3");
    assert_eq!(labels["org.opencontainers.image.revision"], "0123abc");
    assert_eq!(labels["org.opencontainers.image.licenses"], "Apache-2.0");

    let layer = files(blob(&archive, &manifest["layers"][0]));
    let (libraries, others): (Vec<_>, Vec<_>) = layer.keys().partition(|path| path.contains(".so"));
    assert_eq!(
        others,
        [
            "etc/group",
            "etc/nsswitch.conf",
            "etc/passwd",
            "etc/ssl/certs/ca-certificates.crt",
            "usr/local/bin/lockstep"
        ]
    );
    let has = |name: &str| libraries.iter().any(|path| path.contains(name));
    assert!(has("/libc.so.") && has("/ld-linux"), "{libraries:?}");
    let passwd = String::from_utf8_lossy(&layer["etc/passwd"]);
    assert!(passwd.contains("nonroot:x:65532:65532:"), "{passwd}");
}

#[test]
fn equal_programs_give_equal_images() {
    let directory = tempfile::tempdir().expect("a folder");
    let path = directory.path().join("image.tar");
    let write = || {
        let written = image_of(Path::new("/bin/true")).write_archive(&path, Compression::best());
        written.unwrap_or_else(|error| panic!("{error}")).digest
    };
    assert_eq!(write(), write());
    let archive = files(File::open(&path).expect("the archive"));
    let index = parsed(&archive["index.json"]);
    let manifest = parsed(blob(&archive, &index["manifests"][0]));
    let layer = files(GzDecoder::new(blob(&archive, &manifest["layers"][0])));
    assert!(
        layer.contains_key("usr/local/bin/true"),
        "{:?}",
        layer.keys()
    );
}

#[test]
fn the_image_of_a_release_is_small() {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| root().join("target"), PathBuf::from);
    let program = target.join("dist/lockstep");
    if !program.is_file() {
        eprintln!("not built: {}", program.display());
        return;
    }
    let directory = tempfile::tempdir().expect("a folder");
    let path = directory.path().join("image.tar");
    let written = image_of(&program).write_archive(&path, Compression::best());
    let written = written.unwrap_or_else(|error| panic!("{error}"));
    println!("{} bytes compressed", written.layer_bytes);
    assert!(written.layer_bytes < LIMIT, "{written:?}");
}

#[test]
fn the_dockerfile_describes_the_same_image() {
    let dockerfile = fs::read_to_string(root().join("Dockerfile")).expect("the Dockerfile");
    let directory = tempfile::tempdir().expect("a folder");
    let path = directory.path().join("image.tar");
    // Any program will do: only the configuration is compared.
    let written = image_of(Path::new("/bin/true")).write_archive(&path, Compression::fast());
    written.unwrap_or_else(|error| panic!("{error}"));
    let archive = files(File::open(&path).expect("the archive"));
    let manifest = parsed(blob(
        &archive,
        &parsed(&archive["index.json"])["manifests"][0],
    ));
    let config = parsed(blob(&archive, &manifest["config"]));
    let config = &config["config"];
    for (label, value) in config["Labels"].as_object().expect("labels") {
        let value = match value.as_str().expect("a text") {
            "1.2.3" => "$VERSION",
            "0123abc" => "$REVISION",
            fixed => fixed,
        };
        assert!(
            dockerfile.contains(&format!("{label}=\"{value}\"")),
            "{label}"
        );
    }
    let user = config["User"].as_str().expect("a user");
    let path = config["Env"][0].as_str().expect("a variable");
    let entrypoint = r#"ENTRYPOINT ["/usr/local/bin/lockstep"]"#;
    for line in [&format!("USER {user}"), &format!("ENV {path}"), entrypoint] {
        assert!(dockerfile.lines().any(|one| one == line), "{line}");
    }
}
