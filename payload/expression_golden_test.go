package payload

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

const goldenFile = "testdata/java.tsv"

// Functions and operators give what Java gives. testdata/Golden.java printed the values.
func TestGolden(t *testing.T) {
	if testkit.Update() {
		assert.OK(t, os.WriteFile(goldenFile, []byte(java(t)), 0o644))
	}
	data := assert.Value(os.ReadFile(goldenFile))(t)
	tried := map[string]bool{}
	rows := 0
	for line := range strings.Lines(string(data)) {
		text, want, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		assert.Must(t, ok, "%q is not a row", line)
		rows++
		for i := range functions {
			if strings.Contains(text, functions[i].name+"(") {
				tried[functions[i].name] = true
			}
		}
		e, err := ParseTemplate("<${"+text+"}>", TemplateOptions{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		assert.Equal(t, string(e.Append(nil, 0)), "<"+want+">", "%s", text, want)
	}
	assert.True(t, rows >= 1000, "the golden file has only %d rows", rows)
	// These depend on the time, the environment or random numbers, and have other tests.
	others := strings.Fields("date:formatNowIso8601 date:formatNowRfc1123 date:formatNowAmazonStyle env:get math:random path:random time:millisSinceEpoch time:nanos")
	for i := range functions {
		name := functions[i].name
		assert.True(t, tried[name] || strings.Contains(strings.Join(others, " ")+" ", name+" "), "the golden file does not have %s", name)
	}
}

// The golden file is what a Java of this machine prints.
func TestGoldenIsOfJava(t *testing.T) {
	if _, err := exec.LookPath("java"); err != nil {
		t.Skip("java is missing")
	}
	data := assert.Value(os.ReadFile(goldenFile))(t)
	assert.Same(t, java(t), string(data), "the golden file and Java")
}

func java(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "java", "-XX:TieredStopAtLevel=1", "testdata/Golden.java").Output()
	assert.OK(t, err)
	return string(out)
}

// A sum is a random expression, with what it should be: computed on the way, without a grammar.
type sum struct {
	text    string
	moving  string // the same, of values that are not known before
	integer int64
	real    float64
	isReal  bool
	truth   bool
}

// write sets both texts, each made of those of the parts.
func (s *sum) write(format string, parts ...sum) {
	var texts, moving []any
	for _, p := range parts {
		texts, moving = append(texts, p.text), append(moving, p.moving)
	}
	s.text, s.moving = fmt.Sprintf(format, texts...), fmt.Sprintf(format, moving...)
}

// drawNumber draws an expression that is a number, in parentheses if it has operators.
func drawNumber(t *rapid.T, depth int) (out sum) {
	kinds := 8
	if depth == 0 {
		kinds = 2
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		v := rapid.Int64Range(0, math.MaxInt64).Draw(t, "integer")
		n := strconv.FormatInt(v, 10)
		return sum{text: n, moving: "(" + n + " + math:random(1))", integer: v}
	case 1:
		v := rapid.Float64Range(0, 1e9).Draw(t, "real")
		n := strconv.FormatFloat(v, 'e', -1, 64)
		return sum{text: n, moving: "(" + n + " + math:random(1))", real: v, isReal: true}
	case 2:
		x := drawNumber(t, depth-1)
		out = sum{integer: -x.integer, real: -x.real, isReal: x.isReal}
		out.write("(-%s)", x)
		return out
	case 3:
		c, x, y := drawTruth(t, depth-1), drawNumber(t, depth-1), drawNumber(t, depth-1)
		a, b := alike(x, y)
		if out = b; c.truth {
			out = a
		}
		out.write("(%s ? %s : %s)", c, x, y)
		return out
	}
	op := rapid.SampledFrom([]string{"+", "-", "*", "/", "%"}).Draw(t, "operator")
	x, y := drawNumber(t, depth-1), drawNumber(t, depth-1)
	out.write("(%s "+strings.ReplaceAll(op, "%", "%%")+" %s)", x, y)
	if op == "/" {
		x, y = asReal(x), asReal(y)
	}
	a, b := alike(x, y)
	if out.isReal = a.isReal; out.isReal {
		out.real = map[string]float64{"+": a.real + b.real, "-": a.real - b.real, "*": a.real * b.real, "/": a.real / b.real, "%": math.Mod(a.real, b.real)}[op]
		return out
	}
	switch op {
	case "+":
		out.integer = a.integer + b.integer
	case "-":
		out.integer = a.integer - b.integer
	case "*":
		out.integer = a.integer * b.integer
	case "%":
		if b.integer == 0 {
			return x // that would be an error
		}
		out.integer = a.integer % b.integer
	}
	return out
}

func drawTruth(t *rapid.T, depth int) (out sum) {
	if depth <= 0 || rapid.Bool().Draw(t, "constant") {
		v := rapid.Bool().Draw(t, "truth")
		n := strconv.FormatBool(v)
		return sum{text: n, moving: "(math:random(1) == 0 && " + n + ")", truth: v}
	}
	if rapid.Bool().Draw(t, "logical") {
		x, y := drawTruth(t, depth-1), drawTruth(t, depth-1)
		if rapid.Bool().Draw(t, "and") {
			out.truth = x.truth && y.truth
			out.write("(%s && %s)", x, y)
			return out
		}
		out.truth = !x.truth || y.truth
		out.write("(!%s || %s)", x, y)
		return out
	}
	x, y := drawNumber(t, depth-1), drawNumber(t, depth-1)
	a, b := alike(x, y)
	if out.truth = a.integer < b.integer; a.isReal {
		out.truth = a.real < b.real
	}
	out.write("(%s < %s)", x, y)
	return out
}

func asReal(x sum) sum {
	if !x.isReal {
		x.real, x.isReal = float64(x.integer), true
	}
	return x
}

func alike(x, y sum) (sum, sum) {
	if x.isReal != y.isReal {
		return asReal(x), asReal(y)
	}
	return x, y
}

// Arithmetic gives what Go computes, of constants and of values that are not known before:
// there nothing is folded.
func TestArithmeticAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawNumber(t, 3)
		want := strconv.FormatInt(x.integer, 10)
		if x.isReal {
			want = string(appendReal(nil, x.real, 64))
		}
		for i, text := range []string{x.text, x.moving} {
			e, err := ParseTemplate("${"+text+"}", TemplateOptions{})
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if got := string(e.Append(nil, 1)); got != want || e.Constant() != (i == 0) {
				t.Fatalf("%s: got %s, constant %t, want %s", text, got, e.Constant(), want)
			}
		}
	})
}

// Dates are those of package time, in all years that it can print.
func TestDatesAgree(t *testing.T) {
	p := mustDate("yyyy-MM-dd'T'HH:mm:ss.SSS EEEE D MMMM MMM EEE a hh K H")
	rapid.Check(t, func(t *rapid.T) {
		millis := rapid.Int64Range(-62135596800000, 253402300799999).Draw(t, "milliseconds") // the years 1 to 9999
		at := time.UnixMilli(millis).UTC()
		want := at.Format("2006-01-02T15:04:05.000 Monday ") + strconv.Itoa(at.YearDay()) +
			at.Format(" January Jan Mon PM 03 ") + strconv.Itoa(at.Hour()%12) + " " + strconv.Itoa(at.Hour())
		if got := string(p.append(nil, millis)); got != want {
			t.Fatalf("%d: got %s, want %s", millis, got, want)
		}
	})
	// Beyond, nothing breaks.
	for _, millis := range []int64{math.MinInt64, math.MaxInt64, -62135596800001} {
		got := p.append(nil, millis)
		assert.True(t, len(got) <= p.most, "%d: %d bytes, at most %d", millis, len(got), p.most)
	}
}

// FuzzParse: no text makes Parse or Append panic; a value is never longer than announced,
// and is the same for the same event unless it depends on the time.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "a", "${1}", "%{1}", "#{1}", "${1}%{2}", "$${", "${'}'}", "${((1))}", "${1 ? 2 : 3}", "${true ? 1 : 'a'}",
		"${this.last() + 1}%{-1}", "#{this.last() / 2}%{1}", "${rnd.nextInt(5)}${rnd.nextLong()}",
		`x-${math:random(30) + 1}`, `${date:format("yyyy-MM-dd'T'HH:mm:ssZ").format(date:from(rnd.nextLong(time:millisSinceEpoch())))}`,
		"${path:random(16, 2)}", "${string:format('%5.2f|%-8s|%,d', 1.5, 'a', 1000000)}", "${string:join(', ', 1, 2.5, true)}",
		"${int64:toString(int64:xorShift(rnd.nextLong()), 36)}", "${env:get('USER')}", "${math:pow(2, 0.5) % 1}", "${-9223372036854775807 - 1}",
		"${9e999}", "${'a' + 1}", "${1 % 0}", "${date:from(9223372036854775807)}", "${math:floor(-1e300) + 0}", "${not true and false or 1 lt 2}",
	} {
		f.Add(s, uint64(0))
	}
	f.Fuzz(func(t *testing.T, text string, event uint64) {
		event %= 1 << 16 // this.last() computes all events before
		for _, use := range []TemplateUse{Live, Repeatable, Ahead} {
			e, err := ParseTemplate(text, TemplateOptions{Seed: 3, Use: use, Env: environment})
			if err != nil {
				wrong, ok := err.(*TemplateError) //nolint:errorlint // Parse returns this type
				assert.Must(t, ok && wrong.Column >= 1 && wrong.Column <= len(text)+2 && !strings.Contains(wrong.Why, "hunter2"),
					"%q: %v", text, err)
				continue
			}
			got := string(e.Append([]byte("before"), event))
			assert.Must(t, strings.HasPrefix(got, "before") && len(got)-len("before") <= e.MaxLen(),
				"%q: %q has more than %d bytes", text, got, e.MaxLen())
			again := string(e.Append([]byte("before"), event))
			assert.Must(t, again == got || use == Live, "%q: %q and %q", text, got, again)
			assert.Must(t, !e.Constant() || string(e.Append(nil, event+1)) == got[len("before"):], "%q is not constant", text)
			assert.Must(t, HasExpression(text) || got == "before"+text, "%q has no expression, and became %q", text, got)
		}
		before, after, found := CutText(text, '=')
		if joined := before + "=" + after; found && joined != text || !found && before != text {
			t.Fatalf("%q was cut into %q and %q", text, before, after)
		}
	})
}
