package allrules

import "fmt"

// supportEnds are the last days of the standard support of major versions, from the release calendars of RDS. Later, RDS
// charges for Extended Support of an instance unless that was disabled.
var supportEnds = map[Engine]map[string]string{
	mysql: {
		"5.7": "2024-02-29",
		"8.0": "2026-07-31",
		"8.4": "2029-07-31",
	},
	postgres: {
		"11": "2024-02-29",
		"12": "2025-02-28",
		"13": "2026-02-28",
		"14": "2027-02-28",
		"15": "2028-02-29",
		"16": "2029-02-28",
		"17": "2030-02-28",
	},
}

// endOfSupport returns the problem of a version whose standard support has ended on a day, such as 2026-11-26.
func endOfSupport(spec *CloudDatabaseSpec, isNew bool, today string) string {
	consequence := "RDS charges for Extended Support"
	if support := spec.EngineLifecycleSupport; support != nil {
		if *support != extendedSupportDisabled || !isNew {
			return ""
		}
		consequence = "RDS creates no instance with it while `engineLifecycleSupport` disables Extended Support"
	}
	if spec.EngineVersion == nil {
		return ""
	}
	major := spec.Engine.majorVersion(*spec.EngineVersion)
	end, found := supportEnds[spec.Engine][major]
	if !found || end >= today {
		return ""
	}
	return fmt.Sprintf("is a version of %s %s, whose standard support ended on %s: %s; choose a later major version, "+
		"or set `engineLifecycleSupport` to '%s' to accept the costs", spec.Engine, major, end, consequence, extendedSupport)
}
