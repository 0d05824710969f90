package catalogue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const prefix = "db."

// ClassSet has instance classes by family and size. Its text is such as `m7g(large,xlarge) t4g(micro)`.
type ClassSet struct {
	// families in the order of their names.
	families []string
	sizes    map[string][]string
}

// UnmarshalText reads the text of a set.
func (s *ClassSet) UnmarshalText(text []byte) error {
	s.sizes = map[string][]string{}
	for _, entry := range strings.Fields(string(text)) {
		family, sizes, found := strings.Cut(strings.TrimSuffix(entry, ")"), "(")
		if !found {
			return fmt.Errorf("`%s` is not a set of classes, such as `m7g(large,xlarge)`", text)
		}
		s.families = append(s.families, family)
		s.sizes[family] = strings.Split(sizes, ",")
	}
	slices.Sort(s.families)
	return nil
}

// Contains returns true if a class, such as db.m7g.large, is in the set.
func (s ClassSet) Contains(class string) bool {
	family, size, ok := split(class)
	return ok && slices.Contains(s.sizes[family], size)
}

// all returns the names of all classes, in the order of families and sizes.
func (s ClassSet) all() []string {
	var all []string
	for _, family := range s.families {
		for _, size := range s.sizes[family] {
			all = append(all, join(family, size))
		}
	}
	return all
}

// Union returns the set with the classes of all sets.
func Union(sets ...ClassSet) ClassSet {
	union := ClassSet{sizes: map[string][]string{}}
	for _, set := range sets {
		for family, sizes := range set.sizes {
			union.sizes[family] = append(union.sizes[family], sizes...)
		}
	}
	for family, sizes := range union.sizes {
		slices.SortFunc(sizes, compareSizes)
		union.sizes[family] = slices.Compact(sizes)
	}
	union.families = slices.Sorted(maps.Keys(union.sizes))
	return union
}

// split returns the family and the size of a class.
func split(class string) (family, size string, ok bool) {
	name, hasPrefix := strings.CutPrefix(class, prefix)
	family, size, hasSize := strings.Cut(name, ".")
	return family, size, hasPrefix && hasSize
}

func join(family, size string) string {
	return prefix + family + "." + size
}

// rank returns a number that is greater for larger sizes. It returns false if the text is not a size.
func rank(size string) (int, bool) {
	name, _, _ := strings.Cut(size, ".")
	if index := slices.Index([]string{"micro", "small", "medium", "large", "xlarge"}, name); index >= 0 {
		return index, true
	}
	factor, found := strings.CutSuffix(name, "xlarge")
	number, err := strconv.ParseUint(factor, 10, 16)
	return int(number) + 4, found && err == nil
}

func compareSizes(a, b string) int {
	rankA, okA := rank(a)
	rankB, okB := rank(b)
	switch {
	case okA && okB:
		return cmp.Or(cmp.Compare(rankA, rankB), strings.Compare(a, b))
	case okA:
		return -1
	case okB:
		return 1
	default:
		return strings.Compare(a, b)
	}
}
