package allrules

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"lockstep.dev/load/peer/catalogue"
)

const ofAccount = `{
	"origin": {"source": "RDS", "account": "123456789012", "region": "eu-central-1"},
	"engines": {"postgres": {
		"date": "2026-11-20",
		"versions": {
			"15.12": {"deprecated": true, "minorUpgrades": "15.14", "majorUpgrades": "16.10", "offer": 0},
			"15.14": {"minorUpgrades": "", "majorUpgrades": "16.10", "offer": 1},
			"16.10": {"minorUpgrades": "", "majorUpgrades": "17.6", "offer": 1},
			"17.6": {"minorUpgrades": "", "majorUpgrades": "", "offer": 2}
		},
		"offers": [
			[],
			[
				{"classes": "m5(large)", "storage": {"gp3": {"sizeGib": "20..16384"}}, "capabilities": []},
				{"classes": "t4g(micro,medium)", "storage": {
					"gp3": {"sizeGib": "20..65536", "autoscaling": true},
					"io1": {"sizeGib": "100..65536", "iops": "1000..10000", "iopsPerGib": "0.5..50"}
				}, "capabilities": ["multiAz"]}
			],
			[{"classes": "t4g(micro)", "storage": {"gp3": {"sizeGib": "20..65536"}}, "capabilities": ["multiAz"]}]
		]
	}}
}`

func database(t *testing.T, spec string) *CloudDatabase {
	database := &CloudDatabase{}
	database.Spec.Engine = postgres
	for _, text := range []string{"{engineVersion: '16', instanceClass: db.t4g.micro, storage: {sizeGib: 100}}", spec} {
		if err := yaml.Unmarshal([]byte(text), &database.Spec); err != nil {
			t.Fatal(err)
		}
	}
	setDefaults(nil, database)
	return database
}

func TestWhatTheAccountDoesNotOfferIsDeniedWithTheNearestOffers(t *testing.T) {
	read, err := catalogue.Parse([]byte(ofAccount))
	if err != nil {
		t.Fatal(err)
	}
	validator := Validator{Catalogue: read}
	for _, test := range []struct{ old, spec, expected string }{
		{"", "{}", ""},
		{"", "{engineVersion: '16.4'}", "the nearest is 16.10"},
		{"", "{engineVersion: '14'}", "the nearest are 15.14, 16.10, 17.6"},
		{"", "{engineVersion: '15.12'}", "is offered with no instance class"},
		// AWS may offer a class that the catalogue does not have.
		{"", "{instanceClass: db.m4.large}", ""},
		{"", "{engineVersion: '17.6', instanceClass: db.t4g.medium}", "the nearest is db.t4g.micro"},
		{"", "{instanceClass: db.m5.large, storage: {sizeGib: 20000}}", "the nearest are 20 to 16384 GiB"},
		{"", "{storage: {type: gp2}}", "set one of gp3, io1"},
		{"", "{storage: {type: io1, sizeGib: 1000, iops: 12000}}", "the nearest are 1000 to 10000 IOPS"},
		{"", "{storage: {type: io1, sizeGib: 100, iops: 6000}}", "the nearest are 0.5 to 50 IOPS for each GiB"},
		{"", "{instanceClass: db.m5.large, storage: {maxSizeGib: 200}}", "needs storage that grows automatically"},
		{"", "{instanceClass: db.m5.large, multiAz: true}", "needs a standby (Multi-AZ)"},
		{"{engineVersion: '15.14'}", "{engineVersion: '17.6'}", "is not a version to which RDS upgrades 15.14"},
		{"{engineVersion: '16.10'}", "{engineVersion: '17.6'}", ""},
		{"{engineVersion: '17.6'}", "{engineVersion: '17.6', instanceClass: db.m5.large}", "the nearest is db.t4g.micro"},
	} {
		var old *CloudDatabase
		if test.old != "" {
			old = database(t, test.old)
		}
		_, err := validator.validate(old, database(t, test.spec))
		found := strings.Join(messages(err), "\n")
		isAsExpected := strings.Contains(found, test.expected) && strings.HasSuffix(found, "[not-offered]")
		if test.expected == "" && err != nil || test.expected != "" && !isAsExpected {
			t.Errorf("%s: expected %q, found %q", test.spec, test.expected, found)
		}
	}
}
