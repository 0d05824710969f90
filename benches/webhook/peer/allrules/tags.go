package allrules

import (
	"fmt"
	"strings"
	"unicode"
)

// symbols are characters outside of ASCII that are neither letters nor digits nor marks.
var symbols = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x2010, Hi: 0x2027, Stride: 1},
		{Lo: 0x2030, Hi: 0x205e, Stride: 1},
		{Lo: 0x20a0, Hi: 0x20cf, Stride: 1},
		{Lo: 0x2190, Hi: 0x23ff, Stride: 1},
		{Lo: 0x2500, Hi: 0x27bf, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0x1f300, Hi: 0x1faff, Stride: 1}},
}

// tags validates characters and prefixes of tags, which RDS would reject with the whole request.
func (v *validation) tags() {
	path := v.path.Child("tags")
	for key, value := range v.spec.Tags {
		for _, text := range []string{key, value} {
			if at := strings.IndexFunc(text, isForbidden); at >= 0 {
				character := []rune(text[at:])[0]
				detail := fmt.Sprintf("has the character %q, which RDS allows in no tag; "+
					"use letters, digits, spaces and _.:/=+-@", character)
				v.deny("tag-characters", path.Key(key), text, detail)
				break
			}
		}
		if strings.HasPrefix(value, "aws:") || strings.HasPrefix(value, "rds:") {
			v.deny("tag-value-reserved", path.Key(key), value,
				"starts with a prefix that AWS reserves; choose another value")
		}
	}
}

func isForbidden(character rune) bool {
	switch {
	case unicode.IsLetter(character) || unicode.IsNumber(character):
		return false
	case character <= unicode.MaxASCII:
		return !strings.ContainsRune(" _.:/=+-@", character)
	default:
		return unicode.IsControl(character) || unicode.Is(symbols, character)
	}
}
