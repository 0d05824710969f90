//! Random objects, and what a live API server says to them.

use futures::stream::{self, StreamExt};
use serde_json::Value;
use shared_validation::Validator;

use crate::answer::{Answer, Difference, compare};
use crate::case::Case;
use crate::generate::Generator;
use crate::server::Server;

/// How many random objects, and where chance begins.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// New objects.
    pub objects: usize,
    /// Changes of stored objects, which need not be valid.
    pub changes: usize,
    /// The same seed gives the same objects.
    pub seed: u64,
}

/// How often the API server is asked at most. It compares maps in any order, and stops at the first key that is not
/// there or whose value fails: such an object has several answers.
const MOST_ASKED: usize = 64;

/// Starts an API server with the CRD and asks it about random objects: again where the judge says something else, for
/// as long as it may yet say the same.
///
/// # Errors
///
/// When the server does not start or does not answer.
pub async fn ask(
    crd: &Value,
    version: &str,
    extent: Extent,
    judge: &dyn Validator,
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
    // Several changes of each stored object.
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
        let here = case.judge(judge)?;
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

/// Whether more than words is different.
fn differs(answer: &Answer, here: &Answer) -> bool {
    let difference = compare(answer, here);
    difference.is_some_and(|it| !matches!(it, Difference::Messages(_)))
}

/// An update that carries what the API server has added.
fn new_on(old: &Value, mut new: Value) -> Value {
    new["metadata"] = old["metadata"].clone();
    new
}
