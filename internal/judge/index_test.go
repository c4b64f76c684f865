package judge

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/store"
	"carronade/test/testkit/assert"
)

// elastic is an Elasticsearch behind a system.
func elastic(address, version string, nodes float64) fields {
	return fields{indexAddress: "http://" + address, indexStore: "Elasticsearch " + version, indexPrefix + "version": version, indexNodes: nodes}
}

// The Elasticsearch behind a system is an independent variable: its address or name, its version, and how many nodes it has.
func TestElasticsearchBehind(t *testing.T) {
	one := elastic("es:9200", "8.1.0", 1)
	for _, tt := range []struct {
		name     string
		one, two fields
		same     bool // --same-system
		equal    bool
		severe   string // findings, if a flag differs too
	}{
		{"the same", one, one, false, true, ""},
		{"another version", one, elastic("es:9200", "8.2.0", 1), false, false, "index store was Elasticsearch 8.1.0 and is Elasticsearch 8.2.0"},
		{"another number of nodes", one, elastic("es:9200", "8.1.0", 3), false, false, "index nodes was 1 and is 3"},
		{"another address", one, elastic("other:9200", "8.1.0", 1), false, false, "index address was http://es:9200 and is http://other:9200"},
		{"another address of the same system", one, elastic("other:9200", "8.1.0", 1), true, true, ""},
		{"another version of the same system", one, elastic("other:9200", "8.2.0", 1), true, false, "index store was Elasticsearch 8.1.0 and is Elasticsearch 8.2.0"},
		{"another address with one name", joined(one, fields{indexLabel: "es"}), joined(elastic("other:9200", "8.1.0", 1), fields{indexLabel: "es"}), false, true, ""},
		{"two names", joined(one, fields{indexLabel: "a"}), joined(one, fields{indexLabel: "b"}), false, false, "index address was a and is b"},
		{"unknown", one, nil, false, true, ""},
		{"a part is unknown", one, fields{indexAddress: "http://es:9200"}, false, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rev := func(name string) fields { return fields{"revision": name} }
			a := runs(1, "a", 8, 50e3, 0.012, 0.01, rev("aaaa"), tt.one, fields{"flag.x": "1"})
			b := later(runs(2, "b", 8, 30e3, 0.012, 0.01, rev("aaaa"), tt.two, fields{"flag.x": "2"}), time.Hour)
			c := assert.Value(Collate(append(a[:8:8], b...), CollateOptions{Var: "x", SameSystem: tt.same, Now: start}))(t)
			if got := len(c.Groups) == 1 && len(c.Groups[0].Rows) == 2; got != tt.equal {
				t.Errorf("collate x: got %s and %q, want one group: %v", shape(c), c.Notes, tt.equal)
			}
			cmpd := assert.Value(Compare(a, b, CompareOptions{SameSystem: tt.same}))(t)
			var severe []string
			for _, f := range cmpd.Pairs[0].Findings {
				if f.Severe {
					severe = append(severe, f.Text)
				}
			}
			assert.Equal(t, strings.Join(severe, "; "), tt.severe, "severe findings of compare")
			old := runs(3, "o", 8, 50e3, 0.012, 0.01, rev("aaaa"), tt.one)
			slow := later(runs(4, "n", 8, 30e3, 0.012, 0.01, rev("bbbb"), tt.two), time.Hour)
			v := assert.Value(Verify(append(old[:8:8], slow...), VerifyOptions{SameSystem: tt.same}))(t)
			assert.Equal(t, v.Verdict, map[bool]string{true: Worse, false: CannotTell}[tt.equal], "verify")
			if !tt.equal && (len(v.Groups) != 2 || len(v.Groups[0].OtherSystems) != 1 || !strings.Contains(v.Groups[0].OtherSystems[0], " with Elasticsearch 8.")) {
				t.Errorf("verify: got %d groups, %+v elsewhere", len(v.Groups), v.Groups[0].OtherSystems)
			}
		})
	}
}

func joined(all ...fields) fields {
	out := fields{}
	for _, f := range all {
		maps.Copy(out, f)
	}
	return out
}

// Elasticsearch can be what is collated, and then all of it may differ.
func TestCollateElasticsearch(t *testing.T) {
	rows := append(runs(1, "a", 6, 50e3, 0.012, 0.01, elastic("one:9200", "8.1.0", 1)), later(runs(2, "b", 6, 30e3, 0.012, 0.01, elastic("two:9200", "8.2.0", 3)), time.Hour)...)
	for _, name := range []string{indexAddress, "elastic_url", indexStore, indexNodes, indexPrefix + "version"} {
		c := assert.Value(Collate(rows, CollateOptions{Var: name, Now: start}))(t)
		if len(c.Groups) != 1 || len(c.Groups[0].Rows) != 2 {
			t.Errorf("%s: got %s and %q, want one group of two rows", name, shape(c), c.Notes)
		}
	}
	f := assert.Value(store.ParseFilters([]string{"target.index.version=8.2.0", "target.index.nodes>1"}, start))(t)
	got, err := applyFilters(rows, f)
	assert.True(t, err == nil && len(got) == 6, "got %d reports, %v; want the 6 of 8.2.0", len(got), err)
}

// Compare does not pool the systems of one side that differ only in their
// Elasticsearch, and compares each with the same one of the other side.
func TestComparePairsElasticsearch(t *testing.T) {
	on := func(seed uint64, prefix string, es fields) []store.Row {
		return runs(seed, prefix, 6, 50e3, 0.012, 0.01, es)
	}
	one, two := elastic("es:9200", "8.1.0", 1), elastic("es:9200", "8.2.0", 1)
	c := assert.Value(Compare(append(on(1, "a", one), on(2, "A", two)...), append(on(3, "B", two), on(4, "b", one)...), CompareOptions{}))(t)
	var got []string
	for _, p := range c.Pairs {
		got = append(got, p.Base[0]+" "+p.Candidate[0])
	}
	assert.Same(t, got, []string{"A0 B0", "a0 b0"})
}

// part are runs, some of which have further fields.
func part(prefix string, n, without int, with fields) []store.Row {
	return append(runs(1, prefix, without, 50e3, 0.012, 0.01), later(runs(2, prefix+"_", n-without, 50e3, 0.012, 0.01, with), time.Hour)...)
}

func later(rows []store.Row, by time.Duration) []store.Row {
	for i := range rows {
		rows[i].At = rows[i].At.Add(by)
	}
	return rows
}

// A fact that was not reported is unknown, and not different.
func TestUnknownFactsDoNotDiffer(t *testing.T) {
	for _, tt := range []struct {
		name            string
		base, candidate []store.Row
		want            []string // ! severe
	}{
		{"some runs of one side", part("a", 6, 3, fields{"target.server": "vm"}), part("b", 6, 0, fields{"target.server": "vm"}), nil},
		{"all runs of one side", part("a", 6, 6, nil), part("b", 6, 0, fields{"target.server": "vm"}), []string{"server was unknown and is vm"}},
		{
			"another server, and some unknown", part("a", 6, 3, fields{"target.server": "vm"}), part("b", 6, 0, fields{"target.server": "web"}),
			[]string{"!server was vm, unknown and is web"},
		},
		{"a version", part("a", 6, 2, fields{"target.version": "8.1"}), part("b", 6, 0, fields{"target.version": "8.1"}), nil},
		{"leaders", part("a", 6, 2, fields{"target.topic.leaders": "1: 0"}), part("b", 6, 0, fields{"target.topic.leaders": "1: 0"}), nil},
		{
			"a setting of a topic whose settings are known", part("a", 6, 0, fields{"target.topic.settings.x": "1"}), part("b", 6, 0, fields{"target.topic.settings.x": "1", "target.topic.settings.y": "2"}),
			[]string{"!topic settings y was none and is 2"},
		},
		{"topic settings that were not read", part("a", 6, 1, fields{"target.topic.settings.x": "1"}), part("b", 6, 0, fields{"target.topic.settings.x": "1"}), nil},
		{"the governor", part("a", 6, 2, fields{"host.governor": "performance"}), part("b", 6, 0, fields{"host.governor": "performance"}), nil},
		{"a limit of one side's host", part("a", 6, 6, nil), part("b", 6, 0, fields{"host.cpu_limit": 2.0}), []string{"!the generator's cpu limit was none and is 2"}},
		{"a host that one side does not describe", part("a", 6, 6, nil), part("b", 6, 0, fields{"system.host.cores": 4.0}), []string{"the system's cores was unknown and is 4"}},
		{"a server that discards", part("a", 6, 6, nil), part("b", 6, 0, fields{"target.discards": true}), []string{"!discards was none and is true"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, f := range findings(tt.base, tt.candidate) {
				text := f.Text
				if f.Severe {
					text = "!" + text
				}
				got = append(got, text)
			}
			assert.Same(t, got, tt.want)
		})
	}
}

// A run that did not know a variable yet is a repetition of those that did, and has
// its own group only if it may belong to several.
func TestUnknownVariables(t *testing.T) {
	known := func(rows []store.Row) []store.Row { // runs whose rate differs
		for i := range rows {
			if i%2 == 1 {
				rows[i].Fields = setField(rows[i].Fields, "concurrency", store.Value{Kind: store.KindNumber, Num: 10, Text: "10", Independent: true})
			} else {
				rows[i].Fields = setField(rows[i].Fields, "concurrency", store.Value{Kind: store.KindNumber, Num: 1, Text: "1", Independent: true})
			}
		}
		return rows
	}
	servers := func(n float64) fields { return fields{"target.servers": n} }
	for _, tt := range []struct {
		name   string
		rows   []store.Row
		groups int
	}{
		{"some do not know", part("a", 12, 4, servers(1)), 1},
		{"none knows", part("a", 12, 12, nil), 1},
		{"two numbers", slices.Concat(part("a", 6, 0, servers(1)), later(part("b", 6, 0, servers(2)), 5*time.Hour)), 2},
		{"two numbers, and some do not know", slices.Concat(part("a", 8, 4, servers(1)), later(part("b", 6, 0, servers(2)), 5*time.Hour)), 3},
		{"a limit that some do not have", part("a", 12, 6, fields{"host.cpu_limit": 2.0}), 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := assert.Value(Verify(tt.rows, VerifyOptions{}))(t)
			assert.Equal(t, len(v.Groups), tt.groups, "verify groups")
			c := assert.Value(Collate(known(tt.rows), CollateOptions{Var: "concurrency", All: true, Now: start}))(t)
			if len(c.Groups) != tt.groups {
				t.Errorf("collate: got %s, want %d groups", shape(c), tt.groups)
			}
		})
	}
}

func setField(all []store.Field, name string, v store.Value) []store.Field {
	all = slices.DeleteFunc(slices.Clone(all), func(f store.Field) bool { return f.Name == name })
	return with(all, store.Field{Name: name, Value: v})
}
