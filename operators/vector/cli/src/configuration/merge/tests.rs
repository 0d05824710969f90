use super::*;

/// Merges parts in TOML.
fn merged(parts: &[&str]) -> Result<Table, Vec<String>> {
    let mut whole = Table::new();
    let mut problems = Vec::new();
    for part in parts {
        problems.extend(append(&mut whole, toml::from_str(part).expect("TOML")));
    }
    if problems.is_empty() {
        Ok(whole)
    } else {
        Err(problems)
    }
}

#[track_caller]
fn assert_merges(parts: &[&str], expected: &str) {
    assert_eq!(
        merged(parts),
        Ok(toml::from_str(expected).expect("TOML")),
        "{parts:?}"
    );
}

#[track_caller]
fn assert_conflicts(parts: &[&str], field: &str) {
    let problems = merged(parts).expect_err("a conflict");
    assert!(
        problems.len() == 1 && problems[0].starts_with(&format!("{field}: ")),
        "{problems:?}"
    );
}

#[test]
fn components_and_tests_are_added_and_their_names_are_unique() {
    assert_merges(
        &[
            "[sources.a]\ntype = 'x'",
            "[sources.b]\n[sinks.a]\n[[tests]]\nname = 't'",
            "[[tests]]\nname = 'u'",
        ],
        "[sources.a]\ntype = 'x'\n[sources.b]\n[sinks.a]\n[[tests]]\nname = 't'\n[[tests]]\nname = 'u'",
    );
    for block in [
        "sources",
        "transforms",
        "sinks",
        "enrichment_tables",
        "secret",
    ] {
        let part = format!("[{block}.a]\ntype = 'x'");
        assert_conflicts(&[&part, &part], &format!("{block}[a]"));
    }
    assert_conflicts(&["[[tests]]\nname = 't'", "[[tests]]\nname = 't'"], "tests");
}

#[test]
fn an_option_has_one_value_and_a_default_gives_way() {
    for (name, one, other) in [
        ("timezone", "'UTC'", "'local'"),
        ("expire_metrics_secs", "1.0", "2.0"),
        ("data_dir", "'/a'", "'/b'"),
    ] {
        let one = format!("{name} = {one}");
        assert_merges(&[&one, &one], &one);
        assert_conflicts(&[&one, &format!("{name} = {other}")], name);
    }
    assert_merges(
        &[
            "[acknowledgements]",
            "acknowledgements = true",
            "acknowledgements.enabled = true",
        ],
        "acknowledgements = true",
    );
    assert_conflicts(
        &[
            "acknowledgements = true",
            "acknowledgements.enabled = false",
        ],
        "acknowledgements",
    );
    for parts in [
        ["data_dir = '/a'", "data_dir = '/var/lib/vector/'"],
        ["data_dir = '/var/lib/vector/'", "data_dir = '/a'"],
    ] {
        assert_merges(&parts, "data_dir = '/a'");
    }
    assert_merges(
        &[
            "[api]\naddress = '127.0.0.1:8686'\nenabled = true",
            "[api]\naddress = '127.0.0.1:1'\nenabled = false",
        ],
        "[api]\naddress = '127.0.0.1:1'\nenabled = true",
    );
    assert_conflicts(
        &[
            "[api]\naddress = '127.0.0.1:2'",
            "[api]\naddress = '127.0.0.1:1'",
        ],
        "api.address",
    );
    assert_merges(
        &["latency_ewma_alpha = 0.5", "latency_ewma_alpha = 0.6"],
        "latency_ewma_alpha = 0.5",
    );
}

#[test]
fn flags_combine_and_the_last_provider_counts() {
    assert_merges(
        &[
            "[healthchecks]\nenabled = true",
            "[healthchecks]\nenabled = false\nrequire_healthy = true",
        ],
        "[healthchecks]\nenabled = false\nrequire_healthy = true",
    );
    assert_merges(
        &["[schema]\nenabled = true", "[schema]\nenabled = false"],
        "[schema]\nenabled = true",
    );
    assert_conflicts(
        &[
            "[schema]\nlog_namespace = true",
            "[schema]\nlog_namespace = false",
        ],
        "schema.log_namespace",
    );
    assert_merges(
        &["[provider]\ntype = 'http'", "data_dir = '/a'"],
        "data_dir = '/a'",
    );
    assert_merges(&["provider = 1", "provider = 2"], "provider = 2");
    assert_merges(
        &[
            "[telemetry.tags]\nemit_source = true",
            "[telemetry.tags]\nemit_source = false\nemit_service = true",
        ],
        "[telemetry.tags]\nemit_source = true\nemit_service = true",
    );
}

#[test]
fn a_proxy_and_a_log_schema_are_set_in_one_file() {
    assert_conflicts(
        &["[proxy]\nhttp = 'http://a'", "[proxy]\nhttp = 'http://b'"],
        "proxy.http",
    );
    assert_conflicts(
        &["[proxy]\nno_proxy = ['a']", "[proxy]\nno_proxy = ['a']"],
        "proxy.no_proxy",
    );
    assert_merges(
        &["[proxy]\nno_proxy = []", "[proxy]\nno_proxy = ['a']"],
        "[proxy]\nno_proxy = ['a']",
    );
    assert_conflicts(
        &[
            "[log_schema]\nhost_key = 'h'",
            "[log_schema]\nmessage_key = 'm'",
        ],
        "log_schema.host_key",
    );
    assert_merges(
        &[
            "[log_schema]\nhost_key = 'h'",
            "[log_schema]\nhost_key = 'host'",
        ],
        "[log_schema]\nhost_key = 'h'",
    );
}

#[test]
fn components_in_folders_replace_others() {
    let mut whole: Table =
        toml::from_str("[sinks.a]\ntype = 'x'\n[[tests]]\nname = 't'").expect("TOML");
    replace(
        &mut whole,
        "sinks",
        toml::from_str("[a]\ntype = 'y'\n[b]").expect("TOML"),
    );
    replace(
        &mut whole,
        "tests",
        toml::from_str("[t]\nname = 't'").expect("TOML"),
    );
    let expected: Table = toml::from_str(
        "[sinks.a]\ntype = 'y'\n[sinks.b]\n[[tests]]\nname = 't'\n[[tests]]\nname = 't'",
    )
    .expect("TOML");
    assert_eq!(whole, expected);
}
