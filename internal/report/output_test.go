package report

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// An output is read back as it was, and keeps its end if it is too large.
func TestOutput(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	var noise strings.Builder
	for range 4000 {
		for range 50 {
			noise.WriteByte(byte('!' + rnd.IntN(90)))
		}
		noise.WriteByte('\n')
	}
	for _, tt := range []struct {
		name, text string
		cut        int64
		most       int
		shortened  bool
	}{
		{"a log", strings.Repeat("a line\n", 1000), 0, 1 << 20, false},
		{"the end of one", "a line\n", 99, 1 << 20, false},
		{"one that does not compress", noise.String(), 5, 50_000, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOutput(tt.text, tt.cut, tt.most)
			b := assert.Value(json.Marshal(o))(t)
			var read Output
			assert.OK(t, json.Unmarshal(b, &read))
			got := assert.Value(read.Text())(t)
			assert.True(t, strings.HasSuffix(tt.text, got) && got != "" && (got != tt.text) == tt.shortened,
				"got %d bytes of %d", len(got), len(tt.text))
			if o.Bytes != int64(len(got)) || o.CutBytes-tt.cut != int64(len(tt.text)-len(got)) || len(o.Gzip) > tt.most*4/3+4 {
				t.Errorf("got %d bytes after %d, in %d", o.Bytes, o.CutBytes, len(o.Gzip))
			}
			before := tt.text[:len(tt.text)-len(got)]
			assert.True(t, before == "" || strings.HasSuffix(before, "\n"), "it begins in the middle of a line")
		})
	}
	assert.True(t, NewOutput("", 0) == nil, "nothing printed is something")
}

// FuzzOutput: any stored text gives either a bounded text or an error.
func FuzzOutput(f *testing.F) {
	f.Add(newOutput("a line\n", 0, 1<<20).Gzip)
	f.Add("H4sI")
	f.Add("")
	f.Fuzz(func(t *testing.T, stored string) {
		text, err := (&Output{Gzip: stored}).Text()
		assert.True(t, err != nil || len(text) <= 2*mostOutput, "%d bytes", len(text))
	})
}
