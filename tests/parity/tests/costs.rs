//! CEL rules of the shipped CRDs: their estimated costs are within the limits of the API server.

use std::fs;
use std::path::Path;

use lockstep_envtest::oracle;
use serde_json::Value;

#[test]
fn the_estimated_cost_of_every_rule_is_within_the_limit_of_the_api_server() {
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/config/crds");
    let entries = fs::read_dir(&manifests).expect("the folder of the manifests is readable");
    let mut checked = 0;
    for path in entries.map(|entry| entry.expect("the folder entry is readable").path()) {
        let is_crd = path
            .file_name()
            .is_some_and(|name| name != "kustomization.yaml");
        if !is_crd {
            continue;
        }
        let crd: Value =
            serde_saphyr::from_str(&fs::read_to_string(&path).expect("the CRD is readable"))
                .expect("the CRD is YAML");
        let costs =
            oracle("rule-costs", &crd).expect("the API server libraries estimate the costs");
        let limit = costs["limit"]
            .as_u64()
            .expect("the output contains the limit of a rule");
        let mut total: u64 = 0;
        for rule in costs["rules"]
            .as_array()
            .expect("the output contains the rules")
        {
            assert_eq!(rule["error"], Value::Null, "{rule}");
            let cost = rule["cost"].as_u64().expect("each rule has a cost");
            assert!(cost <= limit, "{rule} costs more than {limit}");
            println!("{:>9} of {limit}: {} {}", cost, rule["path"], rule["rule"]);
            total = total.saturating_add(cost);
            checked += 1;
        }
        assert!(
            total
                <= costs["totalLimit"]
                    .as_u64()
                    .expect("the output contains the limit of a CRD"),
            "the total cost {total} exceeds the limit of a CRD"
        );
    }
    assert!(checked > 5, "the CRDs contain hardly any CEL rules");
}
