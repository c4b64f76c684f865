package measure

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// fill sets every field of an interval to something that no other field has.
func fill(t *testing.T, v reflect.Value, next func() int64) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), next)
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(-next())
	case reflect.Uint64:
		v.SetUint(math.MaxUint64 - uint64(next()))
	case reflect.String:
		v.SetString(time.Duration(next()).String())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range v.Len() {
			fill(t, v.Index(i), next)
		}
	case reflect.Pointer:
		h := NewHistogram()
		for range 20 {
			h.Record(time.Duration(next()) * 37 * time.Microsecond)
		}
		h.Record(0)
		h.Record(2 * Highest)
		v.Set(reflect.ValueOf(h.Compact()))
	default:
		t.Fatalf("an interval has a %v", v.Kind())
	}
}

// A row has everything that its interval has.
func TestRowIsItsInterval(t *testing.T) {
	full := Interval{}
	n := int64(0)
	fill(t, reflect.ValueOf(&full).Elem(), func() int64 { n++; return n })
	empty := Interval{Phase: Measurement, Start: time.Second, End: 2 * time.Second, Set: Set{Response: NewHistogram(), Service: &Histogram{}}}
	for _, iv := range []Interval{full, empty, {}} {
		r := newRow(&iv)
		got := r.interval()
		assert.True(t, reflect.DeepEqual(got, iv), "got  %+v\nwant %+v", got, iv)
		assert.True(t, r.cells == iv.cellBytes() && cap(r.data) == len(r.data),
			"%d bytes of cells, want %d; %d bytes in %d", r.cells, iv.cellBytes(), len(r.data), cap(r.data))
	}
}

func TestClasses(t *testing.T) {
	var a, b Classes
	a.Add("timeout", 3, 1)
	a.Add("refused", 2, 2)
	a.Add("timeout", 1, 1)
	b.Add("authorization", 5, 1)
	b.Merge(a)
	want := Classes{{"authorization", 5, 1}, {"refused", 2, 2}, {"timeout", 4, 2}}
	assert.Same(t, b, want)
	assert.Same(t, a, Classes{{"refused", 2, 2}, {"timeout", 4, 2}}, "argument of Merge")
}

func TestStatuses(t *testing.T) {
	var a, b Statuses
	a.Add(503, 1, 10)
	a.Add(202, 2, 20)
	a.Add(503, 1, 5)
	b.Add(400, 1, 1)
	b.Add(202, 1, 10)
	before := append(Statuses(nil), b...)
	a.Merge(b)
	want := Statuses{{202, 3, 30}, {400, 1, 1}, {503, 2, 15}}
	assert.Same(t, a, want)
	assert.Same(t, b, before, "argument of Merge")
}

// A histogram comes back exactly, and adding decoded ones equals adding the originals.
func TestText(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		a, b := NewHistogram(), NewHistogram()
		for range rng.IntN(300) {
			a.RecordN(time.Duration(rng.Int64N(int64(90*time.Minute))>>rng.IntN(43)), 1+rng.Uint64N(5))
			b.Record(time.Duration(rng.Int64N(int64(time.Second))))
		}
		x, y := recoded(t, a), recoded(t, b.Compact())
		assert.Must(t, x.Equal(a) && y.Equal(b) && x.Mean() == a.Mean() && x.Min() == a.Min() && x.Max() == a.Max(),
			"decoded %v, want %v", x, a)
		a.Merge(b)
		if x.Merge(y); !x.Equal(a) || x.Sum() != a.Sum() || x.Below() != a.Below() || x.Above() != a.Above() {
			t.Fatalf("the sum of decoded ones is %v, want %v", x, a)
		}
	}
}

func recoded(t *testing.T, h *Histogram) *Histogram {
	t.Helper()
	text := assert.Value(json.Marshal(Set{Response: h}))(t)
	var s Set
	assert.OK(t, json.Unmarshal(text, &s))
	assert.Must(t, s.Service == nil, "a missing histogram exists after decoding")
	return s.Response
}

// FuzzText: no text crashes the decoder, and what it accepts can be used and encoded again.
func FuzzText(f *testing.F) {
	for _, values := range [][]time.Duration{nil, {0}, {time.Hour * 2}, {time.Microsecond, time.Millisecond, time.Hour}} {
		h := NewHistogram()
		for _, d := range values {
			h.Record(d)
		}
		text, _ := h.MarshalText()
		f.Add(string(text))
	}
	f.Add("AQAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, text string) {
		var h Histogram
		if h.UnmarshalText([]byte(text)) != nil {
			return
		}
		h.Percentile(99)
		h.Record(time.Second)
		h.Merge(&h)
		h.Reset()
		assert.Must(t, h.Count() == 0, "not empty after Reset")
	})
}
