package allrules

import (
	"k8s.io/utils/ptr"

	"lockstep.dev/load/peer/versions"
)

// setting is a field of the spec whose change can interrupt clients, or is not requested.
type setting struct {
	field []string
	// changes returns true if the field is changed. One that is removed is left alone.
	changes func(old, desired *CloudDatabaseSpec) bool
	result  result
	// exceptions are circumstances in which the result differs. The first one that applies counts.
	exceptions []exception
}

type exception struct {
	applies func(old, desired *CloudDatabaseSpec) bool
	result  result
}

// resultOf returns what the change does.
func (s setting) resultOf(old, desired *CloudDatabaseSpec) result {
	for _, exception := range s.exceptions {
		if exception.applies(old, desired) {
			return exception.result
		}
	}
	return s.result
}

// changed returns true if an optional field is set to another value.
func changed[T comparable](field func(*CloudDatabaseSpec) *T) func(old, desired *CloudDatabaseSpec) bool {
	return func(old, desired *CloudDatabaseSpec) bool {
		after := field(desired)
		return after != nil && !ptr.Equal(field(old), after)
	}
}

// changedDefault returns true if a field that has a default is set to another value. A default is filled where an old
// object has no value.
func changedDefault[T comparable](field func(*CloudDatabaseSpec) *T) func(old, desired *CloudDatabaseSpec) bool {
	return func(old, desired *CloudDatabaseSpec) bool {
		return field(old) != nil && changed(field)(old, desired)
	}
}

// settings are in the order of the RDS User Guide. All other fields are changed without an outage, or never.
var settings = []setting{
	{
		field:   []string{"engineVersion"},
		changes: changedDefault(func(spec *CloudDatabaseSpec) *string { return spec.EngineVersion }),
		result:  result{effect: restart, timing: asApplyChanges},
		exceptions: []exception{
			{isDowngrade, result{effect: denied}},
			{isForbiddenUpgrade, result{effect: notRequested}},
		},
	},
	{
		field:   []string{"allowMajorVersionUpgrade"},
		changes: changed(func(spec *CloudDatabaseSpec) *string { return spec.AllowMajorVersionUpgrade }),
		result:  result{effect: online},
		exceptions: []exception{{allowsUpgrade, result{
			effect: restart, timing: asApplyChanges, reason: "an upgrade that waits for it is requested",
		}}},
	},
	{
		field:   []string{"autoMinorVersionUpgrade"},
		changes: changed(func(spec *CloudDatabaseSpec) *bool { return spec.AutoMinorVersionUpgrade }),
		result:  result{effect: online},
		exceptions: []exception{{upgradesAutomatically, result{
			effect: possibleOutage,
			reason: "in the maintenance window, if RDS has enabled automatic upgrades to a newer minor version",
		}}},
	},
	{
		field:   []string{"parameterGroup"},
		changes: changed(func(spec *CloudDatabaseSpec) *string { return spec.ParameterGroup }),
		result:  result{effect: restart, timing: nextRestart},
		exceptions: []exception{{restartsAnyway, result{
			effect: restart, timing: asApplyChanges, reason: "that of the new version or class",
		}}},
	},
	{
		field:   []string{"optionGroup"},
		changes: changed(func(spec *CloudDatabaseSpec) *string { return spec.OptionGroup }),
		result:  result{effect: online, timing: asApplyChanges},
		exceptions: []exception{{optionsCanRestart, result{
			effect: possibleOutage, timing: asApplyChanges, reason: "if it adds the audit plugin",
		}}},
	},
	{
		field:      []string{"instanceClass"},
		changes:    changed(func(spec *CloudDatabaseSpec) *string { return &spec.InstanceClass }),
		result:     result{effect: restart, timing: asApplyChanges},
		exceptions: []exception{{hasStandby, result{effect: failover, timing: asApplyChanges}}},
	},
	{
		field:   []string{"dedicatedLogVolume"},
		changes: changed(func(spec *CloudDatabaseSpec) *bool { return spec.DedicatedLogVolume }),
		result:  result{effect: restart, timing: nextRestart},
	},
	{
		field:   []string{"caCertificate"},
		changes: changed(func(spec *CloudDatabaseSpec) *string { return spec.CaCertificate }),
		result: result{
			effect: possibleOutage, timing: asApplyChanges,
			reason: "if the engine version cannot rotate certificates without a restart",
		},
	},
	{
		field:   []string{"network", "networkType"},
		changes: changed(func(spec *CloudDatabaseSpec) *string { return spec.Network.NetworkType }),
		result:  result{effect: possibleOutage, timing: asApplyChanges},
	},
	{
		field:   []string{"replicaOf"},
		changes: changesSource,
		result:  result{effect: restart, reason: "the replica is promoted"},
	},
	{
		field:   []string{"monitoring", "performanceInsights", "kmsKey"},
		changes: changed(insightsKey),
		result:  result{effect: online},
		exceptions: []exception{{keepsInsights, result{
			effect: notRequested, reason: "RDS sets the key when Performance Insights is enabled for the first time",
		}}},
	},
	{
		field:      []string{"backup", "retentionDays"},
		changes:    changed(func(spec *CloudDatabaseSpec) *int32 { return spec.Backup.RetentionDays }),
		result:     result{effect: online},
		exceptions: []exception{{togglesBackups, result{effect: briefOutage, timing: asApplyChanges}}},
	},
	{
		field:   []string{"maintenanceWindow"},
		changes: changed(func(spec *CloudDatabaseSpec) *string { return spec.MaintenanceWindow }),
		result: result{
			effect: possibleOutage,
			reason: "if it includes the current time and a pending action restarts the database",
		},
	},
	{
		field:   []string{"port"},
		changes: changedDefault(func(spec *CloudDatabaseSpec) *int32 { return spec.Port }),
		result:  result{effect: restart},
		exceptions: []exception{{waitsForWindow, result{
			effect: notRequested,
			reason: "RDS restarts the database for it at once, and `applyChanges` is MaintenanceWindow",
		}}},
	},
}

func isDowngrade(old, desired *CloudDatabaseSpec) bool {
	return old.EngineVersion != nil &&
		versions.Compare(ptr.Deref(desired.EngineVersion, ""), *old.EngineVersion) < 0
}

func isMajorUpgrade(old, desired *CloudDatabaseSpec) bool {
	return old.EngineVersion != nil &&
		desired.Engine.isMajorUpgrade(*old.EngineVersion, ptr.Deref(desired.EngineVersion, ""))
}

func isForbiddenUpgrade(old, desired *CloudDatabaseSpec) bool {
	return isMajorUpgrade(old, desired) && !desired.allowsMajorVersion(ptr.Deref(desired.EngineVersion, ""))
}

// allowsUpgrade returns true if `allowMajorVersionUpgrade` begins to name the version of the spec.
func allowsUpgrade(old, desired *CloudDatabaseSpec) bool {
	version := ptr.Deref(desired.EngineVersion, "")
	return desired.allowsMajorVersion(version) && !old.allowsMajorVersion(version)
}

func upgradesAutomatically(_, desired *CloudDatabaseSpec) bool {
	return isTrue(desired.AutoMinorVersionUpgrade)
}

func restartsAnyway(old, desired *CloudDatabaseSpec) bool {
	hasNewVersion := !ptr.Equal(old.EngineVersion, desired.EngineVersion) && !isForbiddenUpgrade(old, desired)
	return hasNewVersion || old.InstanceClass != desired.InstanceClass
}

// optionsCanRestart returns true for engines with an option whose installation restarts them.
func optionsCanRestart(_, desired *CloudDatabaseSpec) bool {
	return desired.Engine != postgres
}

func hasStandby(old, _ *CloudDatabaseSpec) bool {
	return isTrue(old.MultiAz)
}

// changesSource also returns true if the source is removed.
func changesSource(old, desired *CloudDatabaseSpec) bool {
	if old.ReplicaOf == nil || desired.ReplicaOf == nil {
		return old.ReplicaOf != desired.ReplicaOf
	}
	return !ptr.Equal(old.ReplicaOf.Identifier, desired.ReplicaOf.Identifier) ||
		!ptr.Equal(old.ReplicaOf.Name, desired.ReplicaOf.Name)
}

func insightsKey(spec *CloudDatabaseSpec) *string {
	if insights := spec.insights(); insights != nil {
		return insights.KmsKey
	}
	return nil
}

func keepsInsights(old, desired *CloudDatabaseSpec) bool {
	isEnabled := func(insights *PerformanceInsights) bool { return insights != nil && insights.Enabled }
	return isEnabled(old.insights()) && isEnabled(desired.insights())
}

// insights returns the settings of Performance Insights, or nil.
func (s *CloudDatabaseSpec) insights() *PerformanceInsights {
	if s.Monitoring == nil {
		return nil
	}
	return s.Monitoring.PerformanceInsights
}

func togglesBackups(old, desired *CloudDatabaseSpec) bool {
	before, after := old.Backup.RetentionDays, desired.Backup.RetentionDays
	if before == nil || after == nil {
		return after != nil && *after == 0
	}
	return (*before == 0) != (*after == 0)
}

func waitsForWindow(_, desired *CloudDatabaseSpec) bool {
	return desired.ApplyChanges == inMaintenanceWindow
}
