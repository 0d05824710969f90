//! Any JSON text can be validated, as a new object and as an update of any other.

#![no_main]

use fuzz::{input, judges, mutate};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use shared_validation::{Accepted, Candidate, Judge, ReadJson, Verdict};

fuzz_target!(|data: &[u8]| {
    let Some((object, old)) = input::texts(data) else {
        return;
    };
    let Ok(object) = ReadJson::new(object) else {
        return;
    };
    let old = old.and_then(|old| ReadJson::new(old).ok());
    for judge in judges::all() {
        let new = Candidate::create(&object.value);
        judged(judge.as_ref(), &new);
        judged(judge.as_ref(), &new.strict().repeating(&object.duplicates));
        let Some(old) = &old else { continue };
        let accepted = Accepted::read(&old.value);
        let change = Candidate::update(&object.value, &old.value);
        judged(judge.as_ref(), &change.strict());
        judged(judge.as_ref(), &change.since(accepted.as_ref()));
    }
});

/// Validates a request and formats the message of the result.
fn judged(judge: &dyn Judge, candidate: &Candidate<'_>) -> Verdict {
    let verdict = judge.check(candidate);
    assert_eq!(verdict.is_valid(), verdict.message().is_empty());
    verdict
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::json_lines(data, size, max_size, seed, fuzzer_mutate)
});
