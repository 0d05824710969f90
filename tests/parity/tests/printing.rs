//! Errors are printed exactly as by apimachinery: a table of errors is printed by both implementations.

use lockstep_envtest::oracle;
use lockstep_shared_validation::{AND_MORE, FieldError, FieldPath, MAX_MESSAGE_BYTES, aggregate};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Responses {
    errors: Vec<Printed>,
    aggregates: Vec<String>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Printed {
    error: String,
    body: String,
}

/// Returns values of every JSON type, and strings that are escaped when printed.
fn values() -> Vec<Value> {
    // Longer values are shortened, unlike those of apimachinery.
    let long = "x".repeat(1000);
    let mut values: Vec<Value> = [
        "",
        "plain",
        "with \"quotes\" and \\",
        "tab\tnewline\nreturn\r",
        "bell\u{7}\u{8}\u{b}\u{c}",
        "nul\u{0}\u{1f}\u{7f}",
        "é ü 漢字",
        "e\u{301}",
        "\u{301}",
        "😀 👩‍👩‍👧",
        "\u{200b}\u{feff}\u{2028}\u{2029}",
        "<a&b>",
        "\u{a0}\u{ad}\u{85}",
        "\u{10ffff}\u{e000}",
        "\u{fffd}",
        &long,
    ]
    .into_iter()
    .map(Value::from)
    .collect();
    values.extend([0, 1, -1, i64::MAX, i64::MIN, 1_000_000].map(Value::from));
    let floats = [
        0.5,
        -0.5,
        1e20,
        1e21,
        1.5e21,
        1e-4,
        1e-5,
        1.5e-5,
        1e-7,
        1e100,
        123_456_789.123,
        0.1 + 0.2,
        1e6,
        3.0,
        f64::MAX,
    ];
    values.extend(floats.map(Value::from));
    values.push(json!(u64::MAX));
    values.extend([
        json!(true),
        json!(false),
        json!(null),
        json!([]),
        json!({}),
        json!([1, "a", null, 1.5, {"b": "<&>"}]),
        json!({"z": 1, "a": {"é": "\u{2028}\"\\"}, "B": [1e21, 1e-7, 3.0]}),
        json!({"text": "\u{7f}\u{0}\u{8}\u{c}\n\r\t/"}),
    ]);
    values
}

/// Returns the table as input of the Go program, and the same errors of this project.
fn table() -> (Vec<Value>, Vec<FieldError>) {
    let mut rows = Vec::new();
    let mut errors = Vec::new();
    let mut add = |mut row: Value, path: &[Value], build: &dyn Fn(FieldPath) -> FieldError| {
        row["path"] = json!(path);
        rows.push(row);
        errors.push(build(path_of(path)));
    };
    let at = [json!("spec"), json!("a")];
    for value in values() {
        add(
            json!({"type": "Invalid", "value": value, "detail": "no"}),
            &at,
            &|p| FieldError::invalid(p, value.clone(), "no"),
        );
        add(json!({"type": "Invalid", "value": value}), &at, &|p| {
            FieldError::invalid(p, value.clone(), "")
        });
        add(
            json!({"type": "TypeInvalid", "value": value, "detail": "no"}),
            &at,
            &|p| FieldError::type_invalid(p, value.clone(), "no"),
        );
        add(json!({"type": "Duplicate", "value": value}), &at, &|p| {
            FieldError::duplicate(p, value.clone())
        });
        add(json!({"type": "NotFound", "value": value}), &at, &|p| {
            FieldError::not_found(p, value.clone())
        });
        for supported in [
            vec![],
            vec!["one".to_owned()],
            vec!["a\"b".to_owned(), "é\n".to_owned()],
        ] {
            let row = json!({"type": "NotSupported", "value": value, "supported": supported});
            add(row, &at, &|p| {
                FieldError::not_supported(p, value.clone(), &supported)
            });
        }
    }
    add(
        json!({"type": "Invalid", "omit": true, "detail": "no"}),
        &at,
        &|p| FieldError::invalid_hidden(p, "no"),
    );
    for detail in ["", "because of \"this\""] {
        add(json!({"type": "Required", "detail": detail}), &at, &|p| {
            FieldError::required(p, detail)
        });
        add(json!({"type": "Forbidden", "detail": detail}), &at, &|p| {
            FieldError::forbidden(p, detail)
        });
        add(json!({"type": "Internal", "detail": detail}), &at, &|p| {
            FieldError::internal(p, detail)
        });
        add(json!({"type": "TooShort", "detail": detail}), &at, &|p| {
            FieldError::too_short(p, detail)
        });
        add(
            json!({"type": "TooFew", "value": 2, "detail": detail}),
            &at,
            &|p| FieldError::too_few(p, 2, detail),
        );
    }
    for max in [0, 1, 2, 262_144] {
        add(json!({"type": "TooLong", "max": max}), &at, &|p| {
            FieldError::too_long(p, max)
        });
        add(
            json!({"type": "TooMany", "actual": 7, "max": max}),
            &at,
            &|p| FieldError::too_many(p, 7, max),
        );
    }
    let paths: [&[Value]; 5] = [
        &[],
        &[json!("spec"), json!("sinks"), json!(2), json!("inputs")],
        &[
            json!("metadata"),
            json!("labels"),
            json!("[app.kubernetes.io/name]"),
        ],
        &[
            json!("spec"),
            json!("m"),
            json!("[a b]"),
            json!(0),
            json!(1),
            json!("[]]"),
            json!("x.y"),
        ],
        &[json!("é")],
    ];
    for path in paths {
        add(json!({"type": "Required"}), path, &|p| {
            FieldError::required(p, "")
        });
    }
    (rows, errors)
}

fn path_of(elements: &[Value]) -> FieldPath {
    elements
        .iter()
        .fold(FieldPath::root(), |path, element| match element {
            Value::Number(index) => path.index(
                usize::try_from(index.as_u64().expect("the index is not negative"))
                    .expect("the index fits into usize"),
            ),
            Value::String(name) => match name
                .strip_prefix('[')
                .and_then(|name| name.strip_suffix(']'))
            {
                Some(key) => path.key(key),
                None => path.child(name),
            },
            other => panic!("unexpected path element: {other}"),
        })
}

#[test]
fn errors_are_printed_exactly_as_by_apimachinery() {
    let (rows, errors) = table();
    let responses: Responses = serde_json::from_value(
        oracle("field-errors", &json!(rows)).expect("the Go program prints the table"),
    )
    .expect("the output of the Go program has the expected structure");
    assert_eq!(responses.errors.len(), errors.len());
    for (row, (expected, actual)) in rows.iter().zip(responses.errors.iter().zip(&errors)) {
        let actual = Printed {
            error: actual.to_string(),
            body: actual.body(),
        };
        assert_eq!(&actual, expected, "{row}");
    }
    let mut aggregates = responses.aggregates.iter();
    for count in 1..=errors.len() {
        let expected = aggregates.next().expect("two aggregates for each row");
        assert_aggregated(&aggregate(&errors[..count], false), expected);
        let twice = [&errors[count - 1], &errors[count - 1]];
        let expected = aggregates.next().expect("two aggregates for each row");
        assert_aggregated(&aggregate(twice, false), expected);
    }
}

/// Asserts that a message is that of the API server. If that is too long, it ends earlier.
fn assert_aggregated(actual: &str, expected: &str) {
    if expected.len() < MAX_MESSAGE_BYTES - AND_MORE.len() - ", ".len() {
        assert_eq!(actual, expected);
    } else {
        let start = actual
            .strip_suffix("]")
            .and_then(|text| text.strip_suffix(AND_MORE));
        assert!(expected.starts_with(start.expect("it is not complete")));
    }
}
