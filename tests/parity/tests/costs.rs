//! The CEL rules that we ship are within what the API server allows, as it estimates them itself.

use std::fs;
use std::path::Path;

use control_plane::oracle;
use serde_json::Value;

#[test]
fn every_rule_is_estimated_within_the_budget_of_the_api_server() {
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests");
    let entries = fs::read_dir(&manifests).expect("the manifests");
    let mut checked = 0;
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        let is_crd = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("crd-"));
        if !is_crd {
            continue;
        }
        let crd: Value =
            serde_saphyr::from_str(&fs::read_to_string(&path).expect("a CRD")).expect("YAML");
        let costs = oracle("rule-costs", &crd).expect("costs");
        let limit = costs["limit"].as_u64().expect("a limit");
        let mut total: u64 = 0;
        for rule in costs["rules"].as_array().expect("rules") {
            assert_eq!(rule["error"], Value::Null, "{rule}");
            let cost = rule["cost"].as_u64().expect("a cost");
            assert!(cost <= limit, "{rule} costs more than {limit}");
            println!("{:>9} of {limit}: {} {}", cost, rule["path"], rule["rule"]);
            total = total.saturating_add(cost);
            checked += 1;
        }
        assert!(
            total <= costs["totalLimit"].as_u64().expect("a limit"),
            "together {total}"
        );
    }
    assert!(checked > 5, "the CRDs have lost their rules");
}
