package catalogue

import (
	"fmt"
	"strconv"
	"strings"
)

// Bounds are the least and the greatest value of a setting, both included. One that is nil is not limited.
type Bounds struct{ Min, Max *float64 }

// Contains returns true if a value is within the bounds.
func (b Bounds) Contains(value float64) bool {
	return (b.Min == nil || value >= *b.Min) && (b.Max == nil || value <= *b.Max)
}

// String returns the words for the bounds.
func (b Bounds) String() string {
	number := func(value *float64) string { return strconv.FormatFloat(*value, 'f', -1, 64) }
	switch {
	case b.Min != nil && b.Max != nil:
		return number(b.Min) + " to " + number(b.Max)
	case b.Min != nil:
		return "at least " + number(b.Min)
	default:
		return "at most " + number(b.Max)
	}
}

// UnmarshalText reads a text such as 20..65536.
func (b *Bounds) UnmarshalText(text []byte) error {
	least, greatest, found := strings.Cut(string(text), "..")
	if !found || least == "" && greatest == "" {
		return fmt.Errorf("`%s` is not a range, such as `20..65536`", text)
	}
	var err error
	if b.Min, err = number(least); err != nil {
		return err
	}
	b.Max, err = number(greatest)
	return err
}

func number(text string) (*float64, error) {
	if text == "" {
		return nil, nil
	}
	value, err := strconv.ParseFloat(text, 64)
	return &value, err
}
