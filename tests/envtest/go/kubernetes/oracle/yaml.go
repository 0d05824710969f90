package main

import (
	"encoding/json"

	"sigs.k8s.io/yaml"
)

// read is the JSON that kubectl sends for a YAML text, or the error that it reports.
type read struct {
	JSON  string `json:"json,omitempty"`
	Error string `json:"error,omitempty"`
}

func readYAML(input []byte) ([]read, error) {
	var texts []string
	if err := json.Unmarshal(input, &texts); err != nil {
		return nil, err
	}
	var answers []read
	for _, text := range texts {
		answer := read{}
		if raw, err := yaml.YAMLToJSON([]byte(text)); err != nil {
			answer.Error = err.Error()
		} else {
			answer.JSON = string(raw)
		}
		answers = append(answers, answer)
	}
	return answers, nil
}
