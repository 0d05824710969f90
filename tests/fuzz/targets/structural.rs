//! Any JSON text can be validated, as a new object and as an update of any other.

#![no_main]

use fuzz::{input, mutate, validators};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use lockstep_shared_validation::{
    LastValidated, ParsedJson, ValidationRequest, ValidationResult, Validator,
};

fuzz_target!(|data: &[u8]| {
    let Some((object, old)) = input::texts(data) else {
        return;
    };
    let Ok(object) = ParsedJson::parse(object) else {
        return;
    };
    let old = old.and_then(|old| ParsedJson::parse(old).ok());
    for validator in validators::all() {
        let new = ValidationRequest::create(&object.value);
        validated(validator.as_ref(), &new);
        validated(
            validator.as_ref(),
            &new.deny_unknown_fields()
                .with_duplicate_keys(&object.duplicate_keys),
        );
        let Some(old) = &old else { continue };
        let last_validated = LastValidated::from_status_of(&old.value);
        let change = ValidationRequest::update(&object.value, &old.value);
        validated(validator.as_ref(), &change.deny_unknown_fields());
        validated(
            validator.as_ref(),
            &change.with_last_validated(last_validated.as_ref()),
        );
    }
});

/// Validates a request and formats the message of the result.
fn validated(validator: &dyn Validator, request: &ValidationRequest<'_>) -> ValidationResult {
    let result = validator.validate(request);
    assert_eq!(result.is_valid(), result.message().is_empty());
    result
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::json_lines(data, size, max_size, seed, fuzzer_mutate)
});
