package host

import (
	"os"
	"runtime"
	"testing"
	"time"

	"carronade/measure"
	"carronade/test/testkit/assert"
)

func asMap(list []measure.Figure) map[string]float64 {
	out := make(map[string]float64)
	for _, f := range list {
		out[f.Name+" "+f.Unit] = f.Value
	}
	return out
}

func TestVitals(t *testing.T) {
	var before, now hostCounters
	before.parseCPU([]byte("cpu  100 0 50 1000 20 0 5 10 7 7\ncpu0 1\n"))
	now.parseCPU([]byte("cpu  200 0 100 1100 30 0 5 30 9 9\n"))
	before.parseDisks([]byte("   8  0 sda 1 0 100 0 1 0 200 0 0 0 500\n   8  1 sda1 1 0 100 0 1 0 200 0 0 0 0\n 7 0 loop0 1 1 9 1 1 1 9\n"), [][]byte{[]byte("sda")})
	now.parseDisks([]byte("   8  0 sda 1 0 300 0 1 0 1200 0 0 0 3500\nbad\n8 0\n8 0 sda 1\n"), [][]byte{[]byte("sda")})
	before.cpu, _ = pressure([]byte("some avg10=0.00 avg60=0.35 avg300=3.48 total=1000000\nfull avg10=0 avg60=0 avg300=0 total=9\n"))
	now.cpu, now.pressed = 1500000, true
	now.available, now.received, now.looping = 7, 400, 800
	before.received = 200
	now.faults, now.swapped, now.paging = 6, 2, true
	now.throttled, now.limited = 5e8, true
	want := map[string]float64{
		"CPU cores": 0.75, "steal %": 100 * 20.0 / 280, "I/O wait %": 100 * 10.0 / 280, "CPU pressure %": 25, "memory pressure %": 0, "I/O pressure %": 0,
		"memory available bytes": 7, "disk read bytes/s": 51200, "disk written bytes/s": 256000, "disk queue requests": 1.5,
		"page faults 1/s": 3, "paged out bytes/s": float64(os.Getpagesize()), "throttled %": 25, "received bytes/s": 100, "sent bytes/s": 0, "loopback bytes/s": 400,
	}
	assert.Same(t, asMap(now.figures(&before, 2*time.Second)), want)
	got := now.figures(&before, 0)
	assert.True(t, got == nil, "got %v over no time, want nothing", got)
	got = (&hostCounters{}).figures(&before, time.Second)
	assert.True(t, got == nil, "got %v without counters, want nothing", got)
}

func TestPressure(t *testing.T) {
	for _, bad := range []string{"", "full avg10=0 total=5", "some avg10=0", "some total="} {
		n, ok := pressure([]byte(bad))
		assert.True(t, !ok, "%q: got %d, want nothing", bad, n)
	}
}

func TestVitalsHere(t *testing.T) {
	v := NewHostMetrics()
	at := v.at
	v.now = func() time.Time { // at least a second later
		if at = at.Add(time.Second); at.Before(time.Now()) {
			at = time.Now()
		}
		return at
	}
	got, err := v.Figures(t.Context())
	assert.OK(t, err)
	v.Close()
	if runtime.GOOS != "linux" {
		return
	}
	f := asMap(got)
	assert.True(t, f["memory available bytes"] > 0 && f["CPU cores"] <= float64(runtime.NumCPU())*2, "got %v", f)
	_, ok := f["loopback bytes/s"]
	assert.True(t, ok, "got %v, want the loopback, too", f)
	got, err = v.Figures(t.Context())
	assert.True(t, err == nil && len(got) == 0, "got %v, %v when closed, want nothing", got, err)
}

func BenchmarkVitals(b *testing.B) {
	v := NewHostMetrics()
	defer v.Close()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = v.Figures(b.Context())
	}
}

func BenchmarkDescribe(b *testing.B) {
	for b.Loop() {
		Describe()
	}
}
