package allrules

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"lockstep.dev/load/peer/catalogue"
)

// notOffered is something that RDS does not offer.
type notOffered struct {
	path         *field.Path
	value        any
	problem      string
	alternatives string
	// isUncertain is true if AWS may have begun to offer it after the catalogue was read.
	isUncertain bool
}

// request to RDS: a new instance, or a change.
type request struct {
	path *field.Path
	spec *CloudDatabaseSpec
	// old is nil for a new instance.
	old    *CloudDatabaseSpec
	status *CloudDatabaseStatus
	engine *catalogue.Engine
	// region of the instance, if it is known.
	region string
}

// offers compares the object with the catalogue.
func (v *validation) offers() {
	engine, found := v.catalogue.Engines[string(v.spec.Engine)]
	if !found {
		return
	}
	request := &request{
		path: v.path, spec: v.spec, old: v.oldSpec(), status: v.status(), engine: engine, region: v.region(),
	}
	if v.isRequested() {
		for _, found := range request.notOffered() {
			detail := fmt.Sprintf("%s, by the %s; %s", found.problem, v.catalogueName(engine), found.alternatives)
			// A catalogue of all regions may differ from that of an account.
			if v.catalogue.Origin.Account != "" && !found.isUncertain {
				v.deny("not-offered", found.path, found.value, detail)
			} else {
				v.warn("not-in-catalogue", found.path, found.value, detail)
			}
		}
	}
	if request.hasDeprecatedVersion() {
		version := *v.spec.EngineVersion
		detail := fmt.Sprintf("is deprecated, by the %s: RDS creates no new instances with it, and ends its support; %s",
			v.catalogueName(engine), request.nearestVersions(version))
		v.warn("engine-version-deprecated", v.path.Child("engineVersion"), version, detail)
	}
	isNew := v.old == nil && v.spec.Adopt == nil
	if detail := endOfSupport(v.spec, isNew, engine.Date); detail != "" {
		v.warn("extended-support", v.path.Child("engineVersion"), *v.spec.EngineVersion, detail)
	}
}

// catalogueName returns the words by which messages name the catalogue.
func (v *validation) catalogueName(engine *catalogue.Engine) string {
	origin := v.catalogue.Origin
	if origin.Account != "" {
		return fmt.Sprintf("catalogue of account %s in %s of %s", origin.Account, origin.Region, engine.Date)
	}
	return fmt.Sprintf("catalogue of %s (%s)", engine.Date, origin.Source)
}

// isRequested returns true if the controller requests the object, or its change, from RDS.
func (v *validation) isRequested() bool {
	if v.spec.ManagementPolicy == observes {
		return false
	}
	if v.old != nil {
		// A changed engine is an error of its own.
		return v.old.Spec.Engine == v.spec.Engine
	}
	// An adopted instance runs as it is, and one that was requested before is not requested again.
	status := v.status()
	return v.spec.Adopt == nil && !status.exists() && (status == nil || status.Region == nil)
}

// region returns the region of the instance, or an empty text.
func (v *validation) region() string {
	if status := v.status(); status != nil && status.Region != nil {
		return *status.Region
	}
	return strings.TrimSpace(v.object.Annotations["database.example.com/region"])
}

// notOffered returns what RDS does not offer. A problem of the version hides those of the class, and one of the class those
// of the storage.
func (r *request) notOffered() []notOffered {
	if found := r.versionsNotOffered(); len(found) > 0 {
		return found
	}
	classes := r.classesWithVersion()
	if found := r.classNotOffered(classes); found != nil {
		return []notOffered{*found}
	}
	if found := r.classNotOfferedWithRunning(); found != nil {
		return []notOffered{*found}
	}
	var ofClass []catalogue.ClassOffer
	for _, offer := range classes {
		if offer.Classes.Contains(r.spec.InstanceClass) {
			ofClass = append(ofClass, offer)
		}
	}
	return append(r.storageNotOffered(ofClass), r.capabilitiesNotOffered(ofClass)...)
}

// hasNewClass returns true if the class is that of a new instance or another one than before.
func (r *request) hasNewClass() bool {
	return r.old == nil || r.old.InstanceClass != r.spec.InstanceClass
}
