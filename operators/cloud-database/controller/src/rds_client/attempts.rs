//! Attempts of one call of the AWS SDK, which reports only the answer to the last one: whether one of them may have been
//! carried out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_rds::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_rds::error::ProvideErrorMetadata;
use aws_sdk_rds::operation::modify_db_instance::ModifyDBInstanceError;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeTransmitInterceptorContextRef, FinalizerInterceptorContextRef,
};

use crate::error_code;

/// Interceptor of one call of `ModifyDBInstance`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempts(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// An attempt is on its way. That stays so if the call ends before its answer.
    is_sent: AtomicBool,
    /// The answer of an attempt was lost, or does not say that it was not carried out.
    is_open: AtomicBool,
}

impl Attempts {
    /// Returns true unless each attempt was answered with an error that says that it was not carried out, or none was sent.
    pub(crate) fn may_be_done(&self) -> bool {
        self.0.is_sent.load(Ordering::SeqCst) || self.0.is_open.load(Ordering::SeqCst)
    }
}

impl Intercept for Attempts {
    fn name(&self) -> &'static str {
        "Attempts"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.0.is_sent.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let error = context.output_or_error().and_then(Result::err);
        let error = error.and_then(|error| error.as_operation_error());
        let error = error.and_then(|error| error.downcast_ref::<ModifyDBInstanceError>());
        let code = error.and_then(ProvideErrorMetadata::code);
        let status = context.response().map(|it| it.status().as_u16());
        let was_sent = self.0.is_sent.swap(false, Ordering::SeqCst);
        if was_sent && !error_code::is_not_carried_out(code, status) {
            self.0.is_open.store(true, Ordering::SeqCst);
        }
        Ok(())
    }
}
