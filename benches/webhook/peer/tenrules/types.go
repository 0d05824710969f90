// Package tenrules has ten of the rules of CloudDatabase, and a type with the fields that the kind had when they were
// written. Figures of the load test remain comparable as long as both stay the same.
package tenrules

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// CloudDatabase as the author of an operator in Go would declare it.
type CloudDatabase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec CloudDatabaseSpec `json:"spec,omitempty"`
}

type CloudDatabaseSpec struct {
	Engine             string            `json:"engine"`
	EngineVersion      *string           `json:"engineVersion,omitempty"`
	InstanceClass      string            `json:"instanceClass"`
	Storage            Storage           `json:"storage"`
	DatabaseName       *string           `json:"databaseName,omitempty"`
	Credentials        Credentials       `json:"credentials"`
	MultiAz            bool              `json:"multiAz,omitempty"`
	Backup             Backup            `json:"backup,omitempty"`
	MaintenanceWindow  *string           `json:"maintenanceWindow,omitempty"`
	Port               *int32            `json:"port,omitempty"`
	Network            Network           `json:"network,omitempty"`
	Encryption         Encryption        `json:"encryption,omitempty"`
	DeletionProtection bool              `json:"deletionProtection,omitempty"`
	DeletionPolicy     string            `json:"deletionPolicy,omitempty"`
	Tags               map[string]string `json:"tags,omitempty"`
}

type Storage struct {
	Type           string `json:"type,omitempty"`
	SizeGib        int32  `json:"sizeGib"`
	MaxSizeGib     *int32 `json:"maxSizeGib,omitempty"`
	Iops           *int32 `json:"iops,omitempty"`
	ThroughputMibs *int32 `json:"throughputMibps,omitempty"`
}

type Credentials struct {
	Username   *string         `json:"username,omitempty"`
	SecretName string          `json:"secretName"`
	Selectors  SecretSelectors `json:"selectors,omitempty"`
}

type SecretSelectors struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
}

type Backup struct {
	RetentionDays      int32   `json:"retentionDays,omitempty"`
	Window             *string `json:"window,omitempty"`
	CopyTagsToSnapshot *bool   `json:"copyTagsToSnapshot,omitempty"`
}

type Network struct {
	SubnetGroup        *string  `json:"subnetGroup,omitempty"`
	SecurityGroups     []string `json:"securityGroups,omitempty"`
	PubliclyAccessible bool     `json:"publiclyAccessible,omitempty"`
}

type Encryption struct {
	Enabled *bool   `json:"enabled,omitempty"`
	KmsKey  *string `json:"kmsKey,omitempty"`
}

// DeepCopyObject is required by the interface. No handler here copies objects.
func (d *CloudDatabase) DeepCopyObject() runtime.Object {
	copied := *d
	d.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}
