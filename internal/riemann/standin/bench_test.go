package standin_test

import (
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"carronade/internal/host"
	riemannstandin "carronade/internal/riemann/standin"
	"carronade/internal/riemann/wire"
	"carronade/internal/standin"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestMain makes the test's binary the stand-in that a benchmark spawns.
func TestMain(m *testing.M) {
	standin.Hook(riemannstandin.Kind)
	testkit.MostlyWaiting()
	os.Exit(m.Run())
}

// loads are the messages of the benchmarks: with the 18-byte event of the load tool
// of 2013, and with a more realistic one.
var loads = []struct {
	name   string
	events int
	event  wire.Event
}{
	{"tiny", 1, wire.Event{Service: "load-test", Metric: wire.Metric{Kind: wire.Float, Real: 1}}},
	{"realistic", 1, realistic},
	{"realistic", 100, realistic},
}

var realistic = wire.Event{
	Host: "web-12.eu", Service: "api latency p99", State: "ok", Tags: []string{"api", "eu"}, TTL: 60, HasTTL: true,
	Time: time.Now().Unix(), HasTime: true, Metric: wire.Metric{Kind: wire.Double, Real: 12.5},
}

// BenchmarkSink writes messages to a server in another process and counts acks, to
// measure how fast the server is and what it costs. An iteration is a message.
func BenchmarkSink(b *testing.B) {
	for _, how := range []string{"discard", "index"} {
		for _, l := range loads {
			b.Run(fmt.Sprintf("%s/%s/events=%d", how, l.name, l.events), func(b *testing.B) {
				args := []string{"riemann", "--listen", "127.0.0.1:0"}
				if how == "discard" {
					args = append(args, "--discard")
				}
				child := assert.Value(standin.Spawn(b.Context(), "", args...))(b)
				defer func() {
					if err := child.Stop(); err != nil {
						b.Fatal(err, child.Output())
					}
				}()
				msg := wire.Msg{}
				for range l.events {
					msg.Events = append(msg.Events, l.event)
				}
				frame := wire.AppendFramed(nil, &msg)
				before, own := host.CPUOf(child.Pid()), host.CPUOf(os.Getpid())
				b.ResetTimer()
				assert.OK(b, pour(child.Addr(), frame, b.N))
				elapsed := b.Elapsed()
				b.StopTimer()
				n := float64(b.N)
				b.ReportMetric(n/elapsed.Seconds()/1e6, "Mmsg/s")
				b.ReportMetric(n*float64(len(frame))/elapsed.Seconds()/1e6, "MB/s")
				b.ReportMetric(float64(host.CPUOf(child.Pid())-before)/n, "sink-cpu-ns/msg")
				b.ReportMetric(float64(host.CPUOf(os.Getpid())-own)/n, "own-cpu-ns/msg")
			})
		}
	}
}

// sendFrames is a minimal client: it writes the frame n times, as many at once as
// fit into half a megabyte, and waits for all acks.
func pour(addr string, frame []byte, n int) error {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	failed := make(chan error, 1)
	go func() {
		buf := make([]byte, 256<<10)
		have := 0
		for left := n; left > 0; {
			m, err := nc.Read(buf[have:])
			if err != nil {
				failed <- err
				return
			}
			have += m
			acks := wire.CountAcks(buf[:have])
			if rest := have - acks*wire.AckSize; rest >= wire.AckSize {
				failed <- fmt.Errorf("no ack: % x", buf[acks*wire.AckSize:have])
				return
			}
			have = copy(buf, buf[acks*wire.AckSize:have])
			left -= acks
		}
		failed <- nil
	}()
	perWrite := max(1, min(n, (512<<10)/len(frame)))
	var run []byte
	for range perWrite {
		run = append(run, frame...)
	}
	for left := n; left > 0; left -= perWrite {
		if _, err := nc.Write(run[:min(left, perWrite)*len(frame)]); err != nil {
			return err
		}
	}
	return <-failed
}
