//! Names that an engine reserves.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::engine::Engine;

/// Set of words, split once on first use.
type ReservedWords = LazyLock<HashSet<&'static str>>;

/// Returns true if the engine rejects the name as master username.
pub(crate) fn is_reserved(engine: Engine, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // RDS creates this user on every instance.
    if name == "rdsadmin" {
        return true;
    }
    // "MasterUsername admin cannot be used as it is a reserved word used by the engine".
    if name == "admin" && engine == Engine::Postgres {
        return true;
    }
    match engine {
        Engine::Postgres => name.starts_with("pg_") || POSTGRES.contains(name.as_str()),
        Engine::Mysql | Engine::Mariadb => MYSQL.contains(name.as_str()),
    }
}

/// Returns true if the engine rejects the name as the name of a database. System databases count as reserved.
pub(crate) fn is_reserved_database(engine: Engine, name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let of_system: &[&str] = match engine {
        Engine::Postgres => &["rdsadmin", "template0", "template1"],
        Engine::Mysql | Engine::Mariadb => &[
            "information_schema",
            "innodb",
            "mysql",
            "performance_schema",
            "sys",
            "tmp",
        ],
    };
    of_system.contains(&lower.as_str())
        || match engine {
            Engine::Postgres => POSTGRES.contains(lower.as_str()),
            Engine::Mysql | Engine::Mariadb => MYSQL.contains(lower.as_str()),
        }
}

/// Returns the first version of MySQL that reserves a name, if earlier ones do not.
pub(crate) fn reserved_by_mysql_since(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let mut added = ADDED_BY_MYSQL.iter();
    let (version, _) = added.find(|(_, words)| words.contains(&name.as_str()))?;
    Some(version)
}

fn words(text: &'static str) -> HashSet<&'static str> {
    text.split_whitespace().collect()
}

/// <https://www.postgresql.org/docs/17/sql-keywords-appendix.html>, "reserved" of any sort.
static POSTGRES: ReservedWords = LazyLock::new(|| {
    words("
    all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation
    column concurrently constraint create cross current_catalog current_date current_role current_schema current_time
    current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign freeze
    from full grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit
    localtime localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references
    returning right select session_user similar some symmetric system_user table tablesample then to trailing true union
    unique user using variadic verbose when where window with")
});

/// Words that versions of MySQL have added: <https://dev.mysql.com/doc/refman/8.4/en/keywords.html>, "New Keywords", "reserved".
const ADDED_BY_MYSQL: [(&str, &[&str]); 2] = [
    (
        "8.0",
        &[
            "cube",
            "cume_dist",
            "dense_rank",
            "empty",
            "except",
            "first_value",
            "function",
            "grouping",
            "groups",
            "intersect",
            "json_table",
            "lag",
            "last_value",
            "lateral",
            "lead",
            "nth_value",
            "ntile",
            "of",
            "over",
            "percent_rank",
            "rank",
            "recursive",
            "row",
            "row_number",
            "rows",
            "system",
            "window",
        ],
    ),
    ("8.4", &["manual", "parallel", "qualify", "tablesample"]),
];

/// <https://dev.mysql.com/doc/refman/5.7/en/keywords.html>, "reserved", which all versions of MySQL and MariaDB reserve. Whether RDS
/// rejects the words that later versions have added is left to RDS.
static MYSQL: ReservedWords = LazyLock::new(|| {
    words("
    accessible add all alter analyze and as asc asensitive before between bigint binary blob both by call cascade case
    change char character check collate column condition constraint continue convert create cross current_date
    current_time current_timestamp current_user cursor database databases day_hour day_microsecond day_minute
    day_second dec decimal declare default delayed delete desc describe deterministic distinct distinctrow div double
    drop dual each else elseif enclosed escaped exists exit explain false fetch float float4 float8 for force foreign
    from fulltext generated get grant group having high_priority hour_microsecond hour_minute hour_second if ignore in
    index infile inner inout insensitive insert int int1 int2 int3 int4 int8 integer interval into io_after_gtids
    io_before_gtids is iterate join key keys kill leading leave left like limit linear lines load localtime
    localtimestamp lock long longblob longtext loop low_priority master_bind match maxvalue mediumblob mediumint
    mediumtext middleint minute_microsecond minute_second mod modifies natural no_write_to_binlog not null numeric on
    optimize optimizer_costs option optionally or order out outer outfile partition precision primary procedure purge
    range read read_write reads real references regexp release rename repeat replace require resignal restrict return
    revoke right rlike schema schemas second_microsecond select sensitive separator set show signal smallint spatial
    specific sql sql_big_result sql_calc_found_rows sql_small_result sqlexception sqlstate sqlwarning ssl starting
    stored straight_join table terminated then tinyblob tinyint tinytext to trailing trigger true undo union unique
    unlock unsigned update usage use using utc_date utc_time utc_timestamp values varbinary varchar varcharacter
    varying virtual when where while with write xor year_month zerofill")
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_names_differ_per_engine_and_ignore_case() {
        assert!(is_reserved(Engine::Postgres, "User"));
        assert!(!is_reserved(Engine::Mysql, "user"));
        assert!(is_reserved(Engine::Mysql, "SCHEMA"));
        assert!(!is_reserved(Engine::Postgres, "schema"));
        assert!(is_reserved(Engine::Postgres, "pg_monitor"));
        assert!(is_reserved(Engine::Mariadb, "rdsadmin"));
        assert!(!is_reserved(Engine::Postgres, "app"));
        assert!(is_reserved(Engine::Postgres, "Admin"));
        assert!(!is_reserved(Engine::Mysql, "admin"));
    }

    #[test]
    fn versions_of_mysql_have_added_words() {
        assert_eq!(reserved_by_mysql_since("Groups"), Some("8.0"));
        assert_eq!(reserved_by_mysql_since("manual"), Some("8.4"));
        assert_eq!(reserved_by_mysql_since("orders"), None);
        for (_, words) in ADDED_BY_MYSQL {
            let earlier = words.iter().find(|word| MYSQL.contains(*word));
            assert_eq!(earlier, None, "earlier versions reserve it");
        }
    }

    #[test]
    fn databases_of_the_system_are_reserved() {
        assert!(is_reserved_database(Engine::Postgres, "Template1"));
        assert!(is_reserved_database(Engine::Mysql, "performance_schema"));
        assert!(is_reserved_database(Engine::Mariadb, "table"));
        assert!(!is_reserved_database(Engine::Mysql, "postgres"));
        assert!(!is_reserved_database(Engine::Postgres, "postgres"));
        // Not in all versions.
        assert!(!is_reserved_database(Engine::Mariadb, "groups"));
        assert!(!is_reserved_database(Engine::Postgres, "orders"));
    }
}
