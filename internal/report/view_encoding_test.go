package report

import (
	"slices"
	"strings"
	"testing"

	"carronade/measure"
	"carronade/test/testkit/assert"
)

// A report says whether events were pooled or fresh, and what share of a codec's work was
// measured.
func TestEncoding(t *testing.T) {
	for _, tt := range []struct {
		name          string
		e             *measure.Encoding
		events, codec string
	}{
		{"not known", nil, "", ""},
		{"fresh", &measure.Encoding{Events: measure.Fresh}, "fresh: each was encoded as it was sent", ""},
		{"pooled", &measure.Encoding{Events: measure.Pooled, Distinct: 12_345}, "pooled: 12,345 different ones were encoded before the run, and repeat", ""},
		{"pooled, of unknown number", &measure.Encoding{Events: measure.Pooled}, "pooled: encoded before the run, and sent again and again", ""},
		{
			"pooled, with ids", &measure.Encoding{Events: measure.Pooled, Distinct: 40, Except: "ids and times"},
			"pooled: 40 different ones were encoded before the run, and repeat except for their ids and times", "",
		},
		{
			"compressed before", encoded(measure.Pooled, "zstd", 0),
			"pooled: encoded before the run, and sent again and again", "0% of the work of zstd was measured: the events were compressed before the run",
		},
		{
			"partly", encoded(measure.Pooled, "zstd", 0.0512),
			"pooled: encoded before the run, and sent again and again", "5.12% of the work of zstd was measured: the other events were compressed before the run",
		},
		{
			"compressed as sent", encoded(measure.Fresh, "gzip", 1),
			"fresh: each was encoded as it was sent", "100% of the work of gzip was measured: the events were compressed as they were sent",
		},
		{"share unknown", &measure.Encoding{Events: measure.Fresh, Codec: "gzip"}, "fresh: each was encoded as it was sent", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := openLoop()
			in.Encoding = tt.e
			d := build(in)
			events, codec := "", ""
			for _, c := range d.Conditions() {
				if c.Name == "events" {
					events = c.Text
				}
			}
			for _, v := range d.Verdicts() {
				if v.Label == "codec" {
					codec = strings.Join(v.Sentences(), " ")
				}
			}
			assert.True(t, events == tt.events && codec == tt.codec, "got %q and %q, want %q and %q", events, codec, tt.events, tt.codec)
			assert.True(t, !slices.Contains(d.Against(), codec) || codec == "", "the share counts against the run")
		})
	}
}

func encoded(events, codec string, measured float64) *measure.Encoding {
	e := &measure.Encoding{Events: events}
	e.Compressed(codec, measured)
	return e
}
