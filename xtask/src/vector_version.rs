//! A version of Vector: its schema, its catalogue, and what changed since the version before.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::json;
use vector_catalogue::{CatalogueChange, NewVersion};

/// Folder of the operator.
const OPERATOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../operators/vector");

/// Steps that no program does, printed after the changes.
const CHECKLIST: &str = "\
Then, in this order:
 1. Write the facts that the schema does not contain into traits.json: event types and closed options of new types, aliases. Run
    this task without --from until it reports nothing that is unknown.
 2. Add the version to MEASURED in operators/vector/catalogue/src/lib.rs, to V0_*, MEASURED and, for the default, DEFAULT in
    operators/vector/config/src/vector_version.rs, and to of_version in operators/vector/config/src/catalogue.rs.
 3. Record what this Vector says about the configurations in tests/agreement (`vector validate --skip-healthchecks`, without a
    network), and add the results that changed beside startup-0.58-changes.jsonl.gz. Each is a rule with a version.
 4. Read the validation of each changed sink, source and transform between the two tags, and add rules to
    operators/vector/config/src/start_up with the version. An option that allocates by its number belongs to the bounds for tenants.
 5. Pin the VRL of this version in Cargo.toml and measure the recordings of all versions with it. If both hold, one VRL is enough.
 6. cargo test -p vector-catalogue -p lockstep-vector-config && cargo test -p lockstep --test agreement
 7. docs/vector/versions.md, CHANGELOG.md and the recordings' sources.";

/// Writes the catalogue of a version. `begun` is the file with its schema and the version of its VRL.
pub(crate) fn write(version: &str, begun: Option<(&Path, &str)>) -> anyhow::Result<()> {
    let folder = Path::new(OPERATOR).join(format!("catalogue/vector-{version}"));
    if let Some((schema, vrl)) = begun {
        let text = fs::read_to_string(schema).with_context(|| schema.display().to_string())?;
        let schema = serde_json::from_str(&text).with_context(|| schema.display().to_string())?;
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let packed = vector_catalogue::packed_schema(schema)?;
        fs::write(folder.join("schema.json.gz"), packed)?;
        let traits = folder.join("traits.json");
        if !traits.exists() {
            let text = format!("{:#}\n", json!({"version": version, "vrl": vrl}));
            fs::write(&traits, text).with_context(|| traits.display().to_string())?;
        }
    }
    let NewVersion {
        text,
        before,
        unknown,
        changes,
    } = vector_catalogue::new_version(&folder)?;
    let file = Path::new(OPERATOR).join(format!("config/catalogue/{version}.json"));
    fs::write(&file, text).with_context(|| file.display().to_string())?;
    println!("Wrote {}", file.display());
    if let Some(before) = before {
        println!("Changes since {before}:");
        for CatalogueChange { place, change } in changes {
            println!("  {change} {place}");
        }
    }
    for fact in &unknown {
        println!("Unknown: {fact}");
    }
    if begun.is_some() || !unknown.is_empty() {
        println!("{CHECKLIST}");
    }
    Ok(())
}
