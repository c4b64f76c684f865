package trace

import (
	"path/filepath"
	"testing"
	"time"

	"carronade/load"
	"carronade/test/testkit/assert"
)

// outcomes are the outcomes of a lane at a million batches/s, with times that vary
// like real ones.
func outcomes(n int) []load.Outcome {
	out := make([]load.Outcome, n)
	for i := range out {
		due := time.Duration(i) * time.Microsecond
		noise := time.Duration(mix(uint64(i)) % 50_000)
		out[i] = load.Outcome{
			Batch: load.Batch{
				Seq: uint64(i), First: uint64(i) * 10, Stream: int32(i % 12), Events: 10, DueFirst: due, DueLast: due + 900,
				Ready: due + 1000, Free: due + 1000, Bytes: 1000,
			},
			Lane: int32(i % 3), Sent: due + 5*time.Microsecond + noise/20, Done: due + 300*time.Microsecond + noise, Acked: 10, Place: int64(i) * 10,
		}
	}
	return out
}

// BenchmarkFeed measures the cost of a row for the sending thread; nothing is
// written.
func BenchmarkFeed(b *testing.B) {
	all := outcomes(64)
	f := (&Trace{sizes: defaultSizes, full: make(chan *block, defaultSizes.blocks), free: make(chan *block, defaultSizes.blocks)}).Feed()
	b.ReportAllocs()
	for b.Loop() {
		f.Add(all)
		select {
		case bl := <-f.t.full:
			bl.n = 0
			f.t.free <- bl
		default:
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/row")
}

// BenchmarkWrite measures the cost of a row for the writer.
func BenchmarkWrite(b *testing.B) {
	all := outcomes(int(defaultSizes.group))
	rows := make([]row, len(all))
	for i := range all {
		rows[i].set(&all[i], absent, absent)
	}
	for _, bb := range []struct {
		name  string
		every uint64
	}{{"batches", 0}, {"events", 10}} {
		b.Run(bb.name, func(b *testing.B) {
			t, err := Create(Options{Path: filepath.Join(b.TempDir(), "x.parquet"), Phases: []string{"measurement"}, Every: bb.every, Due: func(_ int32, k uint64) time.Duration { return time.Duration(k) * 100 }})
			assert.OK(b, err)
			b.ReportAllocs()
			count := 0
			for b.Loop() {
				for i := range rows {
					t.row(&rows[i])
				}
				count += len(rows)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(count), "ns/row")
			res := t.Close()
			assert.OK(b, res.Err)
			b.ReportMetric(float64(res.Bytes)/float64(res.Rows), "B/row")
		})
	}
}
