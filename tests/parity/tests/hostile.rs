//! Malicious rules and objects: each is validated or rejected within a bounded time, and the process does not crash.

use lockstep_shared_validation::{CrdValidator, MAX_REPORTED, ValidationRequest, Validator};
use serde_json::{Value, json};

/// Returns a kind with these fields.
fn kind_with(properties: &Value) -> Result<CrdValidator, String> {
    let schema = json!({"type": "object", "properties": properties});
    let crd = json!({
        "spec": {
            "group": "example.com",
            "names": {"kind": "Trap", "plural": "traps"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    CrdValidator::compile(&crd, "v1").map_err(|error| error.to_string())
}

/// Returns a kind with strings, integers and one rule in its `spec`.
fn kind(rule: &str) -> Result<CrdValidator, String> {
    kind_with(&json!({"spec": {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "list": {"type": "array", "items": {"type": "integer"}},
            "set": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
        },
        "x-kubernetes-validations": [{"rule": rule, "message": "does not hold"}],
    }}))
}

/// Returns the errors of a rule for 300 integers, a set of 300 integers, and a string of 64 KiB.
fn errors(rule: &str) -> Vec<String> {
    let kind = kind(rule).expect("the rule compiles");
    let object = json!({
        "apiVersion": "example.com/v1",
        "kind": "Trap",
        "metadata": {"name": "trap"},
        "spec": {"text": "a".repeat(65_536), "list": vec![1; 300], "set": (0..300).collect::<Vec<_>>()},
    });
    let result = kind.validate(&ValidationRequest::create(&object));
    let messages = result.errors.iter();
    messages
        .map(|violation| violation.error.to_string().chars().take(400).collect())
        .collect()
}

/// Returns nested calls of `strings.quote`; the length of the result doubles with every level.
fn quoted(levels: usize) -> String {
    let (open, close) = ("strings.quote(".repeat(levels), ")".repeat(levels));
    format!("{open}self.text{close}")
}

#[test]
fn a_rule_that_would_run_for_years_exceeds_the_cost_budget() {
    for rule in [
        "self.list.all(a, self.list.all(b, self.list.all(c, self.list.all(d, a + b + c + d > 0))))",
        "self.list.map(a, self.list.map(b, self.list.map(c, self.list.map(d, d)))).size() > 0",
        "self.list.exists(a, self.list.filter(b, self.list.filter(c, self.list.exists(d, d < 0)).size() > 0).size() > 0)",
        // Strings that double with every step.
        "[self.text].map(t, t + t).map(t, t + t).map(t, t + t).map(t, t + t).map(t, t + t).map(t, t + t) \
         .map(t, t + t).map(t, t + t).map(t, t + t).map(t, t + t).map(t, t + t).map(t, t + t) \
         .map(t, t + t).map(t, t + t).map(t, t + t).map(t, t + t).map(t, t + t).map(t, t + t)[0].size() > 0",
        "self.text.replace('a', self.text).replace('a', self.text).size() > 0",
        "self.list.map(n, self.text).join(self.text + self.text + self.text).size() > 0",
        "'%s%s%s%s%s%s%s%s'.format([self.text, self.text, self.text, self.text, self.text, self.text, self.text, self.text]) \
         .replace('a', self.text).size() > 0",
        "self.list.map(n, self.list).flatten().map(n, self.list).flatten().size() > 0",
        // Functions that read large values repeatedly.
        "self.list.all(a, self.list.all(b, !self.text.matches('(a*)*(a*)*(a*)*b')))",
        "self.list.all(a, self.list.all(b, !self.text.contains('b') && self.text.size() > 0))",
        "self.list.all(a, self.list.all(b, self.list.all(c, self.list == self.list && !(0 in self.list))))",
        "self.list.all(a, self.list.all(b, [a] != self.set))",
        "self.list.map(n, '').join(self.text + self.text + self.text + self.text).size() > 0",
        // Each step adds little, but many steps together exceed the budget.
        &format!("{}.size() > 0", vec!["self.text"; 200].join(" + ")),
        &format!("({}).size() > 0", quoted(30)),
        &format!(
            "'{}'.format([{}]).size() > 0",
            "%s".repeat(400),
            vec!["self.text+self.text"; 400].join(",")
        ),
    ] {
        let errors = errors(rule);
        assert_eq!(errors.len(), 1, "{rule:.200}: {errors:?}");
        assert!(errors[0].contains("budget"), "{rule:.200}: {errors:?}");
    }
}

/// The cost accounting does not change the meaning of a rule.
#[test]
fn an_inexpensive_rule_is_evaluated_correctly() {
    for rule in [
        "self.list.all(n, sets.contains(self.list, [n]) && sets.equivalent([n], [1]))",
        "self.list.exists(n, strings.quote('a') == '\"a\"' && 'b' + 'c' + string(n) == 'bc1')",
        "self.list.all(n, optional.of(n).value() == 1 && ip.isCanonical('::1') && n in self.list)",
        "self.list.all(i, n, self.list[i] == n && self.text.size() == 65536 && self.text.startsWith('aa'))",
        "self.list.map(n, [n] + [n + 1]).all(p, p.sum() == 3 && p.join('-') == '1-2' || p.max() == 2)",
        "self.set == self.set.map(n, n) && self.set.map(n, n) == self.set && size(self.set + self.set) == 300",
        "self.list.filter(n, !format.dns1123Label().validate('abc').hasValue()).size() == 300",
    ] {
        assert_eq!(errors(rule), Vec::<String>::new(), "{rule}");
    }
}

#[test]
fn a_rule_that_is_expensive_to_compile_is_rejected_early() {
    let nested = format!("{}true{}", "(".repeat(20_000), ")".repeat(20_000));
    let negated = format!("{}true", "!".repeat(20_000));
    let chained = format!("self.list{} != null", ".map(x, x)".repeat(5_000));
    let long = vec!["self.text == 'a'"; 20_000].join(" || ");
    for (rule, sort) in [
        (nested.as_str(), "nested"),
        (&negated, "negated"),
        (&chained, "chained"),
        (&long, "long"),
        (&format!("1{} > 0", "+1".repeat(4_000)), "added up"),
        ("self.text.matches('((a{1000}){1000}){1000}')", "regex"),
    ] {
        let error = kind(rule)
            .err()
            .unwrap_or_else(|| panic!("the {sort} rule must not compile"));
        assert!(error.len() < 4096, "{sort}: {}", error.len());
    }
}

/// Objects of the maximum size of a request.
#[test]
fn a_large_object_is_validated_or_exceeds_the_budget() {
    let kind =
        kind("self.list.all(n, n >= 0) && !self.text.contains('b')").expect("the rule compiles");
    let validated = |spec: Value| {
        let object = json!({
            "apiVersion": "example.com/v1",
            "kind": "Trap",
            "metadata": {"name": "trap"},
            "spec": spec,
        });
        let request = ValidationRequest::create(&object).deny_unknown_fields();
        kind.validate(&request).errors.len()
    };
    assert_eq!(
        validated(json!({"text": "a".repeat(3 << 20), "list": []})),
        0
    );
    assert_eq!(validated(json!({"text": "", "list": vec![0; 100_000]})), 0);
    assert_eq!(
        validated(json!({"text": "", "list": vec![0; 1_500_000]})),
        1,
        "the rule exceeds the cost budget"
    );
    let stray: serde_json::Map<_, _> = (0..100_000).map(|n| (format!("f{n}"), json!(n))).collect();
    assert_eq!(
        validated(Value::Object(stray)),
        MAX_REPORTED,
        "of one error for every unknown field and one for the rule, as many as are reported"
    );
}

/// Comparison of every item with every other one: the number of comparisons is the square of the length of the list.
#[test]
fn a_list_that_would_take_hours_to_compare_is_rejected() {
    for rule in [
        "self.list.distinct().size() > 0",
        "sets.equivalent(self.list, self.list)",
        "sets.contains(self.list, self.list)",
    ] {
        let kind = kind(rule).expect("the rule compiles");
        let object = json!({
            "apiVersion": "example.com/v1",
            "kind": "Trap",
            "metadata": {"name": "trap"},
            "spec": {"list": (0..200_000).collect::<Vec<_>>()},
        });
        let result = kind.validate(&ValidationRequest::create(&object));
        assert!(!result.is_valid(), "{rule}");
    }
}

/// An update of many items takes no more work than the creation of as many items.
#[test]
fn items_of_a_long_list_are_correlated_with_their_old_values() {
    let kind = kind_with(&json!({"list": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": "self.size >= oldSelf.size"}],
        },
    }}))
    .expect("the rule compiles");
    let object = |size: usize| {
        let items = (0..60_000)
            .map(|n| json!({"name": n.to_string(), "size": if n == 59_999 { size } else { 1 }}));
        json!({"apiVersion": "example.com/v1", "kind": "Trap", "list": items.collect::<Vec<_>>()})
    };
    let (old, grown, shrunk) = (object(5), object(6), object(4));
    assert!(
        kind.validate(&ValidationRequest::update(&grown, &old))
            .is_valid()
    );
    let errors = kind
        .validate(&ValidationRequest::update(&shrunk, &old))
        .errors;
    let paths: Vec<_> = errors.iter().map(|error| error.at.as_str()).collect();
    assert_eq!(paths, ["list[59999]"]);
}
