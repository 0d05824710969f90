package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// rules are those that neither schema nor CEL can express, the purpose of such a webhook.
type rules struct{}

const (
	shortestWindow = 30
	minutesADay    = 24 * 60
	minutesAWeek   = 7 * minutesADay
)

func (rules) ValidateCreate(_ context.Context, object *CloudDatabase) (admission.Warnings, error) {
	return validate(nil, object)
}

func (rules) ValidateUpdate(_ context.Context, old, object *CloudDatabase) (admission.Warnings, error) {
	return validate(old, object)
}

func (rules) ValidateDelete(context.Context, *CloudDatabase) (admission.Warnings, error) {
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
	daily, isDaily := readWindow(wanted.Backup.Window, minutesADay, timeOfDay)
	if isDaily && daily.minutes < shortestWindow {
		errs = append(errs, tooShort(spec.Child("backup", "window"), *wanted.Backup.Window))
	}
	weekly, isWeekly := readWindow(wanted.MaintenanceWindow, minutesAWeek, timeOfWeek)
	if isWeekly && weekly.minutes < shortestWindow {
		errs = append(errs, tooShort(spec.Child("maintenanceWindow"), *wanted.MaintenanceWindow))
	}
	if isDaily && isWeekly && overlap(daily, weekly) {
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
	if len(errs) == 0 {
		return warnings, nil
	}
	kind := groupVersion.WithKind("CloudDatabase").GroupKind()
	return warnings, apierrors.NewInvalid(kind, object.Name, errs)
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
		isLower(*wanted.EngineVersion, *old.EngineVersion) {
		detail := fmt.Sprintf("must not be lower than '%s': RDS cannot downgrade an instance", *old.EngineVersion)
		errs = append(errs, field.Invalid(spec.Child("engineVersion"), *wanted.EngineVersion, detail))
	}
	return errs
}

func tooShort(path *field.Path, text string) *field.Error {
	return field.Invalid(path, text, fmt.Sprintf("must last at least %d minutes", shortestWindow))
}

func isLower(a, b string) bool {
	parts := func(version string) []string {
		return strings.FieldsFunc(version, func(r rune) bool { return r == '.' || r == '-' })
	}
	as, bs := parts(a), parts(b)
	for index := range min(len(as), len(bs)) {
		a, errA := strconv.ParseUint(as[index], 10, 64)
		b, errB := strconv.ParseUint(bs[index], 10, 64)
		if errA != nil || errB != nil {
			return false
		}
		if a != b {
			return a < b
		}
	}
	return false
}

type window struct{ start, minutes int }

func readWindow(text *string, cycle int, read func(string) (int, bool)) (window, bool) {
	if text == nil {
		return window{}, false
	}
	from, until, found := strings.Cut(*text, "-")
	start, okStart := read(from)
	end, okEnd := read(until)
	return window{start, (end + cycle - start) % cycle}, found && okStart && okEnd
}

func timeOfDay(text string) (int, bool) {
	hours, minutes, found := strings.Cut(text, ":")
	hour, errHour := strconv.Atoi(hours)
	minute, errMinute := strconv.Atoi(minutes)
	inDay := hour >= 0 && hour < 24 && minute >= 0 && minute < 60
	return hour*60 + minute, found && errHour == nil && errMinute == nil && inDay
}

func timeOfWeek(text string) (int, bool) {
	name, rest, found := strings.Cut(text, ":")
	for index, day := range []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"} {
		if day == name {
			minutes, ok := timeOfDay(rest)
			return index*minutesADay + minutes, found && ok
		}
	}
	return 0, false
}

func overlap(daily, weekly window) bool {
	for day := range 7 {
		start := day*minutesADay + daily.start
		afterWeekly := (start + minutesAWeek - weekly.start) % minutesAWeek
		afterDaily := (weekly.start + minutesAWeek - start) % minutesAWeek
		if afterWeekly < weekly.minutes || afterDaily < daily.minutes {
			return true
		}
	}
	return false
}
