//! Time-out of writes to a connection: a client that does not read must not hold memory.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Duration, Sleep, sleep};

/// Stream whose writes fail if the client does not read for too long. The time begins when a write has to wait, and ends when
/// all bytes are written, so that a client that reads a byte from time to time has no more of it.
pub(crate) struct WriteTimeout<S> {
    stream: S,
    timeout: Duration,
    /// End of the time, while a write waits.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    pub(crate) fn new(stream: S, timeout: Duration) -> Self {
        Self {
            stream,
            timeout,
            deadline: None,
        }
    }

    /// Passes a result on, unless the time is over.
    fn limited<T>(
        &mut self,
        context: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_pending() {
            let timeout = self.timeout;
            let deadline = self
                .deadline
                .get_or_insert_with(|| Box::pin(sleep(timeout)));
            if deadline.as_mut().poll(context).is_ready() {
                let error = io::Error::new(io::ErrorKind::TimedOut, "the client does not read");
                return Poll::Ready(Err(error));
            }
        }
        result
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limited(context, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(context);
        if result.is_ready() {
            self.deadline = None;
        }
        self.limited(context, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(context);
        self.limited(context, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.limited(context, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_write_fails_if_the_client_does_not_read_all_of_it_in_time() {
        let limit = Duration::from_secs(10);
        let (stream, mut client) = duplex(4);
        let mut stream = WriteTimeout::new(stream, limit);
        let slow_reader = async {
            let mut byte = [0];
            while client.read_exact(&mut byte).await.is_ok() {
                sleep(Duration::from_secs(1)).await;
            }
        };
        let writing = async {
            stream.write_all(&[0; 8]).await.expect("read in time");
            stream.flush().await.expect("flushed");
            stream.write_all(&[0; 64]).await.expect_err("too slow")
        };
        let error = tokio::select! {
            error = writing => error,
            () = slow_reader => unreachable!("the stream is open"),
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_without_a_pending_write_has_no_timeout() {
        let (stream, mut client) = duplex(64);
        let mut stream = WriteTimeout::new(stream, Duration::from_secs(1));
        stream.write_all(&[0; 8]).await.expect("room");
        stream.flush().await.expect("flushed");
        let mut byte = [0];
        let silence = timeout(Duration::from_mins(1), stream.read_exact(&mut byte)).await;
        assert!(silence.is_err(), "nothing has arrived");
        client.write_all(&[1]).await.expect("open");
        stream.read_exact(&mut byte).await.expect("a byte");
    }
}
