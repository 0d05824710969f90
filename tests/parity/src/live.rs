//! Random objects with the responses of a live API server.

use futures::stream::{self, StreamExt};
use lockstep_shared_validation::CrdValidator;
use serde_json::Value;

use crate::case::Case;
use crate::generate::Generator;
use crate::response::{Difference, Response, compare};
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
const MAX_REQUESTS: usize = 64;

/// Random objects with the responses of an API server.
pub struct RecordedResponses {
    /// Objects and responses.
    pub cases: Vec<Case>,
    /// Validator for the CRD that the API server had.
    pub validator: CrdValidator,
    /// Paths of the rules that the API server cannot compile, because it is older. Neither of the two had them.
    pub left_out: Vec<String>,
}

/// Starts an API server with the CRD and sends it random objects. If its response differs from that of the engine, the
/// request is repeated, because the next response may be equal.
///
/// # Errors
///
/// If the server does not start or does not respond.
pub async fn record_responses(
    crd: &Value,
    version: &str,
    extent: Extent,
) -> anyhow::Result<RecordedResponses> {
    let Extent {
        objects,
        changes,
        seed,
    } = extent;
    let server = Server::start(crd, version).await?;
    let crd = server.crd();
    let validator = CrdValidator::compile(crd, version)?;
    let mut generator = Generator::new(crd, version, seed);
    let mut cases: Vec<_> = (0..objects)
        .map(|index| Case::create(format!("create-{seed}-{index}"), &generator.next_object()))
        .collect();
    // Each stored object is changed several times.
    let olds = (0..changes.div_ceil(5))
        .map(|index| generator.named(&format!("stored-{index}")))
        .collect();
    let stored = server.store_without_validation(olds).await?;
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
    let (server, compared) = (&server, &validator);
    let compared = stream::iter(cases).map(|case| async move {
        let engine = case.validate(compared)?;
        let mut response = server.send_case(&case).await?;
        let mut requests = 1;
        while differs(&response, &engine) && requests < MAX_REQUESTS {
            response = server.send_case(&case).await?;
            requests += 1;
        }
        anyhow::Ok(Case {
            response: Some(response),
            ..case
        })
    });
    let compared: Vec<_> = compared.buffered(16).collect().await;
    Ok(RecordedResponses {
        cases: compared.into_iter().collect::<anyhow::Result<_>>()?,
        left_out: server.left_out().to_vec(),
        validator,
    })
}

/// Returns true if more than the messages differ.
fn differs(response: &Response, engine: &Response) -> bool {
    let difference = compare(response, engine);
    difference.is_some_and(|it| !matches!(it, Difference::Messages(_)))
}

/// Returns an update with the metadata that the API server has added.
fn new_on(old: &Value, mut new: Value) -> Value {
    new["metadata"] = old["metadata"].clone();
    new
}
