package main

import (
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"
)

// readReviews parses each text, a response to a review, strictly and returns the errors.
func readReviews(input []byte) ([]string, error) {
	var texts []string
	if err := json.Unmarshal(input, &texts); err != nil {
		return nil, err
	}
	problems := make([]string, 0, len(texts))
	for _, text := range texts {
		problem := ""
		if err := readReview([]byte(text)); err != nil {
			problem = err.Error()
		}
		problems = append(problems, problem)
	}
	return problems, nil
}

func readReview(text []byte) error {
	var kind struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(text, &kind); err != nil {
		return err
	}
	var review any
	switch kind.Kind {
	case "AdmissionReview":
		review = &admissionv1.AdmissionReview{}
	case "ConversionReview":
		review = &apiextensionsv1.ConversionReview{}
	default:
		return fmt.Errorf("unknown kind %q", kind.Kind)
	}
	strict, err := kjson.UnmarshalStrict(text, review)
	return errors.Join(append(strict, err)...)
}
