//! Address of an SQS queue: its URL, or an ARN from which the URL follows.

use std::str::FromStr;

/// Address of the queue with the events of RDS. Its region and account need not be those of the instances.
///
/// ```
/// use lockstep_cloud_database_controller::QueueAddress;
///
/// let queue: QueueAddress = "arn:aws:sqs:eu-central-1:123456789012:rds-events".parse()?;
/// let same = "https://sqs.eu-central-1.amazonaws.com/123456789012/rds-events";
/// assert_eq!(queue, same.parse()?);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueAddress {
    pub(crate) url: String,
    /// None if the URL is not one of AWS, such as that of an endpoint in a VPC.
    pub(crate) region: Option<String>,
}

impl FromStr for QueueAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<_> = text.split(':').collect();
        if let &["arn", partition, "sqs", region, account, name] = parts.as_slice()
            && [partition, region, account, name]
                .iter()
                .all(|it| !it.is_empty())
        {
            let suffix = if partition == "aws-cn" {
                "amazonaws.com.cn"
            } else {
                "amazonaws.com"
            };
            return Ok(Self {
                url: format!("https://sqs.{region}.{suffix}/{account}/{name}"),
                region: Some(region.to_owned()),
            });
        }
        let after_scheme = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"));
        let host = after_scheme.and_then(|rest| rest.split_once('/'));
        let Some((host, _)) = host.filter(|(host, path)| !host.is_empty() && path.contains('/'))
        else {
            return Err(format!(
                "'{text}' is neither the URL nor the ARN of an SQS queue, such as https://sqs.eu-central-1.amazonaws.com/123456789012/rds-events"
            ));
        };
        let labels: Vec<_> = host.split('.').collect();
        let region = match labels.as_slice() {
            ["sqs", region, "amazonaws", "com", ..] => Some((*region).to_owned()),
            _ => None,
        };
        Ok(Self {
            url: text.to_owned(),
            region,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_named_by_its_url_or_its_arn() {
        let read = |text: &str| text.parse::<QueueAddress>().map(|it| (it.url, it.region));
        let url = "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/rds";
        let expected = (url.to_owned(), Some("cn-north-1".to_owned()));
        assert_eq!(read(url), Ok(expected.clone()));
        assert_eq!(
            read("arn:aws-cn:sqs:cn-north-1:123456789012:rds"),
            Ok(expected)
        );
        let local = "http://127.0.0.1:5000/123456789012/rds";
        assert_eq!(read(local), Ok((local.to_owned(), None)));
        for wrong in [
            "",
            "rds",
            "arn:aws:sns:eu-central-1:1:rds",
            "https://sqs",
            "https:///1/rds",
            "arn:aws:sqs:::rds",
        ] {
            read(wrong).expect_err(wrong);
        }
    }
}
