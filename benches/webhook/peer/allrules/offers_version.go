package allrules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	"lockstep.dev/load/peer/catalogue"
	"lockstep.dev/load/peer/versions"
)

const (
	// maxTargets is the maximum number of upgrade targets in a message.
	maxTargets = 20
	// suggestedVersions is the maximum number of versions that a message suggests.
	suggestedVersions = 4
)

// versionsNotOffered returns the version if it is unknown, or cannot be requested.
func (r *request) versionsNotOffered() []notOffered {
	version, ok := r.requestedVersion()
	if !ok {
		return nil
	}
	path := r.path.Child("engineVersion")
	matching := r.engine.Matching(&version)
	if matching == nil {
		return []notOffered{{
			path:         path,
			value:        version,
			problem:      fmt.Sprintf("is not a version of %s that RDS offers", r.spec.Engine),
			alternatives: r.nearestVersions(version),
			isUncertain:  !r.hasLaterVersion(version),
		}}
	}
	var found []notOffered
	if running, targets, ok := r.targets(version); ok && !slices.ContainsFunc(targets, func(target string) bool {
		return versions.Matches(version, target)
	}) {
		found = append(found, notOffered{
			path:         path,
			value:        version,
			problem:      "is not a version to which RDS upgrades " + running,
			alternatives: listed(targets),
		})
	}
	if r.old == nil && matching.HaveNoClasses {
		found = append(found, notOffered{
			path:         path,
			value:        version,
			problem:      "is offered with no instance class",
			alternatives: r.nearestVersions(version),
			isUncertain:  !matching.AreDeprecated,
		})
	}
	return found
}

// wellFormedVersion returns the version of the spec, if it is well-formed. Other rules report one that is not.
func (r *request) wellFormedVersion() (string, bool) {
	if r.spec.EngineVersion == nil {
		return "", false
	}
	version := *r.spec.EngineVersion
	first, _, _ := strings.Cut(version, ".")
	_, err := strconv.ParseUint(first, 10, 32)
	return version, err == nil && strings.Count(version, ".")+1 >= r.spec.Engine.majorComponents(version)
}

// requestedVersion returns the version, if it is new and not the one that the instance runs. A new instance with data of
// another one has the version of that one.
func (r *request) requestedVersion() (string, bool) {
	if r.old == nil && (r.spec.RestoreFrom != nil || r.spec.ReplicaOf != nil) {
		return "", false
	}
	version, ok := r.wellFormedVersion()
	running := r.status.runningVersion()
	runs := running != nil && versions.Matches(version, *running)
	return version, ok && r.hasNewVersion() && !runs
}

// hasNewVersion returns true if the version is that of a new instance or another one than before.
func (r *request) hasNewVersion() bool {
	return r.old == nil || !ptr.Equal(r.old.EngineVersion, r.spec.EngineVersion)
}

func (r *request) hasDeprecatedVersion() bool {
	version, ok := r.wellFormedVersion()
	if !ok {
		return false
	}
	matching := r.engine.Matching(&version)
	return matching != nil && matching.AreDeprecated
}

// targets returns the version before an upgrade with the versions to which RDS upgrades it, if they are known.
func (r *request) targets(version string) (running string, targets []string, ok bool) {
	before := r.status.runningVersion()
	if before == nil && r.old != nil {
		before = r.old.EngineVersion
	}
	// A lower version is an error of its own.
	if before == nil || versions.Compare(version, *before) <= 0 {
		return "", nil, false
	}
	targets, ok = r.engine.Versions[*before].Targets()
	return *before, targets, ok
}

// hasLaterVersion returns true if the catalogue has a later version: of the same major version, or of others if it has none
// of that one. AWS does not add earlier versions.
func (r *request) hasLaterVersion(version string) bool {
	isOfMajor := func(name string) bool {
		return r.spec.Engine.majorVersion(name) == r.spec.Engine.majorVersion(version)
	}
	isMajorKnown := slices.ContainsFunc(r.engine.Names(), isOfMajor)
	return slices.ContainsFunc(r.engine.Names(), func(name string) bool {
		return (!isMajorKnown || isOfMajor(name)) && versions.Compare(name, version) > 0
	})
}

// nearestVersions returns the words for the current versions that are nearest to one: the next ones of its major version,
// or the last ones of others.
func (r *request) nearestVersions(version string) string {
	major := r.spec.Engine.majorVersion
	var current, nearest []string
	for _, name := range r.engine.Names() {
		offered := r.engine.Versions[name]
		classes, isKnown := r.engine.OfferOf(offered)
		if !offered.Deprecated && (!isKnown || len(classes) > 0) {
			current = append(current, name)
		}
	}
	for _, name := range current {
		if major(name) == major(version) {
			nearest = append(nearest, name)
		}
	}
	if nearest == nil {
		for at, name := range current {
			if at+1 == len(current) || major(current[at+1]) != major(name) {
				nearest = append(nearest, name)
			}
		}
	}
	lower := 0
	for lower < len(nearest) && catalogue.CompareNames(nearest[lower], version) < 0 {
		lower++
	}
	first := min(max(0, lower-suggestedVersions/2), max(0, len(nearest)-suggestedVersions))
	return nearestOf(nearest[first:min(first+suggestedVersions, len(nearest))])
}

// nearestOf returns the words for the nearest offers.
func nearestOf(names []string) string {
	switch len(names) {
	case 0:
		return "there is none"
	case 1:
		return "the nearest is " + names[0]
	default:
		return "the nearest are " + strings.Join(names, ", ")
	}
}

// listed returns the words for upgrade targets.
func listed(targets []string) string {
	if len(targets) == 0 {
		return "there is none"
	}
	shown := "set one of " + strings.Join(targets[:min(maxTargets, len(targets))], ", ")
	if rest := len(targets) - maxTargets; rest > 0 {
		return fmt.Sprintf("%s, and %d others", shown, rest)
	}
	return shown
}
