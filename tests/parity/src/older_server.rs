//! CRDs for older API servers, which do not know every CEL function of the engine.

use kube::core::Status;
use serde_json::Value;

/// Returns the CRD without the rules that an API server has rejected because it does not know their functions, and the
/// paths of these rules. Returns nothing if the API server has rejected the CRD for another reason.
pub(crate) fn without_unknown_functions(
    crd: &Value,
    rejection: &Status,
) -> Option<(Value, Vec<String>)> {
    let causes = &rejection.details.as_ref()?.causes;
    let all_known = causes
        .iter()
        .all(|cause| cause.message.contains("undeclared reference to"));
    if causes.is_empty() || !all_known {
        return None;
    }
    let mut paths: Vec<_> = causes.iter().map(|cause| cause.field.clone()).collect();
    paths.sort();
    paths.dedup();
    let mut places: Vec<_> = paths
        .iter()
        .map(|path| rule_at(path))
        .collect::<Option<_>>()?;
    // The last rule of each list first, so that the indices of the others stay valid.
    places.sort_by_key(|(_, index)| std::cmp::Reverse(*index));
    let mut crd = crd.clone();
    for (list, index) in places {
        crd.pointer_mut(&list)?.as_array_mut()?.remove(index);
    }
    Some((crd, paths))
}

/// Converts the path of a rule, as the API server prints it, to the JSON pointer of its list and its index there.
fn rule_at(path: &str) -> Option<(String, usize)> {
    let path = path.strip_suffix(".rule")?.strip_suffix(']')?;
    let (list, index) = path.rsplit_once('[')?;
    // The API server shortens the path if the CRD has only one version.
    let list = list.replacen("spec.validation.", "spec.versions[0].schema.", 1);
    let mut pointer = String::new();
    let mut rest = list.as_str();
    while !rest.is_empty() {
        let token;
        (token, rest) = match rest.strip_prefix('[') {
            Some(bracket) => bracket.split_once(']')?,
            None => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
        };
        rest = rest.strip_prefix('.').unwrap_or(rest);
        pointer.push('/');
        pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
    }
    Some((pointer, index.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn crd() -> Value {
        json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"properties": {"a.b": {"items": {
            "x-kubernetes-validations": [{"rule": "old"}, {"rule": "new()"}, {"rule": "newer()"}],
        }}}}}}]}})
    }

    fn rejection(messages: [&str; 2]) -> Status {
        let list = "spec.validation.openAPIV3Schema.properties[a.b].items.x-kubernetes-validations";
        let causes = messages.iter().enumerate().map(|(index, message)| {
            json!({"field": format!("{list}[{}].rule", index + 1), "message": message, "reason": "FieldValueInvalid"})
        });
        let causes: Vec<_> = causes.collect();
        serde_json::from_value(json!({"details": {"causes": causes}})).expect("a Status")
    }

    #[test]
    fn rules_with_unknown_functions_are_left_out() {
        let unknown = "compilation failed: undeclared reference to 'new'";
        let (older, left_out) =
            without_unknown_functions(&crd(), &rejection([unknown; 2])).expect("a CRD");
        let rules =
            "/spec/versions/0/schema/openAPIV3Schema/properties/a.b/items/x-kubernetes-validations";
        assert_eq!(older.pointer(rules), Some(&json!([{"rule": "old"}])));
        assert_eq!(left_out.len(), 2);
    }

    #[test]
    fn another_rejection_changes_nothing() {
        let unknown = "undeclared reference to 'new'";
        assert!(
            without_unknown_functions(&crd(), &rejection([unknown, "must not be empty"])).is_none()
        );
    }
}
