package report

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/internal/verdict/find"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// searched is the report of a search.
func searched() *Document {
	trial := func(role find.Role, rate float64, result find.Result, p99 time.Duration) find.Tried {
		return find.Tried{
			Trial: find.Trial{Role: role, Rate: rate, Measure: 30 * time.Second}, Report: "abcd2345", Achieved: rate,
			Verdict: &find.Verdict{Result: result, Why: "0.3 % took longer than 50 ms"},
			Times:   []find.Quantile{{Of: "response", P: 99, At: p99, Least: p99 / 2, Most: 2 * p99}},
		}
	}
	return &Document{
		Schema: SearchSchema, ID: "f1234567", RunID: "f1234567", Version: "1.0.0", Target: "kafka://127.0.0.1:9092/orders", Op: "produce", Mode: Searching,
		Labels: map[string]string{"find": "f1234567"}, StartedAt: time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC), EndedAt: time.Date(2026, 3, 1, 9, 37, 0, 0, time.UTC),
		Trust:    measure.Trust{OK: true, Level: measure.Trusted},
		Settings: []Setting{{Name: "acks", Value: "all", Independent: true}, {Name: "slo", Value: "p99 < 50 ms", Minor: true, Independent: true}},
		Workload: map[string]any{"acks": "all"}, Facts: map[string]any{"version": "4.1"}, System: &System{Facts: map[string]any{"revision": "abc"}},
		Search: &Search{
			Limits: []string{"p99 < 50 ms"}, Within: []SearchLimit{{Name: "p99 < 50 ms", Of: "response", P: 99, Within: 50 * time.Millisecond}}, Budget: 10 * time.Minute,
			Answer: &find.Answer{
				Ending: find.Found, Holds: 948, HoldsConfirmed: true, Fails: 997, FailsConfirmed: true, Precision: 0.05, Wanted: 0.02, Why: "1.4 % took longer than 50 ms",
				Inversions: []string{"1.1 k/s holds although 997/s fails"},
				Trials:     []find.Tried{trial(find.Search, 500, find.Pass, 5*time.Millisecond), trial(find.Confirm, 948, find.Pass, 30*time.Millisecond), trial(find.Confirm, 997, find.Fail, 90*time.Millisecond)},
				Elapsed:    7 * time.Minute,
			},
		},
	}
}

// The report of a search is written and read like any other, with its hash, and has no numbers
// of a run.
func TestSearchReadBack(t *testing.T) {
	d := searched()
	assert.OK(t, d.Seal())
	var first bytes.Buffer
	assert.OK(t, d.WriteJSON(&first))
	var fields map[string]any
	assert.OK(t, json.Unmarshal(first.Bytes(), &fields))
	for _, name := range []string{"totals", "intervals", "response", "Search"} {
		_, ok := fields[name]
		assert.True(t, !ok, "it has the field %s", name)
	}
	read, err := Read(&first)
	if err != nil || read.Check() != nil {
		t.Fatalf("%v, %v", err, read.Check())
	}
	if read.Search == nil || read.Search.Holds != 948 || len(read.Search.Trials) != 3 || read.System.Facts["revision"] != "abc" || read.ID != "f1234567" {
		t.Errorf("got %+v", read)
	}
	head := assert.Value(read.Head())(t)
	// Fields of a later program stay, and are part of the hash.
	later := strings.Replace(string(head), `"ending"`, `"later":1,"ending"`, 1)
	read, err = Join([]byte(later), nil)
	assert.True(t, err == nil && read.Check() != nil, "a change was not noticed: %v", err)
	var again bytes.Buffer
	if err := read.WriteJSON(&again); err != nil || !strings.Contains(again.String(), `"later"`) || strings.Contains(again.String(), `"intervals"`) {
		t.Errorf("%v: %s", err, again.String())
	}
	_, err = Join([]byte(`{"schema":"carronade.find/2"}`), nil)
	assert.ErrorHas(t, err, "carronade.find/2")
	_, err = Join([]byte(`{"schema":"carronade.find/1","trials":5}`), nil)
	assert.True(t, err != nil, "trials that are not a list were read")
}

// docs/report.md names every field of an answer.
func TestSearchIsDocumented(t *testing.T) {
	page := assert.Value(os.ReadFile("../../docs/report.md"))(t)
	_, section, _ := strings.Cut(string(page), "## Searches")
	section, _, _ = strings.Cut(section, "\n## ")
	var check func(typ reflect.Type)
	check = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			assert.True(t, name == "" || strings.Contains(section, "`"+name+"`"),
				"docs/report.md does not have the field %s of %s", name, typ)
			check(f.Type)
		}
	}
	check(reflect.TypeFor[Search]())
}

// Both forms of the text begin with the answer and fit 80 columns.
func TestSearchText(t *testing.T) {
	d := searched()
	d.Search.Deciding = &find.Deciding{Trials: 5, Noisy: 2}
	var brief, full bytes.Buffer
	assert.OK(t, d.Brief(&brief, layout.Style{}, Condition{Name: "report", Text: "f1234567"}))
	assert.OK(t, d.Text(&full, layout.Style{}))
	for _, text := range []string{brief.String(), full.String()} {
		assert.True(t, strings.HasPrefix(text, "DONE  ceiling 948 to 997/s (p99 < 50 ms)\nlimited by:"), "it begins with %.60s", text)
		assert.Has(t, text, "inversion", "knee", "precision", "trust         of 5 trials that the answer rests on, 2 were noisy", "produce kafka://127.0.0.1:9092/orders, acks all", "holds: 0.3 %")
		for line := range strings.SplitSeq(text, "\n") {
			assert.True(t, layout.Width(line) <= layout.Columns, "%d columns: %s", layout.Width(line), line)
		}
	}
	if got := Cite(d); !strings.Contains(got, "kafka://127.0.0.1:9092/orders --op produce --acks all --slo 'p99<50ms'") || strings.Contains(got, "over 0") {
		t.Errorf("cited as %s", got)
	}
}

// Verdicts are those of a search, also where no ceiling was found.
func TestSearchVerdicts(t *testing.T) {
	for _, tt := range []struct {
		ending  find.Ending
		atLeast float64
		want    string
	}{
		{find.Found, 0, "confirmed: the limits hold at 948/s and fail at 997/s"},
		{find.Found, 900, "holds: at-least: 900/s was asked for, and holds"},
		{find.Found, 999, "BROKEN: at-least: 999/s was asked for, and does not hold"},
		{find.Stopped, 960, "cannot tell: at-least: 960/s was asked for, and is not confirmed"},
		{find.AtLeast, 0, "at least: 1.4 %"},
		{find.Died, 0, "died: 1.4 %"},
		{find.Stopped, 0, "not confirmed: 1.4 %"},
	} {
		d := searched()
		d.Search.Ending, d.Search.AtLeast = tt.ending, tt.atLeast
		got := ""
		for _, v := range d.Verdicts() {
			got += v.Label + ": " + strings.Join(v.Sentences(), "; ") + "\n"
		}
		assert.True(t, strings.Contains(got, tt.want), "%s: got\n%s", tt.ending, got)
	}
}

func TestSearchExitCode(t *testing.T) {
	for _, tt := range []struct {
		a       find.Answer
		atLeast float64
		want    int
	}{
		{find.Answer{Ending: find.Found, Holds: 900, HoldsConfirmed: true, Fails: 950, FailsConfirmed: true}, 0, 0},
		{find.Answer{Ending: find.Found, Holds: 900, HoldsConfirmed: true, Fails: 950, FailsConfirmed: true}, 900, 0},
		{find.Answer{Ending: find.Found, Holds: 900, HoldsConfirmed: true, Fails: 950, FailsConfirmed: true}, 1000, 1},
		{find.Answer{Ending: find.AtLeast, Holds: 900, HoldsConfirmed: true}, 0, 3},
		{find.Answer{Ending: find.AtLeast, Holds: 900, HoldsConfirmed: true}, 800, 0},
		{find.Answer{Ending: find.AtLeast, Holds: 900, HoldsConfirmed: true}, 1000, 3},
		{find.Answer{Ending: find.Stopped, Holds: 900}, 800, 4},
		{find.Answer{Ending: find.Stopped, Holds: 900, HoldsConfirmed: true}, 800, 0},
		{find.Answer{Ending: find.Stopped, Fails: 700, FailsConfirmed: true}, 800, 1},
		{find.Answer{Ending: find.None}, 0, 1},
		{find.Answer{Ending: find.Irregular}, 0, 4},
		{find.Answer{Ending: find.Died, Holds: 900}, 0, 2},
	} {
		assert.Equal(t, (&Search{Answer: &tt.a, AtLeast: tt.atLeast}).ExitCode(), tt.want, "%s, at least %v", tt.a.Ending, tt.atLeast)
	}
}
