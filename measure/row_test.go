package measure

import (
	"math"
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
