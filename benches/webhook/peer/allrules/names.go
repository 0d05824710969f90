package allrules

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"lockstep.dev/load/peer/reserved"
)

const (
	// longestDatabase is the maximum length of the name of a PostgreSQL database. The schema reports names that are longer
	// by more than one character.
	longestDatabase = 63
	longestSecret   = 253
	hashLength      = 16
)

const probe = "lockstep.dev/admission-probe"

// admissionProbe denies admission probes.
func (v *validation) admissionProbe() {
	if _, found := v.object.Annotations[probe]; found {
		path := field.NewPath("metadata", "annotations").Key(probe)
		v.errors = append(v.errors, field.Forbidden(path, "is reserved: remove the annotation [admission-probe]"))
	}
}

func (v *validation) username() {
	engine, name := v.spec.Engine, v.spec.Credentials.Username
	if name != nil && isReservedUser(engine, *name) {
		detail := fmt.Sprintf("is reserved by %s or RDS; choose another name", engine)
		v.deny("username-reserved", v.path.Child("credentials", "username"), *name, detail)
	}
	if v.old == nil {
		return
	}
	if before := v.old.Spec.Credentials.Username; before != nil && !ptr.Equal(before, name) {
		detail := fmt.Sprintf("is immutable: RDS sets it at creation only; restore '%s'", *before)
		v.deny("username-immutable", v.path.Child("credentials", "username"), name, detail)
	}
}

// names validates the names of the database and of the Secret for applications.
func (v *validation) names() {
	engine := v.spec.Engine
	if name := v.spec.DatabaseName; name != nil {
		path := v.path.Child("databaseName")
		if engine == postgres && len(*name) == longestDatabase+1 {
			detail := fmt.Sprintf("must have at most %d characters for postgres", longestDatabase)
			v.deny("database-name-length", path, *name, detail)
		}
		if isReservedDatabase(engine, *name) {
			detail := fmt.Sprintf("is reserved by %s or RDS; choose another name", engine)
			v.deny("database-name-reserved", path, *name, detail)
		}
	}
	if secret := v.spec.ConnectionSecret; secret != nil {
		name := secret.Name
		if name == nil {
			name = ptr.To(derivedName(v.object.Name, "connection"))
		}
		if ptr.Equal(v.spec.Credentials.SecretName, name) {
			v.deny("connection-secret-name", v.path.Child("connectionSecret", "name"), *name,
				"is the Secret with the credentials, which the controller does not overwrite; choose another name")
		}
	}
}

// derivedName returns `name-purpose`, with a hash in place of the end of a name that is too long.
func derivedName(name, purpose string) string {
	full := name + "-" + purpose
	if len(full) <= longestSecret {
		return full
	}
	hash := fnv.New64a()
	hash.Write([]byte(name))
	beginning := strings.TrimRight(name[:longestSecret-len(purpose)-hashLength-2], ".-")
	return fmt.Sprintf("%s-%016x-%s", beginning, hash.Sum64(), purpose)
}

func isReservedUser(engine Engine, name string) bool {
	name = strings.ToLower(name)
	switch {
	// RDS creates this user on every instance.
	case name == "rdsadmin":
		return true
	case engine == postgres:
		return name == "admin" || strings.HasPrefix(name, "pg_") || reserved.Postgres[name]
	default:
		return reserved.MySQL[name]
	}
}

func isReservedDatabase(engine Engine, name string) bool {
	name = strings.ToLower(name)
	if engine == postgres {
		return slices.Contains(postgresDatabases, name) || reserved.Postgres[name]
	}
	return slices.Contains(mysqlDatabases, name) || reserved.MySQL[name]
}

// Databases of the system.
var (
	postgresDatabases = []string{"rdsadmin", "template0", "template1"}
	mysqlDatabases    = []string{"information_schema", "innodb", "mysql", "performance_schema", "sys", "tmp"}
)
