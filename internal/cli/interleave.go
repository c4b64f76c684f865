package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"carronade/internal/command"
	"carronade/internal/compat"
	"carronade/internal/workload"
)

// interleave runs two workload files alternately, A B B A and so on, so that drift affects
// both. It returns the ids of their reports, stored at the place. A run that breaks a limit or
// is not trustworthy does not stop it, since the comparison shows that.
func (s *session) interleave(ctx context.Context, place, base, candidate string, repeat int) (baseIDs, candidateIDs []string, err error) {
	var given command.Settings
	if place != "" {
		given.Doc.Add("store", "--store", place)
	}
	given.Doc.Add("repeat", "--repeat", strconv.Itoa(repeat))
	var (
		ws []*workload.Workload
		t  command.Settings
	)
	for _, path := range []string{base, candidate} {
		t = command.Settings{Doc: given.Doc}
		found, err := s.resolve(&t, nil, path)
		if err != nil {
			return nil, nil, err
		}
		if len(found) != 1 {
			return nil, nil, &words{
				Err:  fmt.Errorf("%s has %d workloads, but a comparison takes one from each file", path, len(found)),
				Hint: "put each into a separate file",
			}
		}
		ws = append(ws, found[0])
	}
	// The configuration applies to both sides. Only the comparison is printed and written.
	t.Doc.Entries = slices.DeleteFunc(t.Doc.Entries, func(e workload.Entry) bool { return e.Name == "json" || e.Name == "json-file" })
	o, end, err := s.prepare(ctx, &t, compat.Observer{}, ws...)
	if err != nil {
		return nil, nil, err
	}
	defer end()
	if o.keep.store == nil {
		return nil, nil, &words{
			Err:  errors.New("the reports to compare would not be kept"),
			Hint: "remove no-store, or name a writable store with --store",
		}
	}
	o.tasks = alternating(o.tasks, repeat)
	ids := map[*workload.Workload]*[]string{ws[0]: &baseIDs, ws[1]: &candidateIDs}
	for i := range o.tasks {
		d, err := s.execute(ctx, o, i)
		if err != nil {
			return nil, nil, err
		}
		s.reportStored(o.keep, d, o.tasks[i].kept, true)
		if d.ExitCode() == command.Interrupted {
			return nil, nil, exitCode{Code: command.Interrupted, Err: &words{
				Err: fmt.Errorf("interrupted in run %d of %d: nothing was compared", i+1, len(o.tasks)), Quiet: true,
			}}
		}
		if err := o.tasks[i].kept; err != nil {
			return nil, nil, &words{Err: fmt.Errorf("report %s is not in the store to compare: %w", d.ID, err), Hint: hintOf(err)}
		}
		of := ids[o.tasks[i].w]
		*of = append(*of, d.ID)
	}
	return baseIDs, candidateIDs, nil
}

// alternating reorders the repetitions of two workloads, all of one and then all of the other,
// to A B B A A B and so on.
func alternating(tasks []task, repeat int) []task {
	out := make([]task, 0, len(tasks))
	for i := range repeat {
		a, b := tasks[i], tasks[repeat+i]
		if i%2 == 1 {
			a, b = b, a
		}
		out = append(out, a, b)
	}
	return out
}
