//! Shutdown and readiness of the webhook.

use lockstep_envtest::eventually;

use crate::standalone_webhook::{StandaloneWebhook, send_on, start_http};

#[tokio::test(flavor = "multi_thread")]
async fn while_shutting_down_it_responds_and_closes_connections_until_a_second_signal() {
    let mut webhook = StandaloneWebhook::start(&["--shutdown-delay=1h"]).await;
    let mut connection = start_http(webhook.tls().await).await;
    let response = send_on(&mut connection).await.expect("a response");
    assert_eq!(response.headers().get("connection"), None);
    assert!(webhook.readiness().await.starts_with("HTTP/1.1 200"));

    webhook.process().terminate().expect("a signal");
    eventually("the failure of the readiness probe", async || {
        let readiness = webhook.readiness().await;
        (readiness.starts_with("HTTP/1.1 503") && readiness.ends_with("draining")).then_some(())
    })
    .await
    .expect("the readiness probe fails");
    let response = send_on(&mut connection)
        .await
        .expect("the open connection is still served");
    assert_eq!(response.status(), 200);
    let connection = response.headers().get("connection");
    assert_eq!(
        connection.map(|value| value.as_bytes()),
        Some(&b"close"[..])
    );
    assert_eq!(
        webhook.send_review().await.status(),
        200,
        "a new connection is served too"
    );
    assert!(
        webhook.is_alive().await,
        "the liveness probe succeeds until the exit"
    );

    webhook.process().terminate().expect("a second signal");
    let status = eventually("the exit", async || webhook.process().exit_status()).await;
    assert_eq!(status.expect("the process ends").code(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_certificate_the_webhook_is_alive_but_not_ready() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_owned();
    let ca = crate::standalone_webhook::new_ca();
    let webhook = StandaloneWebhook::start_unready(directory, ca, &[]);
    eventually("the success of the liveness probe", async || {
        webhook.is_alive().await.then_some(())
    })
    .await
    .expect("the webhook is alive");
    let readiness = webhook.readiness().await;
    assert!(readiness.starts_with("HTTP/1.1 503"), "{readiness}");
    assert!(
        readiness.ends_with("no serving certificate yet"),
        "{readiness}"
    );
    crate::standalone_webhook::write_pair(&path, &crate::standalone_webhook::pair_of(&webhook.ca));
    eventually("the readiness of the webhook", async || {
        let readiness = webhook.readiness().await;
        readiness.starts_with("HTTP/1.1 200").then_some(())
    })
    .await
    .expect("the webhook becomes ready");
    assert_eq!(webhook.send_review().await.status(), 200);
}
