//! Code blocks of a Markdown text that contain files, changes and commands.

/// One code block.
pub enum Block {
    /// Content of a file, or its next part.
    File { path: String, content: String },
    /// Change of files, in the format of `git diff`.
    Change(String),
    /// Commands and their output.
    Console(Vec<Step>),
}

/// Command and the output that the text shows.
pub struct Step {
    pub command: String,
    pub output: String,
}

/// All blocks of a text, in order.
pub fn blocks(text: &str) -> Vec<Block> {
    // The fenced parts have the odd indices.
    let fenced = text.split("\n```").skip(1).step_by(2);
    fenced.map(block).collect()
}

fn block(fenced: &str) -> Block {
    let (info, content) = fenced.split_once('\n').expect("a block has lines");
    let content = format!("{content}\n");
    match info.split_once(' ') {
        Some((_, path)) => Block::File {
            path: path.to_owned(),
            content,
        },
        None if info == "diff" => Block::Change(content),
        None if info == "console" => Block::Console(session(&content)),
        None => panic!("the block `{info}` names no file and is neither `diff` nor `console`"),
    }
}

fn session(content: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in content.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                command: command.to_owned(),
                output: String::new(),
            });
        } else {
            let last = steps.last_mut().expect("a command comes first");
            last.output.push_str(line);
            last.output.push('\n');
        }
    }
    steps
}
