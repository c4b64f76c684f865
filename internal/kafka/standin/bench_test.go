package standin_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/host"
	kafkastandin "carronade/internal/kafka/standin"
	"carronade/internal/standin"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestMain makes the test's binary the stand-in that a benchmark spawns.
func TestMain(m *testing.M) {
	standin.Hook(kafkastandin.Kind)
	testkit.MostlyWaiting()
	os.Exit(m.Run())
}

// BenchmarkSink sends encoded requests of one batch to a discard broker in another
// process, to measure how fast the sink is and what it costs.
func BenchmarkSink(b *testing.B) {
	for _, c := range []struct {
		conns, inflight, records int
	}{{1, 5, 1000}, {1, 16, 1000}, {2, 5, 1000}, {2, 16, 1000}, {1, 16, 152}, {1, 64, 1}} {
		b.Run(fmt.Sprintf("conns=%d/inflight=%d/records=%d", c.conns, c.inflight, c.records), func(b *testing.B) {
			child, err := standin.Spawn(b.Context(), "", "kafka", "--listen", "127.0.0.1:0", "--discard", "--topic", "t:4")
			assert.OK(b, err)
			defer func() {
				if err := child.Stop(); err != nil {
					b.Fatal(err, child.Output())
				}
				if testing.Verbose() {
					b.Log(child.Output())
				}
			}()
			before := host.CPUOf(child.Pid())
			own := host.CPUOf(os.Getpid())
			b.ResetTimer()
			done := make(chan error, c.conns)
			for i := range c.conns {
				go func() {
					done <- kafkastandin.Bare(child.Addr(), kafkastandin.ProduceFrame("t", int32(i), c.records, 100), c.inflight, b.N/c.conns+1)
				}()
			}
			for range c.conns {
				assert.OK(b, <-done)
			}
			elapsed := b.Elapsed()
			b.StopTimer()
			n := float64(b.N) * float64(c.records)
			b.ReportMetric(n/elapsed.Seconds()/1e6, "Mevents/s")
			b.ReportMetric(float64(host.CPUOf(child.Pid())-before)/n, "sink-cpu-ns/event")
			b.ReportMetric(float64(host.CPUOf(os.Getpid())-own)/n, "own-cpu-ns/event")
		})
	}
}

// BenchmarkServe fetches from a discard broker in another process, one MiB per
// request, and ignores the records, to measure how fast the sink is and what it
// costs.
func BenchmarkServe(b *testing.B) {
	child, err := standin.Spawn(b.Context(), "", "kafka", "--listen", "127.0.0.1:0", "--discard", "--topic", "t:1")
	assert.OK(b, err)
	defer func() {
		if err := child.Stop(); err != nil {
			b.Fatal(err, child.Output())
		}
	}()
	nc := assert.Value(net.Dial("tcp", child.Addr()))(b)
	defer nc.Close()
	req := kmsg.NewPtrFetchRequest()
	req.SetVersion(12)
	req.MaxBytes = 1 << 20
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic = "t"
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.PartitionMaxBytes = 1 << 20
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	frame := kafkastandin.FrameOf(req)
	const events = 9000 // in the complete batches of 1000 in one MiB
	before, own := host.CPUOf(child.Pid()), host.CPUOf(os.Getpid())
	buf := make([]byte, 256<<10)
	for b.Loop() {
		assert.Value(nc.Write(frame))(b)
		assert.Value(io.ReadFull(nc, buf[:4]))(b)
		for left := int(binary.BigEndian.Uint32(buf)); left > 0; {
			n := assert.Value(nc.Read(buf[:min(left, len(buf))]))(b)
			left -= n
		}
	}
	n := float64(b.N) * events
	b.ReportMetric(n/b.Elapsed().Seconds()/1e6, "Mevents/s")
	b.ReportMetric(float64(host.CPUOf(child.Pid())-before)/n, "sink-cpu-ns/event")
	b.ReportMetric(float64(host.CPUOf(os.Getpid())-own)/n, "own-cpu-ns/event")
}
