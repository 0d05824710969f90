// Package controller reconciles DNS records.
package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	dnsv1 "lockstep.dev/dns-record/api/v1"
	"lockstep.dev/dns-record/dnsapi"
)

const (
	finalizer = "dns.example.com/record"
	label     = "controller-runtime"
	ready     = "Ready"
)

// errNameTaken is reported until the name is free, which is looked for at each resync.
var errNameTaken = errors.New("the name has a record of another owner")

// DnsRecordReconciler keeps DNS records at a provider.
type DnsRecordReconciler struct {
	client.Client
	Recorder recorder.EventRecorder
	DNS      *dnsapi.Client
	// Resync is the interval at which changes that were made outside the cluster are looked for.
	Resync time.Duration
}

// +kubebuilder:rbac:groups=dns.example.com,resources=dnsrecords,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=dns.example.com,resources=dnsrecords/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=dns.example.com,resources=dnsrecords/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update

// SetupWithManager adds the controller to a manager.
func (r *DnsRecordReconciler) SetupWithManager(manager ctrl.Manager, concurrency int) error {
	return ctrl.NewControllerManagedBy(manager).
		For(&dnsv1.DnsRecord{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(r)
}

// Reconcile brings the record of an object to the desired state.
func (r *DnsRecordReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var record dnsv1.DnsRecord
	if err := r.Get(ctx, request.NamespacedName, &record); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !record.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, &record)
	}
	if controllerutil.AddFinalizer(&record, finalizer) {
		if err := r.Update(ctx, &record); err != nil {
			return ctrl.Result{}, err
		}
	}
	before := record.DeepCopy()
	err := r.apply(ctx, &record)
	condition := metav1.Condition{
		Type: ready, Status: metav1.ConditionTrue, Reason: "Available", Message: "the record is up to date",
	}
	if err != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "Failed", err.Error()
		r.Recorder.Eventf(&record, nil, corev1.EventTypeWarning, "Failed", "Reconcile", "%s", err)
	} else if apimeta.IsStatusConditionFalse(before.Status.Conditions, ready) {
		r.Recorder.Eventf(&record, nil, corev1.EventTypeNormal, "Available", "Reconcile", "%s", condition.Message)
	}
	condition.ObservedGeneration = record.Generation
	apimeta.SetStatusCondition(&record.Status.Conditions, condition)
	record.Status.ObservedGeneration = record.Generation
	if !equality.Semantic.DeepEqual(before.Status, record.Status) {
		if err := r.Status().Patch(ctx, &record, client.MergeFrom(before)); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err != nil && !errors.Is(err, errNameTaken) {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: r.Resync}, nil
}

// apply creates or updates the record and the ConfigMap, for programs that need the name.
func (r *DnsRecordReconciler) apply(ctx context.Context, record *dnsv1.DnsRecord) error {
	stored, err := r.bring(ctx, desired(record))
	if err != nil {
		return err
	}
	record.Status.RecordID, record.Status.ServedName = stored.ID, stored.Name
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: record.Name, Namespace: record.Namespace}}
	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, configMap, func() error {
		configMap.Data = map[string]string{"name": stored.Name}
		return controllerutil.SetControllerReference(record, configMap, r.Scheme())
	})
	return err
}

// bring brings the records of an object to the desired state and returns the one that is left.
func (r *DnsRecordReconciler) bring(ctx context.Context, desired dnsapi.Content) (dnsapi.Record, error) {
	named, err := r.DNS.WithName(ctx, desired.Name)
	if err != nil {
		return dnsapi.Record{}, err
	}
	for _, other := range named {
		if other.Type == desired.Type && other.Owner != desired.Owner {
			return dnsapi.Record{}, fmt.Errorf("%w: %s of %s; delete it, or choose another name",
				errNameTaken, other.ID, desired.Name)
		}
	}
	own, err := r.DNS.OfOwner(ctx, desired.Owner)
	if err != nil {
		return dnsapi.Record{}, err
	}
	var kept *dnsapi.Record
	var surplus []dnsapi.Record
	for _, record := range own {
		if kept == nil && record.Name == desired.Name && record.Type == desired.Type {
			kept = &record
		} else {
			// Records with an earlier name, and duplicates after a creation without an answer.
			surplus = append(surplus, record)
		}
	}
	var stored dnsapi.Record
	switch {
	case kept == nil:
		stored, err = r.DNS.Create(ctx, desired)
	case !kept.Content.Equal(desired):
		stored, err = r.DNS.Update(ctx, *kept, desired)
	default:
		stored = *kept
	}
	if err != nil {
		return dnsapi.Record{}, err
	}
	for _, record := range surplus {
		if err := r.DNS.Delete(ctx, record.ID); err != nil {
			return dnsapi.Record{}, err
		}
	}
	return stored, nil
}

// finalize deletes the records of an object, and then its finalizer.
func (r *DnsRecordReconciler) finalize(ctx context.Context, record *dnsv1.DnsRecord) error {
	if !controllerutil.ContainsFinalizer(record, finalizer) {
		return nil
	}
	own, err := r.DNS.OfOwner(ctx, string(record.UID))
	if err != nil {
		return err
	}
	for _, surplus := range own {
		if err := r.DNS.Delete(ctx, surplus.ID); err != nil {
			return err
		}
	}
	controllerutil.RemoveFinalizer(record, finalizer)
	return client.IgnoreNotFound(r.Update(ctx, record))
}

// desired returns the record that an object wants.
func desired(record *dnsv1.DnsRecord) dnsapi.Content {
	return dnsapi.Content{
		Name:   record.Spec.Name,
		Type:   string(record.Spec.Type),
		TTL:    record.Spec.TTL,
		Values: record.Spec.Values,
		Owner:  string(record.UID),
		Label:  label,
	}
}
