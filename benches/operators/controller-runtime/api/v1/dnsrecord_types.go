package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RecordType is the type of a record.
// +kubebuilder:validation:Enum=A;AAAA;CNAME;TXT
type RecordType string

// DnsRecordSpec is the desired record.
// +kubebuilder:validation:XValidation:rule="self.type != 'CNAME' || self.values.size() == 1",message="a CNAME record must have exactly one value"
// +kubebuilder:validation:XValidation:rule="self.type == oldSelf.type",message="the type of a record cannot change"
// +kubebuilder:validation:XValidation:rule="self.type != 'A' || self.values.all(value, isIP(value) && ip(value).family() == 4)",message="the values of an A record must be IPv4 addresses"
// +kubebuilder:validation:XValidation:rule="self.type != 'AAAA' || self.values.all(value, isIP(value) && ip(value).family() == 6)",message="the values of an AAAA record must be IPv6 addresses"
type DnsRecordSpec struct {
	// Fully qualified name, without a dot at the end.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	Name string `json:"name"`
	// Type of the record.
	Type RecordType `json:"type"`
	// Time to live in seconds.
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=86400
	// +optional
	TTL int32 `json:"ttl,omitempty"`
	// Values: addresses, a name or texts.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	Values []string `json:"values"`
}

// DnsRecordStatus is the state of the record.
type DnsRecordStatus struct {
	// Generation that was reconciled last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Id of the record at the provider.
	// +optional
	RecordID string `json:"recordId,omitempty"`
	// Name that is served.
	// +optional
	ServedName string `json:"servedName,omitempty"`
}

// DnsRecord is a DNS record.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=dnsrecords
type DnsRecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DnsRecordSpec   `json:"spec"`
	Status DnsRecordStatus `json:"status,omitempty"`
}

// DnsRecordList is a list of DNS records.
// +kubebuilder:object:root=true
type DnsRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []DnsRecord `json:"items"`
}
