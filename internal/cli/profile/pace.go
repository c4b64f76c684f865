package profile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	traffic "carronade/internal/profile"
	"carronade/units"
)

// setPace sets when events are due. events is how many were read.
func setPace(p *plan, f *traffic.PaceFit, events uint64) {
	switch f.Family {
	case traffic.NoPace:
		why := "The events have no times"
		if f.Events > 0 {
			why = fmt.Sprintf("The %s with a time are too few, or too close together, for a rate (%s)", units.FormatCount(f.Events), units.FormatDuration(f.Span))
		}
		p.set("count", strconv.FormatUint(events, 10), why+": as many events as were read, as fast as possible. Set a rate or a concurrency.")
	case traffic.ConstantPace:
		// constant(RATE):TIME
		rate, length, _ := strings.Cut(strings.TrimPrefix(f.Shape, "constant("), "):")
		p.set("rate", rate, paceWords(f)...)
		p.set("for", length, "As long as the sample.")
	default:
		p.set("shape", f.Shape, paceWords(f)...)
	}
}

// paceRow is the line of the summary.
func paceRow(f *traffic.PaceFit) row {
	switch {
	case f.Family == traffic.NoPace && f.Events == 0:
		return row{"arrivals", "no rate: there are no times"}
	case f.Family == traffic.NoPace:
		return row{"arrivals", fmt.Sprintf("no rate: all within %s", units.FormatDuration(f.Span))}
	}
	text := fmt.Sprintf("%s in the mean, for %s; %s, %s", units.FormatRate(f.Rate), units.FormatDuration(f.Span), f.Family, off(f.Error))
	if f.Dispersion != nil {
		text += fmt.Sprintf("; dispersion %s in %s", index(f.Dispersion.Index), units.FormatDuration(f.Dispersion.Window))
	}
	return row{"arrivals", text}
}

// sortedNames are the names in a map, in order.
func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
