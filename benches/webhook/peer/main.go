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
)

func main() {
	port := flag.Int("port", 9443, "port of the webhook")
	directory := flag.String("cert-dir", "", "directory of tls.crt and tls.key")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(groupVersion, &CloudDatabase{})
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: *port, CertDir: *directory})
	server.Register("/validate", admission.WithValidator[*CloudDatabase](scheme, rules{}))
	server.WebhookMux().HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	if err := server.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Fatal(err)
	}
}
