//! Name and password of the master user.

use crate::protocol::fault::Fault;

const LONGEST_NAME: usize = 16;

/// Checks the name of the master user.
pub(crate) fn check_name(engine: &str, name: &str) -> Result<(), Fault> {
    let is_valid = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.len() <= LONGEST_NAME;
    if !is_valid {
        return Err(Fault::value(format!(
            "The parameter MasterUsername must begin with a letter, contain only alphanumeric characters and underscores, and have at most {LONGEST_NAME} characters."
        )));
    }
    let lower = name.to_ascii_lowercase();
    let is_reserved = lower == "rdsadmin"
        || engine == "postgres" && (lower == "admin" || lower.starts_with("pg_"));
    if is_reserved {
        return Err(Fault::value(format!(
            "MasterUsername {name} cannot be used as it is a reserved word used by the engine"
        )));
    }
    Ok(())
}

/// Checks the password of the master user.
pub(crate) fn check_password(engine: &str, password: &str) -> Result<(), Fault> {
    const WHY: &str = "The parameter MasterUserPassword is not a valid password";
    let longest = if engine == "postgres" { 128 } else { 41 };
    let is_allowed = |c: char| c.is_ascii_graphic() && !['/', '@', '"'].contains(&c);
    if !password.chars().all(is_allowed) {
        return Err(Fault::value(format!(
            "{WHY}. Only printable ASCII characters besides '/', '@', '\"', ' ' may be used."
        )));
    }
    if password.len() < 8 {
        return Err(Fault::value(format!(
            "{WHY} because it is shorter than 8 characters."
        )));
    }
    if password.len() > longest {
        return Err(Fault::value(format!(
            "{WHY} because it is longer than {longest} characters."
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_names_are_reserved() {
        assert_eq!(check_name("postgres", "app"), Ok(()));
        assert_eq!(check_name("mysql", "admin"), Ok(()));
        for (engine, name) in [
            ("postgres", "admin"),
            ("postgres", "pg_app"),
            ("mysql", "rdsadmin"),
            ("mysql", "a234567890123456x"),
            ("mysql", "1a"),
        ] {
            assert!(check_name(engine, name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_password_has_a_length_and_no_forbidden_characters() {
        assert_eq!(check_password("mysql", "correct-horse"), Ok(()));
        assert_eq!(check_password("postgres", &"a".repeat(128)), Ok(()));
        let long = "a".repeat(42);
        for password in [
            "a/bcdefgh",
            "a@bcdefgh",
            "a\"bcdefgh",
            "a bcdefgh",
            "ä-bcdefgh",
            "short",
            &long,
        ] {
            assert!(check_password("mysql", password).is_err(), "{password}");
        }
    }
}
