package payload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

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
		assert.True(t, mean >= 0 && g.MaxSize() <= maxValue && mean <= float64(g.MaxSize())+1e-6,
			"mean %v, maximum %d", mean, g.MaxSize())
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
