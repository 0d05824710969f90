//! Chaos test of the operator of roles.

mod simulator;

use std::time::Duration;

use k8s_openapi::ByteString;
use lockstep_test::chaos::{ActualState, BrokenInvariant, Chaos, Process, chaos};
use sample_postgres_role::{ManagementApi, PostgresRole, PostgresRoles, desired, secret_name};
use serde_json::{Value, json};

use crate::simulator::PostgresServer;

fn operator(process: &Process) -> PostgresRoles {
    PostgresRoles {
        api: ManagementApi::new(process.external_url(), Duration::from_secs(5)),
        client: process.client(),
        leadership: process.leadership(),
    }
}

fn resources(object: &Value) -> Vec<Value> {
    let role: PostgresRole = serde_json::from_value(object.clone()).expect("a PostgresRole");
    let mut role = json!(desired(&role, ""));
    // The invariant compares it.
    role.as_object_mut().map(|role| role.remove("passwordId"));
    vec![role]
}

fn owned(object: &Value) -> Vec<Value> {
    let name = secret_name(object["metadata"]["name"].as_str().unwrap_or_default());
    vec![json!({
        "apiVersion": "v1", "kind": "Secret", "immutable": true, "metadata": {"name": name},
    })]
}

/// Compares the password of each role with that in its Secret.
fn passwords_agree(actual: &ActualState) -> Result<(), BrokenInvariant> {
    for role in actual.resources.values() {
        let is_of_role = |secret: &&Value| {
            let owner = &secret["metadata"]["ownerReferences"][0]["uid"];
            *owner == role["owner"]
        };
        let Some(secret) = actual.owned.iter().find(is_of_role) else {
            continue;
        };
        let password = role["password"].as_str().unwrap_or_default();
        let expected = json!(ByteString(password.as_bytes().to_vec()));
        if secret["data"]["password"] != expected {
            return Err(BrokenInvariant {
                object: role["name"].as_str().unwrap_or_default().to_owned(),
                found: "its Secret has another password than its role".to_owned(),
            });
        }
    }
    Ok(())
}

fn test() -> Chaos<PostgresRoles> {
    chaos(operator)
        .external(PostgresServer::default)
        .specs(|random, name| {
            let limit = random.u32(..100);
            json!({"roleName": name, "login": random.bool(), "connectionLimit": limit})
        })
        .expected_resources(resources)
        .expected_owned(owned)
        .expected_status(|object| {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            json!({"secretName": secret_name(name)})
        })
        .invariant(passwords_agree)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_survives_chaos() {
    println!("{:?}", test().seeds(6).run().await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes"]
async fn the_operator_survives_chaos_with_a_hundred_seeds() {
    println!("{:?}", test().seeds(100).run().await);
}
