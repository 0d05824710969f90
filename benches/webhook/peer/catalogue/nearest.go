package catalogue

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

const (
	// longest name that is compared with classes. The schema allows 32 characters.
	longest = 64
	// maxEdits is the maximum number of typing errors in a name that was meant as another one.
	maxEdits = 2
	// maxByOneError is the maximum number of suggested classes that differ by one typing error.
	maxByOneError = 12
)

// misspelled is a class as which another name can have been meant. The fields are in the order of their weight.
type misspelled struct {
	class         string
	edits         int
	isOtherFamily int
	isOtherSize   int
	generations   int
	sizes         int
}

// Nearest returns the classes that are most similar to one that is not in the set: those that differ by a typing error or
// two, and then those of its family by their sizes, or those of its size by their families.
func (s ClassSet) Nearest(class string, count int) []string {
	if len(class) > longest {
		return nil
	}
	var nearest []string
	byOneError := 0
	for _, known := range s.misspelled(class) {
		nearest = append(nearest, known.class)
		if known.edits == 1 {
			byOneError++
		}
	}
	count = max(count, min(byOneError, maxByOneError))
	for _, known := range s.comparable(class, count) {
		if !slices.Contains(nearest, known) {
			nearest = append(nearest, known)
		}
	}
	return nearest[:min(count, len(nearest))]
}

func (s ClassSet) misspelled(class string) []misspelled {
	family, size, _ := split(class)
	var all []misspelled
	for _, known := range s.all() {
		edits := distance(class, known)
		if edits > maxEdits {
			continue
		}
		knownFamily, knownSize, _ := split(known)
		_, number := generation(family)
		_, knownNumber := generation(knownFamily)
		all = append(all, misspelled{
			class:         known,
			edits:         edits,
			isOtherFamily: differs(family, knownFamily),
			isOtherSize:   differs(size, knownSize),
			generations:   abs(number - knownNumber),
			sizes:         sizeDifference(size, knownSize),
		})
	}
	slices.SortStableFunc(all, func(a, b misspelled) int {
		return cmp.Or(
			cmp.Compare(a.edits, b.edits),
			cmp.Compare(a.isOtherFamily, b.isOtherFamily),
			cmp.Compare(a.isOtherSize, b.isOtherSize),
			cmp.Compare(a.generations, b.generations),
			cmp.Compare(a.sizes, b.sizes),
		)
	})
	return all
}

// comparable returns the classes of the same family by their sizes, or those of the same size by their families.
func (s ClassSet) comparable(class string, count int) []string {
	family, size, ok := split(class)
	if !ok {
		return nil
	}
	bySize := func(a, b string) int { return cmp.Compare(sizeDifference(size, a), sizeDifference(size, b)) }
	var found []string
	if sizes, ok := s.sizes[family]; ok {
		for _, known := range slices.SortedStableFunc(slices.Values(sizes), bySize) {
			found = append(found, join(family, known))
		}
		return found[:min(count, len(found))]
	}
	// db.m4.large → db.m5.large: the same letter, and the next generation.
	letters, number := generation(family)
	byGeneration := func(a, b string) int {
		lettersA, numberA := generation(a)
		lettersB, numberB := generation(b)
		return cmp.Or(
			cmp.Compare(differs(lettersA, letters), differs(lettersB, letters)),
			cmp.Compare(abs(numberA-number), abs(numberB-number)),
		)
	}
	for _, known := range slices.SortedStableFunc(slices.Values(s.families), byGeneration) {
		found = append(found, join(known, slices.MinFunc(s.sizes[known], bySize)))
	}
	return found[:min(count, len(found))]
}

// sizeDifference returns a number that is greater for sizes that differ more.
func sizeDifference(a, b string) int {
	rankA, okA := rank(a)
	rankB, okB := rank(b)
	if okA && okB {
		return abs(rankA - rankB)
	}
	return distance(a, b)
}

// generation returns the letters before the generation of a family, and the generation.
func generation(family string) (string, int) {
	isDigit := func(r rune) bool { return '0' <= r && r <= '9' }
	start := strings.IndexFunc(family, isDigit)
	if start < 0 {
		return family, 0
	}
	digits := family[start:]
	if end := strings.IndexFunc(digits, func(r rune) bool { return !isDigit(r) }); end >= 0 {
		digits = digits[:end]
	}
	number, _ := strconv.Atoi(digits)
	return family[:start], number
}

// distance returns the number of typing errors between two texts: characters that are missing, additional, other ones or
// exchanged with the next one.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+differs(a[i-1], b[j-1]))
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

func differs[T comparable](a, b T) int {
	if a == b {
		return 0
	}
	return 1
}

func abs(number int) int {
	return max(number, -number)
}
