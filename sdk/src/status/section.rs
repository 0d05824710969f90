//! Section of a report: what was found, and which of it is a problem.

/// Section of a report with the problems in it, as sentences.
pub(crate) struct Section<T> {
    pub(crate) content: T,
    pub(crate) problems: Vec<String>,
}

impl<T> Section<T> {
    /// Returns the content and moves the problems to the end of a list.
    pub(crate) fn into_content(self, problems: &mut Vec<String>) -> T {
        problems.extend(self.problems);
        self.content
    }
}
