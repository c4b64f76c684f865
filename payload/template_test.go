package payload

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func environment(name string) (string, bool) {
	v, ok := map[string]string{"USER": "ada", "LEVEL": "7", "SECRET": "hunter2", "EMPTY": "", "LONG": strings.Repeat("x", 5000)}[name]
	return v, ok
}

func parse(t testing.TB, text string) *Template {
	t.Helper()
	e := assert.Value(ParseTemplate(text, TemplateOptions{Seed: 1, Env: environment}))(t, "%s", text)
	return e
}

func made(e *Template, event uint64) string { return string(e.Append(nil, event)) }

func TestTexts(t *testing.T) {
	for _, row := range testkit.CSV(t, "testdata/values.csv") {
		text, want := row[0], row[1]
		t.Run(text, func(t *testing.T) {
			e := parse(t, text)
			got := made(e, 7)
			assert.Equal(t, got, want)
			assert.True(t, len(got) <= e.MaxLen(), "got %d bytes, at most %d", len(got), e.MaxLen())
		})
	}
}

func TestErrors(t *testing.T) {
	for _, row := range append(testkit.CSV(t, "testdata/errors.csv"), [][]string{
		{"67", "nested more than 64 deep", "${" + strings.Repeat("(", 100) + "1" + strings.Repeat(")", 100) + "}"},
		{"66", "nested more than 64 deep", "${" + strings.Repeat("-", 100) + "1}"},
		{"4097", "at most 4096 bytes", strings.Repeat("x", 4097)},
		{"15", "65536", "${string:join('" + strings.Repeat("a", 2000) + "'" + strings.Repeat(", string:format('%1000d', rnd.nextInt())", 40) + ")}"},
	}...) {
		column, why, text := row[0], row[1], row[2]
		t.Run(text[:min(len(text), 60)], func(t *testing.T) {
			e, err := ParseTemplate(text, TemplateOptions{Env: environment})
			var wrong *TemplateError
			assert.Must(t, errors.As(err, &wrong), "got %v and %v, want an Error", e, err)
			assert.True(t, strconv.Itoa(wrong.Column) == column && strings.Contains(wrong.Why, why),
				"got %v, want at %s: ...%s...", err, column, why)
		})
	}
}

// No error shows what comes from the environment.
func TestEnvironmentIsNotShown(t *testing.T) {
	for _, use := range []string{
		"%s + 1", "-%s", "math:sin(%s)", "date:format(%s).format(date:from(0))", "env:get(%s)", "string:format(%s)", "string:format('%%d', %s)",
		"%s ? 1 : 2", "path:random(%s, 1)", "rnd.nextInt(%s)", "%s < 1", "%s.last()", "%s && true", "this.last() + %s",
	} {
		text := "${" + strings.ReplaceAll(strings.ReplaceAll(use, "%s", "env:get('SECRET')"), "%%", "%") + "}"
		_, err := ParseTemplate(text, TemplateOptions{Env: environment})
		assert.True(t, err != nil && !strings.Contains(err.Error(), "hunter"), "%s: got the error %v", text, err)
	}
	var asked []string
	_, err := ParseTemplate("${env:get('USER')} and ${1 + 1}", TemplateOptions{Env: func(name string) (string, bool) {
		asked = append(asked, name)
		return "x", true
	}})
	assert.True(t, err == nil && len(asked) == 1 && asked[0] == "USER", "got %v, and the names %q were looked up", err, asked)
	for text, want := range map[string]bool{
		"a": false, "${env:get('USER')}": true, "%{env:get('USER')}": true, "${rnd.nextInt(5)}": false,
		"${rnd.nextInt(env:get('LEVEL'))}": true, "${this.last() + 1}%{env:get('LEVEL')}": true, "${env:get('EMPTY') == '' ? 1 : 2}": true,
	} {
		assert.Equal(t, parse(t, text).UsesEnv(), want, "whether %s uses the environment", text)
	}
}

// Values depend on the seed, the event and the place in the text, and on nothing else.
func TestRandom(t *testing.T) {
	const text = "${rnd.nextInt(1000000)} ${rnd.nextInt(1000000)} ${math:random(5)} ${path:random(16, 4)}${rnd.nextLong()} ${rnd.nextInt()} ${rnd.nextLong(1 + math:random(9))}"
	a, b := parse(t, text), parse(t, text)
	for n := range uint64(100) {
		x, y := made(a, 99-n), made(b, 99-n)
		assert.True(t, x == y && x == made(a, 99-n), "event %d: %q and %q", n, x, y)
	}
	parts := strings.Fields(made(a, 0))
	assert.True(t, parts[0] != parts[1], "two calls draw the same number: %q", parts)
	assert.True(t, made(a, 0) != made(a, 1), "two events have the same values")
	other, err := ParseTemplate(text, TemplateOptions{Seed: 2})
	assert.True(t, err == nil && made(other, 0) != made(a, 0), "two seeds have the same values, or %v", err)
	path := regexp.MustCompile(`^([0-9a-f]/){1,4}$`)
	depths := map[int]int{}
	counts := make([]int, 5)
	dirs, draws := parse(t, "${path:random(16, 4)}"), parse(t, "${math:random(5)}")
	for n := range uint64(50000) {
		p := made(dirs, n)
		assert.Must(t, path.MatchString(p), "event %d: the path %q", n, p)
		depths[strings.Count(p, "/")]++
		d, err := strconv.Atoi(made(draws, n))
		assert.Must(t, err == nil && d >= 0 && d <= 4, "event %d: %d and %v", n, d, err)
		counts[d]++
	}
	for d := 1; d <= 4; d++ {
		got := depths[d]
		assert.True(t, got >= 12000 && got <= 13000, "%d of 50000 paths have the depth %d, want a quarter", got, d)
	}
	for d, got := range counts {
		assert.True(t, got >= 9500 && got <= 10500, "%d of 50000 numbers are %d, want a fifth", got, d)
	}
}

// this.last() is the value for the event before, in whatever order events are asked for.
func TestSequence(t *testing.T) {
	for _, tt := range []struct {
		text  string
		order []uint64
		want  []string
	}{
		{"${this.last() + 1}%{-1}", []uint64{0, 1, 2, 100000, 3, 99999, 0, 300000, 1}, []string{"0", "1", "2", "100000", "3", "99999", "0", "300000", "1"}},
		{"${2 + this.last()}%{5}", []uint64{0, 10, 1 << 40}, []string{"7", "27", "2199023255559"}},
		{"${this.last() - 3}%{0}", []uint64{0, 2}, []string{"-3", "-9"}},
		{"${1 - this.last()}%{0}", []uint64{0, 1, 2}, []string{"1", "0", "1"}},
		{"${this.last() * 1 + 1}%{-1}", []uint64{0, 100000, 99999, 0, 3000000, 1}, []string{"0", "100000", "99999", "0", "3000000", "1"}},
		{"${(this.last() + 3) % 10}%{0}", []uint64{0, 1, 2, 3, 1000000}, []string{"3", "6", "9", "2", "3"}},
		{"${this.last() / 2}%{8}", []uint64{0, 1, 2, 3}, []string{"4.0", "2.0", "1.0", "0.5"}},
		{"${this.last() == 2 ? 0 : this.last() + 1}%{2}", []uint64{5, 4, 3}, []string{"2", "1", "0"}},
		{"${this.last() + 0.5}%{1}", []uint64{1, 0}, []string{"2.0", "1.5"}},
		{"<${this.last() * 1}%{env:get('LEVEL') + 0}>", []uint64{9}, []string{"<7>"}},
	} {
		e := parse(t, tt.text)
		for i, n := range tt.order {
			assert.Equal(t, made(e, n), tt.want[i], "%s: event %d", tt.text, n)
		}
	}
	// A random walk is the same, in whatever order its values are asked for.
	const walk = "${this.last() + rnd.nextInt(3) - 1}%{0}"
	a, b := parse(t, walk), parse(t, walk)
	want := make([]string, 20000)
	for n := range want {
		want[n] = made(a, uint64(n))
	}
	for n := len(want) - 1; n >= 0; n -= 7 {
		got := made(b, uint64(n))
		assert.Must(t, got == want[n], "event %d: got %s backwards, want %s", n, got, want[n])
	}
}

// A sequence keeps few marks, and its values stay right when it drops some.
func TestSequenceMarks(t *testing.T) {
	q := &sequence{next: func(c ctx) uint64 { return c.last + 1 }, marks: []uint64{0}, stride: 1}
	last := uint64(3*marksKept) * blockEvents
	for n := uint64(0); n <= last; n += blockEvents {
		got := q.at(ctx{event: n})
		assert.Must(t, got == n+1, "event %d: got %d", n, got)
	}
	assert.True(t, len(q.marks) <= marksKept && q.stride == 4, "%d marks, each %d blocks", len(q.marks), q.stride)
	for _, n := range []uint64{5, last / 3, last / 2, last, last + 5*blockEvents, 0} {
		assert.Equal(t, q.at(ctx{event: n}), n+1, "event %d", n)
	}
}

// #{...} is evaluated at most once a second, and %{...} once.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := parse(t, "${time:millisSinceEpoch()}")
		once := parse(t, "%{time:millisSinceEpoch()}")
		refreshed := parse(t, "#{time:millisSinceEpoch()}")
		counter := parse(t, "#{this.last() + 1}%{41}")
		draw := parse(t, "#{rnd.nextLong()}")
		start := time.Now().UnixMilli()
		var draws []string
		for i := range int64(31) { // 100 ms each
			now := start + 100*i
			for _, tt := range []struct {
				e    *Template
				want int64
			}{{live, now}, {once, start}, {refreshed, start + i/10*1000}, {counter, 41 + i/10}} {
				assert.Equal(t, made(tt.e, 0), strconv.FormatInt(tt.want, 10), "after %d ms", 100*i)
			}
			draws = append(draws, made(draw, uint64(i)))
			time.Sleep(100 * time.Millisecond)
		}
		assert.True(t, draws[0] == draws[9] && draws[0] != draws[10] && draws[10] != draws[20],
			"random values of the background: %q", draws)
	})
}

func TestNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 31, 13, 5, 59, 250_400_000, time.UTC)))
		for text, want := range map[string]string{
			"${date:formatNowIso8601()}":     "2026-01-31T13:05:59,250",
			"${date:formatNowRfc1123()}":     "Sat, 31 Jan 2026 13:05:59 GMT",
			"${date:formatNowAmazonStyle()}": "20260131T130559Z",
			"${time:millisSinceEpoch()}":     "1769864759250",
			"${time:nanos()}":                "1769864759250400000",
			`%{date:format("yyyyMMdd.HHmmss.SSS").format(date:from(time:millisSinceEpoch()))}`: "20260131.130559.250",
		} {
			assert.Equal(t, made(parse(t, text), 0), want, "%s", text)
		}
	})
}

// Where a text is evaluated more than once for an event, or before the run, what changes with time is
// refused. Nested texts grow exponentially: what may become too long is refused before it is made.
func TestLongTexts(t *testing.T) {
	for _, tt := range []struct{ open, inner, end string }{
		{"string:format('%1$s%1$s%1$s%1$s', ", "rnd.nextInt()", ")"},
		{"string:format('%1$s%1$s%1$s%1$s', ", "'constant'", ")"},
		{"string:join('', ", "'constant'", ", 'a rather long text', 'a rather long text', 'a rather long text')"},
	} {
		for depth := range 59 {
			expression := strings.Repeat(tt.open, depth) + tt.inner + strings.Repeat(tt.end, depth)
			for _, text := range []string{"${" + expression + "}", "${" + expression + " == 'a' ? 1 : 2}"} {
				if len(text) > maxText {
					continue
				}
				made, err := ParseTemplate(text, TemplateOptions{})
				if err == nil && (made.MaxLen() < 1 || made.MaxLen() > maxTemplate || len(made.Append(nil, 1)) > made.MaxLen()) {
					t.Errorf("%s may become %d bytes, and is %d", text, made.MaxLen(), len(made.Append(nil, 1)))
				}
				assert.True(t, depth <= 20 || !strings.HasPrefix(tt.open, "string:format") || err != nil &&
					strings.Contains(err.Error(), "and the limit is"), "%s: got %v", text, err)
			}
		}
	}
}

func TestUses(t *testing.T) {
	for _, tt := range []struct {
		text              string
		repeatable, ahead bool
	}{
		{"a${rnd.nextInt(5)}", true, true},
		{"%{time:nanos()}", true, true},
		{"${this.last() + 1}%{time:nanos()}", true, false},
		{"a${time:nanos()}", false, false},
		{"${rnd.nextLong(time:millisSinceEpoch())}", false, false},
		{"${date:formatNowIso8601()}", false, false},
		{"#{rnd.nextInt(5)}", false, false},
		{"#{1}", false, false},
	} {
		for use, want := range map[TemplateUse]bool{Live: true, Repeatable: tt.repeatable, Ahead: tt.ahead} {
			_, err := ParseTemplate(tt.text, TemplateOptions{Use: use})
			assert.Equal(t, err == nil, want, "%s, use %d: got %v", tt.text, use, err)
			assert.True(t, err == nil || strings.Contains(tt.text, "this") ||
				strings.Contains(err.Error(), "%{...} is evaluated once"), "%s: the error %q has no hint", tt.text, err)
		}
	}
	_, err := ParseTemplate("a ${1 + time:nanos()}", TemplateOptions{Use: Repeatable})
	var wrong *TemplateError
	assert.True(t, errors.As(err, &wrong) && wrong.Column == 9, "got %v, want the column of time:nanos", err)
}

func TestConstant(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "a": true, "%{rnd.nextInt(5)}": true, "${pi * 2}": true, "$${rnd.nextInt(5)}": true, "#{1}": true, "${env:get('USER')}": true,
		"${rnd.nextInt(5)}": false, "#{rnd.nextInt(5)}": false, "#{1}%{2}": false, "${this.last()}%{2}": false, "${time:nanos()}": false,
	} {
		assert.Equal(t, parse(t, text).Constant(), want, "%s: constant", text)
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		text, before, after string
		found               bool
	}{
		{"a=b", "a", "b", true},
		{"a=b=c", "a", "b=c", true},
		{"a", "a", "", false},
		{"", "", "", false},
		{"${1 == 2}=${3 == 4}", "${1 == 2}", "${3 == 4}", true},
		{"x-${'='}%{'='}=y", "x-${'='}%{'='}", "y", true},
		{"$${a=b", "$${a", "b", true},
		{"${a=b", "${a=b", "", false},
		{"a=${b", "a", "${b", true},
	} {
		before, after, found := CutText(tt.text, '=')
		assert.True(t, before == tt.before && after == tt.after && found == tt.found, "%s: got %q, %q, %t", tt.text, before, after, found)
	}
}

// The tables of documents have every function once, with a type and a meaning.
func TestTables(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range append(append(ExpressionFunctions(), ExpressionValues()...), ExpressionOperators()...) {
		assert.True(t, w.Form != "" && w.Result != "" && w.Help != "" && !strings.HasSuffix(w.Help, ".") && !seen[w.Form], "the row %q", w)
		seen[w.Form] = true
	}
	assert.True(t, len(seen) >= 45, "only %d rows", len(seen))
}
