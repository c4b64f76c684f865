package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/report"
	"carronade/internal/verdict/find"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/units"
)

// This file reads and checks what a search is asked for.

// parse reads all flags that say how to search.
func (f *searching) parse() error {
	if err := f.options(); err != nil {
		return err
	}
	return f.more.parse(f)
}

// options reads the flags of each search, also of one that only judges again.
func (f *searching) options() (err error) {
	if f.Precision, err = units.ParseShare(f.share); err == nil && (f.Precision < 0.01 || f.Precision > 0.5) {
		err = errors.New("it must be from 1% to 50%")
	}
	if err != nil {
		return &protocol.Error{Err: fmt.Errorf("--precision: %w", err), Hint: "2% is the default"}
	}
	if f.Budget, err = units.ParseDuration(f.budget); err == nil && f.Budget < 5*time.Second {
		err = errors.New("a search takes longer than 5 s")
	}
	if err != nil {
		return &protocol.Error{Err: fmt.Errorf("--budget: %w", err), Hint: "10m is the default"}
	}
	for _, one := range []struct {
		flag, text string
		into       *float64
	}{{"from", f.from, &f.From}, {"to", f.more.to, &f.To}, {"at-least", f.atLeast, &f.least}} {
		if one.text == "" {
			continue
		}
		if *one.into, err = units.ParseRate(one.text); err == nil && *one.into <= 0 {
			err = errors.New("it must be above 0")
		}
		if err != nil {
			return &protocol.Error{Err: fmt.Errorf("--%s: %w", one.flag, err), Hint: "a rate is such as 5k/s"}
		}
	}
	return nil
}

// limitTimes adds a limit on a time if there is none.
func (f *searching) limitTimes() error {
	if len(report.TimeLimits(f.limits)) == 0 {
		l, err := workload.ParseLimit(findLimit)
		if err != nil {
			return err
		}
		f.limits = append(f.limits, l)
	}
	return nil
}

func (f *searching) limitTexts() []string {
	out := make([]string, len(f.limits))
	for i := range f.limits {
		out[i] = f.limits[i].String()
	}
	return out
}

// resolveSearch makes a search of the settings t and a workload file, which may be nil. It returns
// a workload that stands for the trials: their times are known only when the capacity is, but it
// finds faults in everything else.
func (s *session) resolveSearch(f *searching, t *cmdutil.Settings, file *workload.Document) (w *workload.Workload, err error) {
	if err := f.refused(t.Doc.Entries); err != nil {
		return nil, err
	}
	if f.base, err = s.withConfiguration(t, file); err != nil {
		return nil, err
	}
	if f.base == nil {
		f.base = &workload.Document{}
	}
	if err := f.refused(f.base.Entries); err != nil {
		return nil, err
	}
	f.settings = *t
	if w, err = s.firstWorkload(f); err != nil {
		return nil, err
	}
	s.warnOnce(w)
	f.target = w.Target()
	f.limits = w.Limits()
	switch {
	case f.Over == find.OverConcurrency && (hasLimit(f.settings.Doc.Entries) || hasLimit(f.base.Entries)):
		return nil, errNoRateOrLimit
	case f.Over == find.OverConcurrency:
	case !f.Reading && slices.ContainsFunc(f.limits, func(l workload.Limit) bool { return l.Name == "throughput" }):
		return nil, &protocol.Error{Err: errors.New("--slo throughput: the rate is what is searched for, and low rates are tried too"), Hint: "--at-least RATE says which rate must hold"}
	case w.Unacknowledged():
		if err := unanswered(f.limits); err != nil {
			return nil, err
		}
	case !f.Reading:
		if err := f.limitTimes(); err != nil {
			return nil, err
		}
	}
	f.Times = report.TimeLimits(f.limits)
	if _, refused := f.Next(nil); refused != nil { // nothing else ends a search before its first trial
		hint := "give a larger --budget, or a limit on a shorter time"
		if f.Reading {
			hint = "give a larger --budget"
		}
		return nil, &protocol.Error{Err: fmt.Errorf("--budget: %s", refused.Why), Hint: hint}
	}
	return w, nil
}

// firstWorkload is the workload of a trial before anything is known of the system.
func (s *session) firstWorkload(f *searching) (*workload.Workload, error) {
	op := opOf(f.base, &f.settings.Doc)
	if slices.Contains([]string{"create", "list", "describe", "delete", "read"}, op) {
		return nil, &protocol.Error{
			Err:  fmt.Errorf("--op %s: operations on topics have no reports, so they are not searched", op),
			Hint: "carronade topics " + op + " --concurrency N prints how many a second there were; try several N",
		}
	}
	f.Reading = op == workload.Consume
	t := find.Trial{Role: find.Search, Rate: 1000, Measure: 10 * time.Second, Settle: time.Second, Slot: time.Second}
	if f.Reading {
		for _, one := range []struct {
			flag  string
			given bool
		}{{"from", f.From > 0}, {"to", f.To > 0}, {"confirm", f.Soak > 0}} {
			if one.given {
				return nil, &protocol.Error{Err: fmt.Errorf("--%s: reading has no rate, it is at full speed", one.flag), Hint: "leave it out"}
			}
		}
		t = find.Trial{Role: find.Read, Measure: 10 * time.Second, Slot: time.Second}
	}
	if f.Over == find.OverConcurrency {
		if f.Reading {
			return nil, &protocol.Error{Err: errors.New("--over concurrency: reading has no requests to keep in flight"), Hint: "leave it out"}
		}
		t.Rate, t.Concurrency = 0, 1
	}
	w, err := s.trialWorkload(f, &t)
	if err != nil || !f.Reading {
		return w, err
	}
	for _, r := range w.Settings() {
		if r.Name == "until-end" && r.Text() == "false" {
			f.untilEnd = true
			return s.trialWorkload(f, &t)
		}
	}
	return w, nil
}

// opOf is the operation that is given, "" if none is. The last document decides.
func opOf(docs ...*workload.Document) (op string) {
	for _, d := range docs {
		for _, e := range d.Entries {
			if e.Name == "op" {
				op = e.Values[len(e.Values)-1]
			}
		}
	}
	return op
}

// unanswered checks the limits of a search in which nothing is acknowledged: no response has a
// time, so what is not found later must be limited.
func unanswered(limits []workload.Limit) error {
	hint := "--slo not-found=0 searches for the highest rate at which nothing is lost"
	if times := report.TimeLimits(limits); len(times) > 0 {
		return &protocol.Error{Err: fmt.Errorf("%s: nothing is acknowledged, so no response has a time", times[0].Name), Hint: hint}
	}
	if !slices.ContainsFunc(limits, func(l workload.Limit) bool { return l.Needs == workload.NeedsDelivery }) {
		return &protocol.Error{Err: errors.New("nothing is acknowledged, so no response shows what the system takes"), Hint: hint}
	}
	return nil
}

// refused is the error of a setting that a search cannot have, on the command line, in a file or
// in the configuration.
func (f *searching) refused(entries []workload.Entry) error {
	for _, e := range entries {
		if e.Name == repeatSetting && len(f.vary.settings) > 0 { // searches of each cell
			continue
		}
		if strings.Contains(e.Name, "backlog") || e.Name == "drain-timeout" {
			return &protocol.Error{Err: fmt.Errorf("%s: readers keep up in each trial of a search, and a backlog is what waits when they do not", e.Where), Hint: "leave it out; carronade compare and --vary repeat a run with a backlog"}
		}
		if slices.Contains(findSets, e.Name) {
			return &protocol.Error{Err: fmt.Errorf("%s: find decides this for each trial", e.Where), Hint: "leave it out; --from, --precision and --budget say how to search, --slo which failures are allowed"}
		}
	}
	return nil
}
