// Package v1 contains the kind DnsRecord.
// +kubebuilder:object:generate=true
// +groupName=dns.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and the version of the kind.
var GroupVersion = schema.GroupVersion{Group: "dns.example.com", Version: "v1"}

// AddToScheme adds the kind to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &DnsRecord{}, &DnsRecordList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
