//! CloudDatabase as a kind that can be judged.

use serde_json::Value;
use shared_validation::{CompileError, DynamicDefault, Kind, Rule, Ruleset};

use crate::engine::Engine;
use crate::spec::CloudDatabase;
use crate::{crd, rules};

/// Everything compiled for CloudDatabase.
pub fn ruleset() -> Result<Ruleset<CloudDatabase>, CompileError> {
    Ruleset::compile()
}

impl Kind for CloudDatabase {
    const GROUP: &'static str = "database.example.com";
    const VERSION: &'static str = "v1alpha1";
    const KIND: &'static str = "CloudDatabase";

    fn crd() -> Value {
        crd::crd()
    }

    fn rules() -> Vec<Rule<Self>> {
        rules::all()
    }

    fn dynamic_defaults() -> Vec<DynamicDefault> {
        fn engine(object: &Value) -> Option<Engine> {
            Engine::parse(object.pointer("/spec/engine")?.as_str()?)
        }
        vec![
            DynamicDefault {
                field: "spec.engineVersion",
                value: |object| Some(engine(object)?.default_version().into()),
            },
            DynamicDefault {
                field: "spec.port",
                value: |object| Some(engine(object)?.default_port().into()),
            },
        ]
    }

    fn remembered_fields() -> &'static [&'static str] {
        &[
            "spec.credentials.username",
            "spec.databaseName",
            "spec.deletionPolicy",
            "spec.deletionProtection",
        ]
    }
}
