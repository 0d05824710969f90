package tenrules

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"lockstep.dev/load/peer/api"
	"lockstep.dev/load/peer/reserved"
	"lockstep.dev/load/peer/versions"
	"lockstep.dev/load/peer/windows"
)

// Validator has rules that neither schema nor CEL can express, the purpose of such a webhook.
type Validator struct{}

func (Validator) ValidateCreate(_ context.Context, object *CloudDatabase) (admission.Warnings, error) {
	return validate(nil, object)
}

func (Validator) ValidateUpdate(_ context.Context, old, object *CloudDatabase) (admission.Warnings, error) {
	return validate(old, object)
}

func (Validator) ValidateDelete(context.Context, *CloudDatabase) (admission.Warnings, error) {
	return nil, nil
}

func validate(old, object *CloudDatabase) (admission.Warnings, error) {
	var errs field.ErrorList
	var warnings admission.Warnings
	spec := field.NewPath("spec")
	wanted := &object.Spec
	if name := wanted.Credentials.Username; name != nil && isReserved(wanted.Engine, *name) {
		detail := fmt.Sprintf("is reserved by %s or RDS; choose another name", wanted.Engine)
		errs = append(errs, field.Invalid(spec.Child("credentials", "username"), *name, detail))
	}
	if old != nil {
		errs = append(errs, validateChange(spec, &old.Spec, wanted)...)
	}
	daily, isDaily := windows.Daily(wanted.Backup.Window)
	if isDaily && daily.IsTooShort() {
		errs = append(errs, tooShort(spec.Child("backup", "window"), *wanted.Backup.Window))
	}
	weekly, isWeekly := windows.Weekly(wanted.MaintenanceWindow)
	if isWeekly && weekly.IsTooShort() {
		errs = append(errs, tooShort(spec.Child("maintenanceWindow"), *wanted.MaintenanceWindow))
	}
	if isDaily && isWeekly && windows.Overlap(daily, weekly) {
		detail := fmt.Sprintf("must not overlap the backup window '%s'; move one of them", *wanted.Backup.Window)
		errs = append(errs, field.Invalid(spec.Child("maintenanceWindow"), *wanted.MaintenanceWindow, detail))
	}
	if most := wanted.Storage.MaxSizeGib; most != nil && int64(*most)*100 < int64(wanted.Storage.SizeGib)*126 {
		warnings = append(warnings, "spec.storage.maxSizeGib: less than 26 % above `sizeGib`")
	}
	if wanted.Network.PubliclyAccessible {
		warnings = append(warnings, "spec.network.publiclyAccessible: gives the instance a public IP address")
	}
	if isEncrypted(wanted) && slices.ContainsFunc(classesWithoutEncryption, func(prefix string) bool {
		return strings.HasPrefix(wanted.InstanceClass, prefix)
	}) {
		errs = append(errs, field.Invalid(spec.Child("instanceClass"), wanted.InstanceClass, "does not support encryption"))
	}
	return warnings, api.Invalid(object.Name, errs)
}

var classesWithoutEncryption = []string{"db.m1.", "db.m2.", "db.t1.", "db.t2.micro"}

func isEncrypted(spec *CloudDatabaseSpec) bool {
	return spec.Encryption.Enabled == nil || *spec.Encryption.Enabled
}

func validateChange(spec *field.Path, old, wanted *CloudDatabaseSpec) field.ErrorList {
	var errs field.ErrorList
	before, after := old.Credentials.Username, wanted.Credentials.Username
	if before != nil && (after == nil || *after != *before) {
		detail := fmt.Sprintf("is immutable: RDS sets it at creation only; restore '%s'", *before)
		errs = append(errs, field.Invalid(spec.Child("credentials", "username"), after, detail))
	}
	if old.Engine == wanted.Engine && old.EngineVersion != nil && wanted.EngineVersion != nil &&
		versions.Compare(*wanted.EngineVersion, *old.EngineVersion) < 0 {
		detail := fmt.Sprintf("must not be lower than '%s': RDS cannot downgrade an instance", *old.EngineVersion)
		errs = append(errs, field.Invalid(spec.Child("engineVersion"), *wanted.EngineVersion, detail))
	}
	return errs
}

func tooShort(path *field.Path, text string) *field.Error {
	return field.Invalid(path, text, fmt.Sprintf("must last at least %d minutes", windows.Shortest))
}

func isReserved(engine, name string) bool {
	name = strings.ToLower(name)
	if name == "rdsadmin" {
		return true
	}
	if engine == "postgres" {
		return strings.HasPrefix(name, "pg_") || reserved.Postgres[name]
	}
	return reserved.MySQL84[name]
}
