// Package versions compares versions of database engines.
package versions

import (
	"cmp"
	"strconv"
	"strings"
)

// Compare compares two versions by the numeric components that both have.
func Compare(a, b string) int {
	as, bs := components(a), components(b)
	for index := range min(len(as), len(bs)) {
		a, errA := strconv.ParseUint(as[index], 10, 64)
		b, errB := strconv.ParseUint(bs[index], 10, 64)
		if errA != nil || errB != nil {
			return 0
		}
		if a != b {
			return cmp.Compare(a, b)
		}
	}
	return 0
}

// Matches returns true if all components of the desired version are the first ones of the actual version.
func Matches(desired, actual string) bool {
	rest, found := strings.CutPrefix(actual, desired)
	return found && (rest == "" || rest[0] == '.')
}

func components(version string) []string {
	return strings.FieldsFunc(version, func(r rune) bool { return r == '.' || r == '-' })
}
