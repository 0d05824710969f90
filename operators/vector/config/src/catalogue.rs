//! Catalogue of one version of Vector: component types, their options and their event types.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hasher;
use std::sync::{Arc, OnceLock};

use fnv::FnvHasher;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::catalogue_error::CatalogueError;
use crate::component::ComponentKind;
use crate::event_type::DataType;
use crate::options::Options;
use crate::vector_version::VectorVersion;

/// Catalogue of the default version.
const SHIPPED: &str = include_str!("../catalogue/0.57.json");

/// Catalogue of the version after it.
const NEXT: &str = include_str!("../catalogue/0.58.json");

/// Catalogue of one version of Vector.
pub struct Catalogue {
    /// Version of Vector.
    pub version: String,
    /// Version of VRL.
    pub vrl: String,
    number: VectorVersion,
    digest: u64,
    sources: HashMap<String, Entry>,
    transforms: HashMap<String, Entry>,
    sinks: HashMap<String, Entry>,
    /// Global options.
    globals: Entry,
    /// Event types that the decoders of sources output, if not only logs.
    pub(crate) decoders: BTreeMap<String, DataType>,
    /// Event types that the encoders of sinks accept, if not only logs.
    pub(crate) encoders: BTreeMap<String, DataType>,
    /// Definitions that options refer to, not yet parsed: most are never needed.
    definitions: HashMap<String, Box<RawValue>>,
}

/// Component type.
pub struct Entry {
    /// Event types that the component accepts.
    pub(crate) accepts: DataType,
    /// Event types that the component outputs, if it has no named outputs.
    pub(crate) gives: DataType,
    /// Event types of each named output.
    pub(crate) outputs: BTreeMap<String, DataType>,
    /// Aliases of options, with the names of the options.
    pub(crate) aliases: BTreeMap<String, String>,
    options: Box<RawValue>,
    compiled: OnceLock<Options>,
}

#[derive(Deserialize)]
struct File {
    version: String,
    vrl: String,
    sources: HashMap<String, EntryFile>,
    transforms: HashMap<String, EntryFile>,
    sinks: HashMap<String, EntryFile>,
    globals: Box<RawValue>,
    decoders: BTreeMap<String, DataType>,
    encoders: BTreeMap<String, DataType>,
    definitions: HashMap<String, Box<RawValue>>,
}

#[derive(Deserialize)]
struct EntryFile {
    #[serde(default)]
    accepts: DataType,
    #[serde(default)]
    gives: DataType,
    #[serde(default)]
    outputs: BTreeMap<String, DataType>,
    #[serde(default)]
    aliases: BTreeMap<String, String>,
    options: Box<RawValue>,
}

impl Entry {
    /// Returns the aliases of options, with the names of the options.
    #[must_use]
    pub fn aliases(&self) -> &BTreeMap<String, String> {
        &self.aliases
    }

    /// Returns the name of an option and its aliases.
    pub fn names_of<'a>(&'a self, option: &'a str) -> impl Iterator<Item = &'a str> {
        let aliases = self.aliases.iter();
        let aliases = aliases.filter(move |(_, name)| *name == option);
        [option]
            .into_iter()
            .chain(aliases.map(|(alias, _)| alias.as_str()))
    }
}

impl From<EntryFile> for Entry {
    fn from(file: EntryFile) -> Self {
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
    /// Returns the catalogue of the default version, which is compiled into this program.
    #[must_use]
    pub fn shipped() -> &'static Arc<Self> {
        static CATALOGUE: OnceLock<Arc<Catalogue>> = OnceLock::new();
        Self::compiled_in(&CATALOGUE, SHIPPED)
    }

    /// Returns the catalogue of a version that is compiled into this program: of these versions, the results were compared
    /// with those of Vector.
    #[must_use]
    pub fn of_version(version: VectorVersion) -> Option<&'static Arc<Self>> {
        static NEXT_CATALOGUE: OnceLock<Arc<Catalogue>> = OnceLock::new();
        match version {
            VectorVersion::DEFAULT => Some(Self::shipped()),
            VectorVersion::V0_58 => Some(Self::compiled_in(&NEXT_CATALOGUE, NEXT)),
            _ => None,
        }
    }

    fn compiled_in(parsed: &'static OnceLock<Arc<Self>>, text: &str) -> &'static Arc<Self> {
        parsed.get_or_init(|| {
            let catalogue = Self::parse(text);
            Arc::new(catalogue.expect("the generated catalogue is valid"))
        })
    }

    /// Reads a catalogue of another version of Vector.
    ///
    /// # Errors
    ///
    /// If the text is not a catalogue, for example because another version of the generator wrote it.
    pub fn load(text: &str) -> Result<Arc<Self>, CatalogueError> {
        let catalogue = Self::parse(text)?;
        catalogue.validate()?;
        Ok(Arc::new(catalogue))
    }

    fn parse(text: &str) -> Result<Self, CatalogueError> {
        let file: File = serde_json::from_str(text)?;
        let number = VectorVersion::parse(&file.version);
        let entries = |files: HashMap<String, EntryFile>| {
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
        Ok(Self {
            number: number.ok_or(CatalogueError::Version(file.version.clone()))?,
            version: file.version,
            vrl: file.vrl,
            digest: digest(text),
            sources: entries(file.sources),
            transforms: entries(file.transforms),
            sinks: entries(file.sinks),
            globals: globals.into(),
            decoders: file.decoders,
            encoders: file.encoders,
            definitions: file.definitions,
        })
    }

    /// Compiles all options, so that an error in a file is found when it is read.
    fn validate(&self) -> Result<(), CatalogueError> {
        let families = [&self.sources, &self.transforms, &self.sinks];
        for entry in families.into_iter().flat_map(HashMap::values) {
            self.compile(entry)?;
        }
        self.compile_globals().map(|_| ())
    }

    /// Returns the version of Vector as a number.
    #[must_use]
    pub fn number(&self) -> VectorVersion {
        self.number
    }

    /// Returns true if this is the catalogue that is compiled into the program: of another one, only the options are
    /// known, and the rest is assumed to be as in this version.
    #[must_use]
    pub fn is_shipped(&self) -> bool {
        self.digest == Self::shipped().digest
    }

    /// Returns a fingerprint of the content. It changes when a catalogue is corrected, even if the version of Vector is
    /// the same.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Returns a component type, if it exists.
    #[must_use]
    pub fn entry(&self, family: ComponentKind, kind: &str) -> Option<&Entry> {
        self.family(family).get(kind)
    }

    /// Returns the names of all types of a component kind, sorted.
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

    /// Returns the options of a component type, which are compiled on first use.
    pub fn options<'a>(&'a self, entry: &'a Entry) -> &'a Options {
        entry
            .compiled
            .get_or_init(|| self.compile(entry).expect("catalogues are valid"))
    }

    /// Returns the global options, which are compiled on first use.
    pub(crate) fn globals(&self) -> &Options {
        self.globals
            .compiled
            .get_or_init(|| self.compile_globals().expect("catalogues are valid"))
    }

    fn compile(&self, entry: &Entry) -> Result<Options, CatalogueError> {
        let node = serde_json::from_str(entry.options.get())?;
        Options::compile(&node, self.number, |name| self.definition(name))
    }

    fn compile_globals(&self) -> Result<Options, CatalogueError> {
        let properties: Value = serde_json::from_str(self.globals.options.get())?;
        let node = serde_json::json!({"type": "object", "closed": true, "properties": properties});
        Options::compile(&node, self.number, |name| self.definition(name))
    }

    fn definition(&self, name: &str) -> Option<&RawValue> {
        self.definitions.get(name).map(AsRef::as_ref)
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = FnvHasher::default();
    hasher.write(text.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use lockstep_vector_vrl::VRL_VERSION;

    use super::*;

    #[test]
    fn a_file_that_is_no_catalogue_is_an_error() {
        let load = |text: String| {
            Catalogue::load(&text)
                .map(|_| ())
                .map_err(|it| it.to_string())
        };
        let wrong = load("{}".to_owned()).expect_err("no catalogue");
        assert!(wrong.contains("missing field `version`"), "{wrong}");
        let changed = |from: &str, to: &str| {
            assert!(SHIPPED.contains(from), "{from}");
            load(SHIPPED.replacen(from, to, 1))
        };
        let version = changed(r#""version":"0.57""#, r#""version":"latest""#);
        assert!(version.expect_err("no version").contains("`latest`"));
        let name = "codecs::decoding::format::avro::AvroDeserializerOptions";
        let missing = changed(&format!(r#""{name}":{{"#), r#""another":{"#);
        assert!(missing.expect_err("no definition").contains(name));
        let schema = changed(r#""type":"object""#, r#""type":"objekt""#);
        assert!(schema.expect_err("no schema").contains("objekt"));
        assert_eq!(
            changed(r#""version":"0.57""#, r#""version":"0.58""#),
            Ok(())
        );
    }

    #[test]
    fn the_vrl_version_of_the_newest_catalogue_is_the_locked_one() {
        let locked = include_str!("../../../../Cargo.lock");
        let vrl = format!("name = \"vrl\"\nversion = \"{VRL_VERSION}\"\n");
        assert!(locked.contains(&vrl), "{vrl}");
        let [_, newest] = VectorVersion::MEASURED;
        let newest = Catalogue::of_version(newest).expect("a catalogue");
        assert_eq!(newest.vrl, VRL_VERSION);
    }
}
