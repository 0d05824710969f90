//! Attempts of one call of the AWS SDK, which reports only the answer to the last one: whether one of them may have been
//! carried out.

use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_rds::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_rds::error::ProvideErrorMetadata;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeTransmitInterceptorContextRef, FinalizerInterceptorContextRef,
};

use crate::aws::error_code;

/// Interceptor of one call of the operation with the error `E`.
pub(crate) struct Attempts<E> {
    state: Arc<State>,
    operation: PhantomData<fn() -> E>,
}

#[derive(Debug, Default)]
struct State {
    /// An attempt is on its way. That stays so if the call ends before its answer.
    is_sent: AtomicBool,
    /// The answer of an attempt was lost, or does not say that it was not carried out.
    is_open: AtomicBool,
}

impl<E> Attempts<E> {
    /// Returns true unless each attempt was answered with an error that says that it was not carried out, or none was sent.
    pub(crate) fn may_be_done(&self) -> bool {
        self.state.is_sent.load(Ordering::SeqCst) || self.state.is_open.load(Ordering::SeqCst)
    }
}

// Derived implementations would require the same of the error.
impl<E> Default for Attempts<E> {
    fn default() -> Self {
        Self {
            state: Arc::default(),
            operation: PhantomData,
        }
    }
}

impl<E> Clone for Attempts<E> {
    fn clone(&self) -> Self {
        Self {
            state: Arc::clone(&self.state),
            operation: PhantomData,
        }
    }
}

impl<E> fmt::Debug for Attempts<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Attempts")
            .field(&self.state)
            .finish()
    }
}

impl<E: ProvideErrorMetadata + Error + Send + Sync + 'static> Intercept for Attempts<E> {
    fn name(&self) -> &'static str {
        "Attempts"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.state.is_sent.store(true, Ordering::SeqCst);
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
        let code = error
            .and_then(|error| error.downcast_ref::<E>())
            .and_then(ProvideErrorMetadata::code);
        let status = context
            .response()
            .map(|response| response.status().as_u16());
        let was_sent = self.state.is_sent.swap(false, Ordering::SeqCst);
        if was_sent && !error_code::is_not_carried_out(code, status) {
            self.state.is_open.store(true, Ordering::SeqCst);
        }
        Ok(())
    }
}
