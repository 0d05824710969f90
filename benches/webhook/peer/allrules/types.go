package allrules

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// CloudDatabase as the author of an operator in Go would declare it.
type CloudDatabase struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CloudDatabaseSpec    `json:"spec,omitempty"`
	Status *CloudDatabaseStatus `json:"status,omitempty"`
}

type CloudDatabaseSpec struct {
	Engine                   Engine            `json:"engine"`
	EngineVersion            *string           `json:"engineVersion,omitempty"`
	AllowMajorVersionUpgrade *string           `json:"allowMajorVersionUpgrade,omitempty"`
	AutoMinorVersionUpgrade  *bool             `json:"autoMinorVersionUpgrade,omitempty"`
	EngineLifecycleSupport   *string           `json:"engineLifecycleSupport,omitempty"`
	ParameterGroup           *string           `json:"parameterGroup,omitempty"`
	OptionGroup              *string           `json:"optionGroup,omitempty"`
	InstanceClass            string            `json:"instanceClass"`
	Storage                  Storage           `json:"storage"`
	DedicatedLogVolume       *bool             `json:"dedicatedLogVolume,omitempty"`
	DatabaseName             *string           `json:"databaseName,omitempty"`
	Credentials              Credentials       `json:"credentials"`
	ConnectionSecret         *ConnectionSecret `json:"connectionSecret,omitempty"`
	IamAuthentication        *bool             `json:"iamAuthentication,omitempty"`
	CaCertificate            *string           `json:"caCertificate,omitempty"`
	Network                  Network           `json:"network,omitempty"`
	Encryption               Encryption        `json:"encryption,omitempty"`
	MultiAz                  *bool             `json:"multiAz,omitempty"`
	Monitoring               *Monitoring       `json:"monitoring,omitempty"`
	Backup                   Backup            `json:"backup,omitempty"`
	ApplyChanges             string            `json:"applyChanges,omitempty"`
	MaintenanceWindow        *string           `json:"maintenanceWindow,omitempty"`
	Port                     *int32            `json:"port,omitempty"`
	DeletionProtection       *bool             `json:"deletionProtection,omitempty"`
	DeletionPolicy           string            `json:"deletionPolicy,omitempty"`
	ManagementPolicy         string            `json:"managementPolicy,omitempty"`
	Adopt                    *Adopt            `json:"adopt,omitempty"`
	RestoreFrom              *RestoreFrom      `json:"restoreFrom,omitempty"`
	ReplicaOf                *ReplicaOf        `json:"replicaOf,omitempty"`
	RetainAutomatedBackups   *bool             `json:"retainAutomatedBackups,omitempty"`
	Tags                     map[string]string `json:"tags,omitempty"`
}

type Storage struct {
	Type            string `json:"type,omitempty"`
	SizeGib         int32  `json:"sizeGib"`
	MaxSizeGib      *int32 `json:"maxSizeGib,omitempty"`
	Iops            *int32 `json:"iops,omitempty"`
	ThroughputMibps *int32 `json:"throughputMibps,omitempty"`
}

type Credentials struct {
	Username   *string            `json:"username,omitempty"`
	SecretName *string            `json:"secretName,omitempty"`
	Selectors  SecretSelectors    `json:"selectors,omitempty"`
	Generate   *GeneratedPassword `json:"generate,omitempty"`
	Managed    *ManagedPassword   `json:"managed,omitempty"`
}

type SecretSelectors struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
}

type GeneratedPassword struct{}

type ManagedPassword struct {
	KmsKey *string `json:"kmsKey,omitempty"`
}

type ConnectionSecret struct {
	Name *string `json:"name,omitempty"`
}

type Network struct {
	SubnetGroup        *string  `json:"subnetGroup,omitempty"`
	SecurityGroups     []string `json:"securityGroups,omitempty"`
	PubliclyAccessible bool     `json:"publiclyAccessible,omitempty"`
	AvailabilityZone   *string  `json:"availabilityZone,omitempty"`
	NetworkType        *string  `json:"networkType,omitempty"`
}

type Encryption struct {
	Enabled *bool   `json:"enabled,omitempty"`
	KmsKey  *string `json:"kmsKey,omitempty"`
}

type Monitoring struct {
	Enhanced            *EnhancedMonitoring  `json:"enhanced,omitempty"`
	PerformanceInsights *PerformanceInsights `json:"performanceInsights,omitempty"`
	DatabaseInsights    *string              `json:"databaseInsights,omitempty"`
	LogExports          []string             `json:"logExports,omitempty"`
}

type EnhancedMonitoring struct {
	IntervalSeconds int32   `json:"intervalSeconds"`
	RoleArn         *string `json:"roleArn,omitempty"`
}

type PerformanceInsights struct {
	Enabled       bool    `json:"enabled"`
	RetentionDays *int32  `json:"retentionDays,omitempty"`
	KmsKey        *string `json:"kmsKey,omitempty"`
}

type Backup struct {
	RetentionDays      *int32  `json:"retentionDays,omitempty"`
	Window             *string `json:"window,omitempty"`
	CopyTagsToSnapshot *bool   `json:"copyTagsToSnapshot,omitempty"`
}

type Adopt struct {
	Identifier string `json:"identifier"`
}

type RestoreFrom struct {
	Snapshot    *string      `json:"snapshot,omitempty"`
	PointInTime *PointInTime `json:"pointInTime,omitempty"`
}

type PointInTime struct {
	SourceInstance   *string `json:"sourceInstance,omitempty"`
	SourceResourceID *string `json:"sourceResourceId,omitempty"`
	Time             *string `json:"time,omitempty"`
	Latest           *bool   `json:"latest,omitempty"`
}

type ReplicaOf struct {
	Identifier *string `json:"identifier,omitempty"`
	Name       *string `json:"name,omitempty"`
}

// Values of enumerations that rules need.
const (
	deletesInstance         = "Delete"
	observes                = "Observe"
	inMaintenanceWindow     = "MaintenanceWindow"
	extendedSupport         = "open-source-rds-extended-support"
	extendedSupportDisabled = "open-source-rds-extended-support-disabled"
)

// isTrue returns true if an optional field is set to true.
func isTrue(value *bool) bool {
	return ptr.Deref(value, false)
}

// DeepCopyObject is required by the interface. No handler here copies objects.
func (d *CloudDatabase) DeepCopyObject() runtime.Object {
	copied := *d
	d.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}
