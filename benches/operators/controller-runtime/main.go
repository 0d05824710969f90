// Package main is an operator of DNS records on controller-runtime.
package main

import (
	"flag"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	dnsv1 "lockstep.dev/dns-record/api/v1"
	"lockstep.dev/dns-record/controller"
	"lockstep.dev/dns-record/dnsapi"
)

func main() {
	url := flag.String("dns-api-url", "", "URL of the DNS API")
	resync := flag.Duration("resync", 10*time.Minute, "interval at which changes outside the cluster are looked for")
	concurrency := flag.Int("max-concurrent-reconciles", 8, "maximum number of concurrent reconciliations")
	metrics := flag.String("metrics-bind-address", ":8080", "address of the metrics endpoint")
	probes := flag.String("health-probe-bind-address", ":8081", "address of the health endpoints")
	namespace := flag.String("leader-election-namespace", "", "namespace of the Lease; the one of the Pod if empty")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*url, *resync, *concurrency, *metrics, *probes, *namespace); err != nil {
		ctrl.Log.Error(err, "the operator has failed")
		os.Exit(1)
	}
}

func run(url string, resync time.Duration, concurrency int, metrics, probes, namespace string) error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	if err := dnsv1.AddToScheme(scheme); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 server.Options{BindAddress: metrics},
		HealthProbeBindAddress:  probes,
		LeaderElection:          true,
		LeaderElectionID:        "dns-record.dns.example.com",
		LeaderElectionNamespace: namespace,
	})
	if err != nil {
		return err
	}
	reconciler := &controller.DnsRecordReconciler{
		Client:   manager.GetClient(),
		Recorder: manager.GetEventRecorder("dns-record"),
		DNS:      dnsapi.New(url, 5*time.Second),
		Resync:   resync,
	}
	if err := reconciler.SetupWithManager(manager, concurrency); err != nil {
		return err
	}
	if err := manager.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	if err := manager.AddReadyzCheck("readyz", healthz.Ping); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
