package cli

import (
	"context"
	"fmt"

	"carronade/internal/command"
	"carronade/internal/report"
	"carronade/internal/workload"
)

var _ command.Turns = (*session)(nil).turns

// turns implements command.Turns.
func (s *session) turns(ctx context.Context, t command.TurnsOf) (docs [2][]*report.Document, err error) {
	var ws [2]*workload.Workload
	for side, path := range t.Files {
		if ws[side], err = s.oneWorkload(path, t.Labels); err != nil {
			return docs, err
		}
	}
	o := outputs{quiet: t.Quiet, note: t.Note, keep: &keeping{store: t.Store, quiet: t.Quiet}}
	var sides []int
	for i := range max(t.Repeat, 1) {
		for _, side := range [2]int{i % 2, 1 - i%2} { // who is first changes
			w := ws[side]
			k := task{w: w, i: i, of: max(t.Repeat, 1), hdr: w.HDR(), trace: w.Trace()}
			o.tasks, sides = append(o.tasks, k), append(sides, side)
		}
	}
	if err := o.tryFiles("--json-file"); err != nil {
		return docs, err
	}
	for i, side := range sides {
		d, err := s.execute(ctx, o, i)
		if err != nil {
			return docs, err
		}
		docs[side] = append(docs[side], d)
		s.kept(o.keep, d, o.tasks[i].kept)
		if code := d.ExitCode(); code == exitInterrupted || code == exitFailed {
			return docs, exitCode{Code: code, Err: firstProblem(d)}
		}
		if ctx.Err() != nil {
			return docs, exitCode{Code: exitInterrupted}
		}
	}
	return docs, nil
}

// oneWorkload resolves the workload of a file that has one.
func (s *session) oneWorkload(path string, labels []string) (*workload.Workload, error) {
	files, err := s.readWorkloads(path)
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		return nil, &words{Err: fmt.Errorf("%s holds %d workloads, and here it is one", path, len(files)), Hint: "give a file for each"}
	}
	var t command.Settings
	for _, l := range labels {
		t.Doc.Add("label", "--label", l)
	}
	if len(labels) > 0 { // flags outrank the file, and these are to stand beside its own
		for _, e := range files[0].Entries {
			if e.Name == "label" {
				t.Doc.Add("label", e.Where, e.Values...)
			}
		}
	}
	ws, err := s.resolveAll(&t, files)
	if err != nil {
		return nil, err
	}
	return ws[0], nil
}

// firstProblem is what an exit code without a limit comes from.
func firstProblem(d *report.Document) error {
	if len(d.Problems) == 0 {
		return nil
	}
	return fmt.Errorf("report %s: %s", d.ID, d.Problems[0])
}
