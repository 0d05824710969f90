package allrules

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"
)

// groups validates parameter groups and option groups, which belong to a major version of an engine.
func (v *validation) groups() {
	engine, version := v.spec.Engine, v.spec.EngineVersion
	if version == nil {
		return
	}
	major := engine.majorVersion(*version)
	if group := v.spec.ParameterGroup; group != nil {
		expected := "default." + string(engine) + major
		if strings.HasPrefix(*group, "default.") && *group != expected {
			detail := fmt.Sprintf("is not a group of the family of the engine version; set '%s', or remove it", expected)
			v.deny("default-parameter-group-family", v.path.Child("parameterGroup"), *group, detail)
		}
		v.parameterGroupOfUpgrade(*group, *version)
	}
	if group := v.spec.OptionGroup; group != nil {
		expected := "default:" + string(engine) + "-" + strings.ReplaceAll(major, ".", "-")
		if strings.HasPrefix(*group, "default:") && *group != expected {
			detail := fmt.Sprintf("is not a group of the engine version; set '%s', or remove it", expected)
			v.deny("default-option-group-version", v.path.Child("optionGroup"), *group, detail)
		}
	}
}

func (v *validation) parameterGroupOfUpgrade(group, version string) {
	before := v.oldVersion()
	if before == nil || strings.HasPrefix(group, "default.") || !ptr.Equal(v.old.Spec.ParameterGroup, &group) {
		return
	}
	if engine := v.spec.Engine; engine.isMajorUpgrade(*before, version) {
		detail := fmt.Sprintf("is the group of version %s: RDS rejects the upgrade unless it gets a group of the family %s%s",
			*before, engine, engine.majorVersion(version))
		v.warn("parameter-group-of-upgrade", v.path.Child("parameterGroup"), group, detail)
	}
}
