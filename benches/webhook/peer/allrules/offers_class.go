package allrules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"lockstep.dev/load/peer/catalogue"
	"lockstep.dev/load/peer/versions"
)

// suggestedClasses is the maximum number of classes that a message suggests.
const suggestedClasses = 3

// classesWithVersion returns the offers of classes with the version of the request. It returns nil if they are unknown.
func (r *request) classesWithVersion() []catalogue.ClassOffer {
	version := r.spec.EngineVersion
	// The version of a restored or replicated instance is that of its source at first.
	if r.old == nil && (r.spec.RestoreFrom != nil || r.spec.ReplicaOf != nil) {
		version = nil
	}
	classes := []catalogue.ClassOffer{}
	if matching := r.engine.Matching(version); matching != nil {
		classes = matching.Classes
	}
	// RDS lists only the classes of new instances. An instance that has, or is upgraded to, a version without any can have
	// others.
	if r.old != nil && len(classes) == 0 {
		return nil
	}
	return classes
}

// classNotOffered returns the class if it is not offered with the version, or not in the region.
func (r *request) classNotOffered(withVersion []catalogue.ClassOffer) *notOffered {
	class := r.spec.InstanceClass
	isNew := r.hasNewClass() || r.hasNewVersion()
	if !isNew || r.status.runs(class) && !r.upgrades() || !isWellFormedClass(class) {
		return nil
	}
	problem, classes := r.absence(withVersion, class)
	if problem == "" {
		return nil
	}
	return r.withoutClass(problem, nearestOf(classes.Nearest(class, suggestedClasses)))
}

// classNotOfferedWithRunning returns the class if it is not offered with the version that the instance runs: RDS changes
// class and version in one operation only if it is.
func (r *request) classNotOfferedWithRunning() *notOffered {
	class := r.spec.InstanceClass
	if r.old == nil || r.status.runs(class) || !r.hasNewClass() || !isWellFormedClass(class) {
		return nil
	}
	running := r.old.EngineVersion
	if r.status != nil {
		running = r.status.EngineVersion
	}
	if running == nil {
		return nil
	}
	offers, isKnown := r.engine.OfferOf(r.engine.Versions[*running])
	// RDS lists only the classes of new instances, and none of a version that is deprecated.
	if !isKnown || len(offers) == 0 || catalogue.HaveClass(offers, class) {
		return nil
	}
	alternatives := "change the version first, and the class once the instance runs it"
	if !r.upgrades() {
		alternatives = nearestOf(classesOf(offers).Nearest(class, suggestedClasses))
	}
	problem := fmt.Sprintf("is not offered with %s %s, which the instance runs", r.spec.Engine, *running)
	return r.withoutClass(problem, alternatives)
}

func (r *request) withoutClass(problem, alternatives string) *notOffered {
	return &notOffered{
		path:         r.path.Child("instanceClass"),
		value:        r.spec.InstanceClass,
		problem:      problem,
		alternatives: alternatives,
		isUncertain:  !r.engine.HasClass(r.spec.InstanceClass),
	}
}

// absence returns the problem of a class that a part of the catalogue lacks, with the classes that it has.
func (r *request) absence(withVersion []catalogue.ClassOffer, class string) (string, catalogue.ClassSet) {
	engine := r.spec.Engine
	if withVersion != nil && !catalogue.HaveClass(withVersion, class) {
		problem := fmt.Sprintf("is not offered with %s", engine)
		if r.spec.EngineVersion != nil {
			problem += " " + *r.spec.EngineVersion
		}
		return problem, classesOf(withVersion)
	}
	if classes, found := r.engine.Regions[r.region]; found {
		if classes.Contains(class) {
			return "", classes
		}
		return "is not offered in " + r.region, classes
	}
	if len(r.engine.Regions) > 0 && !r.engine.HasClassInRegions(class) {
		all := slices.Collect(maps.Values(r.engine.Regions))
		return fmt.Sprintf("is not offered with %s", engine), catalogue.Union(all...)
	}
	return "", catalogue.ClassSet{}
}

// upgrades returns true if the version is not the one that the instance runs.
func (r *request) upgrades() bool {
	running, desired := r.status.runningVersion(), r.spec.EngineVersion
	return desired != nil && (running == nil || !versions.Matches(*desired, *running))
}

func classesOf(offers []catalogue.ClassOffer) catalogue.ClassSet {
	var sets []catalogue.ClassSet
	for _, offer := range offers {
		sets = append(sets, offer.Classes)
	}
	return catalogue.Union(sets...)
}

// isWellFormedClass returns false for a class that the schema reports.
func isWellFormedClass(class string) bool {
	return strings.Count(class, ".") == 2
}

// capability is a setting that needs a capability of the class.
type capability struct {
	name  string
	field []string
	words string
	isSet func(*CloudDatabaseSpec) bool
}

var capabilities = []capability{
	{"multiAz", []string{"multiAz"}, "a standby (Multi-AZ)", func(spec *CloudDatabaseSpec) bool {
		return isTrue(spec.MultiAz)
	}},
	{"iamAuthentication", []string{"iamAuthentication"}, "authentication with IAM", func(spec *CloudDatabaseSpec) bool {
		return isTrue(spec.IamAuthentication)
	}},
	{"enhancedMonitoring", []string{"monitoring", "enhanced"}, "Enhanced Monitoring", func(spec *CloudDatabaseSpec) bool {
		return spec.Monitoring != nil && spec.Monitoring.Enhanced != nil && spec.Monitoring.Enhanced.IntervalSeconds > 0
	}},
	{"performanceInsights", []string{"monitoring", "performanceInsights", "enabled"}, "Performance Insights",
		func(spec *CloudDatabaseSpec) bool { return spec.insights() != nil && spec.insights().Enabled }},
	{"dedicatedLogVolume", []string{"dedicatedLogVolume"}, "a dedicated log volume", func(spec *CloudDatabaseSpec) bool {
		return isTrue(spec.DedicatedLogVolume)
	}},
}

// capabilitiesNotOffered returns the settings that the class, with these offers, does not support.
func (r *request) capabilitiesNotOffered(ofClass []catalogue.ClassOffer) []notOffered {
	if len(ofClass) == 0 {
		return nil
	}
	var found []notOffered
	for _, needed := range capabilities {
		isNew := r.hasNewClass() || !needed.isSet(r.old)
		if !needed.isSet(r.spec) || !isNew || !lack(ofClass, needed.name) {
			continue
		}
		found = append(found, notOffered{
			path:         r.path.Child(needed.field[0], needed.field[1:]...),
			value:        true,
			problem:      fmt.Sprintf("needs %s, which is not offered with %s", needed.words, r.spec.InstanceClass),
			alternatives: "remove it, or choose another class",
		})
	}
	return found
}

// lack returns true if all offers are known to lack a capability.
func lack(offers []catalogue.ClassOffer, capability string) bool {
	for _, offer := range offers {
		if offer.Capabilities == nil || slices.Contains(offer.Capabilities, capability) {
			return false
		}
	}
	return true
}
