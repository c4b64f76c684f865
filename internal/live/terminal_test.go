package live

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carronade/internal/layout"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// A screen emulates a small terminal: text, \r, \n, cursor up, erase to the end of
// the line and of the screen, and colors. Anything else fails the test.
type screen struct {
	t        *testing.T
	columns  int
	rows     [][]rune
	row, col int
}

func (s *screen) cell() *[]rune {
	for len(s.rows) <= s.row {
		s.rows = append(s.rows, nil)
	}
	return &s.rows[s.row]
}

func (s *screen) Write(p []byte) (int, error) {
	runes := []rune(string(p))
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; r {
		case '\r':
			s.col = 0
		case '\n':
			s.row, s.col = s.row+1, 0
		case 0x1b:
			n, j := 0, i+2
			for ; j < len(runes) && runes[j] >= '0' && runes[j] <= '9'; j++ {
				n = n*10 + int(runes[j]-'0')
			}
			switch runes[j] {
			case 'A':
				assert.True(s.t, n <= s.row, "moved %d rows up from row %d", n, s.row)
				s.row -= min(n, s.row)
			case 'K':
				*s.cell() = (*s.cell())[:min(s.col, len(*s.cell()))]
			case 'J':
				*s.cell() = (*s.cell())[:min(s.col, len(*s.cell()))]
				s.rows = s.rows[:s.row+1]
			case 'm':
			default:
				s.t.Errorf("an unsupported escape sequence: %q", string(runes[i:j+1]))
			}
			i = j
		default:
			if s.col == s.columns {
				s.row, s.col = s.row+1, 0
			}
			c := s.cell()
			for len(*c) <= s.col {
				*c = append(*c, ' ')
			}
			(*c)[s.col] = r
			s.col++
		}
	}
	return len(p), nil
}

func (s *screen) String() string {
	var b strings.Builder
	for _, r := range s.rows {
		b.WriteString(strings.TrimRight(string(r), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

func times(d time.Duration, n uint64) *measure.Histogram {
	h := measure.NewHistogram()
	h.RecordN(d, n-1)
	h.RecordN(3*d, 1)
	return h
}

// snapshot is the snapshot after second i of a run of 20 s.
func snapshot(i int) load.Snapshot {
	at := time.Duration(i) * time.Second
	n := uint64(50_000)
	return load.Snapshot{
		At: at, Phase: "measurement", Left: 20*time.Second - at,
		Interval: measure.Interval{
			Phase: "measurement", Start: at - time.Second, End: at, InFlight: 42, LagEvents: -1,
			Counts: measure.Counts{Sent: n, Acked: n, Bytes: n * 100},
			Set:    measure.Set{Response: times(3*time.Millisecond, 1000), Service: times(time.Millisecond, 200)},
		},
		Total: measure.Counts{Sent: n * uint64(i), Acked: n * uint64(i), Answered: 100 * uint64(i)},
	}
}

func TestStatusOnATerminal(t *testing.T) {
	scr := &screen{t: t, columns: 80}
	w := NewWatcher(scr, Terminal{Rewrite: true, Columns: func() int { return scr.columns }})
	fmt.Fprintln(scr, "$ carronade run")
	w.Phase("connecting to 127.0.0.1:9092")
	assert.Same(t, scr.String(), "$ carronade run\nconnecting to 127.0.0.1:9092")
	for i := range 3 {
		w.Show(snapshot(i + 1))
	}
	want := `$ carronade run
measurement   3 s   17 s left
  50 k/s acked   4.77 MiB/s   150,000 acked
  response p50 3 ms   p99 3 ms   max 9 ms
  42 in flight   nothing failed`
	// A sparkline fills its line.
	want = strings.Replace(want, "150,000 acked", "150,000 acked   ███", 1)
	assert.Same(t, scr.String(), want)
	bad := snapshot(4)
	bad.Total.Failed, bad.Total.Unknown = 1200, 7
	bad.Interval.Censored = times(2*time.Second, 50)
	bad.Interval.Response = nil
	w.Show(bad)
	want = `$ carronade run
measurement   4 s   16 s left
  50 k/s acked   4.77 MiB/s   200,000 acked   ████
  response p50 >= 2 s   p99 >= 6 s   max >= 6 s
  42 in flight   1,200 failed   7 unknown`
	assert.Same(t, scr.String(), want)
	w.Message("warning: leader of bench-0 moved")
	w.Show(snapshot(5))
	got := scr.String()
	assert.True(t, strings.HasPrefix(got, "$ carronade run\nwarning: leader of bench-0 moved\nmeasurement   5 s"), "a message is not above the status:\n%s", got)
	w.Close()
	w.Close()
	w.Show(snapshot(6))
	assert.Same(t, scr.String(), "$ carronade run\nwarning: leader of bench-0 moved", "erased status")
	assert.True(t, scr.row == 2 && scr.col == 0, "the cursor is left in row %d, column %d", scr.row, scr.col)
}

// At any width no line wraps, and the status is erased completely.
func TestWidths(t *testing.T) {
	for columns := 12; columns < 160; columns++ {
		scr := &screen{t: t, columns: columns}
		w := NewWatcher(scr, Terminal{Rewrite: true, Columns: func() int { return scr.columns }})
		s := snapshot(1)
		s.Total.Failed, s.Total.Dropped = 123456, 78
		for i := range 70 {
			s.At = time.Duration(i) * time.Second
			w.Show(s)
		}
		got := strings.Count(scr.String(), "\n") + 1
		assert.Must(t, got == 4, "%d columns: %d lines:\n%s", columns, got, scr)
		for l := range strings.Lines(scr.String()) {
			if layout.Width(strings.TrimSuffix(l, "\n")) >= columns {
				t.Fatalf("%d columns: a line of %d", columns, layout.Width(l))
			}
		}
		w.Close()
		if got := scr.String(); got != "" {
			t.Fatalf("%d columns: not erased: %q", columns, got)
		}
	}
}

func TestNarrowedTerminal(t *testing.T) {
	columns := 80
	var out bytes.Buffer
	w := NewWatcher(&out, Terminal{Rewrite: true, Color: true, Columns: func() int { return columns }})
	w.Show(snapshot(1))
	out.Reset()
	columns = 30
	w.Close()
	// The lines have 22, 43, 41 and 33 columns, so they now take 1, 2, 2 and 2 rows.
	assert.Same(t, out.String(), "\r\x1b[7A\x1b[J")
}

// The bytes of one redraw: one write, nothing blanked in between, and the cursor never hidden.
func TestBytesOfARedraw(t *testing.T) {
	writes := &countingWriter{}
	w := NewWatcher(writes, Terminal{Rewrite: true, Color: true, Columns: func() int { return 60 }})
	w.Show(snapshot(1))
	writes.reset()
	s := snapshot(2)
	s.Total.Failed = 3
	w.Show(s)
	want := "\r\x1b[4A" +
		"\x1b[1mmeasurement   2 s   18 s left\x1b[0m\x1b[K\n" +
		"  50 k/s acked   4.77 MiB/s   100,000 acked   ██\x1b[K\n" +
		"  response p50 3 ms   p99 3 ms   max 9 ms\x1b[K\n" +
		"  \x1b[2m42 in flight   \x1b[0m\x1b[31m3 failed\x1b[0m\x1b[K\n" +
		"\x1b[J"
	assert.Same(t, writes.buf.String(), want)
	assert.Equal(t, writes.n, 1, "writes")
	s.At += 10 * time.Millisecond
	w.Show(s)
	assert.Equal(t, writes.n, 1, "redrawn after 10 ms")
}

type countingWriter struct {
	buf bytes.Buffer
	n   int
}

func (c *countingWriter) Write(p []byte) (int, error) { c.n++; return c.buf.Write(p) }
func (c *countingWriter) reset()                      { c.buf.Reset(); c.n = 0 }

func TestPlainLines(t *testing.T) {
	closed := snapshot(2)
	closed.Interval.Response = nil
	closed.Left, closed.Endless = load.Never, true
	counted := closed
	counted.Endless = false
	consume := load.Snapshot{
		Consuming: true,
		At:        3 * time.Second, Phase: "measurement", Left: load.Never, Endless: true,
		Interval: measure.Interval{End: time.Second, LagEvents: 1_234_567, Counts: measure.Counts{Consumed: 19_000_000, Bytes: 1 << 30}},
		Total:    measure.Counts{Consumed: 57_000_000},
	}
	nothing := load.Snapshot{Consuming: true, At: 3 * time.Second, Phase: "measurement", Left: load.Never, Interval: measure.Interval{End: time.Second, LagEvents: 0}}
	unacknowledged := snapshot(4)
	unacknowledged.Interval.Set = measure.Set{}
	unacknowledged.Total = measure.Counts{Sent: 200_000, Unknown: 200_000}
	roundTrip := snapshot(5)
	roundTrip.Interval.EndToEnd = times(7*time.Millisecond, 100)
	dropping := snapshot(6)
	dropping.Total.Dropped, dropping.Total.Retries = 1234, 5
	drain := snapshot(20)
	drain.Phase = "drain"
	outage := snapshot(3)
	outage.Interval = measure.Interval{Start: outage.Interval.Start, End: outage.Interval.End, InFlight: 42}
	outage.Total = measure.Counts{Offered: 112_042, Acked: 100_000}
	for _, tt := range []struct {
		name string
		s    load.Snapshot
		want string
	}{
		{"open loop", snapshot(1), "measurement  1 s  19 s left  50 k/s acked  4.77 MiB/s  response p50 3 ms  p99 3 ms  max 9 ms  42 in flight"},
		{"closed loop, a number of events", counted, "measurement  2 s  50 k/s acked  4.77 MiB/s  service p50 1 ms  p99 1 ms  max 3 ms  42 in flight"},
		{"closed loop, no end", closed, "measurement  2 s  until Ctrl-C  50 k/s acked  4.77 MiB/s  service p50 1 ms  p99 1 ms  max 3 ms  42 in flight"},
		{"consume", consume, "measurement  3 s  until Ctrl-C  19 M/s consumed  1 GiB/s  1,234,567 behind"},
		{"nothing to consume", nothing, "measurement  3 s  0/s consumed  0 B/s  0 behind"},
		{"nothing is acknowledged", unacknowledged, "measurement  4 s  16 s left  50 k/s sent  4.77 MiB/s"},
		{"round trip", roundTrip, "measurement  5 s  15 s left  50 k/s acked  4.77 MiB/s  end to end p50 7 ms  p99 7 ms  max 21 ms  42 in flight"},
		{"dropping", dropping, "measurement  6 s  14 s left  50 k/s acked  4.77 MiB/s  response p50 3 ms  p99 3 ms  max 9 ms  42 in flight  1,234 dropped  5 retried"},
		{"outage", outage, "measurement  3 s  17 s left  0/s acked  0 B/s  nothing is answered: 12,042 events wait"},
		{"drain", drain, "drain  20 s  50 k/s acked  4.77 MiB/s  response p50 3 ms  p99 3 ms  max 9 ms  42 in flight"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			w := NewWatcher(&out, Terminal{})
			w.Show(tt.s)
			w.Close()
			assert.Same(t, out.String(), tt.want+"\n")
			assert.True(t, !strings.Contains(out.String(), "\x1b"), "ANSI codes without a terminal")
		})
	}
}

// Where lines cannot be rewritten, there is at most one a second: also of short intervals, and of what is
// left after the last whole one.
func TestPlainLinesOfShortIntervals(t *testing.T) {
	for _, tt := range []struct {
		name string
		at   []time.Duration
		want []string
	}{
		{"a short trial", []time.Duration{60 * time.Millisecond, 120 * time.Millisecond, 180 * time.Millisecond, 200 * time.Millisecond}, []string{"100 ms"}},
		{"short intervals", []time.Duration{500 * time.Millisecond, time.Second, 1500 * time.Millisecond, 2 * time.Second, 2500 * time.Millisecond}, []string{"500 ms", "1.5 s", "2.5 s"}},
		{"the rest of a run", []time.Duration{time.Second, 2 * time.Second, 2*time.Second + 30*time.Millisecond}, []string{"1 s", "2 s"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			w := NewWatcher(&out, Terminal{})
			for _, at := range tt.at {
				s := snapshot(1)
				s.At = at
				w.Show(s)
			}
			var got []string
			for line := range strings.Lines(out.String()) {
				got = append(got, strings.Split(line, "  ")[1])
			}
			diff := cmp.Diff(tt.want, got)
			assert.True(t, diff == "", "%s\n%s", diff, out.String())
		})
	}
}

func TestQuiet(t *testing.T) {
	var w *Watcher
	w.Show(snapshot(1))
	w.Phase("connecting")
	w.Message("words")
	w.Close()
}

func TestDetect(t *testing.T) {
	f := assert.Value(os.Create(t.TempDir() + "/file"))(t)
	defer f.Close()
	for _, tt := range []struct {
		name  string
		env   map[string]string
		ascii bool
	}{
		{"nothing set", nil, false},
		{"UTF-8", map[string]string{"LANG": "en_US.UTF-8"}, false},
		{"another spelling of UTF-8", map[string]string{"LC_ALL": "C.utf8", "LANG": "C"}, false},
		{"C", map[string]string{"LC_ALL": "C", "LANG": "en_US.UTF-8"}, true},
		{"an old locale", map[string]string{"LANG": "de_DE.ISO-8859-1"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Detect(f, func(k string) string { return tt.env[k] })
			assert.True(t, !got.Rewrite && !got.Color, "a file is taken for a terminal")
			assert.Equal(t, got.ASCII, tt.ascii, "ASCII")
			assert.Equal(t, got.Columns(), 0, "a file columns")
		})
	}
}
