//! How the gate ends.

use control_plane::eventually;

use crate::alone::{Alone, ask_on, speak};

#[tokio::test(flavor = "multi_thread")]
async fn while_it_stops_it_answers_and_sends_everybody_away_until_a_second_signal() {
    let mut gate = Alone::start(&["--shutdown-delay=1h"]).await;
    let mut standing = speak(gate.tls().await).await;
    let answer = ask_on(&mut standing).await.expect("an answer");
    assert_eq!(answer.headers().get("connection"), None);
    assert!(gate.readiness().await.starts_with("HTTP/1.1 200"));

    gate.process().terminate().expect("a signal");
    eventually("readiness failing", async || {
        let readiness = gate.readiness().await;
        (readiness.starts_with("HTTP/1.1 503") && readiness.ends_with("draining")).then_some(())
    })
    .await
    .expect("it fails");
    let answer = ask_on(&mut standing).await.expect("it is still answered");
    assert_eq!(answer.status(), 200);
    let connection = answer.headers().get("connection");
    assert_eq!(
        connection.map(|value| value.as_bytes()),
        Some(&b"close"[..])
    );
    assert_eq!(gate.ask().await.status(), 200, "also on a new connection");
    assert!(gate.is_alive().await, "it lives until it ends");

    gate.process().terminate().expect("a second signal");
    let status = eventually("its end", async || gate.process().exit_status()).await;
    assert_eq!(status.expect("it ends").code(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_certificate_it_lives_and_is_not_ready() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_owned();
    let ca = crate::alone::new_ca();
    let gate = Alone::start_unready(directory, ca, &[]);
    eventually("it being alive", async || {
        gate.is_alive().await.then_some(())
    })
    .await
    .expect("it is");
    let readiness = gate.readiness().await;
    assert!(readiness.starts_with("HTTP/1.1 503"), "{readiness}");
    assert!(
        readiness.ends_with("no serving certificate yet"),
        "{readiness}"
    );
    crate::alone::write_pair(&path, &crate::alone::pair_of(&gate.ca));
    eventually("it being ready", async || {
        let readiness = gate.readiness().await;
        readiness.starts_with("HTTP/1.1 200").then_some(())
    })
    .await
    .expect("it becomes ready");
    assert_eq!(gate.ask().await.status(), 200);
}
