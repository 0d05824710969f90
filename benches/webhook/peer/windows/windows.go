// Package windows reads weekly and daily time windows, in UTC.
package windows

import (
	"strconv"
	"strings"
)

const (
	minutesADay  = 24 * 60
	minutesAWeek = 7 * minutesADay
)

// Window recurs daily or weekly.
type Window struct{ start, minutes int }

// Shortest is the minimum length of a window in RDS, in minutes.
const Shortest = 30

// Daily reads a window such as 03:00-04:00.
func Daily(text *string) (Window, bool) {
	return read(text, minutesADay, timeOfDay)
}

// Weekly reads a window such as sun:23:30-mon:00:30.
func Weekly(text *string) (Window, bool) {
	return read(text, minutesAWeek, timeOfWeek)
}

// IsTooShort returns true if RDS rejects the length of the window.
func (w Window) IsTooShort() bool {
	return w.minutes < Shortest
}

// Overlap returns true if a daily window overlaps a weekly one on any day.
func Overlap(daily, weekly Window) bool {
	for day := range 7 {
		start := day*minutesADay + daily.start
		afterWeekly := (start + minutesAWeek - weekly.start) % minutesAWeek
		afterDaily := (weekly.start + minutesAWeek - start) % minutesAWeek
		if afterWeekly < weekly.minutes || afterDaily < daily.minutes {
			return true
		}
	}
	return false
}

func read(text *string, cycle int, timeOf func(string) (int, bool)) (Window, bool) {
	if text == nil {
		return Window{}, false
	}
	from, until, found := strings.Cut(*text, "-")
	start, okStart := timeOf(from)
	end, okEnd := timeOf(until)
	return Window{start, (end + cycle - start) % cycle}, found && okStart && okEnd
}

func timeOfDay(text string) (int, bool) {
	hours, minutes, found := strings.Cut(text, ":")
	hour, errHour := strconv.Atoi(hours)
	minute, errMinute := strconv.Atoi(minutes)
	inDay := hour >= 0 && hour < 24 && minute >= 0 && minute < 60
	return hour*60 + minute, found && errHour == nil && errMinute == nil && inDay
}

func timeOfWeek(text string) (int, bool) {
	name, rest, found := strings.Cut(text, ":")
	for index, day := range []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"} {
		if day == name {
			minutes, ok := timeOfDay(rest)
			return index*minutesADay + minutes, found && ok
		}
	}
	return 0, false
}
