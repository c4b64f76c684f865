package judge

import (
	"slices"
	"testing"
	"time"

	"carronade/internal/store"
	"carronade/test/testkit/assert"
)

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
