package null_test

import (
	"testing"
	"time"

	"carronade/load"
	"carronade/target"
	"carronade/target/null"
	"carronade/target/targettest"
)

func TestTarget(t *testing.T) {
	targettest.Run(t, targettest.System{Kind: null.Kind{}, URL: "null://"})
}

func TestFreshTarget(t *testing.T) {
	targettest.Run(t, targettest.System{Kind: null.Kind{}, URL: "null://", Options: map[string]string{"fresh": "true", "size": "10-300", "key": "seq"}})
}

// BenchmarkEvents measures how much one core can generate: 300 B events, encoded and
// checksummed, but not sent.
func BenchmarkEvents(b *testing.B) {
	for _, fresh := range []string{"false", "true"} {
		b.Run("fresh="+fresh, func(b *testing.B) {
			v := target.Values{}
			for _, o := range (null.Kind{}).Options() {
				if o.Default != "" {
					v[o.Name] = []string{o.Default}
				}
			}
			v["size"], v["fresh"] = []string{"300"}, []string{fresh}
			s, err := null.Kind{}.Open(b.Context(), target.Spec{Options: v, Seed: 1})
			if err != nil {
				b.Fatal(err)
			}
			start := time.Now()
			r, err := load.Fire(b.Context(), load.Plan{Measurement: load.Limits{Events: uint64(b.N)}, Threads: 1}, s.Target())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(r.Measurement.Acked)/time.Since(start).Seconds()/1e6, "Mevents/s")
		})
	}
}
