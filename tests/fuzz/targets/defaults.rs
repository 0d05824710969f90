//! Defaulting only adds fields, returns a patch with all of them, and is idempotent.

#![no_main]

use fuzz::{input, mutate, validators};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use lockstep_shared_validation::{ValidationRequest, Validator};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Some((object, old)) = input::texts(data) else {
        return;
    };
    let read = |text: &str| serde_json::from_str(text).ok().filter(Value::is_object);
    let Some(object) = read(object) else { return };
    let old = old.and_then(read);
    for validator in validators::all() {
        keeps_its_promise(validator.as_ref(), &object, None);
        if let Some(old) = &old {
            keeps_its_promise(validator.as_ref(), &object, Some(old));
        }
    }
});

fn keeps_its_promise(validator: &dyn Validator, object: &Value, old: Option<&Value>) {
    let validate = |object: &Value| match old {
        Some(old) => validator.validate(&ValidationRequest::update(object, old)),
        None => validator.validate(&ValidationRequest::create(object)),
    };
    let result = validate(object);
    let mut patched = object.clone();
    json_patch::patch(&mut patched, &result.defaults).expect("the patch with the defaults applies");
    assert_eq!(
        patched, result.object,
        "the patch must produce the defaulted object"
    );
    let again = validate(&result.object);
    assert!(
        again.defaults.0.is_empty(),
        "defaulting is not idempotent: {}",
        again.defaults
    );
    assert_eq!(
        again.object, result.object,
        "validating again must not change the object"
    );
    if let Some(pointer) = lost(object, &result.object) {
        panic!("defaulting changed or removed {pointer}: {}", result.object);
    }
}

/// Returns the first place at which `after` lacks or changes a value of `before` that is not null.
fn lost(before: &Value, after: &Value) -> Option<String> {
    match (before, after) {
        (Value::Null, _) => None,
        (Value::Object(before), Value::Object(after)) => before
            .iter()
            .filter(|(_, value)| !value.is_null())
            .find_map(|(name, value)| {
                let below = match after.get(name) {
                    Some(after) => lost(value, after)?,
                    None => String::new(),
                };
                Some(format!("/{name}{below}"))
            }),
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => before
            .iter()
            .zip(after)
            .enumerate()
            .find_map(|(index, (before, after))| Some(format!("/{index}{}", lost(before, after)?))),
        _ => (before != after).then(String::new),
    }
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::json_lines(data, size, max_size, seed, fuzzer_mutate)
});
