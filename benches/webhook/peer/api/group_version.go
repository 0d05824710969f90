// Package api has the parts of the API of CloudDatabase that do not depend on its Go type.
package api

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// GroupVersion of CloudDatabase.
var GroupVersion = schema.GroupVersion{Group: "database.example.com", Version: "v1alpha1"}

// Invalid returns the error about a CloudDatabase with these field errors, or nil if there are none.
func Invalid(name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(GroupVersion.WithKind("CloudDatabase").GroupKind(), name, errs)
}
