//! Identifiers and database names.

use crate::protocol::fault::Fault;

/// Maximum length of the identifier of an instance.
pub(crate) const INSTANCE: usize = 63;

/// Maximum length of the identifier of a snapshot.
pub(crate) const SNAPSHOT: usize = 255;

/// Words that no database can have as its name: an excerpt of the reserved words of the engines.
const RESERVED: &[&str] = &[
    "all", "create", "db", "default", "group", "order", "select", "table", "user", "where",
];

/// Returns the identifier as RDS stores it.
pub(crate) fn check(parameter: &str, value: &str, longest: usize) -> Result<String, Fault> {
    let is_valid = value.starts_with(|first: char| first.is_ascii_alphabetic())
        && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        && !value.ends_with('-')
        && !value.contains("--");
    if !is_valid {
        return Err(Fault::value(format!(
            "The parameter {parameter} is not a valid identifier. Identifiers must begin with a letter; must contain only ASCII letters, digits, and hyphens; and must not end with a hyphen or contain two consecutive hyphens."
        )));
    }
    if value.len() > longest {
        return Err(Fault::value(format!(
            "The parameter {parameter} is not a valid identifier because it is longer than {longest} characters."
        )));
    }
    Ok(value.to_ascii_lowercase())
}

/// Checks the name of the database that is created with an instance.
pub(crate) fn check_database(engine: &str, name: &str) -> Result<(), Fault> {
    let longest = if engine == "postgres" { 63 } else { 64 };
    let is_valid = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.len() <= longest;
    if !is_valid {
        return Err(Fault::value(
            "DBName must begin with a letter and contain only alphanumeric characters.",
        ));
    }
    if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(Fault::value(format!(
            "DBName {name} cannot be used. It is a reserved word for this engine"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_stored_in_lower_case() {
        assert_eq!(check("Id", "Orders-1", INSTANCE).as_deref(), Ok("orders-1"));
        let longest = "a".repeat(64);
        for invalid in ["", "1a", "a--b", "a-", "a_b", "ä", &longest] {
            assert!(check("Id", invalid, INSTANCE).is_err(), "{invalid}");
        }
        assert!(check("Id", &longest, SNAPSHOT).is_ok());
    }

    #[test]
    fn a_database_name_is_a_word_that_is_not_reserved() {
        assert_eq!(check_database("postgres", "orders_1"), Ok(()));
        assert_eq!(check_database("mysql", &"a".repeat(64)), Ok(()));
        for invalid in ["1a", "a-b", "Select", "", &"a".repeat(64)] {
            assert!(check_database("postgres", invalid).is_err(), "{invalid}");
        }
    }
}
