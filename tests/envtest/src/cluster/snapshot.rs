//! Snapshot of the content of etcd, to which a cluster returns after a test.

use std::collections::BTreeMap;

use http::{Request, Uri};
use kube::{Client, Config};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::Error;

/// First key, and the key behind the last one, of all objects: `/registry/` and its successor, in Base64.
const KEYS: [&str; 2] = ["L3JlZ2lzdHJ5Lw==", "L3JlZ2lzdHJ5MA=="];

/// Number of operations in one transaction. By default, etcd accepts at most 128.
const OPERATIONS: usize = 100;

/// Keys and values of all objects.
pub(crate) struct Snapshot(BTreeMap<String, Entry>);

#[derive(Clone, Debug, Deserialize)]
struct Entry {
    key: String,
    #[serde(default)]
    value: String,
    /// Revision of the last write.
    mod_revision: String,
}

impl Snapshot {
    /// Reads the content of an etcd.
    pub(crate) async fn read(etcd_url: &str) -> Result<Self, Error> {
        let client = client(etcd_url)?;
        Ok(Self(entries(&client, false).await?))
    }

    /// Deletes everything that was created later, and writes everything else again that has changed.
    ///
    /// The API server notices this as any other change: it watches etcd. No finalizer and no webhook can prevent it.
    pub(crate) async fn restore(&mut self, etcd_url: &str) -> Result<(), Error> {
        let client = client(etcd_url)?;
        let present = entries(&client, true).await?;
        let added = present.keys().filter(|key| !self.0.contains_key(*key));
        let deletions = added.map(|key| json!({"request_delete_range": {"key": key}}));
        let changed = self.0.values().filter(|entry| {
            let now = present.get(&entry.key);
            now.is_none_or(|now| now.mod_revision != entry.mod_revision)
        });
        let writes = changed
            .map(|Entry { key, value, .. }| json!({"request_put": {"key": key, "value": value}}));
        let operations: Vec<Value> = deletions.chain(writes).collect();
        for operations in operations.chunks(OPERATIONS) {
            let _: Value = post(&client, "/v3/kv/txn", &json!({"success": operations})).await?;
        }
        // The written entries have new revisions.
        let revisions = entries(&client, true).await?;
        for (key, entry) in &mut self.0 {
            if let Some(now) = revisions.get(key) {
                entry.mod_revision.clone_from(&now.mod_revision);
            }
        }
        Ok(())
    }
}

async fn entries(client: &Client, keys_only: bool) -> Result<BTreeMap<String, Entry>, Error> {
    #[derive(Deserialize)]
    struct Range {
        #[serde(default)]
        kvs: Vec<Entry>,
    }
    let [first, end] = KEYS;
    let range = json!({"key": first, "range_end": end, "keys_only": keys_only});
    let Range { kvs } = post(client, "/v3/kv/range", &range).await?;
    let with_key = kvs.into_iter().map(|entry| (entry.key.clone(), entry));
    Ok(with_key.collect())
}

/// Returns a client of etcd's HTTP interface, which takes the messages of its gRPC interface as JSON.
fn client(etcd_url: &str) -> Result<Client, Error> {
    let url: Uri = etcd_url.parse().expect("the URL of a test cluster");
    Ok(Client::try_from(Config::new(url))?)
}

async fn post<T: for<'a> Deserialize<'a>>(
    client: &Client,
    path: &str,
    body: &Value,
) -> Result<T, Error> {
    let request = Request::post(path).body(body.to_string().into_bytes());
    Ok(client.request(request.expect("a request")).await?)
}
