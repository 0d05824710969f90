package allrules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockstep.dev/load/peer/versions"
)

func (v *validation) engineVersion() {
	version := v.spec.EngineVersion
	if version == nil {
		return
	}
	path := v.path.Child("engineVersion")
	if detail := v.downgrade(*version); detail != "" {
		v.deny("engine-version-downgrade", path, *version, detail)
	}
	// A changed engine is an error of its own, and the version that was kept is one of the other engine.
	if v.old != nil && v.old.Spec.Engine != v.spec.Engine {
		return
	}
	if detail := malformed(v.spec.Engine, *version); detail != "" {
		v.deny("engine-version-form", path, *version, detail)
	}
}

// downgrade returns the problem of a version that is lower than the present one.
func (v *validation) downgrade(version string) string {
	running, before := v.object.Status.runningVersion(), v.oldVersion()
	switch {
	case running != nil:
		// A version that the instance never ran, because RDS has rejected it or it waits, can be taken back.
		if v.old != nil && versions.Compare(version, *running) < 0 {
			return fmt.Sprintf("must not be lower than '%s', which the instance runs: RDS cannot downgrade it", *running)
		}
	case before != nil && versions.Compare(version, *before) < 0:
		return fmt.Sprintf("must not be lower than '%s': RDS cannot downgrade an instance", *before)
	}
	return ""
}

// malformed returns the problem of a version that does not have the components of a release or a major version.
func malformed(engine Engine, version string) string {
	numbers, _, _ := strings.Cut(version, "-")
	components := strings.Split(numbers, ".")
	// The schema reports versions that do not begin with a number, and empty components.
	if _, err := strconv.ParseUint(components[0], 10, 32); err != nil {
		return ""
	}
	inMajor := engine.majorComponents(version)
	example := engine.defaultVersion()
	if engine == postgres && inMajor == 2 {
		example = "9.6"
	}
	switch {
	case slices.ContainsFunc(components, isMalformed):
		return fmt.Sprintf(
			"is not a version of %s: its components are numbers without leading zeros, as in %s", engine, example)
	case len(components) < inMajor:
		return fmt.Sprintf(
			"is not a version of %s: its major versions have two components, such as %s", engine, example)
	case len(components) > inMajor+1:
		major := strings.Join(components[:inMajor], ".")
		return fmt.Sprintf("has more components than a version of %s, such as %s.2; set '%s.%s' or '%s'",
			engine, example, major, components[inMajor], major)
	default:
		return ""
	}
}

func isMalformed(component string) bool {
	if component == "" {
		return false
	}
	first := component[0] | 0x20
	return first >= 'a' && first <= 'z' || len(component) > 1 && component[0] == '0'
}
