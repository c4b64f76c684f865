package measure

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// TestText: a histogram comes back exactly, and adding decoded ones equals adding the
// originals.
func TestText(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		a, b := NewHistogram(), NewHistogram()
		for range rng.IntN(300) {
			a.RecordN(time.Duration(rng.Int64N(int64(90*time.Minute))>>rng.IntN(43)), 1+rng.Uint64N(5))
			b.Record(time.Duration(rng.Int64N(int64(time.Second))))
		}
		x, y := recoded(t, a), recoded(t, b.Compact())
		assert.Must(t, x.Equal(a) && y.Equal(b) && x.Mean() == a.Mean() && x.Min() == a.Min() && x.Max() == a.Max(),
			"decoded %v, want %v", x, a)
		a.Merge(b)
		if x.Merge(y); !x.Equal(a) || x.Sum() != a.Sum() || x.Below() != a.Below() || x.Above() != a.Above() {
			t.Fatalf("the sum of decoded ones is %v, want %v", x, a)
		}
	}
}

func recoded(t *testing.T, h *Histogram) *Histogram {
	t.Helper()
	text := assert.Value(json.Marshal(Set{Response: h}))(t)
	var s Set
	assert.OK(t, json.Unmarshal(text, &s))
	assert.Must(t, s.Service == nil, "a missing histogram exists after decoding")
	return s.Response
}

// FuzzText: no text crashes the decoder, and what it accepts can be used and encoded again.
func FuzzText(f *testing.F) {
	for _, values := range [][]time.Duration{nil, {0}, {time.Hour * 2}, {time.Microsecond, time.Millisecond, time.Hour}} {
		h := NewHistogram()
		for _, d := range values {
			h.Record(d)
		}
		text, _ := h.MarshalText()
		f.Add(string(text))
	}
	f.Add("AQAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, text string) {
		var h Histogram
		if h.UnmarshalText([]byte(text)) != nil {
			return
		}
		h.Percentile(99)
		h.Record(time.Second)
		h.Merge(&h)
		h.Reset()
		assert.Must(t, h.Count() == 0, "not empty after Reset")
	})
}
