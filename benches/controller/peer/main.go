// Package main reconciles three ConfigMaps for each Batch with controller-runtime. The scale test compares the Lockstep
// controller with it.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const children = 3

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address of the metrics endpoint")
	concurrency := flag.Int("concurrency", 8, "maximum number of concurrent reconciliations")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	if err := run(*listen, *concurrency); err != nil {
		log.Fatal(err)
	}
}

func run(listen string, concurrency int) error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	scheme.AddKnownTypes(groupVersion, &Batch{}, &BatchList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.UserAgent = "controller-runtime"
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: listen},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&Batch{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(&reconciler{client: manager.GetClient(), scheme: scheme})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

type reconciler struct {
	client client.Client
	scheme *runtime.Scheme
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var batch Batch
	if err := r.client.Get(ctx, request.NamespacedName, &batch); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for at := range children {
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name:      fmt.Sprintf("%s-%d", batch.Name, at),
			Namespace: batch.Namespace,
		}}
		_, err := controllerutil.CreateOrUpdate(ctx, r.client, child, func() error {
			child.Data = map[string]string{"text": batch.Spec.Text}
			return controllerutil.SetControllerReference(&batch, child, r.scheme)
		})
		if err != nil {
			return ctrl.Result{}, err
		}
	}
	changed := apimeta.SetStatusCondition(&batch.Status.Conditions, metav1.Condition{
		Type:               "Ready",
		Status:             metav1.ConditionTrue,
		Reason:             "Available",
		Message:            "all children are up to date",
		ObservedGeneration: batch.Generation,
	})
	if !changed && batch.Status.ObservedGeneration == batch.Generation {
		return ctrl.Result{}, nil
	}
	batch.Status.ObservedGeneration = batch.Generation
	return ctrl.Result{}, r.client.Status().Update(ctx, &batch)
}
