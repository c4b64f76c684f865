package report

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"carronade/internal/verdict/find"
	"carronade/internal/workload"
	"carronade/units"
)

// trialOf reads from the report of a trial what the search had asked for.
func trialOf(d *Document) (t find.Trial, err error) {
	set := make(map[string]string, len(d.Settings))
	for i := range d.Settings {
		set[d.Settings[i].Name] = d.Settings[i].Value
	}
	duration := func(name string) (v time.Duration) {
		if text := set[name]; text != "" && err == nil {
			if v, err = units.ParseDuration(text); err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
		}
		return v
	}
	t = find.Trial{Role: find.Role(d.Labels[RoleLabel]), Measure: duration("for"), Settle: duration("warmup"), Slot: duration("interval")}
	if text := set["rate"]; text != "" && err == nil {
		t.Rate, err = units.ParseRate(text)
	}
	if text := set["concurrency"]; text != "" && err == nil {
		var n uint64
		n, err = units.ParseCount(text)
		t.Concurrency = int(n)
	}
	switch {
	case err == nil && t.Role == find.Read:
		return t, fmt.Errorf("report %s is a trial of a search for the rate of reading, which no limit decides: carronade find measures it again", d.ID)
	case err == nil && t.Concurrency > 0 && t.Role != find.Probe:
		return t, fmt.Errorf("report %s is a trial of a search over concurrency, which compares throughput and has no limits: carronade find without --over answers them", d.ID)
	}
	if err == nil && (t.Measure <= 0 || t.Slot <= 0 || t.Rate <= 0 && t.Role != find.Probe) {
		err = errors.New("it has no rate, length or interval")
	}
	if err != nil {
		return t, fmt.Errorf("report %s is not a trial of a search: %w", d.ID, err)
	}
	return t, nil
}

// A NoDataError is the error of a limit on a time that no trial measured.
type NoDataError struct {
	Limit string
	Time  string
}

// Error implements error.
func (e *NoDataError) Error() string {
	return fmt.Sprintf("%s: the trials have no %s times", e.Limit, e.Time)
}

// TrialOutcomes makes outcomes of the reports of a search's trials, in their order, for other limits
// than they were run for. Reports of runs that were cut short are left out.
func TrialOutcomes(o *find.Options, limits []workload.Limit, reports func(yield func(*Document, error) bool)) (out []find.Outcome, last *Document, err error) {
	measured := map[string]bool{}
	var names []string
	rated := false
	for d, err := range reports {
		if err != nil {
			return nil, nil, err
		}
		if d.Search != nil || d.Partial {
			continue
		}
		t, err := trialOf(d)
		if err != nil {
			return nil, nil, err
		}
		if t.Role != find.Probe {
			rated = true
			for _, l := range o.Times {
				name := timeOf(l, d)
				measured[name] = measured[name] || slices.ContainsFunc(d.Intervals, func(iv Interval) bool { return iv.HasHistogram(name) })
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		out = append(out, TrialOutcome(o, t, d, limits, d.EndedAt.Sub(d.StartedAt)))
		if last == nil || t.Role != find.Probe {
			of := *d
			of.Intervals = nil // thousands of histograms
			last = &of
		}
	}
	for i, name := range names {
		if rated && !measured[name] {
			return nil, nil, &NoDataError{Limit: o.Times[min(i, len(o.Times)-1)].Name, Time: name}
		}
	}
	return out, last, nil
}
