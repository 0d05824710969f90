package allrules

import (
	"strconv"
	"strings"

	"lockstep.dev/load/peer/versions"
)

// Engine is a database engine of RDS.
type Engine string

const (
	postgres Engine = "postgres"
	mysql    Engine = "mysql"
	mariadb  Engine = "mariadb"
)

// defaultVersion returns the default major version of the engine.
func (e Engine) defaultVersion() string {
	switch e {
	case postgres:
		return "17"
	case mysql:
		return "8.4"
	default:
		return "11.4"
	}
}

// majorComponents returns the number of components of a major version: one for PostgreSQL since version 10, and otherwise
// two.
func (e Engine) majorComponents(version string) int {
	first := version
	if end := strings.IndexAny(version, ".-"); end >= 0 {
		first = version[:end]
	}
	number, _ := strconv.ParseUint(first, 10, 32)
	if e == postgres && number >= 10 {
		return 1
	}
	return 2
}

// majorVersion returns the major version that a version belongs to.
func (e Engine) majorVersion(version string) string {
	components := e.majorComponents(version)
	numbers, _, _ := strings.Cut(version, "-")
	for at, char := range numbers {
		if char != '.' {
			continue
		}
		components--
		if components == 0 {
			return numbers[:at]
		}
	}
	return numbers
}

// isMajorUpgrade returns true if a change from one version to another is an upgrade to another major version.
func (e Engine) isMajorUpgrade(from, to string) bool {
	return versions.Compare(e.majorVersion(from), e.majorVersion(to)) < 0
}

// logExports returns the names of the logs that the engine can export.
func (e Engine) logExports() []string {
	if e == postgres {
		return postgresLogs
	}
	return mysqlLogs
}

var (
	postgresLogs = []string{"postgresql", "upgrade", "iam-db-auth-error"}
	mysqlLogs    = []string{"audit", "error", "general", "slowquery", "iam-db-auth-error"}
)

// allowsMajorVersion returns true if the spec allows an upgrade to the major version of a version.
func (s *CloudDatabaseSpec) allowsMajorVersion(version string) bool {
	allowed := s.AllowMajorVersionUpgrade
	return allowed != nil && *allowed == s.Engine.majorVersion(version)
}
