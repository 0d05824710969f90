//! Listing of the objects of the installed kinds.

use kube::api::{Api, DynamicObject, ListParams};
use lockstep_controller::{CustomObject, api_resource};
use lockstep_shared_validation::Validator;

use crate::installation::Installation;
use crate::installation::stored_object::StoredObject;

/// Maximum number of objects in one page of a list request.
const PAGE: u32 = 500;

/// Namespaces in which objects are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamespaceSelection {
    /// The watched namespaces of the installation.
    Watched,
    /// All namespaces, even if the installation watches only some.
    Cluster,
}

/// Lists all objects of a kind; none if the cluster does not have the kind.
pub(crate) async fn list(
    installation: &Installation<'_>,
    ruleset: &dyn Validator,
    within: NamespaceSelection,
) -> Result<Vec<StoredObject>, kube::Error> {
    let resource = api_resource(ruleset);
    let client = || installation.client.clone();
    let apis: Vec<Api<CustomObject>> =
        if within == NamespaceSelection::Watched && installation.is_namespaced() {
            let namespaces = installation.namespaces.iter();
            namespaces
                .map(|namespace| Api::namespaced_with(client(), namespace, &resource))
                .collect()
        } else {
            vec![Api::all_with(client(), &resource)]
        };
    let mut objects = Vec::new();
    for api in apis {
        let found = list_pages(&api).await?;
        objects.extend(found.into_iter().map(|object| StoredObject {
            resource: resource.clone(),
            object,
        }));
    }
    Ok(objects)
}

async fn list_pages(api: &Api<CustomObject>) -> Result<Vec<DynamicObject>, kube::Error> {
    let mut params = ListParams::default().limit(PAGE);
    let mut objects = Vec::new();
    loop {
        let page = match api.list(&params).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(objects),
            page => page?,
        };
        objects.extend(page.items.into_iter().map(CustomObject::into_inner));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(objects),
        }
    }
}
