package apm

import (
	"bytes"
	"io"
	"maps"
	"net"
	"strconv"
	"testing"

	"carronade/internal/testkit"
	"carronade/load"
)

// sink starts a server that reads only the length of a request, and accepts it.
func sink(t testing.TB, answer string) string {
	t.Helper()
	return "apm+http://" + testkit.Listen(t, func(c *net.TCPConn) { drain(c, []byte(answer)) })
}

func drain(c net.Conn, answer []byte) {
	buf := make([]byte, 64<<10)
	have := 0
	for {
		n, err := c.Read(buf[have:])
		if err != nil {
			return
		}
		have += n
		end := bytes.Index(buf[:have], []byte("\r\n\r\n"))
		if end < 0 {
			continue
		}
		if buf[0] == 'G' {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
			have = 0
			continue
		}
		at := bytes.Index(buf[:have], []byte("Content-Length: "))
		line, _, _ := bytes.Cut(buf[at+16:have], []byte("\r"))
		length, _ := strconv.Atoi(string(line))
		for left := length - (have - end - 4); left > 0; {
			n, err := c.Read(buf[:min(left, len(buf))])
			if err != nil {
				return
			}
			left -= n
		}
		have = 0
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// BenchmarkRequest measures the cost of a request, including the sink, which is in
// the same process.
func BenchmarkRequest(b *testing.B) {
	for _, bb := range []struct {
		name    string
		options map[string]string
		answer  string
	}{
		{"repeated", map[string]string{"repeat-body": "true"}, accepted},
		{"fresh", nil, accepted},
		{"gzip", map[string]string{"gzip": "1"}, accepted},
		{"verbose", map[string]string{"verbose": "true"}, "HTTP/1.1 202 Accepted\r\nContent-Length: 15\r\n\r\n{\"accepted\":10}"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			options := map[string]string{"events": "10", "spans": "0", "mix": "transaction", "clients": "4"}
			maps.Copy(options, bb.options)
			s := open(b, sink(b, bb.answer), options)
			b.ReportAllocs()
			b.ResetTimer()
			r := fire(b, s, load.Plan{Measurement: load.Limits{Events: 10 * uint64(b.N)}})
			b.StopTimer()
			if r.Measurement.Acked != 10*uint64(b.N) {
				b.Fatalf("acked %d of %d", r.Measurement.Acked, 10*b.N)
			}
		})
	}
}
