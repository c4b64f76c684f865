package judge

import (
	"slices"
	"testing"
	"time"

	"carronade/internal/store"
	"carronade/test/testkit/assert"
)

// With FilterStarts a filter on any field keeps the other rows of the group, as in hey-apm. Reports of which
// nothing was accepted are left out.
func TestCollateFilterStarts(t *testing.T) {
	rows := heyAPMReports("", true)
	one := Collation{}
	for _, starts := range []bool{false, true} {
		filters := assert.Value(store.ParseFilters([]string{"report_id=" + rows[0].ID}, time.Now()))(t)
		c, err := Collate(rows, CollateOptions{Var: "concurrency", Filters: filters, All: true, FilterStarts: starts, Now: time.Now()})
		assert.Must(t, err == nil && len(c.Groups) == 1, "%v %+v", err, c)
		if starts {
			assert.True(t, len(c.Groups[0].Rows) > len(one.Groups[0].Rows), "rows %+v", c.Groups[0].Rows)
		}
		one = *c
	}
	assert.Equal(t, len(CollateFilters(CollateOptions{Var: "concurrency", FilterStarts: true, Filters: store.Filters{{Name: "id"}}})), 0, "filters of the store")
}

func TestUnfitRefused(t *testing.T) {
	row := func(acked, failed float64) *store.Row {
		r := &store.Row{}
		for _, f := range []struct {
			name string
			num  float64
		}{{"acked", acked}, {"failed", failed}, {"throughput", 0}} {
			r.Fields = append(r.Fields, store.Field{Name: f.name, Value: store.Value{Kind: store.KindNumber, Num: f.num}})
		}
		return r
	}
	for _, field := range []string{"acked", "failed"} {
		assert.True(t, slices.Contains(CollateFields(CollateOptions{Var: "rate"}), field), "%s is not asked for", field)
	}
	assert.Equal(t, unfit(row(0, 7), true), "no event was accepted", "all refused")
	assert.Equal(t, unfit(row(1, 7), true), "", "one accepted")
	assert.Equal(t, unfit(row(0, 0), true), "", "nothing is acknowledged")
}
