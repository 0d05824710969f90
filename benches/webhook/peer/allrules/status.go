package allrules

// CloudDatabaseStatus is the observed state of the instance.
type CloudDatabaseStatus struct {
	Phase                       *string           `json:"phase,omitempty"`
	Message                     *string           `json:"message,omitempty"`
	Endpoint                    *Endpoint         `json:"endpoint,omitempty"`
	InstanceID                  *string           `json:"instanceId,omitempty"`
	Arn                         *string           `json:"arn,omitempty"`
	ResourceID                  *string           `json:"resourceId,omitempty"`
	Region                      *string           `json:"region,omitempty"`
	AccountID                   *string           `json:"accountId,omitempty"`
	PubliclyAccessible          *bool             `json:"publiclyAccessible,omitempty"`
	StorageEncrypted            *bool             `json:"storageEncrypted,omitempty"`
	EnforcedFields              []string          `json:"enforcedFields,omitempty"`
	EngineVersion               *string           `json:"engineVersion,omitempty"`
	InstanceClass               *string           `json:"instanceClass,omitempty"`
	AllocatedStorageGib         *int32            `json:"allocatedStorageGib,omitempty"`
	AcceptedStorageGib          *int32            `json:"acceptedStorageGib,omitempty"`
	Certificate                 *Certificate      `json:"certificate,omitempty"`
	PendingModifications        []string          `json:"pendingModifications,omitempty"`
	PendingModificationsWindow  *string           `json:"pendingModificationsWindow,omitempty"`
	LastChange                  *LastChange       `json:"lastChange,omitempty"`
	StorageModifiedAt           *string           `json:"storageModifiedAt,omitempty"`
	AppliedStorage              *AppliedStorage   `json:"appliedStorage,omitempty"`
	AppliedTags                 []string          `json:"appliedTags,omitempty"`
	CredentialsVersion          *string           `json:"credentialsVersion,omitempty"`
	RequestedCredentialsVersion *string           `json:"requestedCredentialsVersion,omitempty"`
	MasterUserSecret            *MasterUserSecret `json:"masterUserSecret,omitempty"`
	OwnedSecrets                []string          `json:"ownedSecrets,omitempty"`
	ReplicaOf                   *string           `json:"replicaOf,omitempty"`
	DeletionRequest             *DeletionRequest  `json:"deletionRequest,omitempty"`
	CompleteFor                 *string           `json:"completeFor,omitempty"`
	AcceptedChanges             []AcceptedChange  `json:"acceptedChanges,omitempty"`
}

type Endpoint struct {
	Host string `json:"host"`
	Port int32  `json:"port"`
}

type Certificate struct {
	CaIdentifier *string `json:"caIdentifier,omitempty"`
	ValidTill    *string `json:"validTill,omitempty"`
}

type LastChange struct {
	Time   string   `json:"time"`
	Fields []string `json:"fields,omitempty"`
}

type AppliedStorage struct {
	Iops            *int32 `json:"iops,omitempty"`
	ThroughputMibps *int32 `json:"throughputMibps,omitempty"`
	MaxSizeGib      *int32 `json:"maxSizeGib,omitempty"`
}

type MasterUserSecret struct {
	Arn    string  `json:"arn"`
	Status *string `json:"status,omitempty"`
}

type DeletionRequest struct {
	FinalSnapshotID *string `json:"finalSnapshotId,omitempty"`
	AcceptedAt      *string `json:"acceptedAt,omitempty"`
	SeenDeleting    bool    `json:"seenDeleting,omitempty"`
}

type AcceptedChange struct {
	Field       string  `json:"field"`
	Target      string  `json:"target"`
	Consent     string  `json:"consent"`
	RequestedAt *string `json:"requestedAt,omitempty"`
	AcceptedAt  *string `json:"acceptedAt,omitempty"`
	Began       bool    `json:"began,omitempty"`
	AbsentSince *string `json:"absentSince,omitempty"`
	Failed      bool    `json:"failed,omitempty"`
}

// exists returns true if RDS has returned the instance.
func (s *CloudDatabaseStatus) exists() bool {
	return s != nil && (s.Arn != nil || s.Endpoint != nil)
}

// runningVersion returns the version that the instance runs, if it is known.
func (s *CloudDatabaseStatus) runningVersion() *string {
	if s == nil {
		return nil
	}
	return s.EngineVersion
}

// allocated returns the allocated storage in GiB, if it is known.
func (s *CloudDatabaseStatus) allocated() *int32 {
	if s == nil {
		return nil
	}
	return s.AllocatedStorageGib
}

// runs returns true if the instance is known to have a class.
func (s *CloudDatabaseStatus) runs(class string) bool {
	return s != nil && s.InstanceClass != nil && *s.InstanceClass == class
}
