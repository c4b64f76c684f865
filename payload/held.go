package payload

import (
	"strings"

	"carronade/internal/place"
)

// Held returns how many bytes a payload of this form (PayloadForms) keeps in memory: a ring or a file. It
// makes neither. A form that New refuses has none.
func Held(form string) int64 {
	form = strings.TrimSpace(form)
	name, args, _ := splitCall(form)
	path, short := strings.CutPrefix(form, "file:")
	switch {
	case short:
	case name == "ring":
		f, err := parseRing(args, 0)
		if err != nil {
			return 0
		}
		return int64(f.size)
	case name == "file":
		var err error
		if path, _, err = fileArguments(args); err != nil {
			return 0
		}
	default:
		return 0
	}
	info, err := place.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return min(info.Size(), maxFile)
}

// MeanSizeOf returns the mean size of values whose sizes have this form (SizeForms); 0 if New refuses it.
func MeanSizeOf(form string, seed uint64) float64 {
	g, err := New(Spec{Seed: seed, Size: form, Payload: "random", Key: "none"})
	if err != nil {
		return 0
	}
	return g.MeanSize()
}
