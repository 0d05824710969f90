//! Builder: what is published of a configuration.

use std::collections::BTreeMap;

use lockstep_vector_assembly::{Assembly, AssemblyOptions, PipelineKey, PipelinePart, TooLarge};

use crate::owned::{self, Publication};
use crate::run::collect::running_objects::Observed;
use crate::run::migrate::PresentNames;
use crate::run::publish::contents::{self, SecretsOfFiles};
use crate::run::workload::wants_moves;
use lockstep_vector_api::WorkloadKind;

/// Facts that decide what is published of a configuration.
pub(crate) struct PublicationBuilder<'a, K> {
    pub(crate) object: &'a K,
    pub(crate) observed: &'a Observed,
    /// If true, an init container can move the data of the workload.
    pub(crate) may_move: bool,
    /// Image of this init container.
    pub(crate) image: Option<&'a str>,
    /// Name of most owned objects.
    pub(crate) object_name: &'a str,
    /// Directory of the nodes for the data.
    pub(crate) data_directory: &'a str,
    /// If true, Vector tells in its log which configuration it runs.
    pub(crate) reports_loads: bool,
}

impl<K: WorkloadKind> PublicationBuilder<'_, K> {
    /// Returns what is published while the Pods have the names `present` and run the parts `before`, and the image of an
    /// init container that remains in the template.
    ///
    /// # Errors
    ///
    /// The configuration does not fit into Secrets.
    pub(crate) fn publish<'p>(
        &self,
        present: &'p PresentNames,
        options: &AssemblyOptions,
        assembly: &Assembly,
        secrets: BTreeMap<String, Vec<u8>>,
        before: &BTreeMap<PipelineKey, PipelinePart>,
    ) -> Result<(Publication, Option<&'p str>), TooLarge> {
        let names = present.publish(options, assembly, before, self.may_move);
        let image = present.remaining_image(&names, wants_moves(self.object));
        let workload = self.object.workload();
        let is_compressed = workload.and_then(|it| it.compress_config_file);
        let publication = contents::publication(
            SecretsOfFiles {
                kind: K::ROLE,
                is_compressed: is_compressed.unwrap_or_default(),
                mounted: &self.observed.mounted_secrets(),
                object_name: self.object_name,
            },
            assembly,
            secrets,
            self.observed.adopted_hash.clone(),
            names,
            self.image,
        );
        let mut publication = publication?;
        publication.data_directory = Some(self.data_directory.to_owned());
        if self.reports_loads {
            let files = &publication.files;
            let lines = owned::load_lines(files.keys(), &assembly.hash());
            if owned::has_room_for_reports(files, &lines, is_compressed.unwrap_or_default()) {
                publication.load_lines = lines;
            }
        }
        Ok((publication, image))
    }
}
