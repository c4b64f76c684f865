// Package reporttest is for tests with reports: reports of imaginary runs, and the suite
// that each store passes. It tests what package store promises of every store; it does not
// know how a store stores.
//
// Its invariant: report n of the suite is always the same.
package reporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/test/testkit/assert"
)

// RunStore runs the suite; open returns an empty store.
func RunStore(t *testing.T, open func(t *testing.T) store.Store) {
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, s store.Store)
	}{
		{"a stored report is read", storedAndRead},
		{"the output of a system", withOutput},
		{"a report twice", twice},
		{"another report with the same id", another},
		{"the remainder of a killed run, then the complete report", remainder},
		{"a report that was changed", changed},
		{"no such report", absent},
		{"an empty store", empty},
		{"rows", rows},
		{"filters", filters},
		{"fields", fields},
		{"prefixes", prefixes},
		{"deleted", deleted},
		{"a run", running},
		{"a run whose intervals were joined", joined},
		{"an abandoned run", abandoned},
		{"a run with an existing id", taken},
		{"several at once", several},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t)
			defer func() {
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}()
			tt.run(t, s)
		})
	}
}

// put stores reports 0 to n-1.
func put(t *testing.T, s store.Store, n int) []*report.Document {
	t.Helper()
	ds := make([]*report.Document, n)
	for i := range ds {
		ds[i] = Document(i, i%3)
		assert.OK(t, s.Put(t.Context(), ds[i]))
	}
	return ds
}

func text(t *testing.T, d *report.Document) string {
	t.Helper()
	var b bytes.Buffer
	assert.OK(t, d.WriteJSON(&b))
	return b.String()
}

// stored checks that the store returns the report as it was.
func stored(t *testing.T, s store.Store, want *report.Document) {
	t.Helper()
	got, err := s.Get(t.Context(), want.ID)
	assert.OK(t, err)
	if err := got.Check(); err != nil {
		t.Error(err)
	}
	if g, w := text(t, got), text(t, want); g != w {
		t.Errorf("got a report of %d bytes that differs from the stored one of %d bytes:\n%.2000s\nwant\n%.2000s", len(g), len(w), g, w)
	}
}

func storedAndRead(t *testing.T, s store.Store) {
	for i, n := range []int{0, 1, 5, 300} {
		want := Document(i, n)
		assert.OK(t, s.Put(t.Context(), want))
		stored(t, s, want)
	}
}

// withOutput stores reports with the largest outputs of a system and its build that a
// report can have, and deletes one.
func withOutput(t *testing.T, s store.Store) {
	r := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // numbers for tests
	noise := make([]byte, 4<<20)
	for i := range noise {
		if noise[i] = byte(' ' + r.IntN(95)); i%100 == 99 {
			noise[i] = '\n'
		}
	}
	for i, text := range []string{"a line\n", string(noise), strings.Repeat("a line of a server's log\n", 400_000)} {
		want := Document(i, 3)
		built := text[:min(len(text), 1<<20)]
		want.System = &report.System{Facts: map[string]any{}, LastLines: []string{}, Output: report.NewOutput(text, 7), BuildOutput: report.NewOutput(built, 9)}
		assert.OK(t, want.Seal())
		assert.OK(t, s.Put(t.Context(), want))
		got, err := s.Get(t.Context(), want.ID)
		assert.OK(t, err)
		if kept, err := got.System.Output.Text(); err != nil || !strings.HasSuffix(text, kept) || len(kept) < 3<<20 && kept != text {
			t.Errorf("got %d bytes of %d, %v", len(kept), len(text), err)
		}
		if kept, err := got.System.BuildOutput.Text(); err != nil || kept != built || got.System.BuildOutput.CutBytes != 9 {
			t.Errorf("got %d bytes of the %d of a build, %v", len(kept), len(built), err)
		}
		if rows, err := s.Rows(t.Context(), store.Query{}); err != nil || len(rows) != 1 {
			t.Errorf("got %d rows, %v", len(rows), err)
		}
		assert.OK(t, s.Delete(t.Context(), want.ID))
		if _, err := s.Get(t.Context(), want.ID); !errors.Is(err, store.ErrMissing) {
			t.Errorf("got %v, want it deleted", err)
		}
	}
}

func twice(t *testing.T, s store.Store) {
	d := put(t, s, 1)[0]
	if err := s.Put(t.Context(), d); err != nil {
		t.Errorf("got %v for a report that is there already, want no error", err)
	}
	if got, err := s.Rows(t.Context(), store.Query{}); err != nil || len(got) != 1 {
		t.Errorf("got %d rows and %v, want one", len(got), err)
	}
}

func another(t *testing.T, s store.Store) {
	d := put(t, s, 1)[0]
	other := *d
	other.Note = "another"
	assert.OK(t, other.Seal())
	if err := s.Put(t.Context(), &other); !errors.Is(err, store.ErrExists) {
		t.Errorf("got %v, want %v", err, store.ErrExists)
	}
	stored(t, s, d)
}

func remainder(t *testing.T, s store.Store) {
	rows := []report.Interval{Interval(0, 0), Interval(0, 1), Interval(0, 2)}
	left, whole := report.Assemble(Head(0), rows[:2]), Complete(Head(0), rows)
	for _, d := range []*report.Document{left, whole, whole} {
		assert.OK(t, s.Put(t.Context(), d))
		stored(t, s, d)
	}
	if err := s.Put(t.Context(), left); !errors.Is(err, store.ErrExists) {
		t.Errorf("got %v for a partial report in place of the complete one, want %v", err, store.ErrExists)
	}
	if got, err := s.Rows(t.Context(), store.Query{}); err != nil || len(got) != 1 {
		t.Errorf("got %d rows and %v, want one", len(got), err)
	}
}

func changed(t *testing.T, s store.Store) {
	var b bytes.Buffer
	assert.OK(t, Document(0, 2).WriteJSON(&b))
	d, err := report.Read(bytes.NewReader(bytes.Replace(b.Bytes(), []byte(`"acked": 20000`), []byte(`"acked": 20001`), 1)))
	assert.OK(t, err)
	var tampered *report.Tampered
	if err := s.Put(t.Context(), d); !errors.As(err, &tampered) {
		t.Errorf("got %v, want a *report.Tampered", err)
	}
	if got, err := s.Rows(t.Context(), store.Query{}); err != nil || len(got) != 0 {
		t.Errorf("got %d rows and %v, want none", len(got), err)
	}
}

func absent(t *testing.T, s store.Store) {
	put(t, s, 2)
	if _, err := s.Get(t.Context(), "nosuchid"); !errors.Is(err, store.ErrMissing) {
		t.Errorf("got %v, want %v", err, store.ErrMissing)
	}
}

func empty(t *testing.T, s store.Store) {
	f, err := store.ParseFilters([]string{"reqion=north"}, time.Now())
	assert.OK(t, err)
	for _, q := range []store.Query{{}, {Limit: 3}, {Since: time.Now()}, {Filters: f}} {
		if got, err := s.Rows(t.Context(), q); err != nil || len(got) != 0 {
			t.Errorf("got %d rows and %v from an empty store, want none", len(got), err)
		}
	}
	if got, err := s.Find(t.Context(), "", 10); err != nil || len(got) != 0 {
		t.Errorf("got %v and %v, want none", got, err)
	}
}

func rows(t *testing.T, s store.Store) {
	ds := put(t, s, 7)
	got, err := s.Rows(t.Context(), store.Query{})
	assert.Must(t, err == nil && len(got) == len(ds), "got %d rows and %v, want %d", len(got), err, len(ds))
	for i, row := range got {
		want := store.RowOf(ds[len(ds)-1-i])
		if row.ID != want.ID || !row.At.Equal(want.At) || !slices.Equal(row.Fields, want.Fields) || row.Running {
			t.Errorf("row %d is %s of %v with %d fields, want %s of %v with %d", i, row.ID, row.At, len(row.Fields), want.ID, want.At, len(want.Fields))
		}
	}
	for _, tt := range []struct {
		name  string
		query store.Query
		want  []int // reports
	}{
		{"the newest", store.Query{Limit: 2}, []int{6, 5}},
		{"more than there are", store.Query{Limit: 20}, []int{6, 5, 4, 3, 2, 1, 0}},
		{"since one of them", store.Query{Since: ds[4].StartedAt}, []int{6, 5, 4}},
		{"since then, some", store.Query{Since: ds[1].StartedAt, Limit: 1}, []int{6}},
		{"since tomorrow", store.Query{Since: ds[6].StartedAt.Add(time.Nanosecond)}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) { expect(t, s, tt.query, ds, tt.want) })
	}
}

// expect queries rows and compares their ids with those of reports.
func expect(t *testing.T, s store.Store, q store.Query, ds []*report.Document, want []int) {
	t.Helper()
	rows, err := s.Rows(t.Context(), q)
	assert.OK(t, err)
	var got, ids []string
	for _, r := range rows {
		got = append(got, r.ID)
	}
	for _, i := range want {
		ids = append(ids, ds[i].ID)
	}
	assert.True(t, slices.Equal(got, ids), "got %v, want %v", got, ids)
}

func filters(t *testing.T, s store.Store) {
	ds := put(t, s, 9)
	for _, tt := range []struct {
		filters []string
		limit   int
		want    []int
	}{
		{[]string{"region=north"}, 0, []int{6, 3, 0}},
		{[]string{"region=north"}, 2, []int{6, 3}},
		{[]string{"label.region!=north", "rate=10k/s"}, 0, []int{2, 1}},
		{[]string{"rate>=50k/s", "region=south"}, 0, []int{8, 5}},
		{[]string{"duration=60s", "acks=all", "region~^q"}, 0, []int{7, 4, 1}},
		{[]string{"id=" + ds[4].ID}, 0, []int{4}},
		{[]string{"region=nowhere"}, 0, nil},
	} {
		t.Run(fmt.Sprint(tt.filters), func(t *testing.T) {
			f, err := store.ParseFilters(tt.filters, time.Now())
			assert.OK(t, err)
			expect(t, s, store.Query{Filters: f, Limit: tt.limit, Fields: []string{"rate"}}, ds, tt.want)
		})
	}
	f, err := store.ParseFilters([]string{"teem=ingest"}, time.Now())
	assert.OK(t, err)
	if rows, err := s.Rows(t.Context(), store.Query{Filters: f}); err == nil {
		t.Errorf("got %d rows for a field that no report has, want an error", len(rows))
	}
}

func fields(t *testing.T, s store.Store) {
	put(t, s, 4)
	got, err := s.Rows(t.Context(), store.Query{Fields: []string{"team", "duration", "nosuch"}})
	assert.Must(t, err == nil && len(got) == 4, "got %d rows and %v, want 4", len(got), err)
	for _, row := range got {
		var names []string
		for _, f := range row.Fields {
			names = append(names, f.Name)
		}
		if want := []string{"for", "label.team"}; !slices.Equal(names, want) {
			t.Errorf("got the fields %v, want %v", names, want)
		}
	}
}

func prefixes(t *testing.T, s store.Store) {
	ds := put(t, s, 12)
	for _, prefix := range []string{"", ds[3].ID, ds[3].ID[:1], ds[3].ID[:4], "~", "nosuchid"} {
		var want []string
		for _, d := range slices.Backward(ds) {
			if len(d.ID) >= len(prefix) && d.ID[:len(prefix)] == prefix {
				want = append(want, d.ID)
			}
		}
		for _, n := range []int{1, 5, 100} {
			got, err := s.Find(t.Context(), prefix, n)
			if w := want[:min(n, len(want))]; err != nil || !slices.Equal(got, w) {
				t.Errorf("%q, at most %d: got %v and %v, want %v", prefix, n, got, err, w)
			}
		}
	}
}

func deleted(t *testing.T, s store.Store) {
	ds := put(t, s, 6)
	if err := s.Delete(t.Context(), ds[1].ID, "nosuchid"); !errors.Is(err, store.ErrMissing) {
		t.Errorf("got %v, want %v", err, store.ErrMissing)
	}
	expect(t, s, store.Query{}, ds, []int{5, 4, 3, 2, 1, 0})
	assert.OK(t, s.Delete(t.Context(), ds[1].ID, ds[4].ID))
	expect(t, s, store.Query{}, ds, []int{5, 3, 2, 0})
	if _, err := s.Get(t.Context(), ds[1].ID); !errors.Is(err, store.ErrMissing) {
		t.Errorf("got %v, want %v", err, store.ErrMissing)
	}
	if err := s.Put(t.Context(), ds[1]); err != nil {
		t.Errorf("a deleted report cannot be stored again: %v", err)
	}
	if err := s.Delete(t.Context()); err != nil {
		t.Errorf("got %v for deleting none", err)
	}
}

// begin begins report n and adds this many intervals of it.
func begin(t *testing.T, s store.Store, n, intervals int) (store.Writer, []report.Interval) {
	t.Helper()
	w, err := s.Begin(t.Context(), Head(n))
	assert.OK(t, err)
	rows := make([]report.Interval, intervals)
	for i := range rows {
		rows[i] = Interval(n, i)
		e, err := rows[i].Encode()
		assert.OK(t, err)
		w.Interval(e)
	}
	return w, rows
}

// Await gets the report of a run in progress until it has this many intervals:
// they are stored some time after they were added. It fails after a minute.
func Await(t *testing.T, s store.Store, id string, intervals int) *report.Document {
	t.Helper()
	end := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		d, err := s.Get(t.Context(), id)
		if err == nil && len(d.Intervals) == intervals {
			return d
		}
		assert.Must(t, err == nil || errors.Is(err, store.ErrMissing), "%v", err)
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("report %s: %d intervals were not stored within a minute", id, intervals)
		}
	}
}

func running(t *testing.T, s store.Store) {
	before := Document(1, 1)
	assert.OK(t, s.Put(t.Context(), before))
	w, rows := begin(t, s, 2, 4)
	d := Await(t, s, Head(2).ID, 4)
	if err := d.Check(); err != nil || !d.Partial {
		t.Errorf("got partial %v and %v for a run in progress, want a valid partial report", d.Partial, err)
	}
	list, err := s.Rows(t.Context(), store.Query{})
	if err != nil || len(list) != 2 || !list[0].Running || list[0].ID != d.ID || list[1].Running {
		t.Errorf("got %+v and %v, want a run in progress and one that has ended", list, err)
	}
	if err := s.Delete(t.Context(), d.ID); !errors.Is(err, store.ErrRunning) {
		t.Errorf("got %v for deleting the report of a run in progress, want %v", err, store.ErrRunning)
	}
	last := Interval(2, 4)
	want := Complete(Head(2), append(rows, last))
	assert.OK(t, w.Finish(t.Context(), want))
	stored(t, s, want)
	if list, err = s.Rows(t.Context(), store.Query{}); err != nil || len(list) != 2 || list[0].Running {
		t.Errorf("got %+v and %v, want two runs that have ended", list, err)
	}
}

func joined(t *testing.T, s store.Store) {
	w, rows := begin(t, s, 0, 6)
	var wide []report.Interval
	for i := 0; i < len(rows); i += 2 {
		iv := rows[i]
		iv.EndS = rows[i+1].EndS
		e, err := iv.Encode()
		assert.OK(t, err)
		w.Interval(e)
		wide = append(wide, iv)
	}
	Await(t, s, Head(0).ID, 3)
	want := Complete(Head(0), wide)
	assert.OK(t, w.Finish(t.Context(), want))
	stored(t, s, want)
}

func abandoned(t *testing.T, s store.Store) {
	w, _ := begin(t, s, 0, 2)
	assert.OK(t, w.Abandon(t.Context()))
	if list, err := s.Rows(t.Context(), store.Query{}); err != nil || len(list) != 0 {
		t.Errorf("got %d rows and %v, want none", len(list), err)
	}
}

func taken(t *testing.T, s store.Store) {
	put(t, s, 1)
	if _, err := s.Begin(t.Context(), Head(0)); !errors.Is(err, store.ErrExists) {
		t.Errorf("got %v, want %v", err, store.ErrExists)
	}
}

func several(t *testing.T, s store.Store) {
	const each = 8
	var wg sync.WaitGroup
	for k := range 4 {
		wg.Go(func() {
			for i := range each {
				n := k*each + i
				if err := keep(t.Context(), s, n); err != nil {
					t.Error(err)
				}
				if _, err := s.Rows(t.Context(), store.Query{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got, err := s.Rows(t.Context(), store.Query{}); err != nil || len(got) != 4*each {
		t.Errorf("got %d rows and %v, want %d", len(got), err, 4*each)
	}
}

// keep stores report n, every other one like a run.
func keep(ctx context.Context, s store.Store, n int) error {
	if n%2 == 0 {
		return s.Put(ctx, Document(n, 3))
	}
	w, err := s.Begin(ctx, Head(n))
	if err != nil {
		return err
	}
	return w.Finish(ctx, Document(n, 3))
}
