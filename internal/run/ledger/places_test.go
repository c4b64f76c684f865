package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// events is how many events spans have.
func events(all []Span) (n uint64) {
	for _, s := range all {
		n += s.Hi - s.Lo
	}
	return n
}

// checkPlaces: the spans have as many events as the verdict, if there is room for all and if it is
// exact; of copies only with stamps, since without them it is not known of what they are.
func checkPlaces(t *rapid.T, got measure.Ledger, p *Places, stamped bool) {
	t.Helper()
	for _, k := range []struct {
		name  string
		spans []Span
		count uint64
		known bool
	}{
		{"lost", p.Lost, got.Lost, true},
		{"duplicated", p.Duplicated, got.Duplicated, stamped},
		{"reordered", p.Reordered, got.Reordered, true},
	} {
		if n := events(k.spans); n != k.count && k.known && len(k.spans) < MostPlaces && got.Inexact == 0 {
			t.Fatalf("%d %s events have a place, want %d", n, k.name, k.count)
		} else if n > k.count {
			t.Fatalf("%d %s events have a place, of %d", n, k.name, k.count)
		}
	}
}

func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		name    string
		stamped bool
		do      func(l *Ledger)
		want    Places
	}{
		{"all is well", false, func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 100, 1), ack(5, 5, 105, 2)})
			l.Arrived([]load.Arrival{piece1(100, 5, 1), piece1(105, 5, 2)})
		}, Places{}},
		{"lost", false, func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 100, 1), ack(5, 5, 105, 2), ack(10, 5, 110, 3)})
			l.Arrived([]load.Arrival{piece1(105, 5, 2)})
		}, Places{Lost: []Span{{0, 0, 5}, {0, 10, 15}}}},
		{"late", false, func(l *Ledger) {
			l.Fired([]load.Outcome{ack(10, 5, 100, 1), ack(0, 5, 105, 2), ack(5, 5, 110, 3)})
			l.Arrived([]load.Arrival{piece1(100, 5, 1), piece1(105, 5, 2), piece1(110, 5, 3)})
		}, Places{Reordered: []Span{{0, 0, 10}}}},
		{"a copy", true, func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 100, 1)})
			a, again := stamped(100, 0, 5), stamped(105, 0, 5)
			a.Sum, again.Sum = 1, 1
			l.Arrived([]load.Arrival{a, again})
		}, Places{Duplicated: []Span{{0, 0, 5}}}},
		{"a part of a batch is lost", true, func(l *Ledger) {
			l.Fired([]load.Outcome{ack(0, 5, 100, 0)})
			l.Arrived([]load.Arrival{stamped(100, 0, 3)})
		}, Places{Lost: []Span{{0, 3, 5}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := one(tt.stamped, 0)
			tt.do(l)
			if _, got := l.Places(whole(l, true), nil); !cmp.Equal(tt.want, got) {
				t.Error(cmp.Diff(tt.want, got))
			}
		})
	}
}

// TestMostPlaces: more spans than there is room for are left out.
func TestMostPlaces(t *testing.T) {
	l := one(false, 0)
	for i := range uint64(MostPlaces + 10) {
		l.Fired([]load.Outcome{ack(2*i, 1, int64(2*i), uint32(i+1))})
	}
	v, got := l.Places(whole(l, true), nil)
	assert.True(t, len(got.Lost) == MostPlaces && v.Lost == MostPlaces+10,
		"%d of %d have a place, want %d", len(got.Lost), v.Lost, MostPlaces)
}
