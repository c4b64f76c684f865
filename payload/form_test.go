package payload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name  string
		spec  Spec
		err   string // what the error must say
		forms string
	}{
		{"size of no unit", Spec{Size: "10Q"}, `"Q"`, SizeForms},
		{"size of two meanings", Spec{Size: "64K"}, "may mean 64KiB (powers of 1024) or 64kB (powers of 1000)", "want one of these two"},
		{"size of two meanings in a range", Spec{Size: "1kB-2KB"}, "may mean 2KiB (powers of 1024) or 2kB (powers of 1000)", "want one of these two"},
		{"negative size", Spec{Size: "-5"}, "negative", SizeForms},
		{"range without end", Spec{Size: "5-"}, "empty", SizeForms},
		{"range backwards", Spec{Size: "200-100"}, "ends before", SizeForms},
		{"three ends", Spec{Size: "1-2-3"}, `"-3"`, SizeForms},
		{"too large", Spec{Size: "2GiB"}, "1GiB", SizeForms},
		{"unknown distribution", Spec{Size: "pareto(1)"}, `"pareto"`, SizeForms},
		{"unclosed", Spec{Size: "lognormal(1,1"}, "closing )", SizeForms},
		{"rubbish behind", Spec{Size: "lognormal(1,1)x"}, "closing )", SizeForms},
		{"weighted without choices", Spec{Size: "weighted()"}, "0 choices", SizeForms},
		{"weighted bare", Spec{Size: "weighted"}, "0 choices", SizeForms},
		{"weighted without weight", Spec{Size: "weighted(100)"}, "no weight", SizeForms},
		{"weighted by nothing", Spec{Size: "weighted(100:0)"}, "all weights", SizeForms},
		{"weighted below nothing", Spec{Size: "weighted(100:-1)"}, "not a weight", SizeForms},
		{"weighted by NaN", Spec{Size: "weighted(100:NaN)"}, "not a weight", SizeForms},
		{"weighted by too many", Spec{Size: "weighted(" + strings.Repeat("1:1,", 1000) + "1:1)"}, "1001 choices", SizeForms},
		{"lognormal of one", Spec{Size: "lognormal(1KiB)"}, "median and a sigma", SizeForms},
		{"lognormal without spread", Spec{Size: "lognormal(1KiB,0)"}, "sigma", SizeForms},
		{"lognormal of NaN", Spec{Size: "lognormal(1KiB,NaN)"}, "sigma", SizeForms},
		{"lognormal of nothing", Spec{Size: "lognormal(0,1)"}, "median is 0", SizeForms},
		{"lognormal too large", Spec{Size: "lognormal(1MiB,3)"}, "4 sigma", SizeForms},
		{"one quantile", Spec{Size: "quantiles(5)"}, "1 quantiles", SizeForms},
		{"quantiles that fall", Spec{Size: "quantiles(1,3,2)"}, "after a larger", SizeForms},
		{"quantile of nothing", Spec{Size: "quantiles(1,,2)"}, "empty", SizeForms},
		{"unknown key", Spec{Key: "random"}, `"random"`, KeyForms},
		{"no keys", Spec{Key: "uniform(0)"}, "0 keys", KeyForms},
		{"uniform bare", Spec{Key: "uniform"}, "number of keys", KeyForms},
		{"too many keys", Spec{Key: "uniform(1e16)"}, "2^53", KeyForms},
		{"zipf without exponent", Spec{Key: "zipf(10)"}, "exponent", KeyForms},
		{"zipf of exponent 0", Spec{Key: "zipf(10,0)"}, "exponent", KeyForms},
		{"zipf of NaN", Spec{Key: "zipf(10,nan)"}, "exponent", KeyForms},
		{"names without digits", Spec{Key: "names"}, "a number of digits", KeyForms},
		{"names without end", Spec{Key: "names(13)"}, "2^63", KeyForms},
		{"names of radix 37", Spec{Key: "names(3,37)"}, "radix", KeyForms},
		{"names of no digit", Spec{Key: "names(0)"}, "digits", KeyForms},
		{"uniform keys too short", Spec{Key: "uniform(1000,2)"}, "digits from 3", KeyForms},
		{"zipf keys too long", Spec{Key: "zipf(1000,1.1,5000)"}, "to 4096", KeyForms},
		{"zipf of four", Spec{Key: "zipf(1000,1.1,5,6)"}, "exponent", KeyForms},
		{"seq of something", Spec{Key: "seq(5)"}, "takes nothing", KeyForms},
		{"unclosed key", Spec{Key: "zipf(10,1"}, "closing )", KeyForms},
		{"unknown payload", Spec{Payload: "json"}, `"json"`, PayloadForms},
		{"random of something", Spec{Payload: "random(5)"}, "takes nothing", PayloadForms},
		{"no ratio", Spec{Payload: "compressible"}, "is empty", PayloadForms},
		{"ratio of nothing", Spec{Payload: "compressible(0)"}, "zero", PayloadForms},
		{"ratio above all", Spec{Payload: "compressible(4)"}, "more than", PayloadForms},
		{"no path", Spec{Payload: "file:"}, "no file", "want file:PATH"},
		{"no path in parentheses", Spec{Payload: "file()"}, "no file", "want file:PATH"},
		{"missing file", Spec{Payload: "file:/does/not/exist"}, "no such file", "--payload"},
		{"a directory", Spec{Payload: "file:/"}, "directory", "--payload"},
		{"an empty file", Spec{Payload: "file:" + os.DevNull}, "is empty", "at least one"},
		{"no letters", Spec{Payload: "letters(0)"}, "at least 1 must be distinct", ""},
		{"letters of no number", Spec{Payload: "letters(x)"}, "letters", PayloadForms},
		{"no characters", Spec{Payload: "chars"}, "the set is empty", PayloadForms},
		{"an empty set", Spec{Payload: "chars()"}, "the set is empty", PayloadForms},
		{"a range that falls", Spec{Payload: "chars(z-a)"}, "the range z-a is empty", PayloadForms},
		{"a character of several bytes", Spec{Payload: "chars(ab\u00e9)"}, "printable ASCII", PayloadForms},
		{"a character that is not seen", Spec{Payload: "chars(a\t)"}, "printable ASCII", PayloadForms},
		{"too many characters", Spec{Payload: "chars( -~ -~ -~)"}, "at most 256 characters, not 285", PayloadForms},
		{"an open set", Spec{Payload: "chars(a-z"}, "closing )", PayloadForms},
		{"no expression", Spec{Payload: "file(x,match=[)"}, "missing closing ]", PayloadForms},
		{"matches of nothing", Spec{Payload: "file(x,match=-*)"}, "also matches the empty text", PayloadForms},
		{"empty delimiter", Spec{Payload: "file(x,delim=)"}, "delimiter is empty", PayloadForms},
		{"unknown escape", Spec{Payload: `file(x,delim=\q)`}, `\q`, PayloadForms},
		{"open escape", Spec{Payload: `file(x,delim=\)`}, `ends in \`, PayloadForms},
		{"half an escape", Spec{Payload: `file(x,delim=\x4)`}, `\x`, PayloadForms},
		{"no hexadecimal", Spec{Payload: `file(x,delim=\x4g)`}, `\x4g`, PayloadForms},
		{"header without value", Spec{Headers: []string{"a"}}, "NAME=VALUE", "such as"},
		{"header without name", Spec{Headers: []string{"=a"}}, "NAME=VALUE", "such as"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := New(test.spec)
			assert.Must(t, err != nil, "got no error, want %q", test.err)
			assert.Has(t, err.Error(), test.err, test.forms)
			got := strings.Count(err.Error(), "want ")
			assert.True(t, got <= 1, "error %q contains \"want \" %d times", err, got)
		})
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		name, data, form string // PATH stands for the file
		want             []string
	}{
		{"lines", "a\nbb\nccc\n", "file:PATH", []string{"a", "bb", "ccc", "a"}},
		{"last line open", "a\nbb", "file(PATH)", []string{"a", "bb", "a"}},
		{"empty lines are values", "a\n\nb\n\n", "file:PATH", []string{"a", "", "b", "", "a"}},
		{"one empty line", "\n", "file:PATH", []string{"", ""}},
		{"carriage returns are bytes", "a\r\nb\r\n", "file:PATH", []string{"a\r", "b\r"}},
		{"zero bytes", "a\x00b\nc\x00", `file(PATH,delim=\0)`, []string{"a", "b\nc", "a"}},
		{"longer delimiter", "a--b-c--", `file(PATH,delim=--)`, []string{"a", "b-c", "a"}},
		{"overlapping delimiter", "aaa", `file(PATH,delim=aa)`, []string{"", "a", ""}},
		{"a comma by its number", "a,b", `file(PATH,delim=\x2c)`, []string{"a", "b", "a"}},
		{"escapes", "a\t\r\n\\b", `file(PATH,delim=\t\r\n\\)`, []string{"a", "b"}},
		{"matches", "a--b-c---", `file(PATH,match=-+)`, []string{"a", "b", "c", "a"}},
		{"matches with a number of signs", "a12b3c4567d", `file(PATH,match=[0-9]{1,3})`, []string{"a", "b", "c", "", "d", "a"}},
		{"matches of commas and blanks", "a, b,c", `file(PATH,match=, )`, []string{"a", "b,c", "a"}},
		{"matches behind other options", "a, a,", `file(PATH,random,delim=x,match=,\s?)`, []string{"a", "a", "a"}},
		{"matches of one blank", "a b", `file(PATH, match= )`, []string{"a", "b", "a"}},
		{"matches of what looks like an option", "a,random)b", `file(PATH,match=,random\))`, []string{"a", "b", "a"}},
		{"a match at the beginning", "|a||b|", `file(PATH,match=\|)`, []string{"a", "", "b", "a"}},
		{"only a match", "|", `file(PATH,match=\|)`, []string{"", ""}},
		{"no match in it", "abc", "file(PATH,match=[0-9])", []string{"abc", "abc"}},
		{"no delimiter in it", "abc", "file:PATH", []string{"abc", "abc"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(dir, "with, comma (and parentheses)")
			assert.OK(t, os.WriteFile(path, []byte(test.data), 0o600))
			g := generator(t, Spec{Payload: strings.ReplaceAll(test.form, "PATH", path)})
			longest := 0
			for n, want := range test.want {
				if got := string(g.AppendValue(nil, uint64(n))); got != want || g.Size(uint64(n)) != len(want) {
					t.Errorf("event %d: got %q of size %d, want %q", n, got, g.Size(uint64(n)), want)
				}
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
		if got, want := g.MeanSize(), 1.0; got != want {
			t.Errorf("got a mean of %v, want %v", got, want)
		}
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
		if !(mean >= 0) || g.MaxSize() > maxValue || mean > float64(g.MaxSize())+1e-6 {
			t.Errorf("mean %v, maximum %d", mean, g.MaxSize())
		}
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
