//! Calls to the SQS queue.

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{
    DeleteMessageBatchRequestEntry, Message as SqsMessage, MessageSystemAttributeName,
};

use crate::aws::call_error::CallError;
use crate::aws::environment;
use crate::aws::metrics::{AwsRequests, CountRequests};
use crate::aws::rds_events::queue_address::QueueAddress;

/// Time for which the queue waits for messages, the longest that SQS allows.
const WAIT_TIME: Duration = Duration::from_secs(20);

/// Time after which a call counts as failed.
const CALL_DEADLINE: Duration = Duration::from_secs(30);

/// Maximum number of messages of a call.
const MAX_MESSAGES: u8 = 10;

/// Time for which no other client receives a message that was received here. A message that is not deleted is delivered again
/// afterwards.
pub(crate) const VISIBILITY_TIMEOUT: Duration = Duration::from_mins(1);

/// Received message.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) body: String,
    /// Handle with which this delivery of the message is deleted.
    pub(crate) receipt: String,
    /// Number of deliveries up to this one.
    pub(crate) deliveries: u32,
}

/// SQS queue.
#[derive(Clone, Debug)]
pub struct EventsQueue {
    client: Client,
    pub(crate) url: String,
}

impl EventsQueue {
    /// Creates a client with the credentials of the environment. The `requests` count its calls.
    pub async fn from_environment(address: QueueAddress, requests: AwsRequests) -> Self {
        let config = environment::load(address.region, CALL_DEADLINE).await;
        let counted = aws_sdk_sqs::config::Builder::from(&config);
        let counted = counted.interceptor(CountRequests(requests));
        Self {
            client: Client::from_conf(counted.build()),
            url: address.url,
        }
    }

    /// Waits for messages, and returns at most ten of them; none after [`WAIT_TIME`].
    pub(crate) async fn receive(&self) -> Result<Vec<Message>, CallError> {
        let seconds = |time: Duration| i32::try_from(time.as_secs()).unwrap_or(i32::MAX);
        let response = self
            .client
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(MAX_MESSAGES.into())
            .wait_time_seconds(seconds(WAIT_TIME))
            .visibility_timeout(seconds(VISIBILITY_TIMEOUT))
            .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount)
            .send()
            .await?;
        let messages = response.messages.unwrap_or_default();
        Ok(messages.into_iter().map(message).collect())
    }

    /// Deletes messages by their receipts, at most ten.
    pub(crate) async fn delete(&self, receipts: &[String]) -> Result<(), CallError> {
        let entries = receipts.iter().zip(0..).map(|(receipt, number)| {
            DeleteMessageBatchRequestEntry::builder()
                .id(i32::to_string(&number))
                .receipt_handle(receipt)
                .build()
        });
        let entries = entries.collect::<Result<Vec<_>, _>>();
        let entries = entries.map_err(|error| CallError::without_response(&error.to_string()))?;
        let call = self.client.delete_message_batch().queue_url(&self.url);
        let response = call.set_entries(Some(entries)).send().await?;
        match response.failed().first() {
            None => Ok(()),
            Some(failed) => {
                let why = failed.message().unwrap_or_default();
                let text = format!("{}: {why}", failed.code());
                Err(CallError::without_response(&text))
            }
        }
    }
}

fn message(message: SqsMessage) -> Message {
    let count = MessageSystemAttributeName::ApproximateReceiveCount;
    let attributes = message.attributes();
    let deliveries = attributes.and_then(|all| all.get(&count)?.parse().ok());
    Message {
        deliveries: deliveries.unwrap_or(1),
        body: message.body.unwrap_or_default(),
        receipt: message.receipt_handle.unwrap_or_default(),
    }
}
