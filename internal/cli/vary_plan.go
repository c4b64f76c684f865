package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/advice"
	"carronade/internal/cli/cmdutil"

	"carronade/internal/judge"
	"carronade/internal/verdict/stats"
	"carronade/internal/workload"
	"carronade/protocol"
)

// planVariation resolves all cells, so that every error is found before anything runs. The
// settings in t are then those of a cell, with the configuration.
func (s *session) planVariation(v *varying, t *cmdutil.Settings, f *searching, path string) (*variation, error) {
	varied, err := s.parseVaried(v.settings)
	if err != nil {
		return nil, err
	}
	for _, one := range varied {
		for _, e := range t.Doc.Entries {
			if e.Name == one.setting && (one.key == "" || slices.ContainsFunc(e.Values, func(text string) bool { return strings.HasPrefix(text, one.key+"=") })) {
				return nil, &protocol.Error{Err: fmt.Errorf("%s: %s gives it, too", one.where, e.Where), Hint: "leave one of them out"}
			}
		}
	}
	x := &variation{series: v.resume}
	if x.series == "" {
		x.series = newSeries()
	}
	if x.design, err = designOf(varied); err != nil {
		return nil, err
	}
	file, err := s.readOneWorkload(path, "--vary takes one")
	if err != nil {
		return nil, err
	}
	if f != nil {
		x.searches, x.found = map[*workload.Workload]*searching{}, []judge.VariedSearch{}
	}
	typed := slices.Clone(t.Doc.Entries)
	// resolve makes the workload of each cell, with more labels and settings.
	resolve := func(labels func(cell int) []string, more ...workload.Entry) error {
		x.cells = nil
		var faults []error
		seen := map[string]bool{}
		for i := range x.design.Cells {
			one := mergedLists(varied, typed, file)
			for k, f := range varied {
				value := f.Values[x.design.Cells[i][k]]
				if f.key != "" {
					value = f.key + "=" + value
				}
				one.Add(f.setting, f.where, value)
			}
			one.Entries = append(one.Entries, more...)
			s.apart(varied, one, file, fmt.Sprintf("%s-%d", x.series, i+1))
			for _, l := range labels(i) {
				one.Add("label", "--vary", l)
			}
			t.Doc = *one
			ws, err := s.resolveCell(x, t, f, file)
			for _, e := range splitErrors(err) {
				if err != nil && !seen[e.Error()] {
					seen[e.Error()] = true
					faults = append(faults, e)
				}
			}
			x.cells = append(x.cells, ws...)
		}
		return errors.Join(faults...)
	}
	if err := resolve(func(int) []string { return nil }); err != nil {
		return nil, err
	}
	if err := s.check(x, t.Last("fleet") != ""); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(x.cells, (*workload.Workload).OpenEnded) {
		return nil, &protocol.Error{Err: errors.New("--vary: a run has no end"), Hint: "add --for or --count, which ends each run"}
	}
	x.rounds = x.design.Rounds()
	var repeat []workload.Entry
	if x.cells[0].Given("repeat") {
		if x.rounds = x.cells[0].Repeat(); x.rounds < 2 {
			return nil, &protocol.Error{Err: errors.New("--repeat 1: the noise would be unknown, since it is the scatter between repetitions"), Hint: "give 2 or more, or leave it out"}
		}
	} else {
		repeat = append(repeat, workload.Entry{Name: "repeat", Where: "--repeat", Values: []string{strconv.Itoa(x.rounds)}})
	}
	if x.plan, err = x.hash(f); err != nil {
		return nil, err
	}
	return x, resolve(func(cell int) []string {
		return []string{judge.SeriesLabel + "=" + x.series, judge.PlanLabel + "=" + x.plan, judge.CellLabel + "=" + strconv.Itoa(cell+1)}
	}, repeat...)
}

// apart gives a cell a target of its own, if cells that vary such settings must not share it.
func (s *session) apart(varied []variedSetting, cell, file *workload.Document, name string) {
	target := func(e workload.Entry) bool { return e.Name == "target" && len(e.Values) == 1 }
	at := slices.IndexFunc(cell.Entries, target)
	if at < 0 && file != nil {
		if k := slices.IndexFunc(file.Entries, target); k >= 0 {
			at = len(cell.Entries)
			cell.Entries = append(cell.Entries, file.Entries[k])
		}
	}
	if at < 0 {
		return // each part of a workload may have one; or there is none, which Resolve says
	}
	kind, u, err := workload.ParseTarget(s.Kinds, cell.Entries[at].Values[0])
	if err != nil || kind.Capabilities().Apart == nil {
		return
	}
	var names []string
	for _, v := range varied {
		names = append(names, v.setting)
	}
	if own := kind.Capabilities().Apart(u, names, name); own != "" {
		e := cell.Entries[at]
		e.Values = []string{own}
		cell.Entries[at] = e
	}
}

// resolveCell makes the workload of a cell. That of a search stands for its trials.
func (s *session) resolveCell(x *variation, t *cmdutil.Settings, f *searching, file *workload.Document) ([]*workload.Workload, error) {
	if f == nil {
		return s.resolveAll(t, []*workload.Document{file})
	}
	one := *f
	w, err := s.resolveSearch(&one, t, file)
	if err != nil {
		return nil, err
	}
	x.searches[w] = &one
	return []*workload.Workload{w}, nil
}

// mergedLists returns the typed settings. A list of flags replaces that of the file, so if a
// cell adds to a list that only the file has, the file's values are added to the flags.
func mergedLists(varied []variedSetting, typed []workload.Entry, file *workload.Document) *workload.Document {
	out := &workload.Document{Entries: slices.Clone(typed)}
	if file == nil {
		return out
	}
	lists := map[string][]string{"label": nil} // the keys that cells set
	for _, f := range varied {
		if f.key != "" {
			lists[f.setting] = append(lists[f.setting], f.key)
		}
	}
	for _, e := range file.Entries {
		keys, is := lists[e.Name]
		if !is || slices.ContainsFunc(typed, func(o workload.Entry) bool { return o.Name == e.Name }) {
			continue
		}
		for _, text := range e.Values {
			key, _, _ := strings.Cut(text, "=")
			if !slices.Contains(keys, strings.TrimSpace(key)) {
				out.Add(e.Name, e.Where, text)
			}
		}
	}
	return out
}

// designOf is the design of the settings.
func designOf(varied []variedSetting) (*stats.Design, error) {
	factors := make([]stats.Factor, len(varied))
	for i, f := range varied {
		factors[i] = f.Factor
	}
	d, err := stats.NewDesign(factors)
	if err != nil {
		return nil, &protocol.Error{Err: fmt.Errorf("--vary: %w", err), Hint: "vary fewer settings or values, and the others in another series, with the best values of this one"}
	}
	return d, nil
}

// check finds the errors of cells that a target would find only when it is opened, and what does not fit
// this machine, unless others generate the load.
func (s *session) check(x *variation, elsewhere bool) error {
	var faults []error
	seen := map[string]bool{}
	for i, w := range x.cells {
		spec, err := w.Spec()
		if err == nil && !elsewhere { // the check may take memory
			err = s.fit(w)
		}
		if err == nil {
			err = protocol.Check(w.Kind, spec)
		}
		if err != nil && !seen[err.Error()] {
			seen[err.Error()] = true
			faults = append(faults, &protocol.Error{Err: fmt.Errorf("--vary: %s: %w", strings.Join(x.design.Settings(i), " "), err), Hint: advice.Hint(err)})
		}
	}
	return errors.Join(faults...)
}

// hash identifies what a series runs: the workloads of its cells, and how often.
func (x *variation) hash(f *searching) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n", x.rounds)
	if f != nil {
		fmt.Fprintf(h, "find %g %s %g %g %s\n", f.Precision, f.Budget, f.From, f.To, f.Soak)
	}
	for _, w := range x.cells {
		text, err := json.Marshal(w)
		if err != nil {
			return "", fmt.Errorf("the workload of a cell: %w", err)
		}
		h.Write(append(text, '\n'))
	}
	return "p" + hex.EncodeToString(h.Sum(nil))[:11], nil // a label such as 80010e7 would be a number
}
