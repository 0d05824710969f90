//! The blocks of a text in Markdown that say what to do.

/// One of them.
pub enum Block {
    /// Of a file, or the next piece of it.
    File { path: String, content: String },
    /// A change of files, as `git diff` prints it.
    Change(String),
    /// Commands, and what they print.
    Console(Vec<Said>),
}

/// A command and what it is shown to print.
pub struct Said {
    pub command: String,
    pub output: String,
}

/// All of them, in order.
pub fn blocks(text: &str) -> Vec<Block> {
    // What is fenced in stands at the odd places.
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
        None => panic!("a block of `{info}` says neither which file it is of nor what to do"),
    }
}

fn session(content: &str) -> Vec<Said> {
    let mut said: Vec<Said> = Vec::new();
    for line in content.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            said.push(Said {
                command: command.to_owned(),
                output: String::new(),
            });
        } else {
            let last = said.last_mut().expect("a command comes first");
            last.output.push_str(line);
            last.output.push('\n');
        }
    }
    said
}
