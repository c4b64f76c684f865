package otlp

import (
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// BenchmarkPrepare prepares requests of a hundred log records.
func BenchmarkPrepare(b *testing.B) {
	for _, compression := range compressions {
		b.Run(compression, func(b *testing.B) {
			c, err := parseConfig(specOf(b, "otlp+http://127.0.0.1:1", map[string]string{"signal": "logs", "compression": compression}), true)
			assert.OK(b, err)
			c.pool.make()
			s := c.sources()[0].(*source)
			b.ReportAllocs()
			for n := uint64(0); b.Loop(); n += 100 {
				r, err := s.Prepare(n, 100, time.Now())
				assert.OK(b, err)
				r.Release()
			}
		})
	}
}
