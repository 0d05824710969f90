//! `check` of one file, by a program with the kind `CloudDatabase`.

use std::process::ExitCode;

use bench_harness::root;
use lockstep_cloud_database_api::CloudDatabase;
use lockstep_sdk::controller::{ReconcileError, SyncReconciler, SyncRequest, SyncResponse};
use lockstep_sdk::{Audience, Operator, Program};

pub(super) fn check() -> impl FnMut() {
    let file = root().join("examples/valid/10-minimal.yaml");
    let arguments = ["lockstep".into(), "check".into(), file.into_os_string()];
    move || {
        let operator = Operator::of(Audience::Tenants, || SyncReconciler::new(sync));
        let program = Program::new("lockstep").operator(operator);
        assert_eq!(program.run_from(arguments.clone()), ExitCode::SUCCESS);
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the SDK calls it")]
fn sync(_: &SyncRequest<'_, CloudDatabase>) -> Result<SyncResponse, ReconcileError> {
    Ok(SyncResponse::new())
}
