package catalogue

import (
	"slices"
	"testing"
)

func TestTheNearestClassesHaveTheFamilyOrElseTheSize(t *testing.T) {
	var set ClassSet
	text := "m5(large,xlarge,4xlarge) m7g(large,xlarge,2xlarge,16xlarge) t4g(micro,medium)"
	if err := set.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		class    string
		count    int
		expected []string
	}{
		{"db.m5.2xlarge", 2, []string{"db.m5.xlarge", "db.m5.4xlarge"}},
		{"db.m4.large", 2, []string{"db.m5.large", "db.m7g.large"}},
		{"db.t3.small", 1, []string{"db.t4g.micro"}},
		{"db.m7g.larg", 1, []string{"db.m7g.large"}},
		{"db.m7g.extralarge", 1, []string{"db.m7g.xlarge"}},
		{"serverless", 1, nil},
	} {
		if found := set.Nearest(test.class, test.count); !slices.Equal(found, test.expected) {
			t.Errorf("%s: expected %v, found %v", test.class, test.expected, found)
		}
	}
}
