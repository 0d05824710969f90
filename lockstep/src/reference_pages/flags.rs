//! Markdown page of the command line.

use clap_markdown::{MarkdownOptions, help_markdown_command_custom};

/// Returns the page.
pub(super) fn page(command: &clap::Command) -> String {
    let options = MarkdownOptions::new()
        .title("Command line".to_owned())
        .show_footer(false)
        .show_table_of_contents(false);
    let text = help_markdown_command_custom(command, &options);
    // Otherwise, the page would contain a path of the machine that built the program.
    let text = text.replace(concat!(env!("CARGO_MANIFEST_DIR"), "/../"), "");
    let text = text.replace(
        "This document contains the help content for the `lockstep` command-line program.",
        "Generated from the help texts of the program, `lockstep COMMAND --help`.",
    );
    // Placeholders such as `<FILE>` outside code would be read as HTML.
    let lines = text.lines().map(|line| {
        let is_code = line.contains('`');
        if is_code {
            line.trim_end().to_owned()
        } else {
            line.trim_end().replace('<', "&lt;")
        }
    });
    let mut page = lines.collect::<Vec<_>>().join("\n");
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}
