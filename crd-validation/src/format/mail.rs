//! Mail addresses, parsed as in Go's `net/mail`: RFC 5322 without obsolete forms.

/// Returns true if the text is one address, with an optional display name.
pub(crate) fn is_address(text: &str) -> bool {
    let mut reader = Reader { rest: text };
    reader.address().is_some() && reader.skip_comments() && reader.rest.is_empty()
}

#[derive(Clone, Copy)]
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn address(&mut self) -> Option<()> {
        self.skip_space();
        let start = *self;
        if self.specification().is_some() {
            return Some(());
        }
        *self = start;
        if !self.rest.starts_with('<') {
            self.phrase()?;
        }
        self.skip_space();
        self.take('<')?;
        self.specification()?;
        self.take('>')
    }

    /// Parses `local@domain`.
    fn specification(&mut self) -> Option<()> {
        self.skip_space();
        if self.rest.starts_with('"') {
            if self.quoted()? == 0 {
                return None;
            }
        } else {
            self.atom(true, false)?;
        }
        self.take('@')?;
        self.skip_space();
        if self.rest.starts_with('[') {
            return self.domain_literal();
        }
        self.atom(true, false)
    }

    /// Parses the display name before an address in angle brackets.
    fn phrase(&mut self) -> Option<()> {
        let mut words = 0;
        loop {
            if !self.skip_comments() {
                return None;
            }
            let start = *self;
            let word = if self.rest.starts_with('"') {
                self.quoted().map(drop)
            } else {
                self.atom(true, true)
            };
            if word.is_none() {
                *self = start;
                return (words > 0).then_some(());
            }
            words += 1;
        }
    }

    /// Parses a quoted string and returns its length without the quotes.
    fn quoted(&mut self) -> Option<usize> {
        let mut length = 0;
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(length);
                }
                '\\' => {
                    characters
                        .next()
                        .filter(|(_, c)| is_visible(*c) || is_space(*c))?;
                }
                c if is_visible(c) || is_space(c) => {}
                _ => return None,
            }
            length += 1;
        }
        None
    }

    /// Parses an atom, with or without dots. The rules for a display name are less strict.
    fn atom(&mut self, dots: bool, permissive: bool) -> Option<()> {
        let end = self
            .rest
            .find(|c| !is_atom_text(c, dots))
            .unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at(end);
        let misplaced = atom.starts_with('.') || atom.ends_with('.') || atom.contains("..");
        if atom.is_empty() || (!permissive && misplaced) {
            return None;
        }
        self.rest = rest;
        Some(())
    }

    fn domain_literal(&mut self) -> Option<()> {
        let (inside, rest) = self.rest.strip_prefix('[')?.split_once(']')?;
        self.rest = rest;
        let address = inside.strip_prefix("IPv6:").unwrap_or(inside);
        crate::format::network::ip(address).map(drop)
    }

    fn take(&mut self, c: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(c)?;
        Some(())
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    /// Skips white space and comments in parentheses. Returns false for a comment without an end.
    fn skip_comments(&mut self) -> bool {
        self.skip_space();
        while self.rest.starts_with('(') {
            let mut depth = 0_usize;
            let mut characters = self.rest.char_indices();
            let end = loop {
                match characters.next() {
                    Some((_, '\\')) => drop(characters.next()),
                    Some((_, '(')) => depth += 1,
                    Some((at, ')')) => {
                        depth -= 1;
                        if depth == 0 {
                            break at + 1;
                        }
                    }
                    Some(_) => {}
                    None => return false,
                }
            };
            self.rest = &self.rest[end..];
            self.skip_space();
        }
        true
    }
}

fn is_atom_text(c: char, dots: bool) -> bool {
    match c {
        '.' => dots,
        '(' | ')' | '<' | '>' | '[' | ']' | ':' | ';' | '@' | '\\' | ',' | '"' => false,
        c => is_visible(c),
    }
}

fn is_visible(c: char) -> bool {
    ('!'..='~').contains(&c) || c >= '\u{80}'
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_addresses_are_distinguished_from_other_text() {
        for good in [
            "a@b",
            "a.b@c.d",
            "A B <a@b>",
            "\"a b\"@c",
            "a@[127.0.0.1]",
            "é@b",
            "a@b (comment)",
            "<a@b>",
        ] {
            assert!(is_address(good), "{good}");
        }
        for bad in [
            "", "a", "@b", "a@", ".a@b", "a..b@c", "a b@c", "a@b c", "a@[x]", "\"\"@c", "A <a@b",
            "a@b (",
        ] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
