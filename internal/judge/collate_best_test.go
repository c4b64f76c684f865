package judge

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/test/testkit/assert"
)

// TestCollateAhead: with too few repetitions for a test, a row is marked as ahead
// if it is more than twice as good as every other one and no doubt about its values
// explains that.
func TestCollateAhead(t *testing.T) {
	x := func(v string, more ...fields) fields {
		f := fields{"flag.x": v}
		for _, m := range more {
			maps.Copy(f, m)
		}
		return f
	}
	sides := func(n int, gap, p99 float64, first, second fields) []store.Row {
		return append(runs(1, "a", n, 50e3, 0.012, 0.01, x("1", first)), runs(2, "b", n, 50e3*gap, p99, 0.01, x("2", second))...)
	}
	even := func(gap float64) []store.Row { return sides(1, gap, 0.012, nil, nil) }
	closely := append(even(2.5), runs(3, "c", 1, 50e3*2.4, 0.012, 0.01, x("3"))...)
	overlapping := sides(3, 2.5, 0.012, nil, nil)
	overlapping[3] = runs(2, "b", 1, 40e3, 0.012, 0.01, x("2"))[0]
	unjudged := even(2.5)
	untrust(&unjudged[0])
	follower := append(even(2.5), runs(3, "c", 1, 10e3, 0.012, 0.01, x("3"))...)
	for _, tt := range []struct {
		name string
		rows []store.Row
		want []string
	}{
		{"two and a half times, once", even(2.5), []string{"2 throughput"}},
		{"less", even(0.4), []string{"1 throughput"}},
		{"nearly twice", even(1.9), nil},
		{"less than half the time", sides(1, 1, 0.005, nil, nil), []string{"2 response_p99"}},
		{"of three, two are close", closely, nil},
		{"of three, two are far behind", follower, []string{"2 throughput"}},
		{"four times", sides(4, 2.5, 0.012, nil, nil), []string{"2 throughput"}},
		{"three times, once behind", overlapping, nil},
		{"often enough for a test", sides(10, 2.5, 0.012, nil, nil), nil},
		{"one row is not trusted", unjudged, nil},
		{"a lower bound", append(even(1)[:1], bounded(runs(2, "b", 1, 50e3, 0.005, 0.01, x("2")))...), nil},
		{"the generator may have decided it", sides(1, 1, 0.005, fields{"response_lower_p99": 0.005, "trust_level": "noisy"}, nil), nil},
	} {
		c := collated(t, tt.rows, "x")
		var got []string
		for _, l := range c.Groups[0].Rows {
			for name, cell := range l.Cells {
				if cell.Ahead {
					got = append(got, l.Text+" "+name)
				}
			}
		}
		if slices.Sort(got); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		assert.True(t, strings.Contains(strings.Join(c.Notes, "\n"), "^ ahead, unproven: ") == (tt.want != nil),
			"%s: the notes are %q", tt.name, c.Notes)
	}
}

// A rate that was asked for does not count as a lead; the times at that rate may be one.
func TestCollateAheadOfRates(t *testing.T) {
	rows := append(runs(1, "a", 1, 50e3, 0.012, 0.01, fields{"rate": "50k/s"}), runs(2, "b", 1, 125e3, 0.005, 0.01, fields{"rate": "125k/s"})...)
	l := collated(t, rows, "rate").Groups[0].Rows[0]
	assert.True(t, l.Text == "125k/s" && !l.Cells["throughput"].Ahead && l.Cells["response_p99"].Ahead,
		"%s: throughput %+v, p99 %+v", l.Text, l.Cells["throughput"], l.Cells["response_p99"])
}

// Computed rates are shown rounded, but not if they would then look equal.
func TestCollateComputedRates(t *testing.T) {
	rate := func(text string) store.Value {
		v := store.TypedValue("rate", text)
		v.Independent = true
		return v
	}
	for _, tt := range []struct{ a, b, wantA, wantB string }{
		{"150.000000037/s", "1200.0000003/s", "150/s", "1200/s"},
		{"150.000000037/s", "150.4/s", "150/s", "150.4/s"},
		{"150.000000037/s", "150/s", "150.000000037/s", "150/s"},
		{"150.000000037/s", "150.000000041/s", "150.000000037/s", "150.000000041/s"},
	} {
		rows := append(runs(1, "a", 1, 50e3, 0.012, 0.01, fields{"rate": rate(tt.a)}), runs(2, "b", 1, 75e3, 0.006, 0.01, fields{"rate": rate(tt.b)})...)
		var got []string
		for _, l := range collated(t, rows, "rate").Groups[0].Rows {
			got = append(got, l.Text)
		}
		want := []string{tt.wantA, tt.wantB}
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s and %s: got %q, want %q", tt.a, tt.b, got, want)
		}
	}
}

// Every form of a collation marks the row that is ahead.
func TestCollateAheadForms(t *testing.T) {
	c := collated(t, append(runs(1, "a", 1, 50e3, 0.012, 0, fields{"flag.x": "1"}), runs(2, "b", 1, 125e3, 0.012, 0, fields{"flag.x": "2"})...), "x")
	write := func(form func(*bytes.Buffer) error) string {
		t.Helper()
		var b bytes.Buffer
		assert.OK(t, form(&b))
		return b.String()
	}
	if text := write(func(b *bytes.Buffer) error { return c.Text(b, layout.Style{}, 0) }); !strings.Contains(text, " 125 k/s^ ") || !strings.Contains(text, "  ^ ahead, unproven: ") {
		t.Errorf("as text:\n%s", text)
	}
	if text := write(func(b *bytes.Buffer) error { return c.Text(b, layout.Style{Color: true}, 0) }); !strings.Contains(text, layout.Yellow) || strings.Contains(text, layout.Green) {
		t.Errorf("in color:\n%q", text)
	}
	if text := write(func(b *bytes.Buffer) error { return c.Markdown(b) }); !strings.Contains(text, "**125 k/s^**") || !strings.Contains(text, "ahead, unproven") {
		t.Errorf("as Markdown:\n%s", text)
	}
	all, err := csv.NewReader(strings.NewReader(write(func(b *bytes.Buffer) error { return c.CSV(b) }))).ReadAll()
	assert.OK(t, err)
	i := slices.Index(all[0], "ahead")
	assert.True(t, i == len(all[0])-1 && all[1][i] == "" && all[2][i] == "throughput", "as CSV: %q", all)
	text := assert.Value(json.Marshal(c))(t)
	var got struct {
		Groups []struct {
			Rows []struct {
				Measured map[string]struct{ Best, Ahead *bool }
			}
		}
	}
	assert.OK(t, json.Unmarshal(text, &got))
	m := got.Groups[0].Rows[1].Measured["throughput"]
	assert.True(t, m.Ahead != nil && *m.Ahead && m.Best != nil && !*m.Best, "as JSON: %s", text)
}

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

// The JSON of a collation has the mean service time, which the shell's table shows; the table of collate has percentiles.
func TestCollateMeanServiceTime(t *testing.T) {
	rows := append(runs(1, "a", 2, 50e3, 0.012, 0.02, fields{"flag.x": "1", "service_mean": 0.08554}), runs(2, "b", 2, 50e3, 0.012, 0.02, fields{"flag.x": "2", "service_mean": 0.1})...)
	c := collated(t, rows, "x")
	assert.Equal(t, c.Groups[0].Rows[0].Cells["service_mean"].Median, 0.08554, "mean service time")
	var b bytes.Buffer
	assert.OK(t, c.Text(&b, layout.Style{}, 0))
	assert.True(t, !bytes.Contains(b.Bytes(), []byte("85.5")), "the table has it:\n%s", b.String())
}
