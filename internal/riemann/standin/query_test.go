package standin

import (
	"strings"
	"testing"

	"carronade/internal/riemann/wire"
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
	for _, test := range []struct {
		name        string
		query       string
		every, bare bool
	}{
		{"true", `true`, true, true},
		{"false", `false`, false, false},
		{"nil", `nil`, false, false},
		{"null", `null`, false, false},
		{"a number is true", `0`, true, true},
		{"a string is true", `""`, true, true},
		{"an existing field", `host`, true, false},
		{"an existing attribute", `zone`, true, false},
		{"existing tags", `tags`, true, false},

		{"host", `host = "web-1.eu"`, true, false},
		{"service", `service = "api latency"`, true, false},
		{"state", `state = "ok"`, true, false},
		{"description with escapes", `description = "all \"well\"\n"`, true, false},
		{"escapes by number", `description = "\141ll \u0022well\"\n"`, true, false},
		{"metric", `metric = 1.5`, true, false},
		{"metric, whole", `metric = 2`, false, true},
		{"numbers of two kinds are not equal", `metric = 2.0`, false, false},
		{"metric_f", `metric_f = 1.5`, false, false},
		{"metric_f, greater", `metric_f > 1`, false, false},
		{"metric_d", `metric_d = 1.5`, false, false},
		{"metric_sint64", `metric_sint64 = 2 or metric_sint64 > 1`, false, false},
		{"no metric_f", `metric_f = nil and metric_sint64 = nil`, true, true},
		{"ttl", `ttl = 60.0`, true, false},
		{"time", `time = 1700000000`, true, false},
		{"an attribute, of two the last", `zone = "us"`, true, false},
		{"an attribute with signs", `k-8.x = "1"`, true, false},
		{"an attribute with a colon", `a:b = "c"`, true, false},
		{"literals", `1 = 1 and "a" = "a" and nil = nil and true = true`, true, true},
		{"big numbers", `5N = 5 and 7l = 7`, true, true},
		{"the value first", `"ok" = state`, true, false},
		{"field and field", `host = service`, false, true}, // nil is nil
		{"is nil", `host = nil`, false, true},
		{"is not nil", `host != nil`, true, false},
		{"not equal", `state != "ok"`, false, true},
		{"another type", `state = 1`, false, false},
		{"a list equals nothing", `tags = tags and host`, false, false},

		{"less", `metric < 2`, true, false},
		{"at most", `metric <= 1.5`, true, false},
		{"greater", `metric > 1.5`, false, true},
		{"at least", `metric >= 1.5`, true, true},
		{"at least, whole", `metric >= 2`, false, true},
		{"a negative number", `metric > -1e3`, true, true},
		{"infinity", `metric < Infinity and metric > -Infinity`, true, true},
		{"no number compares with NaN", `metric < NaN or metric >= NaN`, false, false},
		{"text is not ordered", `state < 1 or state >= 1`, false, false},

		{"like: prefix", `service =~ "api%"`, true, false},
		{"like: suffix", `service =~ "%latency"`, true, false},
		{"like: middle", `service =~ "%i lat%"`, true, false},
		{"like: parts in order", `service =~ "%a%lat%y"`, true, false},
		{"like: parts out of order", `service =~ "%lat%api%"`, false, false},
		{"like: parts do not overlap", `state =~ "ok%k"`, false, false},
		{"like: all of it", `service =~ "api"`, false, false},
		{"like: no sign", `service =~ "api latency"`, true, false},
		{"like: other signs mean themselves", `host =~ "web.1%"`, false, false},
		{"like: nothing", `description =~ "%"`, true, false},
		{"like: a number is not text", `metric =~ "%"`, false, false},

		{"regex", `host ~= "^web-\\d+"`, true, false},
		{"regex: anywhere", `host ~= "1.e"`, true, false},
		{"regex: not there", `host ~= "^eu"`, false, false},
		{"regex: a number is not text", `metric ~= "."`, false, false},

		{"tagged", `tagged "b c"`, true, false},
		{"not tagged", `tagged "b"`, false, false},
		{"not", `not tagged "a"`, false, true},
		{"not binds tighter than and", `not host = "x" and host = "y"`, false, false},
		{"and binds tighter than or", `true or false and false`, true, true},
		{"parentheses", `(true or false) and false`, false, false},
		{"not of parentheses", `not (host = "x" or host = nil)`, true, false},
		{"not not", `not not host`, true, false},
		{"commas and lines are space", "host\n=\t\"web-1.eu\",and\rtrue", true, false},
		{"a sign without space is part of a name", `metric>1`, false, false},
		{"a word begins a name", `nothing = nil and order = nil and truely = nil`, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, matches(t, test.query, &everyField), test.every, "%s on the event with every field", test.query)
			assert.Equal(t, matches(t, test.query, &bare), test.bare, "%s on the event with only a metric", test.query)
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

func BenchmarkQuery(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"service", `service =~ "api%"`},
		{"fields", `service =~ "api%" and state = "ok" and metric > 0 and tagged "b c"`},
	} {
		b.Run(c.name, func(b *testing.B) {
			q := assert.Value(parseQuery(c.text))(b)
			raw := string(wire.AppendEvent(nil, &everyField))
			b.ReportAllocs()
			for b.Loop() {
				if !q.matches(&subject{host: everyField.Host, service: everyField.Service, raw: raw}) {
					b.Fatal("false, want true")
				}
			}
		})
	}
}
