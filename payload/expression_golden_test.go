package payload

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
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
	out := assert.Value(exec.CommandContext(t.Context(), "java", "-XX:TieredStopAtLevel=1", "testdata/Golden.java").Output())(t)
	return string(out)
}

// A sum is a random expression, with what it should be: computed on the way, without a grammar.
type sum struct {
	text          string
	moving        string // the same, of values that are not known before
	integer       int64
	real          float64
	isReal, truth bool
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

// Arithmetic gives what Go computes, of constants and of values that are not known before: there nothing is folded.
func TestArithmeticAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawNumber(t, 3)
		want := strconv.FormatInt(x.integer, 10)
		if x.isReal {
			want = string(appendReal(nil, x.real, 64))
		}
		for i, text := range []string{x.text, x.moving} {
			e, err := ParseTemplate("${"+text+"}", TemplateOptions{})
			assert.Must(t, err == nil, "%s: %v", text, err)
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
		joined := before + "=" + after
		assert.Must(t, (!found || joined == text) && (found || before == text), "%q was cut into %q and %q", text, before, after)
	})
}

// checkChiSquare compares counts with the expectation from probabilities, in cells merged until each expects at least 10. The
// seeds are fixed, so the test is deterministic; 5 standard deviations are far more than chance explains.
func checkChiSquare(t *testing.T, counts, probabilities []float64) {
	t.Helper()
	total := 0.0
	for _, c := range counts {
		total += c
	}
	statistic, cells, got, want := 0.0, 0, 0.0, 0.0
	for i, p := range probabilities {
		got, want = got+counts[i], want+p*total
		if want >= 10 {
			statistic += (got - want) * (got - want) / want
			cells++
			got, want = 0, 0
		}
	}
	// Wilson and Hilferty: the cube root of chi-square over its degrees of freedom is very nearly normal.
	k := float64(cells - 1)
	z := (math.Cbrt(statistic/k) - (1 - 2/(9*k))) / math.Sqrt(2/(9*k))
	assert.True(t, math.Abs(z) <= 5 && cells >= 2, "chi-square %.1f of %d cells is %.1f standard deviations off", statistic, cells, z)
}

func TestUniformKeys(t *testing.T) {
	const keys = 1000
	for seed := range uint64(3) {
		g := generator(t, Spec{Seed: seed, Key: "uniform(1000)"})
		counts, want := make([]float64, keys), make([]float64, keys)
		for n := range uint64(500000) {
			counts[g.KeyNumber(n)]++
		}
		for i := range want {
			want[i] = 1.0 / keys
		}
		checkChiSquare(t, counts, want)
	}
}

func TestZipf(t *testing.T) {
	for _, n := range []int{1, 2, 10, 1000, maxAlias + 1} {
		for _, s := range []float64{0.2, 0.99, 1, 1 + 1e-10, 1.1, 2, 5} {
			want, sum := make([]float64, n), 0.0
			for i := range want {
				want[i] = math.Pow(float64(i+1), -s)
				sum += want[i]
			}
			for i := range want {
				want[i] /= sum
			}
			z := newZipf(uint64(n), s)
			z.prepare() // check invert also where the table replaces it
			methods := map[string]func(uint64) uint64{"invert": z.invert, "number": z.number}
			if n > maxAlias {
				delete(methods, "number") // the same as invert
			}
			for name, draw := range methods {
				t.Run(fmt.Sprintf("%s/%d/%g", name, n, s), func(t *testing.T) {
					counts := make([]float64, n)
					for i := range uint64(100000) {
						counts[draw(mix(42, i))]++
					}
					if n == 1 {
						return
					}
					checkChiSquare(t, counts, want)
				})
			}
		}
	}
	t.Run("more keys than memory", func(t *testing.T) {
		g := generator(t, Spec{Seed: 1, Key: "zipf(9007199254740992,0.5)"})
		var highest uint64
		for n := range uint64(10000) {
			highest = max(highest, g.KeyNumber(n))
		}
		// P(k < x) is sqrt(x/keys) here: the highest of 10,000 is near the end.
		assert.True(t, highest < maxKeys && highest >= maxKeys/1000*995, "the highest key is %d", highest)
	})
}

func TestSizes(t *testing.T) {
	for _, test := range []struct {
		size        string
		least, most int
		mean        float64
		quartile    float64 // the lower
	}{
		{"100", 100, 100, 100, 100},
		{"100-2000", 100, 2000, 1050, 575},
		{"0-1", 0, 1, 0.5, 0},
		{"weighted(100:70,1KiB:30)", 100, 1024, 0.7*100 + 0.3*1024, 100},
		{"weighted(1:1,5:0,9:1,50:0)", 1, 9, 5, 1},
		{"weighted(" + strings.TrimSuffix(strings.Repeat("10:1,30:1,", 20), ",") + ")", 10, 30, 20, 10},
		// Bounded at 4.009 sigma, the 1-1/32768 quantile; a mean of exp(sigma^2/2)
		// times the median; the quartile at -0.6745 sigma.
		{"lognormal(1KiB,0.5)", 138, 7600, 1024 * math.Exp(0.125), 1024 * math.Exp(-0.6745*0.5)},
		{"quantiles(60,80,80,500)", 60, 500, (70. + 80 + 290) / 3, 75},
		{"quantiles(7,7)", 7, 7, 7, 7},
		{"lognormal(300,1)", 5, 16524, 300 * math.Exp(0.5), 300 * math.Exp(-0.6745)},
	} {
		t.Run(test.size[:min(len(test.size), 40)], func(t *testing.T) {
			g := generator(t, Spec{Seed: 1, Size: test.size})
			const events = 200000
			sizes, sum := make([]int, events), 0.0
			for n := range sizes {
				sizes[n] = g.Size(uint64(n))
				sum += float64(sizes[n])
			}
			slices.Sort(sizes)
			if sizes[0] < test.least || sizes[events-1] > test.most || g.MaxSize() != test.most {
				t.Errorf("got %d to %d, MaxSize %d, want %d to %d", sizes[0], sizes[events-1], g.MaxSize(), test.least, test.most)
			}
			got := g.MeanSize()
			assert.True(t, math.Abs(got-test.mean) <= 0.003*test.mean, "got a mean of %v, want %v", got, test.mean)
			got = sum / events
			assert.True(t, math.Abs(got-g.MeanSize()) <= 0.01*test.mean, "%d events have a mean of %v, MeanSize says %v", events, got, g.MeanSize())
			got = float64(sizes[events/4])
			assert.True(t, math.Abs(got-test.quartile) <= 0.02*test.quartile, "got a lower quartile of %v, want %v", got, test.quartile)
		})
	}
}

// TestIndependence: sizes, keys and bytes of one event are independent.
func TestIndependence(t *testing.T) {
	g := generator(t, Spec{Seed: 1, Size: "1-4", Key: "uniform(4)"})
	counts := make([]float64, 4*4*4)
	for n := range uint64(200000) {
		b := g.AppendValue(nil, n)
		counts[(g.Size(n)-1)*16+int(g.KeyNumber(n))*4+int(b[0]>>6)]++
	}
	want := make([]float64, len(counts))
	for i := range want {
		want[i] = 1.0 / float64(len(want))
	}
	checkChiSquare(t, counts, want)
}

// At every position and in every pair of neighbours, all byte values are equally frequent.
func TestRandomBytes(t *testing.T) {
	g := generator(t, Spec{Seed: 1, Size: "43"}) // a block of 32, a word, and the rest
	flat := func(n int) []float64 {
		w := make([]float64, n)
		for i := range w {
			w[i] = 1 / float64(n)
		}
		return w
	}
	places := make([][]float64, 43)
	for i := range places {
		places[i] = make([]float64, 256)
	}
	pairs := make([]float64, 1<<16)
	var b []byte
	for n := range uint64(40000) {
		b = g.AppendValue(b[:0], n)
		for i, c := range b {
			places[i][c]++
			if i > 0 {
				pairs[int(b[i-1])<<8|int(c)]++
			}
		}
	}
	for _, counts := range places {
		checkChiSquare(t, counts, flat(256))
	}
	checkChiSquare(t, pairs, flat(1<<16))
}

// codecs compress a batch in one piece, as a producer does.
var codecs = []struct {
	name     string
	compress func(b []byte) (size int, err error)
}{
	{"gzip", func(b []byte) (int, error) {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, err := w.Write(b)
		err = errors.Join(err, w.Close())
		return out.Len(), err
	}},
	{"zstd", func(b []byte) (int, error) {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<17))
		if err != nil {
			return 0, err
		}
		return len(w.EncodeAll(b, nil)), nil
	}},
	{"lz4", func(b []byte) (int, error) {
		n, err := lz4.CompressBlock(b, make([]byte, lz4.CompressBlockBound(len(b))), nil)
		return n, err
	}},
	{"snappy", func(b []byte) (int, error) { return len(s2.EncodeSnappy(nil, b)), nil }},
}

// Batches of 128 KiB of events compress to the requested ratio, with each codec and at each size.
func TestCompression(t *testing.T) {
	for _, test := range []struct {
		payload  string
		low, top float64
	}{
		{"random", 1, 1.005},
		{"text", 0.15, 0.75},
		{"zero", 0, 0.06}, // snappy encodes a copy of 64 bytes in 3
		{"compressible(0.1)", 0.07, 0.16},
		{"compressible(0.25)", 0.22, 0.30},
		{"compressible(0.5)", 0.47, 0.54},
		{"compressible(0.75)", 0.72, 0.78},
		{"compressible(1)", 1, 1.005},
	} {
		for _, size := range []string{"100", "1KiB", "64KiB", "100-2000"} {
			g := generator(t, Spec{Seed: 1, Payload: test.payload, Size: size})
			var batch []byte
			for n := uint64(0); len(batch) < 128<<10; n++ {
				batch = g.AppendValue(batch, n)
			}
			for _, codec := range codecs {
				t.Run(fmt.Sprintf("%s/%s/%s", test.payload, size, codec.name), func(t *testing.T) {
					compressed := assert.Value(codec.compress(batch))(t)
					got := float64(compressed) / float64(len(batch))
					t.Logf("%.3f", got)
					assert.True(t, got >= test.low && got <= test.top, "got %.3f, want %v to %v", got, test.low, test.top)
				})
			}
		}
	}
}

func TestText(t *testing.T) {
	got := len(strings.Fields(wordList))
	assert.Must(t, got == 256, "got %d words, want 256", got)
	known := map[string]bool{}
	for w := range strings.FieldsSeq(wordList) {
		assert.True(t, len(w) <= 15 && !known[w], "word %q is too long or repeated", w)
		known[w] = true
	}
	value := string(generator(t, Spec{Payload: "text", Size: "1000"}).AppendValue(nil, 0))
	all := strings.Split(value, " ")
	for _, w := range all[:len(all)-1] {
		assert.True(t, known[w], "%q is not a word of the list", w)
	}
}

func TestRefused(t *testing.T) {
	for _, row := range append(testkit.CSV(t, "testdata/refused.csv"), [][]string{
		{"weighted by too many", "size", "weighted(" + strings.Repeat("1:1,", 1000) + "1:1)", "1001 choices", "its forms"},
		{"an empty file", "payload", "file:" + os.DevNull, "is empty", "at least one"},
	}...) {
		name, of, text, wrong, forms := row[0], row[1], row[2], row[3], row[4]
		t.Run(name, func(t *testing.T) {
			spec, own := Spec{}, ""
			switch of {
			case "size":
				spec.Size, own = text, SizeForms
			case "key":
				spec.Key, own = text, KeyForms
			case "payload":
				spec.Payload, own = text, PayloadForms
			case "header":
				spec.Headers = []string{text}
			}
			if forms == "its forms" {
				forms = own
			}
			_, err := New(spec)
			assert.Must(t, err != nil, "got no error, want %q", wrong)
			assert.Has(t, err.Error(), wrong, forms)
			got := strings.Count(err.Error(), "want ")
			assert.True(t, got <= 1, "error %q contains \"want \" %d times", err, got)
		})
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	for _, test := range testkit.Table[struct {
		Name, Data, Form string // PATH stands for the file
		Want             []string
	}](t, "testdata/files.yaml") {
		t.Run(test.Name, func(t *testing.T) {
			path := filepath.Join(dir, "with, comma (and parentheses)")
			assert.OK(t, os.WriteFile(path, []byte(test.Data), 0o600))
			g := generator(t, Spec{Payload: strings.ReplaceAll(test.Form, "PATH", path)})
			longest := 0
			for n, want := range test.Want {
				got := string(g.AppendValue(nil, uint64(n)))
				assert.True(t, got == want && g.Size(uint64(n)) == len(want), "event %d: got %q of size %d, want %q", n, got, g.Size(uint64(n)), want)
				longest = max(longest, len(want))
			}
			assert.Equal(t, g.MaxSize(), longest, "maximum")
		})
	}
	t.Run("at random", func(t *testing.T) {
		path := filepath.Join(dir, "numbers")
		assert.OK(t, os.WriteFile(path, []byte("0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n"), 0o600))
		g := generator(t, Spec{Seed: 1, Payload: "file(" + path + ", random)"})
		counts := make([]float64, 10)
		for n := range uint64(100000) {
			counts[g.AppendValue(nil, n)[0]-'0']++
		}
		want := make([]float64, 10)
		for i := range want {
			want[i] = 0.1
		}
		checkChiSquare(t, counts, want)
		assert.Equal(t, g.MeanSize(), 1.0, "the mean")
		got := g.Describe()
		assert.True(t, strings.Contains(got, "10 values, 1 B at most"), "got %q", got)
	})
}

// FuzzCut: joining the values of a file with the delimiter gives the file.
func FuzzCut(f *testing.F) {
	f.Add([]byte("a\nb\n"), "\n")
	f.Add([]byte("a\nb"), "\n")
	f.Add([]byte("\n\n"), "\n")
	f.Add([]byte("aaa"), "aa")
	f.Add([]byte("xaaa"), "aa")
	f.Add([]byte{0, 0, 1}, "\x00")
	f.Fuzz(func(t *testing.T, data []byte, delim string) {
		if delim == "" {
			return
		}
		file := cut(data, delim)
		if len(data) == 0 {
			assert.True(t, file == nil, "values from an empty file")
			return
		}
		var values []string
		for n := range file.count() {
			line := string(file.line(0, uint64(n)))
			assert.True(t, !strings.Contains(line, delim), "value %q contains the delimiter %q", line, delim)
			assert.True(t, len(line) <= file.max, "value of %d bytes, maximum %d", len(line), file.max)
			values = append(values, line)
		}
		got := strings.Join(values, delim)
		assert.True(t, got == string(data) || got+delim == string(data), "got %q from %q split by %q", values, data, delim)
	})
}

// FuzzNew: no text makes New panic, and every accepted specification generates events.
func FuzzNew(f *testing.F) {
	for _, s := range specs {
		f.Add(s.Size, s.Payload, s.Key)
	}
	for _, s := range []string{"(", ")", "()", "weighted(", "weighted(:)", "weighted(1:1e400)", "lognormal(1,1e-300)", "zipf(9007199254740992,10)", "zipf(2,1e-300)", "5-5-5", "quantiles(1,1)", "quantiles(0,1073741824)", "compressible(1e-2)"} {
		f.Add(s, s, s)
	}
	f.Fuzz(func(t *testing.T, size, kind, key string) {
		if strings.HasPrefix(strings.TrimSpace(kind), "file") {
			return // do not read paths that the fuzzer generates
		}
		g, err := New(Spec{Seed: 1, Size: size, Payload: kind, Key: key})
		if err != nil {
			return
		}
		mean := g.MeanSize()
		assert.True(t, mean >= 0 && g.MaxSize() <= maxValue && mean <= float64(g.MaxSize())+1e-6, "mean %v, maximum %d", mean, g.MaxSize())
		for n := range uint64(10) {
			if got := g.Size(n); got < 0 || got > g.MaxSize() {
				t.Errorf("size %d, maximum %d", got, g.MaxSize())
			}
			got := g.AppendKey(nil, n)
			assert.True(t, len(got) <= g.MaxKeySize(), "key %q, at most %d bytes", got, g.MaxKeySize())
			if g.Size(n) < 1<<16 {
				got := g.AppendValue(nil, n)
				assert.True(t, len(got) == g.Size(n), "value of %d bytes, size %d", len(got), g.Size(n))
			}
		}
	})
}
