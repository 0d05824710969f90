package allrules

import (
	"fmt"
	"slices"
	"strings"
)

// classesWithoutEncryption are families and single classes, from the RDS User Guide.
var classesWithoutEncryption = []string{"db.m1.", "db.m2.", "db.t1.", "db.t2.micro"}

// expiredAuthorities are certificate authorities with the month of their end.
var expiredAuthorities = map[string]string{
	"rds-ca-2015": "March 2020",
	"rds-ca-2019": "August 2024",
}

// risks validates settings that can cost data or availability.
func (v *validation) risks() {
	spec := v.spec
	class := spec.InstanceClass
	if spec.Network.PubliclyAccessible {
		v.warn("publicly-accessible", v.path.Child("network", "publiclyAccessible"), true,
			"gives the instance a public IP address: any client that its security groups allow can connect; "+
				"set it to false unless clients outside the VPC need it")
	}
	if days := spec.Backup.RetentionDays; days != nil && *days == 0 {
		v.warn("no-automated-backups", v.path.Child("backup", "retentionDays"), *days,
			"disables automated backups: existing ones are deleted, and the data cannot be restored to a point in time")
	}
	if spec.DeletionPolicy == deletesInstance && !isTrue(spec.DeletionProtection) {
		v.warn("deletion-without-protection", v.path.Child("deletionPolicy"), spec.DeletionPolicy,
			"deletes the instance with all its data and without a final snapshot as soon as the object is deleted; "+
				"set `deletionProtection` to true if this data must not be lost by mistake")
	}
	if isTrue(spec.MultiAz) && strings.HasPrefix(class, "db.t") {
		v.warn("burstable-multi-az", v.path.Child("instanceClass"), class,
			"is burstable: while its CPU credits are used up, it is slow, and so is the standby after a failover; "+
				"choose a class such as 'db.m7g.large' for production")
	}
	if authority := spec.CaCertificate; authority != nil && expiredAuthorities[*authority] != "" {
		detail := fmt.Sprintf("expired in %s: clients that verify the certificate of the server cannot connect; "+
			"set 'rds-ca-rsa2048-g1', 'rds-ca-rsa4096-g1' or 'rds-ca-ecc384-g1'", expiredAuthorities[*authority])
		v.warn("ca-certificate-expired", v.path.Child("caCertificate"), *authority, detail)
	}
	v.encryption()
}

func (v *validation) encryption() {
	// An instance that was created without encryption stays unencrypted.
	if status := v.object.Status; status.exists() && !isTrue(status.StorageEncrypted) {
		return
	}
	class, enabled := v.spec.InstanceClass, v.spec.Encryption.Enabled
	isWithout := func(prefix string) bool { return strings.HasPrefix(class, prefix) }
	if (enabled == nil || *enabled) && slices.ContainsFunc(classesWithoutEncryption, isWithout) {
		v.deny("encryption-not-supported", v.path.Child("instanceClass"), class,
			"does not support encryption; choose a newer class, such as 'db.t4g.micro', "+
				"or set `encryption.enabled` to false when the instance is created")
	}
}

func (v *validation) logExports() {
	if v.spec.Monitoring == nil {
		return
	}
	allowed := v.spec.Engine.logExports()
	for index, name := range v.spec.Monitoring.LogExports {
		// The schema reports logs that no engine has.
		isKnown := slices.Contains(postgresLogs, name) || slices.Contains(mysqlLogs, name)
		if isKnown && !slices.Contains(allowed, name) {
			detail := fmt.Sprintf("is not a log of %s, which has %s", v.spec.Engine, strings.Join(allowed, ", "))
			v.deny("log-exports-engine", v.path.Child("monitoring", "logExports").Index(index), name, detail)
		}
	}
}
