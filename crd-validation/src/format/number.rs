//! Numbers with a check digit: credit cards and ISBNs.

/// Returns true if the text contains a credit card number. Characters between the digits are ignored.
pub(crate) fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let starts = |prefix: &[u32]| digits.starts_with(prefix);
    let issued = match digits.len() {
        13 => starts(&[4]),
        14 => starts(&[3, 6]) || starts(&[3, 8]) || (starts(&[3, 0]) && digits[2] <= 5),
        15 => starts(&[3, 4]) || starts(&[3, 7]) || starts(&[2, 1, 3, 1]) || starts(&[1, 8, 0, 0]),
        16 => {
            starts(&[4])
                || (starts(&[5]) && (1..=5).contains(&digits[1]))
                || starts(&[6, 0, 1, 1])
                || starts(&[6, 5])
        }
        // The expression of the API server also accepts the numbers below.
        _ => false,
    } || (digits.len() == 16 && starts(&[3, 5]));
    let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| if at % 2 == 1 { doubled(*digit) } else { *digit })
        .sum();
    issued && sum.is_multiple_of(10)
}

/// Returns true for an ISBN with ten digits.
pub(crate) fn is_isbn10(text: &str) -> bool {
    let without_separators = without_separators(text);
    let value = |(at, c): (usize, char)| match c {
        'X' if at == 9 => Some(10),
        c => c.to_digit(10),
    };
    let digits: Option<Vec<u32>> = without_separators.chars().enumerate().map(value).collect();
    digits.is_some_and(|digits| {
        let sum: u32 = (1..)
            .zip(&digits)
            .map(|(weight, digit)| weight * digit)
            .sum();
        digits.len() == 10 && sum.is_multiple_of(11)
    })
}

/// Returns true for an ISBN with thirteen digits.
pub(crate) fn is_isbn13(text: &str) -> bool {
    let digits: Option<Vec<u32>> = without_separators(text)
        .chars()
        .map(|c| c.to_digit(10))
        .collect();
    digits.is_some_and(|digits| {
        let weighted = |(at, digit): (usize, &u32)| if at % 2 == 1 { digit * 3 } else { *digit };
        let sum: u32 = digits.iter().enumerate().map(weighted).sum();
        digits.len() == 13 && sum.is_multiple_of(10)
    })
}

fn without_separators(text: &str) -> String {
    text.chars()
        .filter(|c| !matches!(c, '-' | ' ' | '\t' | '\n' | '\u{c}' | '\r'))
        .collect()
}
