//! Disk buffers of sinks. The files of a buffer do not contain its name, so that it is renamed as a whole.

use std::io;

use lockstep_vector_assembly::DataMove;

use crate::migrate_data::data_directory::{self, DataDirectory};

/// Gives the buffers their new names. A buffer whose new name another one has is left as it is: the order of the events in
/// both is unknown, and neither may be deleted.
pub(super) fn migrate(
    directory: &DataDirectory,
    moves: &[DataMove],
    report: &mut Vec<String>,
) -> io::Result<()> {
    for DataMove { from, to } in data_directory::valid(moves, report) {
        let (old, new) = (directory.of_buffer(from), directory.of_buffer(to));
        if data_directory::rename(&old, &new)? {
            report.push(format!("the disk buffer of {from} is that of {to}"));
        } else if data_directory::exists(&old)? {
            report.push(format!(
                "the disk buffer of {from} is left as it is: {to} has one already"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_buffer_gets_its_new_name_unless_another_one_has_it() {
        let root = tempfile::tempdir().expect("a directory");
        let directory = DataDirectory::new(root.path());
        let fill = |name: &str, content: &str| {
            fs::create_dir_all(directory.of_buffer(name)).expect("a directory");
            let file = directory.of_buffer(name).join("buffer-data-0.dat");
            fs::write(file, content).expect("a file");
        };
        let content = |name: &str| {
            fs::read_to_string(directory.of_buffer(name).join("buffer-data-0.dat")).ok()
        };
        fill("a-p-out", "1");
        fill("b-p-out", "2");
        fill("b__p__out", "3");
        let moves = [
            ("a-p-out", "a__p__out"),
            ("b-p-out", "b__p__out"),
            ("c-p-out", "c__p__out"),
        ];
        let moves = moves.map(|(from, to)| DataMove {
            from: from.to_owned(),
            to: to.to_owned(),
        });
        let mut report = Vec::new();
        migrate(&directory, &moves, &mut report).expect("moved");
        assert_eq!(report.len(), 2, "{report:?}");
        assert_eq!(content("a__p__out").as_deref(), Some("1"));
        assert_eq!(content("a-p-out"), None);
        assert_eq!(content("b-p-out").as_deref(), Some("2"));
        assert_eq!(content("b__p__out").as_deref(), Some("3"));
        let mut again = Vec::new();
        migrate(&directory, &moves, &mut again).expect("moved");
        assert_eq!(again, report[1..]);
    }
}
