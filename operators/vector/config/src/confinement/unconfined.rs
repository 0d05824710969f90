//! Reasons why a template cannot be confined.

/// The reason why a template cannot be confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unconfined {
    /// No literal text comes first.
    NoPrefix { field: String },
    /// The literal text is `/`.
    RootPrefix { field: String },
    /// A URI whose host is not literal.
    NoHost,
    /// A URI whose host is literal, but not ended by a `/`.
    PartialHost,
    /// A URI with an encoded or foreign separator in its literal text.
    EncodedSeparator,
    /// A URI with a query or a fragment.
    QueryOrFragment,
    /// A path whose literal text names no directory below the root.
    NoDirectory { field: String },
    /// A base directory that is not absolute.
    RelativeBase,
    /// A literal path outside the base directory.
    OutsideBase,
}
