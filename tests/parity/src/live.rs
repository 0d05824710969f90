//! Random objects with the responses of a live API server.

use futures::stream::{self, StreamExt};
use serde_json::Value;
use shared_validation::Validator;

use crate::case::Case;
use crate::generate::Generator;
use crate::response::{Answer, Difference, compare};
use crate::server::Server;

/// Number of random objects and the seed.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Number of new objects.
    pub objects: usize,
    /// Number of changes of stored objects, which may be invalid.
    pub changes: usize,
    /// Seed. The same seed gives the same objects.
    pub seed: u64,
}

/// Maximum number of requests for one case. The API server compares maps in random order and stops at the first key
/// that is missing or has another value, so that its response to such an object varies.
const MOST_ASKED: usize = 64;

/// Starts an API server with the CRD and sends it random objects. If its response differs from that of the engine, the
/// request is repeated, because the next response may be equal.
///
/// # Errors
///
/// If the server does not start or does not respond.
pub async fn ask(
    crd: &Value,
    version: &str,
    extent: Extent,
    validator: &dyn Validator,
) -> anyhow::Result<Vec<Case>> {
    let Extent {
        objects,
        changes,
        seed,
    } = extent;
    let server = Server::start(crd, version).await?;
    let mut generator = Generator::new(crd, version, seed);
    let mut cases: Vec<_> = (0..objects)
        .map(|index| Case::create(format!("create-{seed}-{index}"), &generator.next_object()))
        .collect();
    // Each stored object is changed several times.
    let olds = (0..changes.div_ceil(5))
        .map(|index| generator.named(&format!("stored-{index}")))
        .collect();
    let stored = server.store_unguarded(olds).await?;
    for (index, old) in stored
        .iter()
        .cycle()
        .take(changes.min(stored.len() * 5))
        .enumerate()
    {
        let new = generator.changed(old);
        cases.push(Case::update(
            format!("update-{seed}-{index}"),
            &new_on(old, new),
            old,
        ));
    }
    let server = &server;
    let answered = stream::iter(cases).map(|case| async move {
        let here = case.validate(validator)?;
        let mut answer = server.ask(&case).await?;
        let mut asked = 1;
        while differs(&answer, &here) && asked < MOST_ASKED {
            answer = server.ask(&case).await?;
            asked += 1;
        }
        anyhow::Ok(Case {
            answer: Some(answer),
            ..case
        })
    });
    let answered: Vec<_> = answered.buffered(16).collect().await;
    answered.into_iter().collect()
}

/// Returns true if more than the messages differ.
fn differs(answer: &Answer, here: &Answer) -> bool {
    let difference = compare(answer, here);
    difference.is_some_and(|it| !matches!(it, Difference::Messages(_)))
}

/// Returns an update with the metadata that the API server has added.
fn new_on(old: &Value, mut new: Value) -> Value {
    new["metadata"] = old["metadata"].clone();
    new
}
