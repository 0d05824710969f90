package allrules

import (
	"fmt"
	"strings"
)

// upgrade validates the settings of upgrades, and of the life cycle of the engine.
func (v *validation) upgrade() {
	v.allowedVersionForm()
	v.upgradeNotAllowed()
	v.automaticUpgrade()
	if support := v.spec.EngineLifecycleSupport; support != nil && v.spec.Engine == mariadb {
		v.deny("engine-lifecycle-support-engine", v.path.Child("engineLifecycleSupport"), *support,
			"may be set only for postgres and mysql: RDS has no Extended Support for mariadb; remove it")
	}
}

func (v *validation) allowedVersionForm() {
	allowed, engine := v.spec.AllowMajorVersionUpgrade, v.spec.Engine
	// The schema reports texts that are not versions.
	if allowed == nil || *allowed == "" || (*allowed)[0] < '0' || (*allowed)[0] > '9' {
		return
	}
	if strings.Count(*allowed, ".")+1 != engine.majorComponents(*allowed) {
		detail := fmt.Sprintf("is not a major version of %s, such as %s", engine, engine.defaultVersion())
		v.deny("allowed-version-form", v.path.Child("allowMajorVersionUpgrade"), *allowed, detail)
	}
}

func (v *validation) upgradeNotAllowed() {
	running, desired := v.object.Status.runningVersion(), v.spec.EngineVersion
	if running == nil {
		running = v.oldVersion()
	}
	if v.old == nil || running == nil || desired == nil {
		return
	}
	if v.spec.Engine.isMajorUpgrade(*running, *desired) && !v.spec.allowsMajorVersion(*desired) {
		detail := fmt.Sprintf("is an upgrade from %s to another major version, which cannot be undone and is not requested; "+
			"set `allowMajorVersionUpgrade` to '%s' to allow it", *running, v.spec.Engine.majorVersion(*desired))
		v.warn("major-version-upgrade-not-allowed", v.path.Child("engineVersion"), *desired, detail)
	}
}

func (v *validation) automaticUpgrade() {
	version := v.spec.EngineVersion
	if version == nil || !isTrue(v.spec.AutoMinorVersionUpgrade) {
		return
	}
	if major := v.spec.Engine.majorVersion(*version); major != *version {
		detail := fmt.Sprintf("upgrades the instance beyond '%s', and it cannot be downgraded; "+
			"set `engineVersion` to '%s', or remove this field", *version, major)
		v.warn("automatic-upgrade-of-exact-version", v.path.Child("autoMinorVersionUpgrade"), true, detail)
	}
}
