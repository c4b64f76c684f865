package fault

import (
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"carronade/internal/testkit"
	"carronade/internal/testkit/assert"
)

// BenchmarkRelay measures what the relay costs without a delay: how many bytes a second it carries, how
// long a round trip takes, and how long it takes to connect. Each is measured directly and through the
// relay, alternating, so that other work of the machine affects both; the medians are reported. The
// relay is a process of its own, as in a run.
func BenchmarkRelay(b *testing.B) {
	r := start(b)
	ways := []way{
		{"direct", func(addr string) (net.Conn, error) { return net.Dial("tcp", addr) }},
		{"relay", func(addr string) (net.Conn, error) { return r.Dial(b.Context(), addr) }},
	}
	b.Run("throughput", func(b *testing.B) {
		addr := sink(b)
		alternate(b, ways, func(w way) (float64, string) {
			c := w.dial(b, addr)
			defer c.Close()
			const size, writes = 64 << 10, 512
			buf := make([]byte, size)
			began := time.Now()
			for range writes {
				if _, err := c.Write(buf); err != nil {
					b.Fatal(err)
				}
			}
			if err := c.(*net.TCPConn).CloseWrite(); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil { // the sink has all
				b.Fatal(err)
			}
			return size * writes / time.Since(began).Seconds() / 1e6, "MB/s"
		})
	})
	for _, size := range []int{100, 16 << 10} {
		b.Run(fmt.Sprintf("round trip of %d B", size), func(b *testing.B) {
			addr := echo(b)
			conns := map[string]net.Conn{}
			for _, w := range ways {
				conns[w.name] = w.dial(b, addr)
			}
			out, in := make([]byte, size), make([]byte, size)
			alternate(b, ways, func(w way) (float64, string) {
				began := time.Now()
				c := conns[w.name]
				if _, err := c.Write(out); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(c, in); err != nil {
					b.Fatal(err)
				}
				return float64(time.Since(began).Nanoseconds()) / 1e3, "us"
			})
		})
	}
	b.Run("connect", func(b *testing.B) {
		addr := echo(b)
		alternate(b, ways, func(w way) (float64, string) {
			began := time.Now()
			c := w.dial(b, addr)
			took := time.Since(began)
			c.Close()
			return float64(took.Nanoseconds()) / 1e3, "us"
		})
	})
}

// A way is how to connect.
type way struct {
	name    string
	connect func(addr string) (net.Conn, error)
}

func (w way) dial(b *testing.B, addr string) net.Conn {
	b.Helper()
	c, err := w.connect(addr)
	assert.OK(b, err)
	b.Cleanup(func() { c.Close() })
	return c
}

// alternate measures one way after the other, and reports the median and the 99th percentile of each.
func alternate(b *testing.B, ways []way, measure func(way) (value float64, unit string)) {
	b.Helper()
	got, unit := map[string][]float64{}, ""
	for b.Loop() {
		for _, w := range ways {
			var v float64
			v, unit = measure(w)
			got[w.name] = append(got[w.name], v)
		}
	}
	for name, all := range got {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], name+"-p50-"+unit)
		b.ReportMetric(all[len(all)*99/100], name+"-p99-"+unit)
	}
	b.ReportMetric(0, "ns/op") // of both ways together: it says nothing
}

// sink starts a server that reads until the end of a connection, and then answers with a byte.
func sink(b *testing.B) string {
	b.Helper()
	return testkit.Listen(b, func(c *net.TCPConn) {
		buf := make([]byte, 256<<10)
		for {
			if _, err := c.Read(buf); err != nil {
				break
			}
		}
		_, _ = c.Write([]byte{1})
	})
}
