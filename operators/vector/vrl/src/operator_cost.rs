//! Cost of chains of operators.
//!
//! When the compiler builds an operator, it computes the type of everything to the left of it, twice, although it has
//! done so at the operator before. The cost of a chain grows with the square of its length, and with the number of fields
//! whose types are known at each operator.

/// Weight of an operator whose right side may not be evaluated: the compiler merges what is known with and without it.
const SHORT_CIRCUIT: u64 = 4;

/// Weight of other operators.
const OTHER: u64 = 1;

/// Operators with their precedence and weight. An operator precedes those that begin with it.
const OPERATORS: [(&str, u8, u64); 16] = [
    ("??", 0, SHORT_CIRCUIT),
    ("||", 1, SHORT_CIRCUIT),
    ("&&", 1, SHORT_CIRCUIT),
    ("==", 2, OTHER),
    ("!=", 2, OTHER),
    (">=", 3, OTHER),
    ("<=", 3, OTHER),
    // The operators of assignments. The compiler joins `a |= b` to `a = a | b`.
    ("|=", ASSIGNMENT, OTHER),
    ("=", ASSIGNMENT, OTHER),
    (">", 3, OTHER),
    ("<", 3, OTHER),
    ("|", 4, OTHER),
    ("+", 5, OTHER),
    ("-", 5, OTHER),
    ("*", 6, OTHER),
    ("/", 6, OTHER),
];

/// Marks assignments, which have no operand to the left.
const ASSIGNMENT: u8 = u8::MAX;

/// Operators of the expression that is being read, between two brackets or commas.
#[derive(Debug, Default)]
pub(crate) struct OperatorChain {
    /// Operators that wait for their right operand, each with the weight of everything that it consists of so far.
    waiting: Vec<(u8, u64)>,
    /// Weight of the present operand.
    operand: u64,
    /// Weight of the expressions before.
    finished: u64,
}

impl OperatorChain {
    /// Reads the operator at the start of a text. Returns its length, and the weight of the expressions to the left of
    /// it whose types are computed again.
    pub(crate) fn operator(&mut self, text: &str) -> (usize, u64) {
        let known = OPERATORS
            .iter()
            .find(|(operator, ..)| text.starts_with(operator));
        let Some((operator, precedence, weight)) = known else {
            // A negation, or the exclamation mark of a call.
            return (1, 0);
        };
        if *precedence == ASSIGNMENT {
            self.finish();
            return (operator.len(), 0);
        }
        let mut left = std::mem::take(&mut self.operand);
        while let Some((_, before)) = self.waiting.pop_if(|(other, _)| *other >= *precedence) {
            left = left.saturating_add(before);
        }
        self.waiting
            .push((*precedence, left.saturating_add(*weight)));
        (operator.len(), left)
    }

    /// Adds a part of the present operand: the content of a bracket, or a string.
    pub(crate) fn add(&mut self, weight: u64) {
        self.operand = self.operand.saturating_add(weight);
    }

    /// Ends the expression.
    pub(crate) fn finish(&mut self) {
        let waiting = self.waiting.drain(..).map(|(_, weight)| weight);
        let all = waiting.fold(std::mem::take(&mut self.operand), u64::saturating_add);
        self.finished = self.finished.saturating_add(all);
    }

    /// Returns the weight of all expressions.
    pub(crate) fn total(mut self) -> u64 {
        self.finish();
        self.finished
    }
}

/// Number of operators that a string with variables (`"a {{ b }} c"`) stands for: the compiler joins its parts by `+`.
pub(crate) fn of_string(text: &str) -> usize {
    2 * text.matches("{{").count()
}

/// Returns the weight that the compiler passes over while it joins the parts of a string.
pub(crate) fn within_string(operators: usize) -> u64 {
    let operators = operators as u64;
    operators.saturating_mul(operators) / 2 * OTHER
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the weights to the left of the operators, which are the only characters of the text besides blanks.
    fn left(operators: &str) -> Vec<u64> {
        let mut chain = OperatorChain::default();
        let operators = operators.split(' ');
        operators.map(|it| chain.operator(it).1).collect()
    }

    #[test]
    fn the_left_side_of_an_operator_grows_along_a_chain() {
        assert_eq!(left("|| || ||"), [0, 4, 8]);
        assert_eq!(left("+ - + -"), [0, 1, 2, 3]);
        assert_eq!(left("== || == && =="), [0, 1, 0, 6, 0]);
        assert_eq!(left("+ * == ??"), [0, 0, 2, 3]);
        assert_eq!(left("?? + ?? +"), [0, 0, 5, 0]);
        assert_eq!(left("= || = ||"), [0, 0, 0, 0]);
        assert_eq!(left("! ||"), [0, 0]);
    }

    #[test]
    fn an_operand_has_the_weight_of_its_parts() {
        let mut chain = OperatorChain::default();
        chain.add(10);
        assert_eq!(chain.operator("|| b"), (2, 10));
        chain.add(2);
        assert_eq!(chain.operator("+ c"), (1, 2));
        assert_eq!(chain.operator("?? d"), (2, 10 + 4 + 2 + 1));
        chain.finish();
        assert_eq!(chain.operator("|| e"), (2, 0));
        assert_eq!(chain.total(), 10 + 4 + 2 + 1 + 4 + 4);
    }
}
