// Package allrules has all rules of CloudDatabase that neither schema nor CEL can express.
package allrules

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"lockstep.dev/load/peer/api"
	"lockstep.dev/load/peer/catalogue"
)

// Validator has the rules and what they need besides the object.
type Validator struct {
	Catalogue *catalogue.Catalogue
}

func (v Validator) ValidateCreate(_ context.Context, object *CloudDatabase) (admission.Warnings, error) {
	return v.validate(nil, object)
}

func (v Validator) ValidateUpdate(_ context.Context, old, object *CloudDatabase) (admission.Warnings, error) {
	return v.validate(old, object)
}

func (Validator) ValidateDelete(context.Context, *CloudDatabase) (admission.Warnings, error) {
	return nil, nil
}

func (v Validator) validate(old, object *CloudDatabase) (admission.Warnings, error) {
	found := v.findings(old, object)
	if old != nil && len(found.errors) > 0 {
		found.ratchet(v.findings(nil, old))
	}
	var warnings admission.Warnings
	for _, warning := range sorted(found.warnings) {
		warnings = append(warnings, warning.Error())
	}
	return warnings, api.Invalid(object.Name, sorted(found.errors))
}

// validation of one object. The rules are its methods.
type validation struct {
	catalogue *catalogue.Catalogue
	// old is nil if the object is created.
	old      *CloudDatabase
	object   *CloudDatabase
	spec     *CloudDatabaseSpec
	path     *field.Path
	errors   field.ErrorList
	warnings field.ErrorList
}

func (v Validator) findings(old, object *CloudDatabase) *validation {
	found := &validation{
		catalogue: v.Catalogue,
		old:       old,
		object:    object,
		spec:      &object.Spec,
		path:      field.NewPath("spec"),
	}
	found.admissionProbe()
	found.username()
	found.engineVersion()
	found.upgrade()
	found.groups()
	found.windows()
	found.storage()
	found.names()
	found.risks()
	found.logExports()
	found.tags()
	found.changes()
	found.offers()
	return found
}

// deny adds an error.
func (v *validation) deny(rule string, path *field.Path, value any, detail string) {
	v.errors = append(v.errors, field.Invalid(path, value, detail+" ["+rule+"]"))
}

// warn adds a warning.
func (v *validation) warn(rule string, path *field.Path, value any, detail string) {
	v.warnings = append(v.warnings, field.Invalid(path, value, detail+" ["+rule+"]"))
}

// ratchet turns the errors that the old object has, too, into warnings, so that it remains editable.
func (v *validation) ratchet(old *validation) {
	var errs field.ErrorList
	for _, err := range v.errors {
		isSame := func(other *field.Error) bool {
			return err.Type == field.ErrorTypeInvalid && other.Error() == err.Error()
		}
		if slices.ContainsFunc(old.errors, isSame) {
			v.warnings = append(v.warnings, err)
		} else {
			errs = append(errs, err)
		}
	}
	v.errors = errs
}

// sorted sorts errors by their paths.
func sorted(errs field.ErrorList) field.ErrorList {
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return cmp.Compare(a.Field, b.Field) })
	return errs
}

// status returns the status of the instance. A manifest has none, but the stored object that it changes has one.
func (v *validation) status() *CloudDatabaseStatus {
	if v.old != nil && v.old.Status != nil {
		return v.old.Status
	}
	return v.object.Status
}

// oldSpec returns the spec before a change, or nil.
func (v *validation) oldSpec() *CloudDatabaseSpec {
	if v.old == nil {
		return nil
	}
	return &v.old.Spec
}

// oldVersion returns the version before a change, unless it is one of another engine.
func (v *validation) oldVersion() *string {
	if v.old == nil || v.old.Spec.Engine != v.spec.Engine {
		return nil
	}
	return v.old.Spec.EngineVersion
}
