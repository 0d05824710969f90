//! `AddTagsToResource`, `RemoveTagsFromResource` and `ListTagsForResource`.

use aws_sdk_rds::types::Tag;

use crate::client::{available, outcome, start};

fn tag(key: &str, value: &str) -> Tag {
    Tag::builder().key(key).value(value).build()
}

#[tokio::test]
async fn tags_are_added_changed_and_removed() {
    let (simulator, client) = start().await;
    let instance = available(&simulator, &client, "orders").await;
    let arn = instance.db_instance_arn().expect("an ARN");
    let add = |key: &str, value: &str| {
        let call = client.add_tags_to_resource().resource_name(arn);
        call.tags(tag(key, value)).send()
    };
    for (key, value) in [("team", "orders"), ("stage", "test"), ("team", "billing")] {
        assert_eq!(outcome(add(key, value).await), "");
    }
    let list = async || {
        let call = client.list_tags_for_resource().resource_name(arn);
        let tags = call
            .send()
            .await
            .expect("tags")
            .tag_list
            .unwrap_or_default();
        let tags = tags.into_iter();
        tags.filter_map(|it| Some((it.key?, it.value?)))
            .collect::<Vec<_>>()
    };
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(
        list().await,
        [pair("stage", "test"), pair("team", "billing")]
    );
    let call = client.remove_tags_from_resource().resource_name(arn);
    call.tag_keys("stage").send().await.expect("an answer");
    assert_eq!(list().await, [pair("team", "billing")]);
    assert_eq!(outcome(add("aws:a", "b").await), "InvalidParameterValue");
    for number in 0..49 {
        assert_eq!(outcome(add(&format!("key-{number}"), "").await), "");
    }
    assert_eq!(outcome(add("one-more", "").await), "InvalidParameterValue");
    assert_eq!(list().await.len(), 50);
}

#[tokio::test]
async fn a_resource_must_exist() {
    let (_simulator, client) = start().await;
    for (resource, code) in [
        ("eu-central-1:123456789012:db:none", "DBInstanceNotFound"),
        (
            "eu-central-1:123456789012:snapshot:none",
            "DBSnapshotNotFound",
        ),
        ("us-east-1:123456789012:db:none", "InvalidParameterValue"),
        ("eu-central-1:123456789012:es:none", "InvalidParameterValue"),
        ("none", "InvalidParameterValue"),
    ] {
        let arn = format!("arn:aws:rds:{resource}");
        let call = client.list_tags_for_resource().resource_name(arn);
        assert_eq!(outcome(call.send().await), code, "{resource}");
    }
}
