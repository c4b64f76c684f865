package judge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/test/testkit/assert"
)

// experiment returns the rows of a series without a schedule whose cells have the numbers of of, with noise.
func experiment(d *stats.Design, rounds int, of func(cell []int) fields) []store.Row {
	rnd := rand.New(rand.NewPCG(7, 7))
	var out []store.Row
	for c, cell := range d.Cells {
		for r := range rounds {
			f := of(cell)
			for _, name := range slices.Sorted(maps.Keys(f)) {
				if x, ok := f[name].(float64); ok {
					f[name] = x * math.Exp(0.01*rnd.NormFloat64())
				}
			}
			out = append(out, row(fmt.Sprintf("c%dr%d", c+1, r+1), start.Add(time.Duration(r)*time.Minute), fields{
				"rate": nil, "response_p50": nil, "response_p99": nil, "response_p999": nil,
				"repetition": float64(r + 1), "repetitions": float64(rounds),
				"label.vary": "abc", "label.vary-cell": strconv.Itoa(c + 1),
			}, f))
		}
	}
	return out
}

func twoByTwo(t *testing.T) *stats.Design {
	t.Helper()
	d := assert.Value(stats.NewDesign([]stats.Factor{{Name: "acks", Values: []string{"1", "all"}}, {Name: "compression", Values: []string{"none", "zstd"}}}))(t)
	return d
}

// slower is a system that is 31 % slower with acks=all.
func slower(cell []int) fields {
	v := 50e3 * math.Pow(0.69, float64(cell[0]))
	return fields{"throughput": v, "service_p99": 600 / v, "generator_cpu_share": 0.2, "system_cores": 1.5}
}

// The answer ranks what settings change, names the best cell, and says what it found nothing
// of; throughput decides without a schedule.
func TestVary(t *testing.T) {
	d := twoByTwo(t)
	v := assert.Value(Vary(experiment(d, 3, slower), VaryOptions{Series: "abc", Design: d, Rounds: 3}))(t)
	var text bytes.Buffer
	assert.OK(t, v.Text(&text, layout.Style{}))
	assert.Has(t, text.String(),
		"throughput (decides), more is better; noise ±",
		"  acks 1 → all             -31% ± ",
		"  compression none → zstd  no effect found, within ±",
		"service p99, less is better",
		"system CPU, less is better",
		"DONE  throughput, acks 1 → all: -31% ±", "best: acks=1 compression=", " may be as")
	for line := range strings.Lines(text.String()) {
		assert.True(t, layout.Width(strings.TrimRight(line, "\n")) <= layout.Columns, "wider than %d columns: %s", layout.Columns, line)
	}
	golden(t, "vary.txt", v.Text)
	var fields []string
	for _, n := range v.Numbers {
		fields = append(fields, n.Field)
	}
	assert.Equal(t, strings.Join(fields, " "), "throughput service_p99 generator_cpu_share system_cores", "numbers")
	text.Reset()
	if err := v.Text(&text, layout.Style{ASCII: true}); err != nil || strings.ContainsFunc(text.String(), func(r rune) bool { return r > 127 }) {
		t.Errorf("%v, or not only ASCII:\n%s", err, text.String())
	}
	data, err := json.Marshal(v)
	assert.True(t, err == nil && bytes.Contains(data, []byte(`"schema":"carronade.variation/1"`)), "%s, %v", data, err)
	var csv, markdown bytes.Buffer
	assert.OK(t, errors.Join(v.CSV(&csv), v.Markdown(&markdown)))
	lines := strings.Count(csv.String(), "\n")
	assert.True(t, lines == 1+4*3 && strings.Contains(csv.String(), "abc,throughput,true,main,acks 1 -> all,-0.3"), "%d lines of CSV:\n%s", lines, csv.String())
	assert.True(t, strings.Contains(markdown.String(), "| acks 1 → all | -31% ±"), "Markdown:\n%s", markdown.String())
}

// Under a schedule the rate is given, and the response p99 decides.
func TestVaryUnderASchedule(t *testing.T) {
	d := twoByTwo(t)
	rows := experiment(d, 3, func(cell []int) fields {
		return fields{"rate": "50k/s", "throughput": 50e3, "response_p99": 0.010 * (1 + float64(cell[1]))}
	})
	v := assert.Value(Vary(rows, VaryOptions{Series: "abc", Design: d, Rounds: 3}))(t)
	n := v.Numbers[0]
	e := n.Effects[0]
	assert.True(t, n.Field == "response_p99" && math.Abs(e.Effect-1) <= 0.1 && e.Verdict == stats.EffectFound && e.Of[0].Name == "compression", "%s: %+v", n.Field, e)
	assert.True(t, v.Cells[v.Best.Cell-1].Settings[1].Value == "none", "best %+v", v.Best)
}

// Runs that are not trusted do not count. A cell without any leaves no effects, and the reason.
func TestVaryIncomplete(t *testing.T) {
	d := twoByTwo(t)
	rows := experiment(d, 3, slower)
	untrust(&rows[0])
	v, err := Vary(rows, VaryOptions{Series: "abc", Design: d, Rounds: 3})
	assert.Must(t, err == nil && len(v.LeftOut) == 1 && len(v.Cells[0].Reports) == 2 && v.Best != nil, "%v, %+v", err, v)
	untrust(&rows[1])
	untrust(&rows[2])
	v, err = Vary(rows, VaryOptions{Series: "abc", Design: d, Rounds: 3})
	if err != nil || len(v.Numbers) == 0 || len(v.Numbers[0].Effects) != 0 || v.Best != nil || !strings.Contains(strings.Join(v.Notes, ";"), "no effects, since cell 1 (acks=1 compression=none) has no run that counts") {
		t.Errorf("%v, %+v", err, v)
	}
	var text bytes.Buffer
	err = v.Text(&text, layout.Style{})
	assert.True(t, err == nil && strings.Contains(text.String(), "no effects"), "%v:\n%s", err, text.String())
	for i := range rows {
		untrust(&rows[i])
	}
	_, err = Vary(rows, VaryOptions{Series: "abc", Design: d, Rounds: 3})
	assert.True(t, errors.Is(err, ErrNoRuns), "without any: %v", err)
}

// A cell whose system died in a run is not best without a word: its other runs are the good ones.
func TestVaryDeaths(t *testing.T) {
	d := twoByTwo(t)
	rows := experiment(d, 3, slower)
	v := assert.Value(Vary(rows, VaryOptions{Series: "abc", Design: d, Rounds: 3}))(t)
	best := strconv.Itoa(v.Best.Cell)
	dead := row("dead", start, fields{"partial": true, "stopped": "system ended", "repetition": 1.0, "label.vary-cell": best})
	v = assert.Value(Vary(append(rows, dead), VaryOptions{Series: "abc", Design: d, Rounds: 3}))(t)
	var text bytes.Buffer
	assert.OK(t, v.Text(&text, layout.Style{}))
	said := strings.Join(strings.Fields(text.String()), " ")
	assert.Has(t, said, "but the system ended in 1 run of it; ", "the system ended in 1 run of cell "+best+": its numbers are of the others")
}

// Each repetition of a series of searches has the middle of its interval as the ceiling, which decides; next to it is what the
// trial at its lower end measured. The noise is at least that of the intervals.
func TestVarySearches(t *testing.T) {
	d := twoByTwo(t)
	var (
		rows     []store.Row
		searches []VariedSearch
	)
	for c, cell := range d.Cells {
		for r := range 3 {
			id := fmt.Sprintf("c%dr%d", c+1, r+1)
			holds := 10_000 * math.Pow(0.7, float64(cell[0]))
			searches = append(searches, VariedSearch{ID: "s-" + id, Report: id, Holds: holds, Fails: holds * 1.1, Cell: c, Round: r})
			rows = append(rows, row(id, start, fields{
				"rate": holds, "throughput": holds, "response_p99": 0.010 + 0.001*float64(r), "generator_cpu_share": 0.2 + 0.01*float64(r), "label.find-role": "confirm",
			}), row(id+"probe", start, fields{"throughput": 3 * holds, "label.find-role": "probe"}))
		}
	}
	v, err := Vary(rows, VaryOptions{Series: "abc", Design: d, Rounds: 3, Searches: searches})
	assert.OK(t, err)
	n := &v.Numbers[0]
	assert.True(t, n.Field == "ceiling" && n.Decides && math.Abs(n.Noise-math.Log(1.1)/math.Sqrt(12)) <= 1e-9,
		"%s decides with a noise of %g, want the ceiling with that of the intervals", n.Field, n.Noise)
	e := &n.Effects[0]
	assert.True(t, math.Abs(e.Effect+0.3) <= 1e-9 && e.Of[0].Name == "acks" && e.Verdict == stats.EffectFound && e.Hi-e.Lo >= 0.02, "got %+v", e)
	var titles []string
	for i := range v.Numbers {
		titles = append(titles, v.Numbers[i].Title)
	}
	assert.Equal(t, strings.Join(titles, ", "), "ceiling, response p99 at the lower end, generator CPU at the lower end", "numbers")
	var text bytes.Buffer
	assert.OK(t, v.Text(&text, layout.Style{}))
	assert.Has(t, text.String(), "3 searches each", "ceiling (decides), more is better; noise ± 2.8%", "  acks 1 → all             -30% ± ", "(ceiling 10.5 k/s)")
	if data, err := json.Marshal(v); err != nil || !bytes.Contains(data, []byte(`"searches":[{"id":"s-c1r1","report":"c1r1","holds":10000,"fails":11000}`)) {
		t.Errorf("%s, %v", data, err)
	}
	searches[0].Why, searches[0].Died = "the system died", true
	searches[4].Report = "gone"
	v = assert.Value(Vary(rows, VaryOptions{Series: "abc", Design: d, Rounds: 3, Searches: searches}))(t)
	assert.True(t, len(v.LeftOut) == 2 && v.Cells[0].Died == 1 && len(v.Cells[0].Reports) == 2 &&
		len(v.Cells[1].Searches) == 2 && v.Best != nil, "got %+v", v)
	_, err = Vary(rows, VaryOptions{Series: "abc", Design: d, Rounds: 3, Searches: []VariedSearch{}})
	assert.True(t, errors.Is(err, ErrNoRuns), "without a search: %v", err)
}

// Cells that exist are shown, whatever cells are missing, in all forms; and those that are missing are named.
func TestVaryShowsWhatExists(t *testing.T) {
	d := twoByTwo(t)
	rows := experiment(d, 2, slower)
	for i := range rows {
		if cell, _, _ := CellOf(&rows[i]); cell == 1 || cell == 2 {
			untrust(&rows[i])
		}
	}
	v := assert.Value(Vary(rows, VaryOptions{Series: "abc", Design: d, Rounds: 2}))(t)
	assert.True(t, v.Best == nil && len(v.Numbers) >= 2, "got %+v", v)
	for i := range v.Cells {
		c := &v.Cells[i]
		missing := i == 1 || i == 2
		for _, n := range v.Numbers {
			_, ok := c.Means[n.Field]
			assert.True(t, ok != missing, "cell %d: %s is there: %t", c.Cell, n.Field, ok)
		}
	}
	var text, markdown, csv bytes.Buffer
	assert.OK(t, v.Text(&text, layout.Style{}))
	assert.OK(t, v.Markdown(&markdown))
	assert.OK(t, v.CSV(&csv)) // has a line for each effect
	full := v.Numbers[0].value(&v.Cells[0])
	for form, got := range map[string]string{"text": text.String(), "markdown": markdown.String()} {
		words := strings.Join(strings.Fields(got), " ")
		if !strings.Contains(words, full) || !strings.Contains(words, "have no run that counts") || strings.Contains(words, "noise") || !strings.Contains(words, "4 repetitions without a run that counts") {
			t.Errorf("%s:\n%s", form, got)
		}
	}
	assert.Equal(t, strings.Count(csv.String(), "\n"), 1, "lines of CSV")
	assert.True(t, strings.HasPrefix(text.String(), "NOT TRUSTED  "), "runs are missing that were not trusted:\n%s", text.String())
}

// What was left out of a series stands before its numbers.
func TestVaryLeftOutFirst(t *testing.T) {
	v := Variation{Op: "produce", Target: "null://", Rounds: 2, LeftOut: []LeftOut{{ID: "k3v9x2ab", Why: notTrusted}}}
	var b strings.Builder
	assert.OK(t, v.Text(&b, layout.Style{}))
	fourth := strings.Split(b.String(), "\n")[3]
	assert.Equal(t, strings.Join(strings.Fields(fourth), " "), "left out k3v9x2ab: "+notTrusted)
}

// A system is its address with its port, unless a label names it, the run started it, or it is a stand-in.
func TestIdentity(t *testing.T) {
	for _, tt := range []struct {
		name, target string
		given        fields
		want         string // identity and system
	}{
		{"an address", "kafka://h:9092/t", nil, "kafka://h:9092/t kafka://h:9092"},
		{"of this machine", "kafka://127.0.0.1:4711/t", nil, "kafka://127.0.0.1:4711/t kafka://127.0.0.1:4711"},
		{"none", "null://", nil, "null:// null://"},
		{"none, named", "null://", fields{"label.system": "a"}, "null://a null://a"},
		{"a label", "kafka://h:9092/t", fields{"label.system": "prod"}, "kafka://prod/t kafka://prod"},
		{"a stand-in", "riemann://127.0.0.1:4711", fields{"target.standin": true}, "riemann://stand-in riemann://stand-in"},
		{"a stand-in for Kafka, also in old reports", "kafka://localhost:4711,localhost:4712/t", fields{"target.cluster_id": "carronade-standin"}, "kafka://stand-in/t kafka://stand-in"},
		{"one that discards", "apm+http://[::1]:4711", fields{"target.standin": true, "target.discards": true}, "apm+http://discarding-stand-in apm+http://discarding-stand-in"},
		{"a stand-in elsewhere", "kafka://h:9092/t", fields{"target.cluster_id": "carronade-standin"}, "kafka://h:9092/t kafka://h:9092"},
		{"a stand-in among others", "kafka://127.0.0.1:1,h:2/t", fields{"target.standin": true}, "kafka://127.0.0.1:1,h:2/t kafka://127.0.0.1:1,h:2"},
		{"started by the run", "apm+http://[::1]:4711/intake", fields{"system-cmd": "server --listen [::1]:0"}, "apm+http://[::1]/intake apm+http://[::1]"},
		{"an image", "kafka://localhost:4711/t", fields{"system-image": "kafka"}, "kafka://localhost/t kafka://localhost"},
		{"started by the run, elsewhere", "kafka://h:9092/t", fields{"system-cmd": "ssh h kafka"}, "kafka://h:9092/t kafka://h:9092"},
	} {
		r := row("a", start, fields{"target": tt.target}, tt.given)
		assert.Equal(t, identity(&r, tt.target)+" "+systemOf(&r), tt.want, "%s", tt.name)
	}
}

// Two ports are two systems, for collate, verify and compare; --same-system, a
// label, and their kind if they are stand-ins, make them one.
func TestTwoPorts(t *testing.T) {
	for _, tt := range []struct {
		name     string
		one, two fields
		same     bool
		systems  int
	}{
		{"two ports", nil, nil, false, 2},
		{"two ports, one system", nil, nil, true, 1},
		{"two ports, one label", fields{"label.system": "a"}, fields{"label.system": "a"}, false, 1},
		{"two ports, two labels", fields{"label.system": "a"}, fields{"label.system": "b"}, false, 2},
		{"stand-ins", fields{"target.standin": true}, fields{"target.standin": true}, false, 1},
		{"a stand-in and a server", fields{"target.standin": true}, nil, false, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := func(rows []store.Row, days int) []store.Row {
				for i := range rows {
					rows[i].At = rows[i].At.Add(time.Duration(days) * 24 * time.Hour)
				}
				return rows
			}
			one := fields{"target": "kafka://127.0.0.1:1001/t", "target.cluster_id": "x1"}
			two := fields{"target": "kafka://127.0.0.1:1002/t", "target.cluster_id": "x2"}
			if tt.one["target.standin"] != nil && tt.two["target.standin"] != nil {
				two["target.cluster_id"] = "x1"
			}
			old := runs(1, "old", 8, 50e3, 0.012, 0.01, one, tt.one, fields{"flag.x": "1", "revision": "aaaa"})
			slow := at(runs(2, "new", 8, 30e3, 0.012, 0.01, two, tt.two, fields{"flag.x": "1", "revision": "bbbb"}), 2)
			both := append(old, slow...)
			v := assert.Value(Verify(both, VerifyOptions{SameSystem: tt.same}))(t)
			want := map[int]string{1: Worse, 2: CannotTell}[tt.systems]
			assert.True(t, len(v.Groups) == tt.systems && v.Verdict == want, "verify: got %d groups and %q, want %d and %q", len(v.Groups), v.Verdict, tt.systems, want)
			if len(v.Groups) == 2 {
				want := systemOf(&slow[0])
				got := v.Groups[0].OtherSystems
				assert.True(t, slices.Equal(got, []string{want}), "verify: other systems are %q, want %s", got, want)
				checkPage(t, v.Text)
			}
			other := at(runs(3, "other", 8, 30e3, 0.012, 0.01, two, tt.two, fields{"flag.x": "2", "revision": "aaaa"}), 1)
			found := assert.Value(Collate(append(old[:8:8], other...), CollateOptions{Var: "x", SameSystem: tt.same, Now: start}))(t)
			switch {
			case tt.systems == 1 && (len(found.Groups) != 1 || len(found.Groups[0].Rows) != 2):
				t.Errorf("collate: got %s, want one group of two rows: %q", shape(found), found.Notes)
			case tt.systems == 2 && (len(found.Groups) != 0 || !strings.Contains(found.Notes[0], "also differ in target; repeat one of them with another x, give --same-system if")):
				t.Errorf("collate: got %s and %q", shape(found), found.Notes)
			}
			c := assert.Value(Compare(old, slow, CompareOptions{SameSystem: tt.same}))(t)
			severe := ""
			for _, f := range c.Pairs[0].Findings {
				if f.Severe {
					severe += f.About + " "
				}
			}
			assert.Equal(t, severe, map[int]string{1: "", 2: "servers target "}[tt.systems], "severe findings of compare")
		})
	}
}

// Each system of a side is compared with the same system of the other side, if there is one, and never pooled with another.
func TestComparePairsSystems(t *testing.T) {
	on := func(seed uint64, prefix, port string, perS float64) []store.Row {
		return runs(seed, prefix, 6, perS, 0.012, 0.01, fields{"target": "kafka://h:" + port + "/t-" + prefix})
	}
	pairsOf := func(base, candidate []store.Row) (out []string) {
		c, err := Compare(base, candidate, CompareOptions{})
		if err != nil {
			return []string{err.Error()}
		}
		for _, p := range c.Pairs {
			out = append(out, p.Base[0]+" "+p.Candidate[0])
		}
		for _, u := range c.Unpaired {
			out = append(out, u.Words())
		}
		return out
	}
	a1, a2, b1, b2, b3 := on(1, "a", "1", 50e3), on(2, "A", "2", 9e3), on(3, "b", "1", 50e3), on(4, "B", "2", 9e3), on(5, "c", "3", 9e3)
	for _, tt := range []struct {
		name            string
		base, candidate []store.Row
		want            []string
	}{
		{"the same two", append(a1, a2...), append(b2, b1...), []string{"A0 B0", "a0 b0"}},
		{"another system", a1, b3, []string{"a0 c0"}},
		{"one in common and one other each", append(a1, a2...), append(b1, b3...), []string{"a0 b0", "A0 c0"}},
		{"one has no partner", append(a1, a2...), b1, []string{"a0 b0", "the base alone has 6 reports of rate 50k/s, for 30s, acks all on kafka://h:2"}},
		{"nothing says which", append(a1, a2...), b3, []string{"no system is on both sides: the base's reports are of kafka://h:2, kafka://h:1 and the candidate's of kafka://h:3"}},
	} {
		assert.Same(t, pairsOf(tt.base, tt.candidate), tt.want, "%s", tt.name)
	}
}

// A confirming run counts, whatever its port.
func TestConfirmSameSystem(t *testing.T) {
	on := func(seed uint64, prefix, port, revision string, perS float64) []store.Row {
		return runs(seed, prefix, 8, perS, 0.012, 0.01, fields{"target": "kafka://127.0.0.1:" + port + "/t", "revision": revision})
	}
	o := VerifyOptions{SameSystem: true}
	alarm := append(on(1, "old", "1", "aaaa", 50e3), on(2, "slow", "2", "bbbb", 30e3)...)
	for i := range alarm[8:] {
		alarm[8+i].At = alarm[8+i].At.Add(time.Hour)
	}
	first, err := Verify(alarm, o)
	assert.Must(t, err == nil && first.Verdict == Worse, "%v, %v", first, err)
	v, err := first.Confirm(append(alarm, on(3, "again", "3", "bbbb", 30e3)...), o)
	assert.True(t, err == nil && v.Verdict == Worse && v.Groups[0].Confirmed != nil &&
		len(v.Groups[0].Confirmed.Reports) == 8, "got %+v, %v", v, err)
}

// Settings that brokers do not have and settings that are not known are different.
func TestBrokersThatDoNotDescribe(t *testing.T) {
	set := func(described float64, more ...string) fields {
		f := fields{"target.brokers": 3.0, brokersDescribed: described}
		for i := 0; i < len(more); i += 2 {
			f[brokerSettings+more[i]] = more[i+1]
		}
		return f
	}
	// many are nine settings, the last one named last, and a sum of the rest.
	many := func(sum, last string) fields {
		f := set(3, store.RestName, sum)
		for c := last[0] - 8; c <= last[0]; c++ {
			f[brokerSettings+string(c)] = "1"
		}
		return f
	}
	unasked := fields{"target.brokers": 3.0}
	older := fields{"target.brokers": 3.0, brokerSettings + "num.io.threads": "8", brokerSettings + "num.network.threads": "3"}
	two := set(3, "num.io.threads", "8", "num.network.threads", "3")
	for _, tt := range []struct {
		name            string
		base, candidate fields
		some            fields // of the first two runs of the candidate, if they differ
		want            []string
	}{
		{name: "neither side knows", base: set(0), candidate: set(0)},
		{name: "no brokers"},
		{name: "the same", base: two, candidate: two},
		{name: "the base does not know", base: set(0), candidate: two, want: []string{"the base does not know its brokers' settings"}},
		{name: "a base older than the query", base: unasked, candidate: two, want: []string{"the base does not know its brokers' settings"}},
		{name: "a base older than the count", base: older, candidate: two},
		{name: "the candidate does not know", base: two, candidate: set(0), want: []string{"the candidate does not know its brokers' settings"}},
		{
			name: "one broker of several answered", base: two, candidate: set(1, "num.io.threads", "64"),
			want: []string{"only 1 of 3 brokers of the candidate reported their settings"},
		},
		{
			name: "some runs know nothing", base: two, candidate: two, some: set(0),
			want: []string{"2 of the candidate's 6 runs do not know all brokers' settings"},
		},
		{
			name: "some runs know nothing, and the others differ", base: two, candidate: set(3, "num.io.threads", "64", "num.network.threads", "3"), some: set(0),
			want: []string{"2 of the candidate's 6 runs do not know all brokers' settings", "!broker settings num io threads was 8 and is 64"},
		},
		{
			name: "a setting on one side only", base: set(3), candidate: set(3, "num.io.threads", "64"),
			want: []string{"!broker settings num io threads was not set and is 64"},
		},
		{
			name: "more than can be listed", base: many("#1", "k"), candidate: many("#2", "k"),
			want: []string{"!too many broker settings differ to list (report show --json has both)"},
		},
		{
			name: "one more displaces the last", base: many("#1", "k"), candidate: many("#2", "j"),
			want: []string{"!too many broker settings differ to list (report show --json has both)", "!broker settings b was not set and is 1"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base, candidate := runs(1, "a", 6, 1, 1, 0.01, tt.base), runs(2, "b", 6, 1, 1, 0.01, tt.candidate)
			if tt.some != nil {
				copy(candidate, runs(2, "b", 2, 1, 1, 0.01, tt.some))
			}
			var got []string
			for _, f := range between(base, candidate) {
				text := f.Text
				if f.Severe {
					text = "!" + text
				}
				assert.Equal(t, f.About, "servers", "subject of %s", f.Text)
				got = append(got, text)
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			assert.Same(t, got, tt.want)
		})
	}
}

// TestMachineFirst: that other programs took the machine is in the first lines of a comparison, and in the error of
// one that has no run left.
func TestMachineFirst(t *testing.T) {
	const cause = "other programs used 91% of the processors"
	busy := func(trusted bool) ([]store.Row, []store.Row) {
		level := "noisy"
		if !trusted {
			level = "not trusted"
		}
		f := fields{"machine": cause, "trusted": trusted, "trust_level": level}
		return runs(1, "a", 4, 50e3, 0.012, 0.01, f), runs(2, "b", 4, 50e3, 0.012, 0.01, f)
	}
	base, candidate := busy(true)
	c := assert.Value(Compare(base, candidate, CompareOptions{BaseName: "a", CandidateName: "b"}))(t)
	var text strings.Builder
	assert.OK(t, c.Text(&text, layout.Style{}))
	first := func(n int) string {
		return strings.Join(strings.Fields(strings.Join(strings.SplitN(text.String(), "\n", n+1)[:n], " ")), " ")
	}
	assert.Has(t, first(3), cause)
	assert.Has(t, first(4), cause+": 8 of 8 runs may be wrong; stop them")
	base, candidate = busy(false)
	_, err := Compare(base, candidate, CompareOptions{})
	assert.ErrorHas(t, err, cause+": 8 of 8 runs")
	quiet := runs(3, "c", 4, 50e3, 0.012, 0.01, fields{})
	assert.Equal(t, machineText(quiet), "")
	quiet = runs(3, "c", 4, 50e3, 0.012, 0.01, fields{"machine": cause, "trust_level": "trusted"})
	assert.Equal(t, machineText(quiet), cause)
	v := Variation{Op: "produce", Target: "null://", Machine: cause}
	text.Reset()
	assert.OK(t, v.Text(&text, layout.Style{}))
	assert.Has(t, first(3), cause)
}
