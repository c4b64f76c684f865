package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"carronade/internal/judge"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/verdict/find"
	"carronade/units"
)

// This file is find --vary: each repetition of a cell is a search.

// searchOf is the search of a task, nil if it is a run. Its ID says the cell, the repetition and,
// of several searches in place of one that the generator limited, which.
func (x *variation) searchOf(k *task, attempt int) *searching {
	of, ok := x.searches[k.w]
	if !ok {
		return nil
	}
	f := *of
	f.id = fmt.Sprintf("%s-%d-%d", x.series, x.cellOf(k)+1, k.i+1)
	if attempt > 1 {
		f.id += fmt.Sprintf("-%d", attempt)
	}
	f.attached = k.attached
	return &f
}

// time says how long the searches take, "" for runs.
func (x *variation) time(tasks []task) string {
	if x.searches == nil {
		return ""
	}
	each := tasks[0].search.Budget + tasks[0].search.Soak
	return fmt.Sprintf(": %s of up to %s, together up to %s", units.Plural(len(tasks), "search"), units.FormatDuration(each), units.FormatDuration(time.Duration(len(tasks))*each))
}

// searchTurn runs the search of a task.
func (s *session) searchTurn(ctx context.Context, x *variation, o *outputs, i int, again string) (code int, err error) {
	k := &o.tasks[i]
	if !o.quiet {
		s.note("%s", o.which(i))
	}
	one := *o // each trial is a task of its own
	one.beside, one.tasks = false, nil
	a, err := s.answer(ctx, k.search, &one)
	switch {
	case k.search.Interrupted || errors.Is(err, context.Canceled):
		return 0, interrupted("search", i, o, again)
	case err != nil:
		return 0, err
	}
	if !o.quiet {
		s.note("%s", a.Headline(strings.Join(k.search.limitTexts(), ", ")))
	}
	x.found = append(x.found, x.searched(k, a))
	return a.ExitCode(0), nil
}

// searched is the result of the search of a task.
func (x *variation) searched(k *task, a *find.Answer) judge.VariedSearch {
	v := judge.VariedSearch{ID: k.search.id, Holds: a.Holds, Fails: a.Fails, Cell: x.cellOf(k), Round: k.i, Died: a.Ending == find.Died}
	if a.Ending != find.Found {
		v.Why = string(a.Ending) + ": " + a.Why
		return v
	}
	var longest time.Duration
	for j := range a.Trials {
		t := &a.Trials[j]
		atLowerEnd := t.Role == find.Confirm && t.Rate == a.Holds || t.Role == find.Read
		if atLowerEnd && t.Measure > longest {
			v.Report, longest = t.Report, t.Measure
		}
	}
	return v
}

// resumeSearches replays the searches of a series from the reports of their trials, and leaves out
// those that ended. What the generator limited is searched again.
func (s *session) resumeSearches(ctx context.Context, x *variation, o *outputs, rows []store.Row) error {
	of := map[string][]store.Row{}
	for i := range rows {
		id := rows[i].Text("label." + report.SearchLabel)
		of[id] = append(of[id], rows[i])
	}
	var rest []task
	for _, k := range o.tasks {
		for attempt := 1; ; attempt++ {
			k.search = x.searchOf(&k, attempt)
			if err := s.replayTrials(ctx, k.search, o, of[k.search.id]); err != nil {
				return err
			}
			_, a := k.search.Next(k.search.history)
			if a == nil {
				rest = append(rest, k)
				break
			}
			x.found = append(x.found, x.searched(&k, a))
			if a.Ending != find.AtLeast && a.Ending != find.Busy {
				x.ended(a.ExitCode(0))
				break
			}
		}
	}
	o.tasks = rest
	return nil
}
