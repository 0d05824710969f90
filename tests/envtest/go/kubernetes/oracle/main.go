// Command oracle makes the libraries of Kubernetes available to the tests as a reference implementation.
//
//	oracle field-errors  reads a table of errors and prints each as field.Error prints it
//	oracle read-yaml     reads a list of YAML texts and prints the JSON that kubectl sends for each
//	oracle read-reviews  reads a list of responses to reviews and prints the errors of each
//	oracle rule-costs    reads a CRD and prints the estimated cost of each CEL rule
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one of field-errors, read-yaml, read-reviews, rule-costs")
	}
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var answer any
	switch args[0] {
	case "field-errors":
		answer, err = fieldErrors(input)
	case "read-yaml":
		answer, err = readYAML(input)
	case "read-reviews":
		answer, err = readReviews(input)
	case "rule-costs":
		answer, err = ruleCosts(input)
	default:
		return fmt.Errorf("unknown question %q", args[0])
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(answer)
}
