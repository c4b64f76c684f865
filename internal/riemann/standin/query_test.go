package standin

import (
	"strings"
	"testing"

	"carronade/internal/riemann/wire"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// everyField is an event with every field.
var everyField = wire.Event{
	Host: "web-1.eu", Service: "api latency", State: "ok", Description: "all \"well\"\n", Tags: []string{"a", "b c"},
	TTL: 60, HasTTL: true, Time: 1700000000, HasTime: true, Metric: wire.Metric{Kind: wire.Double, Real: 1.5},
	Attributes: []wire.Attribute{{Key: "zone", Value: "eu"}, {Key: "k-8.x", Value: "1"}, {Key: "a:b", Value: "c"}, {Key: "zone", Value: "us"}},
}

func matches(t *testing.T, text string, e *wire.Event) bool {
	t.Helper()
	q := assert.Value(parseQuery(text))(t, "%s", text)
	return q.matches(&subject{host: e.Host, service: e.Service, raw: string(wire.AppendEvent(nil, e))})
}

// TestQuery evaluates queries on an event with every field, and on one with only an
// integer metric.
func TestQuery(t *testing.T) {
	t.Parallel()
	bare := wire.Event{Metric: wire.Metric{Kind: wire.Sint64, Int: 2}}
	for _, test := range testkit.Table[struct {
		Name        string
		Query       string
		Every, Bare bool
	}](t, "testdata/queries.yaml") {
		t.Run(test.Name, func(t *testing.T) {
			assert.Equal(t, matches(t, test.Query, &everyField), test.Every, "%s on the event with every field", test.Query)
			assert.Equal(t, matches(t, test.Query, &bare), test.Bare, "%s on the event with only a metric", test.Query)
		})
	}
}

func TestQueryTimes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		e     wire.Event
		query string
	}{
		{"microseconds", wire.Event{TimeMicros: 1700000000_250000, HasTimeMicros: true, Time: 1, HasTime: true}, `time = 1700000000.25`},
		{"whole microseconds", wire.Event{TimeMicros: 1700000000_000000, HasTimeMicros: true}, `time = 1700000000`},
		{"none", wire.Event{}, `time = nil`},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.True(t, matches(t, test.query, &test.e), "%s is false, want it true", test.query)
		})
	}
}

func TestQueryErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, query, want string }{
		{"nothing", ``, "character 1: want a field"},
		{"no right side", `service = `, "character 11: want a field, a string, a number, true, false or nil, found the end"},
		{"no left side", `= 1`, "character 1: want a field, a string, a number, true, false or nil, found ="},
		{"order of text", `metric > "1"`, `character 10: want a number after >, found "1"`},
		{"like a number", `host =~ 1`, "character 9: want a string in double quotes after =~, found 1"},
		{"tagged a name", `tagged a`, "character 8: want a string"},
		{"two in a row", `host "x"`, `character 6: want and, or or the end, found "x"`},
		{"not closed", `(host = 1`, "character 10: want and, or or ), found the end"},
		{"not opened", `host = 1)`, "character 9: want and, or or the end, found )"},
		{"no closing quote", `host = "x`, "character 8: a string without its closing quote"},
		{"a bad escape", `host = "\x"`, `unknown escape \x`},
		{"half an escape", `host = "\u12"`, "four hexadecimal digits"},
		{"a large escape", `host = "\400"`, `more than \377`},
		{"a bad expression", `host ~= "("`, "character 9: regular expression:"},
		{"no operator", `host @ 1`, `character 6: unexpected '@'`},
		{"a number that is too large", `metric = 9223372036854775808`, "does not fit into 64 bits"},
		{"characters, not bytes", `漢 = "字" 1`, "character 9: want and"},
		{"deep", strings.Repeat("(", 1000), "nested more than 500 deep"},
		{"deep nots", strings.Repeat("not ", 1000), "nested more than 500 deep"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := parseQuery(test.query)
			assert.ErrorHas(t, err, test.want)
		})
	}
	// A chain is not nesting.
	assert.Value(parseQuery("true"+strings.Repeat(" or true and host", 10000)))(t, "a long chain")
}

func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		`true`, `host = "a\u0041\101" and not (metric >= -1.5e-3 or tagged "x")`, `service =~ "a%b%"`, `x ~= "a+"`, `5N = 5`,
		`a:b != nil, NaN`, `"`, `\`, `-`, `--1`, `1.`, `=`, `not`, `漢=字`, "\xff",
	} {
		f.Add(seed)
	}
	raw := string(wire.AppendEvent(nil, &everyField))
	f.Fuzz(func(t *testing.T, text string) {
		q, err := parseQuery(text)
		if err != nil {
			return
		}
		s := &subject{host: everyField.Host, service: everyField.Service, raw: raw}
		first := q.matches(s)
		assert.Equal(t, q.matches(s), first, "%q is both true and false for one event", text)
		// A valid query in parentheses is a valid query too.
		if len(text) < 1000 {
			if in, err := parseQuery("not (" + text + ")"); err != nil {
				t.Errorf("%q is valid, but not in parentheses: %v", text, err)
			} else if in.matches(s) == first {
				t.Errorf("%q and its negation are both %v", text, first)
			}
		}
	})
}
