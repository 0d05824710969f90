// Package main validates CloudDatabases with a controller-runtime webhook. The load test compares the Lockstep webhook
// with it.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"lockstep.dev/load/peer/allrules"
	"lockstep.dev/load/peer/api"
	"lockstep.dev/load/peer/catalogue"
	"lockstep.dev/load/peer/tenrules"
)

func main() {
	port := flag.Int("port", 9443, "port of the webhook")
	directory := flag.String("cert-dir", "", "directory of tls.crt and tls.key")
	rules := flag.String("rules", "ten", "rules of the webhook: ten or all")
	offers := flag.String("catalogue", "", "file with the catalogue of RDS, for all rules")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	validator, err := validatorOf(*rules, *offers)
	if err != nil {
		log.Fatal(err)
	}
	server := webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: *port, CertDir: *directory})
	server.Register("/validate", validator)
	server.WebhookMux().HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	if err := server.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Fatal(err)
	}
}

func validatorOf(rules, offers string) (*admission.Webhook, error) {
	scheme := runtime.NewScheme()
	switch rules {
	case "ten":
		scheme.AddKnownTypes(api.GroupVersion, &tenrules.CloudDatabase{})
		return admission.WithValidator[*tenrules.CloudDatabase](scheme, tenrules.Validator{}), nil
	case "all":
		scheme.AddKnownTypes(api.GroupVersion, &allrules.CloudDatabase{})
		read, err := catalogue.Read(offers)
		if err != nil {
			return nil, err
		}
		return admission.WithValidator[*allrules.CloudDatabase](scheme, allrules.Validator{Catalogue: read}), nil
	default:
		return nil, fmt.Errorf("the rules %q are unknown; set `--rules` to ten or all", rules)
	}
}
