package main

import (
	"errors"
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// row is one error of the table. Path elements are names; a number is an index, and an element in brackets is a key.
type row struct {
	Type      string   `json:"type"`
	Path      []any    `json:"path"`
	Value     any      `json:"value"`
	Omit      bool     `json:"omit"`
	Detail    string   `json:"detail"`
	Supported []string `json:"supported"`
	Actual    int      `json:"actual"`
	Max       int      `json:"max"`
}

type printed struct {
	Error string `json:"error"`
	Body  string `json:"body"`
}

type answers struct {
	Errors     []printed `json:"errors"`
	Aggregates []string  `json:"aggregates"`
}

func fieldErrors(input []byte) (any, error) {
	var rows []row
	// Decode as the API server does: integers are int64, other numbers float64.
	if err := utiljson.Unmarshal(input, &rows); err != nil {
		return nil, err
	}
	var list field.ErrorList
	out := answers{}
	for _, r := range rows {
		e, err := r.build()
		if err != nil {
			return nil, err
		}
		list = append(list, e)
		out.Errors = append(out.Errors, printed{Error: e.Error(), Body: e.ErrorBody()})
		// Aggregates of every length, and one with a repeated error.
		out.Aggregates = append(out.Aggregates, list.ToAggregate().Error())
		out.Aggregates = append(out.Aggregates, append(field.ErrorList{e}, e).ToAggregate().Error())
	}
	return out, nil
}

func (r row) build() (*field.Error, error) {
	path, err := r.path()
	if err != nil {
		return nil, err
	}
	var value any = r.Value
	if r.Omit {
		value = field.OmitValueType{}
	}
	switch r.Type {
	case "NotFound":
		return field.NotFound(path, value), nil
	case "Required":
		return field.Required(path, r.Detail), nil
	case "Duplicate":
		return field.Duplicate(path, value), nil
	case "Invalid":
		return field.Invalid(path, value, r.Detail), nil
	case "NotSupported":
		return field.NotSupported(path, value, r.Supported), nil
	case "Forbidden":
		return field.Forbidden(path, r.Detail), nil
	case "TooLong":
		return field.TooLong(path, "", r.Max), nil
	case "TooShort":
		return &field.Error{Type: field.ErrorTypeTooShort, Field: path.String(), Detail: r.Detail}, nil
	case "TooMany":
		return field.TooMany(path, r.Actual, r.Max), nil
	case "TooFew":
		return &field.Error{Type: field.ErrorTypeTooFew, Field: path.String(), BadValue: value, Detail: r.Detail}, nil
	case "Internal":
		return field.InternalError(path, errors.New(r.Detail)), nil
	case "TypeInvalid":
		return field.TypeInvalid(path, value, r.Detail), nil
	}
	return nil, fmt.Errorf("unknown type %q", r.Type)
}

func (r row) path() (*field.Path, error) {
	var path *field.Path
	for _, element := range r.Path {
		switch e := element.(type) {
		case int64:
			path = path.Index(int(e))
		case string:
			if n := len(e); n > 1 && e[0] == '[' && e[n-1] == ']' {
				path = path.Key(e[1 : n-1])
			} else {
				path = path.Child(e)
			}
		default:
			return nil, fmt.Errorf("unknown path element %v", element)
		}
	}
	return path, nil
}
