//! What one version of Vector takes: its components, their options and what flows through them.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hasher;
use std::sync::OnceLock;

use fnv::FnvHasher;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::component::ComponentKind;
use crate::flow::DataType;
use crate::options::Options;

/// The catalogue of Vector 0.57.
const SHIPPED: &str = include_str!("../catalogue/0.57.json");

/// Everything known of one version of Vector.
pub struct Catalogue {
    /// Vector's version.
    pub version: String,
    /// That of its language.
    pub vrl: String,
    digest: u64,
    sources: HashMap<String, Entry>,
    transforms: HashMap<String, Entry>,
    sinks: HashMap<String, Entry>,
    /// The options beside the components.
    globals: Entry,
    /// What codecs of sources give, where it is not logs.
    pub(crate) decoders: BTreeMap<String, DataType>,
    /// What codecs of sinks take, where it is not logs.
    pub(crate) encoders: BTreeMap<String, DataType>,
    /// What options refer to, not yet read: most of it is never needed.
    definitions: HashMap<&'static str, &'static RawValue>,
}

/// One type of component.
pub struct Entry {
    /// The events that it takes.
    pub(crate) accepts: DataType,
    /// The events that it gives, where its only output is itself.
    pub(crate) gives: DataType,
    /// The events of each named output.
    pub(crate) outputs: BTreeMap<String, DataType>,
    /// Other names of its options.
    pub(crate) aliases: BTreeMap<String, String>,
    options: &'static RawValue,
    compiled: OnceLock<Options>,
}

#[derive(Deserialize)]
struct File<'a> {
    version: String,
    vrl: String,
    #[serde(borrow)]
    sources: HashMap<String, EntryFile<'a>>,
    #[serde(borrow)]
    transforms: HashMap<String, EntryFile<'a>>,
    #[serde(borrow)]
    sinks: HashMap<String, EntryFile<'a>>,
    #[serde(borrow)]
    globals: &'a RawValue,
    decoders: BTreeMap<String, DataType>,
    encoders: BTreeMap<String, DataType>,
    #[serde(borrow)]
    definitions: HashMap<&'a str, &'a RawValue>,
}

#[derive(Deserialize)]
struct EntryFile<'a> {
    #[serde(default)]
    accepts: DataType,
    #[serde(default)]
    gives: DataType,
    #[serde(default)]
    outputs: BTreeMap<String, DataType>,
    #[serde(default)]
    aliases: BTreeMap<String, String>,
    #[serde(borrow)]
    options: &'a RawValue,
}

impl Entry {
    /// Every name of an option, which is named as in the catalogue.
    pub(crate) fn names_of<'a>(&'a self, option: &'a str) -> impl Iterator<Item = &'a str> {
        let aliases = self.aliases.iter();
        let aliases = aliases.filter(move |(_, name)| *name == option);
        [option]
            .into_iter()
            .chain(aliases.map(|(alias, _)| alias.as_str()))
    }
}

impl From<EntryFile<'static>> for Entry {
    fn from(file: EntryFile<'static>) -> Self {
        Self {
            accepts: file.accepts,
            gives: file.gives,
            outputs: file.outputs,
            aliases: file.aliases,
            options: file.options,
            compiled: OnceLock::new(),
        }
    }
}

impl Catalogue {
    /// The one that comes with this program.
    #[must_use]
    pub fn shipped() -> &'static Self {
        static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
        CATALOGUE.get_or_init(|| {
            let file: File<'static> = serde_json::from_str(SHIPPED).expect("a generated catalogue");
            let entries = |files: HashMap<String, EntryFile<'static>>| {
                let entries = files.into_iter();
                entries.map(|(name, file)| (name, file.into())).collect()
            };
            let globals = EntryFile {
                accepts: DataType::default(),
                gives: DataType::default(),
                outputs: BTreeMap::new(),
                aliases: BTreeMap::new(),
                options: file.globals,
            };
            Self {
                version: file.version,
                vrl: file.vrl,
                digest: digest(SHIPPED),
                sources: entries(file.sources),
                transforms: entries(file.transforms),
                sinks: entries(file.sinks),
                globals: globals.into(),
                decoders: file.decoders,
                encoders: file.encoders,
                definitions: file.definitions,
            }
        })
    }

    /// A fingerprint of all that it says: a catalogue that was corrected has another, though it is of the same
    /// version.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// A type of component.
    #[must_use]
    pub fn entry(&self, family: ComponentKind, kind: &str) -> Option<&Entry> {
        self.family(family).get(kind)
    }

    /// The names of all types of a family, sorted.
    #[must_use]
    pub fn kinds(&self, family: ComponentKind) -> Vec<&str> {
        let mut kinds: Vec<_> = self.family(family).keys().map(String::as_str).collect();
        kinds.sort_unstable();
        kinds
    }

    fn family(&self, family: ComponentKind) -> &HashMap<String, Entry> {
        match family {
            ComponentKind::Source => &self.sources,
            ComponentKind::Transform => &self.transforms,
            ComponentKind::Sink => &self.sinks,
        }
    }

    /// The options of a type, compiled when they are first asked for.
    pub(crate) fn options<'a>(&'a self, entry: &'a Entry) -> &'a Options {
        entry.compiled.get_or_init(|| {
            let node = serde_json::from_str(entry.options.get()).expect("a generated catalogue");
            Options::compile(&node, |name| self.definition(name))
        })
    }

    /// The options beside the components.
    pub(crate) fn globals(&self) -> &Options {
        self.globals.compiled.get_or_init(|| {
            let properties: Value =
                serde_json::from_str(self.globals.options.get()).expect("a generated catalogue");
            let node =
                serde_json::json!({"type": "object", "closed": true, "properties": properties});
            Options::compile(&node, |name| self.definition(name))
        })
    }

    fn definition(&self, name: &str) -> Value {
        let node = self.definitions.get(name).map(|node| node.get());
        serde_json::from_str(node.expect("what the catalogue refers to is in it"))
            .expect("a generated catalogue")
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = FnvHasher::default();
    hasher.write(text.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_compiled_by_the_compiler_of_the_vector_that_it_is_of() {
        let locked = include_str!("../../../../Cargo.lock");
        let vrl = format!(
            "name = \"vrl\"\nversion = \"{}\"\n",
            Catalogue::shipped().vrl
        );
        assert!(locked.contains(&vrl), "{vrl}");
    }
}
