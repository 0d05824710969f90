package allrules

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// pendingSize is the name of the size in `status.pendingModifications`.
const pendingSize = "storage.sizeGib"

func (v *validation) storage() {
	path, storage := v.path.Child("storage"), &v.spec.Storage
	if most := storage.MaxSizeGib; most != nil && int64(*most)*100 < int64(storage.SizeGib)*126 {
		v.warn("autoscaling-headroom", path.Child("maxSizeGib"), *most,
			"is less than 26 % above `sizeGib`: RDS may run out of storage before it can increase it")
	}
	if v.old == nil {
		return
	}
	old := &v.old.Spec.Storage
	if storage.SizeGib < old.SizeGib {
		v.shrink(path.Child("sizeGib"))
	}
	// With another type, the values are new ones.
	if storage.Type != old.Type {
		return
	}
	if storage.SizeGib > old.SizeGib {
		// Storage autoscaling may have increased the storage beyond the size of the spec.
		before := max(old.SizeGib, ptr.Deref(v.status().allocated(), 0))
		v.growth(path.Child("sizeGib"), before, storage.SizeGib)
	}
	if old.Iops != nil && storage.Iops != nil && *storage.Iops > *old.Iops {
		v.growth(path.Child("iops"), *old.Iops, *storage.Iops)
	}
}

func (v *validation) growth(path *field.Path, before, after int32) {
	least := (int64(before)*11 + 9) / 10
	if int64(after) < least {
		detail := fmt.Sprintf("is less than 10 %% above %d: RDS rejects this growth, increases it, or has allocated as much; "+
			"set at least %d", before, least)
		v.warn("storage-growth-step", path, after, detail)
	}
}

// shrink denies a smaller size. A size that RDS has refused, for example because of a quota, can be taken back: the
// instance has a smaller one. So can a growth that waits for the maintenance window.
func (v *validation) shrink(path *field.Path) {
	after := v.spec.Storage.SizeGib
	least := v.leastSize()
	switch {
	case least == nil:
		v.deny("storage-shrink", path, after, "must not be decreased: RDS cannot shrink storage; restore the old value")
	case after < *least:
		detail := fmt.Sprintf(
			"must not be decreased: RDS cannot shrink storage; set at least %d, which RDS has accepted", *least)
		v.deny("storage-shrink", path, after, detail)
	}
}

// leastSize returns the size that RDS has accepted, if it is known.
func (v *validation) leastSize() *int32 {
	status := v.status()
	if status == nil || status.AllocatedStorageGib == nil {
		return nil
	}
	allocated := *status.AllocatedStorageGib
	accepted := ptr.Deref(status.AcceptedStorageGib, 0)
	// Changes that RDS has accepted are applied soon.
	if !slices.Contains(status.PendingModifications, pendingSize) {
		return ptr.To(max(accepted, allocated))
	}
	// IOPS, throughput or another type that wait with it are not taken back.
	isOther := func(name string) bool { return strings.HasPrefix(name, "storage.") && name != pendingSize }
	isAlone := ptr.Deref(status.Phase, "") == "available" &&
		!slices.ContainsFunc(status.PendingModifications, isOther)
	// A growth by storage autoscaling has not been accepted.
	if v.old.Spec.ApplyChanges == inMaintenanceWindow && isAlone && accepted > allocated {
		return &allocated
	}
	return nil
}
