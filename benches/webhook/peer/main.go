// Package main validates CloudDatabases with a controller-runtime webhook. The load test compares the Lockstep webhook
// with it.
package main

import (
	"flag"
	"log"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"lockstep.dev/load/peer/api"
	"lockstep.dev/load/peer/tenrules"
)

func main() {
	port := flag.Int("port", 9443, "port of the webhook")
	directory := flag.String("cert-dir", "", "directory of tls.crt and tls.key")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(api.GroupVersion, &tenrules.CloudDatabase{})
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: *port, CertDir: *directory})
	server.Register("/validate", admission.WithValidator[*tenrules.CloudDatabase](scheme, tenrules.Validator{}))
	server.WebhookMux().HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	if err := server.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Fatal(err)
	}
}
