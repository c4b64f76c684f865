package bus

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// BenchmarkRoundTrip is a message of 100 bytes to an agent and back, one at a time, all on this machine.
func BenchmarkRoundTrip(b *testing.B) {
	dir := b.TempDir()
	s := assert.Value(Serve(ServerConfig{Listen: "127.0.0.1:0", Dir: dir}))(b)
	defer s.Close()
	o := assert.Value(ConnectOperator(b.Context(), filepath.Join(dir, OperatorFile)))(b)
	defer o.Close()
	j := assert.Value(o.Token(b.Context(), "a", 0))(b)
	path := filepath.Join(b.TempDir(), "join.json")
	assert.OK(b, j.Write(path))
	a := assert.Value(ConnectAgent(b.Context(), AgentConfig{Join: path, Dir: b.TempDir()}))(b)
	defer a.Close()
	a.Receive(func(message []byte, _ time.Time) { a.Send(message) })
	back := make(chan time.Time, 1)
	o.Receive(func(_ string, _ []byte, at time.Time) { back <- at })

	message := make([]byte, 100)
	var times, stamped []time.Duration
	for b.Loop() {
		begin := time.Now()
		assert.OK(b, o.Send("a", message))
		at := <-back
		times, stamped = append(times, time.Since(begin)), append(stamped, at.Sub(begin))
	}
	report := func(times []time.Duration, name string) {
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)/2])/1e3, name+"p50-us")
		b.ReportMetric(float64(times[len(times)*99/100])/1e3, name+"p99-us")
	}
	report(times, "")
	report(stamped, "stamp-")
}
