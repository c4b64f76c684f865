package system

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestGCPause(t *testing.T) {
	for _, test := range []struct {
		name, line string
		want       time.Duration
		after      float64
		ok         bool
	}{
		{"G1", "[2026-11-21T12:00:00.000+0000][0.512s][info][gc] GC(3) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 2.345ms", 2345 * time.Microsecond, 4 << 20, true},
		{"G1 begins", "[0.512s][info][gc,start] GC(3) Pause Young (Normal) (G1 Evacuation Pause)", 0, -1, false},
		{"G1 remark", "[1s][info][gc             ] GC(5) Pause Remark 30M->30M(256M) 1.200ms", 1200 * time.Microsecond, 30 << 20, true},
		{"concurrent", "[1s][info][gc] GC(5) Concurrent Mark Cycle 15.023ms", 0, -1, false},
		{"a phase", "[1s][info][gc,phases] GC(5)   Evacuate Collection Set: 1.1ms", 0, -1, false},
		{"Serial, undecorated", "GC(0) Pause Full (System.gc()) 1G->512K(2G) 10.000ms", 10 * time.Millisecond, 512 << 10, true},
		{"ZGC", "[0.1s][info][gc,phases] GC(0) Pause Mark Start 0.010ms", 10 * time.Microsecond, -1, true},
		{"generational ZGC", "[0.1s][info][gc,phases] GC(0) Y: Pause Mark Start 0.010ms\r", 10 * time.Microsecond, -1, true},
		{"Shenandoah", "[0.1s][info][gc] GC(0) Pause Init Mark (unload classes) 0.123ms", 123 * time.Microsecond, -1, true},
		{"processor time", "[1s][info][gc,cpu] GC(3) User=0.01s Sys=0.00s Real=0.00s", 0, -1, false},
		{"not a number", "GC(0) Pause Young NaNms", 0, -1, false},
		{"infinite", "GC(0) Pause Young 1e300ms", 0, -1, false},
		{"nothing", "", 0, -1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, after, ok := pause([]byte(test.line))
			assert.True(t, got == test.want && after == test.after && ok == test.ok,
				"got %v, %v, %v, want %v, %v, %v", got, after, ok, test.want, test.after, test.ok)
		})
	}
}

func TestGCLog(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "gc-17.log")
	write := func(how int, text string) {
		t.Helper()
		f := assert.Value(os.OpenFile(name, os.O_CREATE|os.O_WRONLY|how, 0o644))(t)
		defer f.Close()
		assert.Value(f.WriteString(text))(t)
	}
	line := func(ms int) string {
		return fmt.Sprintf("[1s][info][gc] GC(1) Pause Young 8M->%dM(9M) %d.000ms\n", ms, ms)
	}
	g := newGCLog(filepath.Join(dir, "gc-%p.log"), false)
	defer g.Close()
	want := func(what string, count, sum, longest, heap float64) {
		t.Helper()
		got := assert.Value(g.Figures(t.Context()))(t)
		w := map[string]float64{"GC pauses": count, "GC pause time [ms]": sum, "GC pause longest [ms]": longest}
		if heap >= 0 {
			w["heap after GC [bytes]"] = heap * (1 << 20)
		}
		assert.Same(t, figures(got), w, "%s", what)
	}
	write(os.O_TRUNC, line(100))
	want("what was there before", 0, 0, 0, -1)
	write(os.O_APPEND, line(1)+line(3))
	want("two", 2, 4, 3, 3)
	want("nothing new", 0, 0, 0, 3)
	half := line(5)
	write(os.O_APPEND, half[:20])
	want("half a line", 0, 0, 0, 3)
	write(os.O_APPEND, half[20:])
	want("the other half", 1, 5, 5, 5)
	write(os.O_TRUNC, line(2))
	want("truncated", 1, 2, 2, 2)
	write(os.O_APPEND, line(7))
	assert.OK(t, os.Rename(name, name+".0"))
	write(os.O_TRUNC, line(4))
	want("rotated", 2, 11, 7, 4)
	write(os.O_APPEND, strings.Repeat("x", 5*mostLogLine)+" GC(1) Pause 1.0ms\n"+line(6))
	want("a line without end", 1, 6, 6, 6)
	count, sum, longest := g.Totals()
	assert.True(t, count == 7 && sum == 28*time.Millisecond && longest == 7*time.Millisecond, "got %d pauses, %v, %v in all, want 7, 28ms, 7ms", count, sum, longest)
	g.ResetLongest()
	write(os.O_APPEND, line(2))
	there, err := g.Read(t.Context())
	assert.True(t, there && err == nil, "got %v, %v, want the log read", there, err)
	count, _, longest = g.Totals()
	assert.True(t, count == 8 && longest == 2*time.Millisecond, "got %d pauses, the longest %v, want 8, and the longest since ResetLongest", count, longest)
	want("read before Figures", 1, 2, 2, 2)
	got := g.Warnings()
	assert.True(t, got == nil, "got %q, want no warning", got)
}

func TestGCLogIsMissing(t *testing.T) {
	g := newGCLog(filepath.Join(t.TempDir(), "none.log"), true)
	got, err := g.Figures(t.Context())
	assert.True(t, err == nil && got == nil, "got %v, %v, want no figures yet", got, err)
	if got := g.Warnings(); len(got) != 1 || !strings.Contains(got[0], "no log is at") {
		t.Errorf("got %q, want a warning", got)
	}
}

// One log that cannot be read does not hide the pauses of the others.
func TestGCLogWithOneUnreadable(t *testing.T) {
	dir := t.TempDir()
	assert.OK(t, os.WriteFile(filepath.Join(dir, "gc-1.log"), []byte("GC(0) Pause Young 8M->4M(9M) 3.000ms\n"), 0o644))
	bad := filepath.Join(dir, "gc-0.log")
	assert.OK(t, os.Symlink(filepath.Join(dir, "gone"), bad))
	g := newGCLog(filepath.Join(dir, "gc-%p.log"), true)
	defer g.Close()
	for _, want := range []float64{1, 0} {
		got, err := g.Figures(t.Context())
		assert.True(t, err == nil && figures(got)["GC pauses"] == want, "got %v, %v, want %v pauses", figures(got), err, want)
	}
	w := strings.Join(g.Warnings(), "\n")
	assert.True(t, strings.Contains(w, "gc-0.log") && strings.Contains(w, "of the other logs"), "warnings %q, want one that names the log", w)
	assert.OK(t, os.Remove(bad))
	there, err := g.Read(t.Context())
	assert.True(t, there && err == nil && g.Warnings() == nil, "got %v, %v and the warnings %q after its removal", there, err, g.Warnings())
	count, _, _ := g.Totals()
	assert.True(t, count == 1, "%d pauses in all, want 1", count)
}

// TestGCLogOfAJVM runs a real JVM with each of its collectors.
func TestGCLogOfAJVM(t *testing.T) {
	testkit.Need(t, "Java")
	java, err := exec.LookPath("java")
	if err != nil {
		t.Skip("Java is not installed")
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "Churn.java")
	assert.OK(t, os.WriteFile(source, []byte(`public class Churn { static Object keep; public static void main(String[] a) {
		for (int i = 0; i < 300000; i++) keep = new byte[1000]; System.gc(); System.gc(); } }`), 0o644))
	for _, collector := range []string{"G1", "Serial", "Parallel", "Z", "Shenandoah"} {
		t.Run(collector, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "gc-%p.log")
			cmd := exec.Command(java, "-XX:+UnlockExperimentalVMOptions", "-XX:+Use"+collector+"GC", "-Xmx64m", "-Xlog:gc*:file="+log+":time,uptime,level,tags", source)
			if out, err := cmd.CombinedOutput(); err != nil {
				if strings.Contains(string(out), "Unrecognized VM option") || strings.Contains(string(out), "not supported") {
					t.Skip("this JVM lacks it")
				}
				t.Fatalf("%v: %s", err, out)
			}
			g := newGCLog(log, true)
			defer g.Close()
			got := assert.Value(g.Figures(t.Context()))(t)
			f := figures(got)
			assert.True(t, f["GC pauses"] >= 2 && f["GC pause time [ms]"] > 0 && f["GC pause longest [ms]"] <= f["GC pause time [ms]"],
				"got %v, want the pauses of at least two collections", f)
		})
	}
}

func TestStampOf(t *testing.T) {
	wall := time.Date(2026, 11, 21, 12, 0, 0, 123e6, time.UTC)
	for _, c := range []struct {
		name, line string
		want       stamp
		ok         bool
	}{
		{"time and uptime", "[2026-11-21T12:00:00.123+0000][0.512s][info][gc] GC(3)", stamp{wall: wall}, true},
		{"uptime first", "[0.512s][2026-11-21T14:00:00.123+0200][info][gc] GC(3)", stamp{wall: wall}, true},
		{"uptime", "[0.512s][info][gc             ] GC(3)", stamp{since: 512 * time.Millisecond}, true},
		{"uptime in some locales", "[0,512s][info][gc] GC(3)", stamp{since: 512 * time.Millisecond}, true},
		{"milliseconds since the start", "[512ms] GC(3)", stamp{since: 512 * time.Millisecond}, true},
		{"milliseconds since 1970", "[1795262400123ms] GC(3)", stamp{wall: wall}, true},
		{"nanoseconds", "[512000000ns] GC(3)", stamp{since: 512 * time.Millisecond}, true},
		{"no decorations", "GC(3) Pause", stamp{}, false},
		{"others", "[info][gc] GC(3) Pause", stamp{}, false},
		{"cut", "[0.5", stamp{}, false},
		{"not a number", "[1.2.3s] GC(3)", stamp{}, false},
		{"too large", "[99999999999999999999s] GC(3)", stamp{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := stampOf([]byte(c.line))
			assert.True(t, ok == c.ok && got.wall.Equal(c.want.wall) && got.since == c.want.since,
				"got %v, %v, want %v, %v", got, ok, c.want, c.ok)
		})
	}
}

func FuzzStampOf(f *testing.F) {
	f.Add([]byte("[2026-11-21T12:00:00.123+0000][0.512s][info][gc] GC(3)"))
	f.Add([]byte("[9223372036s][]["))
	f.Fuzz(func(t *testing.T, line []byte) {
		s, ok := stampOf(line)
		assert.True(t, !ok || !s.wall.IsZero() || s.since >= 0, "%q: got %v", line, s.since)
	})
}

// TestPausesHaveTimes reads a log with the time since the start of its JVM, whose moment follows
// from the time at which the file was changed.
func TestPausesHaveTimes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "gc.log")
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	write := func(text string, at time.Duration) {
		t.Helper()
		old, _ := os.ReadFile(name)
		assert.OK(t, os.WriteFile(name, append(old, text...), 0o600))
		assert.OK(t, os.Chtimes(name, start.Add(at), start.Add(at)))
	}
	var began []time.Duration
	var lengths []time.Duration
	g := newGCLog(name, true)
	g.OnPause = func(at time.Time, length time.Duration) {
		began, lengths = append(began, at.Sub(start)), append(lengths, length)
	}
	defer g.Close()
	write("[1.000s][info][gc] Using G1\n", 1010*time.Millisecond)
	assert.Value(g.Read(t.Context()))(t)
	write("[5.300s][info][gc] GC(0) Pause Young 9M->1M(9M) 300.000ms\n[6.000s][info][gc] GC(1) Pause Young 9M->1M(9M) 1.000ms\n", 6002*time.Millisecond)
	assert.Value(g.Read(t.Context()))(t)
	want := []time.Duration{5002 * time.Millisecond, 6001 * time.Millisecond}
	assert.True(t, len(began) == 2 && began[0] == want[0] && began[1] == want[1] && lengths[0] == 300*time.Millisecond,
		"pauses began at %v and lasted %v, want %v", began, lengths, want)
}
