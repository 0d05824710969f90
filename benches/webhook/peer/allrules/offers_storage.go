package allrules

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"lockstep.dev/load/peer/catalogue"
)

// bounded is a value of the storage with the bounds that a storage type has for it.
type bounded struct {
	field    string
	value    *int32
	compared float64
	bounds   func(catalogue.StorageOffer) *catalogue.Bounds
	unit     string
}

// storageNotOffered returns the settings that a class, with these offers, does not have with the storage type.
func (r *request) storageNotOffered(ofClass []catalogue.ClassOffer) []notOffered {
	storage := &r.spec.Storage
	if len(ofClass) == 0 || !r.hasNewClass() && reflect.DeepEqual(r.old.Storage, *storage) {
		return nil
	}
	path, class := r.path.Child("storage"), r.spec.InstanceClass
	types := map[string]bool{}
	var offered []catalogue.StorageOffer
	for _, offer := range ofClass {
		if offer.Storage == nil {
			return nil
		}
		for name := range offer.Storage {
			types[name] = true
		}
		if found, ok := offer.Storage[storage.Type]; ok {
			offered = append(offered, found)
		}
	}
	if len(offered) == 0 {
		names := slices.Sorted(maps.Keys(types))
		return []notOffered{{
			path:         path.Child("type"),
			value:        storage.Type,
			problem:      "is not offered with " + class,
			alternatives: "set one of " + strings.Join(names, ", "),
		}}
	}
	var found []notOffered
	for _, setting := range r.boundedValues() {
		if limit := setting.beyond(offered); limit != nil {
			found = append(found, notOffered{
				path:         path.Child(setting.field),
				value:        *setting.value,
				problem:      fmt.Sprintf("is not offered for %s with %s", storage.Type, class),
				alternatives: fmt.Sprintf("the nearest are %s %s", limit, setting.unit),
			})
		}
	}
	grows := func(offer catalogue.StorageOffer) bool { return offer.Autoscaling }
	if most := storage.MaxSizeGib; most != nil && !slices.ContainsFunc(offered, grows) {
		found = append(found, notOffered{
			path:  path.Child("maxSizeGib"),
			value: *most,
			problem: fmt.Sprintf("needs storage that grows automatically, which is not offered for %s with %s",
				storage.Type, class),
			alternatives: "remove it, or choose another class or storage type",
		})
	}
	return found
}

// boundedValues returns the values of the storage that are set and not those of the instance.
func (r *request) boundedValues() []bounded {
	storage := &r.spec.Storage
	var all []bounded
	add := func(field string, value *int32, per int32, bounds func(catalogue.StorageOffer) *catalogue.Bounds, unit string) {
		if value != nil && per > 0 {
			all = append(all, bounded{field, value, float64(*value) / float64(per), bounds, unit})
		}
	}
	size := func(offer catalogue.StorageOffer) *catalogue.Bounds { return offer.SizeGib }
	if !ptr.Equal(r.status.allocated(), &storage.SizeGib) {
		add("sizeGib", &storage.SizeGib, 1, size, "GiB")
	}
	add("maxSizeGib", storage.MaxSizeGib, 1, size, "GiB")
	add("iops", storage.Iops, 1,
		func(offer catalogue.StorageOffer) *catalogue.Bounds { return offer.Iops }, "IOPS")
	add("iops", storage.Iops, storage.SizeGib,
		func(offer catalogue.StorageOffer) *catalogue.Bounds { return offer.IopsPerGib }, "IOPS for each GiB")
	add("throughputMibps", storage.ThroughputMibps, 1,
		func(offer catalogue.StorageOffer) *catalogue.Bounds { return offer.ThroughputMibps }, "MiB per second")
	add("throughputMibps", storage.ThroughputMibps, ptr.Deref(storage.Iops, 0),
		func(offer catalogue.StorageOffer) *catalogue.Bounds { return offer.ThroughputPerIops },
		"MiB per second for each of the IOPS")
	return all
}

// beyond returns the bounds of the first offer if the value is in those of none. Bounds that are unknown are no limit.
func (b bounded) beyond(offered []catalogue.StorageOffer) *catalogue.Bounds {
	for _, offer := range offered {
		if bounds := b.bounds(offer); bounds == nil || bounds.Contains(b.compared) {
			return nil
		}
	}
	return b.bounds(offered[0])
}
