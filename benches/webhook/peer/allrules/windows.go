package allrules

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	"lockstep.dev/load/peer/windows"
)

func (v *validation) windows() {
	backup, maintenance := v.spec.Backup.Window, v.spec.MaintenanceWindow
	daily, isDaily := windows.Daily(backup)
	if isDaily && daily.IsTooShort() {
		v.deny("backup-window-length", v.path.Child("backup", "window"), *backup, tooShort())
	}
	if maintenance == nil {
		return
	}
	// Names of days may have capitals.
	weekly, isWeekly := windows.Weekly(ptr.To(strings.ToLower(*maintenance)))
	if isWeekly && weekly.IsTooShort() {
		v.deny("maintenance-window-length", v.path.Child("maintenanceWindow"), *maintenance, tooShort())
	}
	if isDaily && isWeekly && windows.Overlap(daily, weekly) {
		detail := fmt.Sprintf("must not overlap the backup window '%s'; move one of them", *backup)
		v.deny("overlapping-windows", v.path.Child("maintenanceWindow"), *maintenance, detail)
	}
}

func tooShort() string {
	return fmt.Sprintf("must last at least %d minutes", windows.Shortest)
}
