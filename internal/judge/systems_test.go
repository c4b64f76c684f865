package judge

import (
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/store"
	"carronade/test/testkit/assert"
)

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
			if want := map[int]string{1: Worse, 2: CannotTell}[tt.systems]; len(v.Groups) != tt.systems || v.Verdict != want {
				t.Errorf("verify: got %d groups and %q, want %d and %q", len(v.Groups), v.Verdict, tt.systems, want)
			}

			if len(v.Groups) == 2 {
				want := systemOf(&slow[0])
				got := v.Groups[0].OtherSystems
				assert.True(t, slices.Equal(got, []string{want}), "verify: other systems are %q, want %s", got, want)
				checkPage(t, v.Text)
			}

			other := at(runs(3, "other", 8, 30e3, 0.012, 0.01, two, tt.two, fields{"flag.x": "2", "revision": "aaaa"}), 1)
			found, err := Collate(append(old[:8:8], other...), CollateOptions{Var: "x", SameSystem: tt.same, Now: start})
			assert.OK(t, err)
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

// Each system of a side is compared with the same system of the other side, if
// there is one, and never pooled with another.
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
