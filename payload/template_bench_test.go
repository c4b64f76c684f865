package payload

import (
	"testing"

	"carronade/test/testkit/assert"
)

// texts are what users write; the first two are mongoose's own examples.
var texts = []struct{ name, text string }{
	{"date", `${date:format("yyyy-MM-dd'T'HH:mm:ssZ").format(date:from(rnd.nextLong(time:millisSinceEpoch())))}`},
	{"name", `x-amz-meta-${math:random(30) + 1}`},
	{"literal", "carronade"},
	{"now", "${date:formatNowIso8601()}"},
	{"refreshed", "#{date:formatNowRfc1123()}"},
	{"sequence", "${this.last() + 1}%{-1}"},
	{"path", "${path:random(16, 2)}"},
	{"format", "${string:format('%08d-%s', rnd.nextInt(1000000), rnd.nextInt(2) == 0 ? 'eu' : 'us')}"},
	{"real", "${math:sqrt(rnd.nextInt(1000000)) / 3}"},
	{"compared", "${int64:toString(rnd.nextInt(9), 10) == '5' ? 'five' : 'other'}"},
}

// A value takes 200 ns at most, and no allocation.
func BenchmarkAppend(b *testing.B) {
	for _, tt := range texts {
		b.Run(tt.name, func(b *testing.B) {
			e := parse(b, tt.text)
			dst := make([]byte, 0, e.MaxLen())
			b.ReportAllocs()
			n := uint64(0)
			for b.Loop() {
				dst = e.Append(dst[:0], n)
				n++
			}
		})
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	for _, tt := range texts {
		e := parse(t, tt.text)
		dst := make([]byte, 0, e.MaxLen())
		n := uint64(0)
		got := testing.AllocsPerRun(1000, func() {
			dst = e.Append(dst[:0], n)
			n++
		})
		assert.True(t, got <= 0, "%s: %v allocations", tt.text, got)
	}
}
