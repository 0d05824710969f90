//! Every case in `tests/cases` gets the result that it expects from the command `check`, from an API server with the
//! webhook, and from the controller without the webhook.

use lockstep_test::Cases;

#[tokio::test(flavor = "multi_thread")]
async fn every_case_gets_the_expected_result_everywhere() {
    let cases = Cases::read(env!("CARGO_BIN_EXE_note-operator"), "tests/cases");
    cases.are_as_expected_everywhere().await;
}
