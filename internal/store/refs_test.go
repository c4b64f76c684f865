package store_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
	"carronade/protocol"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/reporttest"
)

// filled is a store with n reports, and the reports, oldest first.
func filled(t *testing.T, n int) (store.Store, []*report.Document) {
	t.Helper()
	s := assert.Value(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "reports.db")))(t)
	t.Cleanup(func() { s.Close() })
	ds := make([]*report.Document, n)
	for i := range ds {
		ds[i] = reporttest.Document(i, 0)
		assert.OK(t, s.Put(t.Context(), ds[i]))
	}
	return s, ds
}

func TestResolve(t *testing.T) {
	s, ds := filled(t, 40)
	running := assert.Value(s.Begin(t.Context(), reporttest.Head(40)))(t)
	defer func() { _ = running.Abandon(t.Context()) }()
	shared := "" // the first letter of several reports
	letters := make(map[string]int)
	for _, d := range ds {
		if letters[d.ID[:1]]++; letters[d.ID[:1]] > 1 {
			shared = d.ID[:1]
		}
	}
	assert.Must(t, shared != "", "no two of 40 reports begin with the same letter")
	id := ds[7].ID
	misspelt := strings.Map(func(r rune) rune {
		if r == rune(id[4]) {
			return '-'
		}
		return r
	}, id)
	misspelt = strings.ReplaceAll(misspelt, "-", "")
	for _, tt := range []struct {
		name, ref, want string
		err, hint       string // parts
	}{
		{"an id", id, id, "", ""},
		{"in capitals", strings.ToUpper(id), id, "", ""},
		{"its beginning", id[:6], id, "", ""},
		{"last", "last", ds[39].ID, "", ""},
		{"last~0", "last~0", ds[39].ID, "", ""},
		{"last~2", "last~2", ds[37].ID, "", ""},
		{"the oldest", "last~39", ds[0].ID, "", ""},
		{"one more", "last~40", "", "no such report: there are 40", "report list"},
		{"a run in progress", reporttest.Head(40).ID, reporttest.Head(40).ID, "", ""},
		{"several", shared, "", "several reports match: ", "more letters"},
		{"none", "nosuchid", "", "no report has the id ", "report list"},
		{"nearly", misspelt, "", "no report has the id ", "did you mean " + id},
		{"nearly last", "lats", "", "no report has the id ", "did you mean last"},
		{"not an id", "a b", "", "not an id", "letters and digits"},
		{"a folder", "../etc", "", "not an id", "report import FILE takes one from a file"},
		{"a file", "report.json", "", "not an id", "report import FILE takes one from a file"},
		{"nothing", "", "", "not an id", "letters and digits"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := store.Resolve(t.Context(), s, tt.ref)
			assert.Equal(t, got, tt.want, "%q (%v)", tt.ref, err)
			if tt.err == "" {
				return
			}
			var e *protocol.Error
			assert.True(t, errors.As(err, &e) && strings.Contains(e.Error(), tt.err) && strings.Contains(e.Hint, tt.hint),
				"%q: got %v, want %q with the hint %q", tt.ref, err, tt.err, tt.hint)
		})
	}
}

func TestResolveInAnEmptyStore(t *testing.T) {
	s, _ := filled(t, 0)
	for _, ref := range []string{"last", "last~3", "abc"} {
		id, err := store.Resolve(t.Context(), s, ref)
		assert.True(t, errors.Is(err, store.ErrMissing), "%s: got %q and %v, want %v", ref, id, err, store.ErrMissing)
	}
}

func TestChoose(t *testing.T) {
	s, ds := filled(t, 6)
	ids := func(ns ...int) (out []string) {
		for _, n := range ns {
			out = append(out, ds[n].ID)
		}
		return out
	}
	for _, tt := range []struct {
		name  string
		words []string
		query store.Query
		want  []string
		err   string
	}{
		{"none", nil, store.Query{}, nil, ""},
		{"references", []string{"last~2", ds[0].ID, "last"}, store.Query{}, ids(3, 0, 5), ""},
		{"the same again", []string{"last", ds[5].ID, "last~1"}, store.Query{}, ids(5, 4), ""},
		{"filters", []string{"region=north"}, store.Query{}, ids(3, 0), ""},
		{"some of them", []string{"region=north"}, store.Query{Limit: 1}, ids(3), ""},
		{"a pattern", []string{"note~run [23]"}, store.Query{}, ids(3, 2), ""},
		{"no match", []string{"region=nowhere"}, store.Query{}, nil, ""},
		{"both", []string{"last", "region=north"}, store.Query{}, nil, "reports and filters cannot be mixed"},
		{"an unknown one", []string{"last", "nosuchid"}, store.Query{}, nil, "no report has the id "},
		{"a filter without a value", []string{"region==="}, store.Query{}, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := store.Choose(t.Context(), s, tt.words, tt.query)
			assert.Equal(t, strings.Join(got, " "), strings.Join(tt.want, " "), "%v", err)
			assert.True(t, tt.err == "" || err != nil && strings.Contains(err.Error(), tt.err), "got %v, want %q", err, tt.err)
		})
	}
}

func FuzzResolve(f *testing.F) {
	for _, ref := range []string{"last", "last~2", "3kab", "", "last~99999999999", "%", "\x00", "é"} {
		f.Add(ref)
	}
	s := assert.Value(sqlite.Open(f.Context(), filepath.Join(f.TempDir(), "reports.db")))(f)
	f.Cleanup(func() { s.Close() })
	f.Fuzz(func(t *testing.T, ref string) {
		id, err := store.Resolve(t.Context(), s, ref)
		assert.True(t, err != nil, "%q: got %q from an empty store", ref, id)
	})
}
