package picture

import (
	"math/rand/v2"
	"time"

	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
)

// measured is a report of a run of this many seconds, with the data of all figures.
func measured(id string, seconds int, seed uint64) *report.Document {
	r := rand.New(rand.NewPCG(seed, 1))
	d := &report.Document{
		Schema: report.Schema, ID: id, Target: "kafka://127.0.0.1:9092/t", Op: "roundtrip", Mode: load.OpenLoop,
		Settings: []report.Setting{{Name: "rate", Value: "1k/s"}, {Name: "seed", Value: "1", Default: true}},
		Totals:   report.Totals{RateOf: report.RateAcked, InFlightMean: 10},
		Steady:   measure.Steady{Known: true, InFlightSlope: 0.5},
		Phases: []report.Phase{
			{Name: "warm-up", StartS: 0, EndS: 2},
			{Name: "measurement", StartS: 2, EndS: float64(seconds)},
		},
		Classes:  map[string]uint64{"timeout": 12, "refused": 3},
		Failures: []measure.Failure{{Class: "timeout", Text: "no answer", Events: 12, Batches: 1}},
	}
	overall := map[string]*measure.Histogram{}
	rss, pause := report.Gauge{From: "system", Name: "RSS", Unit: "bytes"}, report.Gauge{From: "system", Name: "GC pause time", Unit: "ms"}
	queue := report.Gauge{From: "server", Name: "queue", Unit: "events"}
	for i := range seconds {
		iv := report.Interval{
			Phase: "measurement", StartS: float64(i), EndS: float64(i + 1), LagEvents: -1, InFlight: uint64(10 + i%7),
			Counts:     measure.Counts{Offered: 1040, Sent: 1000, Acked: 990, Failed: uint64(i % 3), Batches: 100, Bytes: 100_000, AckedBytes: 99_000, WireBytes: 101_000},
			Statuses:   measure.Statuses{{Code: 202, Batches: 99, Events: 990}, {Code: 503, Batches: 1, Events: 10}},
			Classes:    measure.Classes{{Class: "refused", Events: uint64(i % 3), Batches: 1}},
			Generator:  report.Usage{CPUS: 0.1, RSSBytes: 40 << 20, GCPauseMaxUS: 80},
			Histograms: map[string]string{},
		}
		if i < 2 {
			iv.Phase = "warm-up"
		}
		for _, name := range []string{"response", "service", "end_to_end", "send_delay"} {
			h := measure.NewHistogram()
			for range 50 {
				h.Record(time.Duration(50e3 * (1 + r.ExpFloat64()*float64(1+i%5)*20)))
			}
			iv.Histograms[name] = h.EncodeHDR()
			s := measure.Summarize(h, nil, nil)
			switch name {
			case "response":
				iv.Response = s
			case "service":
				iv.Service = s
			case "end_to_end":
				iv.EndToEnd = s
			default:
				iv.SendDelay = s
			}
			if iv.Phase == "measurement" {
				if overall[name] == nil {
					overall[name] = measure.NewHistogram()
				}
				overall[name].Merge(h)
			}
		}
		rss.Points = append(rss.Points, report.Point{AtS: float64(i) + 0.99, Value: float64(100<<20 + i<<10)})
		pause.Points = append(pause.Points, report.Point{AtS: float64(i) + 0.99, Value: float64(i % 4)})
		queue.Points = append(queue.Points, report.Point{AtS: float64(i) + 0.98, Value: float64(i % 9)})
		d.Intervals = append(d.Intervals, iv)
	}
	d.Response, d.Service = measure.Summarize(overall["response"], nil, nil), measure.Summarize(overall["service"], nil, nil)
	d.EndToEnd, d.SendDelay = measure.Summarize(overall["end_to_end"], nil, nil), measure.Summarize(overall["send_delay"], nil, nil)
	d.Gauges = []report.Gauge{rss, pause, queue}
	return d
}
