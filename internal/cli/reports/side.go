package reports

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"carronade/internal/store"
	"carronade/protocol"
)

// beginning matches the start of a filter. No id or branch matches, except last~2.
var beginning = regexp.MustCompile(`^[A-Za-z0-9_.()-]+(=|!=|<|>|~)`)

func isFilter(word string) bool { return !store.IsReference(word) && beginning.MatchString(word) }

// words splits one side of a comparison at commas, into filters (whose values may contain
// commas) or reports.
func words(side string) []string {
	var out []string
	for part := range strings.SplitSeq(side, ",") {
		if n := len(out); n > 0 && isFilter(out[n-1]) && !isFilter(part) {
			out[n-1] += "," + part
			continue
		}
		out = append(out, part)
	}
	return slices.DeleteFunc(out, func(s string) bool { return strings.TrimSpace(s) == "" })
}

// rows returns the reports of one side: ids, filters, a branch, or the beginning of a
// revision. The filters in more apply to both sides.
func rows(ctx context.Context, s store.Store, side string, more []string, fields []string) ([]store.Row, error) {
	parts := words(side)
	if len(parts) == 0 {
		return nil, &protocol.Error{Err: errors.New("one side names no reports"), Hint: sideHint}
	}
	filters := 0
	for _, p := range parts {
		if isFilter(p) {
			filters++
		}
	}
	var found []store.Row
	switch filters {
	case len(parts):
		rows, err := matching(ctx, s, append(slices.Clone(parts), more...), fields)
		if err != nil {
			return nil, err
		}
		found = rows
	case 0:
		for _, p := range parts {
			rows, err := named(ctx, s, p, more, fields)
			if err != nil {
				return nil, err
			}
			for _, r := range rows {
				if !slices.ContainsFunc(found, func(o store.Row) bool { return o.ID == r.ID }) {
					found = append(found, r)
				}
			}
		}
	default:
		return nil, &protocol.Error{Err: fmt.Errorf("%s: reports and filters cannot be mixed", side), Hint: sideHint}
	}
	if len(found) == 0 {
		return nil, noMatch(append(parts, more...))
	}
	return found, nil
}

const sideHint = "a side is reports (last,last~1), filters (branch=main,rate=50k/s) or a branch (main)"

func matching(ctx context.Context, s store.Store, filters, fields []string) ([]store.Row, error) {
	f, err := store.ParseFilters(filters, time.Now())
	if err != nil {
		return nil, err
	}
	return s.Rows(ctx, store.Query{Filters: f, Fields: f.Fields(slices.Clone(fields))})
}

// named returns the reports of a word without a comparison operator: last and the like, a
// branch, a report, or the beginning of a revision.
func named(ctx context.Context, s store.Store, word string, more, fields []string) ([]store.Row, error) {
	with := func(filter string) ([]store.Row, error) {
		return matching(ctx, s, append([]string{filter}, more...), fields)
	}
	if !strings.HasPrefix(word, "last") {
		found, err := s.Rows(ctx, store.Query{Filters: equal("branch", word), Limit: 1, Fields: []string{}})
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			return with("branch=" + word)
		}
	}
	id, err := store.Resolve(ctx, s, word)
	if err == nil {
		return with("id=" + id)
	}
	const leastRevision = 4
	for _, r := range []struct {
		filter string
		is     bool
	}{
		{"revision=" + word, true},
		{"revision~^" + regexp.QuoteMeta(word), len(word) >= leastRevision && store.IsReference(word)},
	} {
		if !r.is {
			continue
		}
		found, failed := s.Rows(ctx, store.Query{Filters: must(r.filter), Limit: 1, Fields: []string{}})
		if failed == nil && len(found) > 0 {
			return with(r.filter)
		}
	}
	if errors.Is(err, store.ErrMissing) || !store.IsReference(word) {
		w := &protocol.Error{Err: fmt.Errorf("%q is not a branch, a report or a revision of any report", word), Hint: sideHint}
		if ext := filepath.Ext(word); ext == ".yaml" || ext == ".yml" || ext == ".json" {
			w.Hint = "carronade compare --run runs workload files, and compares their reports"
		}
		return nil, w
	}
	return nil, err
}

// equal is a filter for exactly this value.
func equal(name, value string) store.Filters { return must(name + "=" + value) }

// must parses a filter on a text field, which cannot fail.
func must(word string) store.Filters {
	f, err := store.ParseFilters([]string{word}, time.Time{})
	if err != nil {
		return store.Filters{{Name: "id", Op: store.OpEqual, Text: "(none)"}}
	}
	return f
}
