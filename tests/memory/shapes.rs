//! Hostile requests. Each is as long as the caller says.

use std::fmt::Display;

use serde_json::{Value, json};

/// Kind of request that is hostile to the memory of the webhook.
pub struct Shape {
    pub name: &'static str,
    /// Returns the request.
    pub request: fn(usize) -> Vec<u8>,
    pub reading: Reading,
    /// Response to one of these requests alone. When several come at once, others than the first may be rejected with status
    /// 429 for lack of memory.
    pub response: Expected,
    /// Maximum length. A request that is a tenth longer is rejected with status 413, because it alone would take all memory
    /// once it is parsed.
    pub fits: Option<usize>,
}

/// Part of the response that the client reads.
#[derive(Clone, Copy)]
pub enum Reading {
    Whole,
    /// Nothing but the first byte, on this number of connections.
    Never(usize),
}

/// Response that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// An admission review that denies.
    Denied,
    /// An admission review that allows.
    Allowed,
    /// A conversion review. It contains the objects of the request, and may be as long.
    Converted,
    /// A conversion review that refuses the objects.
    NotConverted,
    /// A beginning that no client reads.
    Unread,
}

const fn denied(name: &'static str, request: fn(usize) -> Vec<u8>) -> Shape {
    Shape {
        name,
        request,
        reading: Reading::Whole,
        response: Expected::Denied,
        fits: None,
    }
}

const fn allowed(name: &'static str, request: fn(usize) -> Vec<u8>) -> Shape {
    Shape {
        response: Expected::Allowed,
        ..denied(name, request)
    }
}

const fn unread(name: &'static str, connections: usize, request: fn(usize) -> Vec<u8>) -> Shape {
    Shape {
        reading: Reading::Never(connections),
        response: Expected::Unread,
        ..denied(name, request)
    }
}

const fn conversion(
    name: &'static str,
    response: Expected,
    request: fn(usize) -> Vec<u8>,
) -> Shape {
    Shape {
        response,
        ..denied(name, request)
    }
}

impl Shape {
    /// Limits the length to what just fits.
    const fn up_to(self, kib: usize) -> Self {
        Self {
            fits: Some(kib << 10),
            ..self
        }
    }
}

pub const SHAPES: &[Shape] = &[
    denied("tags that are numbers", |bytes| {
        database("tags", &map(bytes, |i| format!(r#""{i}":1"#)))
    }),
    denied("tags that are objects", |bytes| {
        database("tags", &map(bytes, |i| format!(r#""{i}":{{}}"#)))
    })
    .up_to(1036),
    allowed("tags that are null", |bytes| {
        database("tags", &map(bytes, |i| format!(r#""{i}":null"#)))
    }),
    denied("tags with a reserved prefix", |bytes| {
        database("tags", &map(bytes, |i| format!(r#""aws:{i}":"""#)))
    }),
    denied("tags whose values match no pattern", |bytes| {
        database("tags", &map(bytes, |i| format!(r#""k{i}":"\u0001<>{{}}""#)))
    })
    .up_to(2050),
    denied("valid tags", |bytes| {
        database("tags", &map(bytes, |i| format!(r#""k{i}":"v""#)))
    }),
    denied("one tag with a long key", |bytes| {
        database("tags", &format!(r#"{{"{}":1}}"#, text(bytes)))
    }),
    denied("one tag with a long value", |bytes| {
        database("tags", &format!(r#"{{"a":"{}"}}"#, text(bytes)))
    }),
    denied("keys that differ only at their end", |bytes| {
        let key = text(bytes / 100);
        database("tags", &map(bytes, |i| format!(r#""{key}{i}":1"#)))
    }),
    denied("a key of 3 MB with 100 wrong children", |bytes| {
        let key = text(bytes / 2);
        let children = (0..100).map(|i| format!(r#""c{i}":{{"type":7}}"#));
        pipeline(&format!(
            r#""sources":{{"{key}":{{{}}}}}"#,
            children.collect::<Vec<_>>().join(",")
        ))
    }),
    allowed("annotations with wrong keys", |bytes| {
        metadata("annotations", &map(bytes, |i| format!(r#""-{i}":"""#)))
    }),
    denied("annotations that are numbers", |bytes| {
        metadata("annotations", &map(bytes, |i| format!(r#""{i}":1"#)))
    }),
    allowed("one long annotation", |bytes| {
        metadata("annotations", &format!(r#"{{"a":"{}"}}"#, text(bytes)))
    }),
    allowed("labels with wrong values", |bytes| {
        metadata("labels", &map(bytes, |i| format!(r#""{i}":"-""#)))
    }),
    allowed("finalizers without a domain", |bytes| {
        metadata("finalizers", &list(bytes, |i| format!(r#""-{i}""#)))
    }),
    allowed("owner references without fields", |bytes| {
        metadata("ownerReferences", &list(bytes, |_| "{}".to_owned()))
    })
    .up_to(325),
    allowed("managed fields", |bytes| {
        metadata(
            "managedFields",
            &list(bytes, |i| format!(r#"{{"manager":"{i}"}}"#)),
        )
    })
    .up_to(1870),
    allowed("a long name", |bytes| {
        metadata("name", &format!(r#""{}""#, text(bytes)))
    }),
    denied("duplicate security groups", |bytes| {
        network(&list(bytes, |_| r#""sg-1""#.to_owned()))
    }),
    denied("duplicate numbers in a list of type set", |bytes| {
        // A million errors take a program without optimization longer than a review may.
        network(&list(bytes / 4, |_| "1".to_owned()))
    }),
    denied("security groups that match no pattern", |bytes| {
        network(&list(bytes / 2, |i| format!(r#""{i}""#)))
    }),
    allowed("conditions with many list-map keys", |bytes| {
        stored(
            "status",
            &format!(
                r#"{{"conditions":{}}}"#,
                list(bytes, |i| format!(r#"{{"type":"{}"}}"#, i / 2))
            ),
        )
    })
    .up_to(790),
    allowed("conditions with equal list-map keys", |bytes| {
        stored(
            "status",
            &format!(
                r#"{{"conditions":{}}}"#,
                list(bytes, |_| r#"{"type":"A"}"#.to_owned())
            ),
        )
    })
    .up_to(617),
    denied("one value that ten rules refuse", |bytes| {
        refused_by_many(&text(bytes))
    }),
    denied("one value of control characters", |bytes| {
        refused_by_many(&r"\u0001".repeat(bytes / 6))
    }),
    denied("an engine version of megabytes", |bytes| {
        database("engineVersion", &format!(r#""{}""#, "1.".repeat(bytes / 2)))
    }),
    denied("a long value that CEL rules refuse", |bytes| {
        database(
            "replicaOf",
            &format!(r#"{{"identifier":"{}"}}"#, text(bytes)),
        )
    }),
    denied("unknown fields", |bytes| {
        raw(&review(
            "CREATE",
            "null",
            &object(&map(bytes, |i| format!(r#""u{i}":1"#))),
        ))
    }),
    denied("lists within lists", |bytes| {
        database("tags", &list(bytes, |_| "[[]]".to_owned()))
    })
    .up_to(1280),
    allowed("ratcheted tags", |bytes| {
        let tags = map(bytes / 2, |i| format!(r#""{i}":1"#));
        let old = object_with("tags", &tags);
        raw(&review("UPDATE", &old, &old))
    }),
    denied("tags that change on an update", |bytes| {
        let old = object_with("tags", &map(bytes / 2, |i| format!(r#""{i}":1"#)));
        let new = object_with("tags", &map(bytes / 2, |i| format!(r#""{i}":2"#)));
        raw(&review("UPDATE", &old, &new))
    }),
    denied("sinks without options", |bytes| {
        pipeline(&format!(
            r#""sinks":{}"#,
            map(bytes, |i| format!(r#""s{i}":{{}}"#))
        ))
    })
    .up_to(1130),
    denied("sources of unknown types", |bytes| {
        pipeline(&format!(
            r#""sources":{}"#,
            map(bytes, |i| format!(r#""s{i}":{{"type":"t{i}"}}"#))
        ))
    })
    .up_to(2250),
    denied("inputs that do not exist", |bytes| {
        let inputs = list(bytes, |i| format!(r#""i{i}""#));
        pipeline(&format!(
            r#""sinks":{{"out":{{"type":"console","inputs":{inputs},"encoding":{{"codec":"json"}}}}}}"#
        ))
    }),
    denied("a program with errors in each line", |_| {
        program(&(0..150).fold(String::new(), |program, i| {
            program + &format!(".a{i} = to_int(.b)\\n")
        }))
    }),
    denied("a program of megabytes", |bytes| {
        program(&".a = 1\\n".repeat(bytes / 8))
    }),
    denied("a program that takes the compiler all memory", |_| {
        program(&format!("x = 1\\n{}", "x = [x, x]\\n".repeat(140)))
    }),
    unread("responses that are not read", 64, long_denial),
    conversion("conversion of 10,000 objects", Expected::Converted, |_| {
        convert(10_000, "")
    }),
    conversion(
        "conversion of objects with long texts",
        Expected::Converted,
        |bytes| convert(10, &text(bytes / 2)),
    ),
    conversion("conversion of numbers", Expected::NotConverted, |bytes| {
        conversion_of(&list(bytes, |_| "1".to_owned()))
    }),
];

/// Review of a valid object.
pub fn valid() -> Vec<u8> {
    database("deletionProtection", "false")
}

/// Review whose denial is as long as a response may be.
pub fn long_denial(bytes: usize) -> Vec<u8> {
    let key = text(400);
    database("tags", &map(bytes / 8, |i| format!(r#""{i}{key}":1"#)))
}

/// Text of a length.
fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

/// Entries of a length together, separated by commas.
fn entries(bytes: usize, entry: impl Fn(usize) -> String) -> String {
    let mut text = String::with_capacity(bytes + 64);
    let mut index = 0;
    while text.len() < bytes {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&entry(index));
        index += 1;
    }
    text
}

fn map(bytes: usize, entry: impl Fn(usize) -> String) -> String {
    format!("{{{}}}", entries(bytes, entry))
}

fn list(bytes: usize, item: impl Fn(usize) -> String) -> String {
    format!("[{}]", entries(bytes, item))
}

/// Text of a valid database, in which a part can be replaced.
fn example() -> Value {
    json!({
        "apiVersion": "database.example.com/v1alpha1",
        "kind": "CloudDatabase",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": {
            "engine": "postgres",
            "instanceClass": "db.t4g.micro",
            "storage": {"sizeGib": 20},
            "credentials": {"username": "app", "secretName": "s"},
            "deletionPolicy": "Snapshot",
        },
    })
}

/// Returns the text of a database with another value of a field, which is JSON.
fn replaced(pointer: &str, value: impl Display) -> String {
    const PLACE: &str = "the place of the value";
    let mut example = example();
    let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
    example.pointer_mut(parent).expect("an object")[field] = json!(PLACE);
    example
        .to_string()
        .replacen(&format!("{PLACE:?}"), &value.to_string(), 1)
}

fn object_with(field: &str, value: &str) -> String {
    replaced(&format!("/spec/{field}"), value)
}

/// Returns the text of a database with another spec.
fn object(spec: &str) -> String {
    replaced("/spec", spec)
}

/// Review of a new database with a field of its spec.
fn database(field: &str, value: &str) -> Vec<u8> {
    raw(&review("CREATE", "null", &object_with(field, value)))
}

/// Review of a new database with a field of its metadata.
fn metadata(field: &str, value: &str) -> Vec<u8> {
    let object = replaced(&format!("/metadata/{field}"), value);
    raw(&review("CREATE", "null", &object))
}

/// Review of a new database with security groups.
fn network(groups: &str) -> Vec<u8> {
    database("network", &format!(r#"{{"securityGroups":{groups}}}"#))
}

/// Review of an update of a database that has a field of its own.
fn stored(field: &str, value: &str) -> Vec<u8> {
    let object = replaced(&format!("/{field}"), value);
    raw(&review("UPDATE", &object, &object))
}

/// Review of a database that has one value in many fields.
fn refused_by_many(value: &str) -> Vec<u8> {
    let share = &value[..value.len() / 36 * 6];
    let fields = [
        "engine",
        "engineVersion",
        "instanceClass",
        "deletionPolicy",
        "maintenanceWindow",
        "parameterGroup",
    ];
    let fields: Vec<_> = fields
        .iter()
        .map(|field| format!(r#""{field}":"{share}""#))
        .collect();
    let spec = format!(
        r#"{{{},"storage":{{"sizeGib":20}},"credentials":{{}}}}"#,
        fields.join(",")
    );
    raw(&review("CREATE", "null", &object(&spec)))
}

/// Review of a new pipeline with these blocks.
fn pipeline(blocks: &str) -> Vec<u8> {
    let object = format!(
        r#"{{"apiVersion":"observability.kaasops.io/v1alpha1","kind":"VectorPipeline","metadata":{{"name":"a","namespace":"b"}},"spec":{{{blocks}}}}}"#
    );
    let kind =
        r#"{"group":"observability.kaasops.io","version":"v1alpha1","kind":"VectorPipeline"}"#;
    raw(&review_of(kind, "CREATE", "null", &object))
}

/// Review of a pipeline with a program, which is the content of a JSON string.
fn program(source: &str) -> Vec<u8> {
    pipeline(&format!(
        r#""sources":{{"in":{{"type":"kubernetes_logs"}}}},"transforms":{{"t":{{"type":"remap","inputs":["in"],"source":"{source}"}}}},"sinks":{{"out":{{"type":"blackhole","inputs":["t"]}}}}"#
    ))
}

/// Conversion of databases, each with a text.
fn convert(count: usize, text: &str) -> Vec<u8> {
    let object = object_with("description", format!("{text:?}").as_str());
    let objects = vec![object; count].join(",");
    conversion_of(&format!("[{objects}]"))
}

/// Conversion of a list of objects.
fn conversion_of(objects: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{{"uid":"u","desiredAPIVersion":"database.example.com/v1beta1","objects":{objects}}}}}"#
    );
    post("/convert", &body)
}

fn review(operation: &str, old: &str, object: &str) -> String {
    let kind = r#"{"group":"database.example.com","version":"v1alpha1","kind":"CloudDatabase"}"#;
    review_of(kind, operation, old, object)
}

fn review_of(kind: &str, operation: &str, old: &str, object: &str) -> String {
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","kind":{kind},"operation":"{operation}","name":"a","namespace":"b","userInfo":{{}},"oldObject":{old},"object":{object}}}}}"#
    )
}

fn raw(review: &str) -> Vec<u8> {
    post("/validate", review)
}

/// Returns a request whose response ends its connection.
fn post(path: &str, body: &str) -> Vec<u8> {
    let head = format!(
        "POST {path}?timeout=30s HTTP/1.1\r\nhost: webhook\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}
