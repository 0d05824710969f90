package allrules

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// changes warns about changes of a running instance: those that interrupt clients, wait for a restart, or are not
// requested.
func (v *validation) changes() {
	if v.old == nil || v.object.Status != nil && !v.object.Status.exists() {
		return
	}
	old, desired := &v.old.Spec, v.spec
	for _, setting := range settings {
		if !setting.changes(old, desired) {
			continue
		}
		result := setting.resultOf(old, desired)
		path := v.path.Child(setting.field[0], setting.field[1:]...)
		switch {
		case result.timing == nextRestart:
			v.warn("change-at-next-restart", path, field.OmitValueType{},
				"RDS applies this change at the next restart of the database, which is not requested")
		case result.effect == notRequested:
			// A version that is not allowed has a rule of its own.
			if setting.field[0] != "engineVersion" {
				v.warn("change-not-requested", path, field.OmitValueType{},
					"this change is not requested: "+result.reason)
			}
		case slices.Contains(interruptions, result.effect):
			v.warn("change-with-outage", path, field.OmitValueType{},
				"RDS applies this change "+result.words(desired.ApplyChanges))
		}
	}
}

// result is what a change does.
type result struct {
	effect string
	timing timing
	reason string
}

// Effects of a change on the clients of an instance.
const (
	online         = "without an outage"
	possibleOutage = "with a possible outage"
	briefOutage    = "with a brief outage"
	failover       = "with a failover to the standby"
	restart        = "with a restart of the database"
	notRequested   = "not requested"
	denied         = "denied"
)

var interruptions = []string{possibleOutage, briefOutage, failover, restart}

// timing is the time at which RDS applies a change.
type timing int

const (
	now timing = iota
	// asApplyChanges is now or in the maintenance window, as `applyChanges` says.
	asApplyChanges
	nextRestart
)

// words returns the time and the effect of a change.
func (r result) words(applyChanges string) string {
	when := "now, "
	if r.timing == asApplyChanges && applyChanges == inMaintenanceWindow {
		when = "in the maintenance window, "
	}
	if r.reason == "" {
		return when + r.effect
	}
	return when + r.effect + " (" + r.reason + ")"
}
