package catalogue

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// MatchingVersions has the properties of all versions that a version of a spec stands for: 16 stands for 16.9 and 16.10.
type MatchingVersions struct {
	// AreDeprecated is true if RDS creates new instances with none of them.
	AreDeprecated bool
	// HaveNoClasses is true if none of them is offered with a class.
	HaveNoClasses bool
	// Classes with which those are offered of which RDS chooses one. Nil if they are unknown.
	Classes []ClassOffer
}

// Names returns the names of all versions, in ascending order.
func (e *Engine) Names() []string {
	return e.names
}

// Matching returns the versions that a version of a spec stands for: all, if the spec has none. It returns nil if there
// are none.
func (e *Engine) Matching(version *string) *MatchingVersions {
	if version == nil {
		return e.all
	}
	return e.byPrefix[*version]
}

func (e *Engine) index() {
	e.names = slices.SortedFunc(maps.Keys(e.Versions), CompareNames)
	var all []Version
	byPrefix := map[string][]Version{}
	for _, name := range e.names {
		version := e.Versions[name]
		all = append(all, version)
		byPrefix[name] = append(byPrefix[name], version)
		for at, char := range name {
			if char == '.' {
				byPrefix[name[:at]] = append(byPrefix[name[:at]], version)
			}
		}
	}
	e.all = e.matching(all)
	e.byPrefix = make(map[string]*MatchingVersions, len(byPrefix))
	for prefix, versions := range byPrefix {
		e.byPrefix[prefix] = e.matching(versions)
	}
}

func (e *Engine) matching(versions []Version) *MatchingVersions {
	found := &MatchingVersions{AreDeprecated: true, HaveNoClasses: true, Classes: []ClassOffer{}}
	for _, version := range versions {
		found.AreDeprecated = found.AreDeprecated && version.Deprecated
		classes, isKnown := e.OfferOf(version)
		found.HaveNoClasses = found.HaveNoClasses && isKnown && len(classes) == 0
	}
	seen := map[int]bool{}
	for _, version := range versions {
		// RDS chooses a current version.
		if version.Deprecated && !found.AreDeprecated {
			continue
		}
		if version.Offer == nil {
			found.Classes = nil
			break
		}
		if !seen[*version.Offer] {
			seen[*version.Offer] = true
			found.Classes = append(found.Classes, e.Offers[*version.Offer]...)
		}
	}
	return found
}

// CompareNames compares versions such as 8.0.46-rds.20260908 by their parts, of which numbers come before texts.
func CompareNames(a, b string) int {
	parts := func(name string) []string {
		return strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '-' })
	}
	return cmp.Or(slices.CompareFunc(parts(a), parts(b), compareParts), strings.Compare(a, b))
}

func compareParts(a, b string) int {
	numberA, errA := strconv.ParseUint(a, 10, 64)
	numberB, errB := strconv.ParseUint(b, 10, 64)
	switch {
	case errA == nil && errB == nil:
		return cmp.Compare(numberA, numberB)
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	default:
		return strings.Compare(a, b)
	}
}
