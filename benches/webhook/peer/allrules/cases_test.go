package allrules

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"lockstep.dev/load/peer/catalogue"
)

const root = "../../../.."

// testCase is a case file of the repository.
type testCase struct {
	Object CloudDatabase
	Old    *CloudDatabase
	Errors []struct{ Rule string }
	// Warnings are nil if the case is not about them.
	Warnings []string
}

var (
	ruleRow = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (error|warning) \\|")
	ruleID  = regexp.MustCompile(`\[([a-z-]+)\]$`)
)

// ruleIDs returns the ids of the rules of CloudDatabase that neither schema nor CEL can express.
func ruleIDs(t *testing.T) []string {
	text, err := os.ReadFile(filepath.Join(root, "docs/rules.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## CloudDatabase ")
	_, section, _ = strings.Cut(section, "\n### Rust\n")
	section, _, _ = strings.Cut(section, "\n### ")
	var ids []string
	for _, row := range ruleRow.FindAllStringSubmatch(section, -1) {
		ids = append(ids, row[1])
	}
	return ids
}

func shipped(t *testing.T) *catalogue.Catalogue {
	read, err := catalogue.Read(filepath.Join(root, "operators/cloud-database/catalogue/shipped.json"))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// setDefaults sets the defaults that the API server, by the CRD, and a mutating webhook set before the validation.
func setDefaults(old, object *CloudDatabase) {
	spec := &object.Spec
	if spec.Storage.Type == "" {
		spec.Storage.Type = "gp3"
	}
	if old != nil {
		spec.EngineVersion = firstOf(spec.EngineVersion, old.Spec.EngineVersion)
		spec.Port = firstOf(spec.Port, old.Spec.Port)
	}
	isFromElsewhere := spec.Adopt != nil || spec.ReplicaOf != nil || spec.RestoreFrom != nil
	if isFromElsewhere || object.Status.runningVersion() != nil {
		return
	}
	port := int32(3306)
	if spec.Engine == postgres {
		port = 5432
	}
	spec.EngineVersion = firstOf(spec.EngineVersion, ptr.To(spec.Engine.defaultVersion()))
	spec.Port = firstOf(spec.Port, &port)
}

func firstOf[T any](value, other *T) *T {
	if value != nil {
		return value
	}
	return other
}

// read returns a case, or false if it is about errors of the schema or CEL.
func read(t *testing.T, path string, rules []string) (testCase, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var expected struct{ Errors []struct{ Rule string } }
	if err := yaml.Unmarshal(text, &expected); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, expected := range expected.Errors {
		if !slices.Contains(rules, expected.Rule) {
			return testCase{}, false
		}
	}
	var read testCase
	if err := yaml.Unmarshal(text, &read); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return read, true
}

func TestCasesHaveTheErrorsAndWarningsThatTheirFilesExpect(t *testing.T) {
	rules := ruleIDs(t)
	paths, _ := filepath.Glob(filepath.Join(root, "tests/cases/cloud-database/*.yaml"))
	if len(rules) != 37 || len(paths) == 0 {
		t.Fatalf("%d rules and %d cases", len(rules), len(paths))
	}
	validator := Validator{Catalogue: shipped(t)}
	count := 0
	for _, path := range paths {
		expected, ok := read(t, path, rules)
		if !ok {
			continue
		}
		count++
		t.Run(filepath.Base(path), func(t *testing.T) {
			if expected.Old != nil {
				setDefaults(nil, expected.Old)
			}
			setDefaults(expected.Old, &expected.Object)
			warnings, err := validator.validate(expected.Old, &expected.Object)
			var ids []string
			for _, expected := range expected.Errors {
				ids = append(ids, expected.Rule)
			}
			if found := rulesOf(messages(err)); !slices.Equal(found, unique(ids)) {
				t.Errorf("expected errors of %v, found %v: %v", ids, found, err)
			}
			ofRules := func(id string) bool { return !slices.Contains(rules, id) }
			ids = unique(slices.DeleteFunc(expected.Warnings, ofRules))
			if found := rulesOf(warnings); expected.Warnings != nil && !slices.Equal(found, ids) {
				t.Errorf("expected warnings of %v, found %v: %v", ids, found, warnings)
			}
		})
	}
	t.Logf("%d cases", count)
}

// messages returns the messages of the causes of an error.
func messages(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil
	}
	var messages []string
	for _, cause := range status.Status().Details.Causes {
		messages = append(messages, cause.Message)
	}
	return messages
}

// rulesOf returns the ids of the rules at the end of messages, each once.
func rulesOf(messages []string) []string {
	var ids []string
	for _, message := range messages {
		id := ruleID.FindStringSubmatch(message)
		if id == nil {
			id = []string{message, "no rule"}
		}
		ids = append(ids, id[1])
	}
	return unique(ids)
}

func unique(ids []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(ids)))
}
