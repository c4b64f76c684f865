package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"carronade/internal/advice"
	"carronade/internal/cli/cmdutil"
	"carronade/internal/cli/reports"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/judge"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/units"
)

// interleave runs two workload files alternately, A B B A and so on, so that drift affects
// both. It returns the ids of their reports, which are stored. A run that breaks a limit does
// not stop it, since the comparison shows that; one that is not trusted is replaced.
func (s *session) interleave(ctx context.Context, j reports.Interleaving) (baseIDs, candidateIDs []string, err error) {
	most := j.Sizes[len(j.Sizes)-1]
	o, end, err := s.prepareInterleaving(ctx, j, most)
	if err != nil {
		return nil, nil, err
	}
	defer end()
	planned := alternating(o.tasks, most)
	base := planned[0].w
	o.tasks = nil
	until := deadline{budget: j.Budget, started: time.Now()}
	i, taken := 0, 0
	for _, size := range j.Sizes {
		o.tasks = append(o.tasks, planned[taken:2*size]...)
		pairs := len(o.tasks) // replacements follow
		taken = 2 * size
		for ; i < len(o.tasks); i++ {
			if whole := i >= pairs || (pairs-i)%2 == 0; whole && until.before(i < pairs) {
				s.note("the budget of %s is spent after %d and %d runs", units.FormatDuration(j.Budget), len(baseIDs), len(candidateIDs))
				return baseIDs, candidateIDs, nil
			}
			began := time.Now()
			d, err := s.turn(ctx, &o, i, "nothing was compared")
			if err != nil {
				return nil, nil, err
			}
			until.took(time.Since(began))
			if !j.Untrusted {
				s.replace(&o, i, d)
			}
			if o.tasks[i].w == base {
				baseIDs = append(baseIDs, d.ID)
			} else {
				candidateIDs = append(candidateIDs, d.ID)
			}
		}
		if j.Enough == nil || size == most {
			continue
		}
		if enough, err := j.Enough(ctx, o.keep.store, baseIDs, candidateIDs); enough || err != nil {
			return baseIDs, candidateIDs, err
		}
	}
	return baseIDs, candidateIDs, nil
}

// turn runs one of several tasks whose reports are judged together at the end. If it is
// interrupted, the error says what follows.
func (s *session) turn(ctx context.Context, o *outputs, i int, follows string) (*report.Document, error) {
	d, err := s.execute(ctx, *o, i)
	if err != nil {
		return nil, err
	}
	s.reportStored(o.keep, d, o.tasks[i].kept, true)
	if d.ExitCode() == host.ExitInterrupted {
		return nil, interrupted("run", i, o, follows)
	}
	if err := o.tasks[i].kept; err != nil {
		return nil, &protocol.Error{Err: fmt.Errorf("report %s is not in the store to be judged: %w", d.ID, err), Hint: advice.Hint(err)}
	}
	return d, nil
}

// interrupted is the error of an interruption in the i-th task. follows is what that means for the
// others.
func interrupted(what string, i int, o *outputs, follows string) error {
	return exitCode{Code: host.ExitInterrupted, Err: cmdutil.Noticef("interrupted in %s %d of %d: %s", what, i+1, len(o.tasks), follows)}
}

// A deadline says whether more runs fit into a budget.
type deadline struct {
	budget  time.Duration // 0: none
	started time.Time
	longest time.Duration // of a run so far, 0 before the first
}

func (d *deadline) took(t time.Duration) { d.longest = max(d.longest, t) }

// before is whether the budget is over before another run, or pair of runs, would end. The
// first pair always runs.
func (d *deadline) before(pair bool) bool {
	next := d.longest
	if pair {
		next *= 2
	}
	return d.budget > 0 && d.longest > 0 && time.Since(d.started)+next > d.budget
}

// prepareInterleaving resolves both files and sets up their runs, all of one and then all of
// the other.
func (s *session) prepareInterleaving(ctx context.Context, j reports.Interleaving, repeat int) (o outputs, end func(), err error) {
	var given cmdutil.Settings
	if j.Place != "" {
		given.Doc.Add("store", "--store", j.Place)
	}
	given.Doc.Add("repeat", "--repeat", strconv.Itoa(repeat))
	var (
		ws []*workload.Workload
		t  cmdutil.Settings
	)
	for _, path := range []string{j.Base, j.Candidate} {
		t = cmdutil.Settings{Doc: given.Doc}
		found, err := cmdutil.Await(ctx, func() ([]*workload.Workload, error) {
			file, err := s.readOneWorkload(path, "a comparison takes one from each file")
			if err != nil {
				return nil, err
			}
			return s.resolveAll(&t, []*workload.Document{file})
		})
		if err != nil {
			return o, nil, err
		}
		ws = append(ws, found...)
	}
	if base, candidate := ws[0].Op, ws[1].Op; base != candidate { // their reports could not be compared
		return o, nil, &protocol.Error{
			Err:  fmt.Errorf("the sides are of %w: %s is of %s and %s of %s", judge.ErrOperations, j.Base, base, j.Candidate, candidate),
			Hint: "give both files the same op",
		}
	}
	// The configuration applies to both sides. Only the comparison is printed and written.
	t.Doc.Entries = slices.DeleteFunc(t.Doc.Entries, func(e workload.Entry) bool { return e.Name == "json" || e.Name == "json-file" })
	if o, end, err = s.prepare(ctx, &t, dropin.Observer{}, ws...); err != nil {
		return o, nil, err
	}
	if o.keep.store == nil {
		end()
		return o, nil, &protocol.Error{
			Err:  errors.New("the reports to compare would not be kept"),
			Hint: "remove no-store, or name a writable store with --store",
		}
	}
	return o, end, nil
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
