package mongoose

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// The first error of writing during a step is kept, and the exit code is 2.
func TestFullDisk(t *testing.T) {
	m := &topicMeter{meter: newMeter(&step{op: "CREATE"}), failures: make(map[string]*failedTopics), trace: bufio.NewWriterSize(full{}, 16)}
	for range 1000 {
		m.done(dropin.TopicDone{Name: "a-topic-of-a-name", At: 1, InFlight: 1})
	}
	assert.True(t, m.err != nil && m.err.Error() == "no space", "got %v", m.err)
}

// full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

// A file that cannot be written ends the program before anything is sent; one that
// can no longer be written is a problem at the end.
func TestUnwritable(t *testing.T) {
	for _, args := range [][]string{
		{"--item-output-file=gone/items.csv"},
		{"--item-output-file=gone/topics.csv", "--item-type=path", "--load-op-limit-count=3"},
	} {
		if got := runTool(t, dropin.Program{}, args...); got.code != host.ExitFailed || got.err == nil || len(got.settings) > 0 || got.topics != nil ||
			got.err.Error() != "--item-output-file: cannot write "+args[0][len("--item-output-file="):]+": no such file or directory" {
			t.Errorf("%v: exit %d, %v, %v", args, got.code, got.err, got.settings)
		}
	}
	for _, tt := range []struct {
		file         string // a folder of this name is in its place
		before       bool   // the run
		strict, code int    // exit codes
		args         []string
	}{
		{"metrics.csv", true, 2, 2, nil},
		{"metrics.total.csv", true, 2, 2, nil},
		{"op.trace.csv", true, 2, 2, []string{"--output-metrics-trace-persist"}},
		{"metrics.threshold.csv", true, 2, 2, []string{"--output-metrics-threshold=0.5"}},
		{"metrics.threshold.total.csv", true, 2, 2, []string{"--output-metrics-threshold=0.5"}},
		{"op.trace.csv", true, 0, 0, nil},
		{"metrics.total.csv", false, 0, 2, nil},
		{"op.trace.csv", false, 0, 2, []string{"--output-metrics-trace-persist"}},
		{"op.trace.csv", false, 0, 2, []string{"--output-metrics-trace-persist", "--item-type=path"}},
	} {
		for _, strict := range []bool{false, true} {
			home := t.TempDir()
			t.Setenv("HOME", home)
			dir := filepath.Join(home, ".mongoose/4.2.11/log/s")
			assert.OK(t, os.MkdirAll(dir, 0o755))
			block := func() { assert.OK(t, os.MkdirAll(filepath.Join(dir, tt.file), 0o755)) }
			if tt.before {
				block()
			}
			started := false
			var out, errs strings.Builder
			p := &dropin.Program{Called: "mongoose", Args: append([]string{"--load-step-id=s", "--load-op-limit-count=3"}, tt.args...), Strict: strict, Out: &out, Err: &errs}
			p.Run = func(_ context.Context, _ *workload.Document, observer dropin.Observer) (*report.Document, error) {
				started = true
				if tt.file == "op.trace.csv" && !tt.before {
					block() // before its first row
				}
				sendRows(observer)
				iv := interval(0, false, false)
				iv.Interval.Failed = 0
				observer.Interval(iv)
				if tt.file != "op.trace.csv" && !tt.before {
					block()
				}
				return document(), nil
			}
			p.Topics = func(_ context.Context, _ *workload.Document, l dropin.TopicLoad) (*dropin.TopicResult, error) {
				started = true
				l.Started(time.Now())
				assert.OK(t, os.Remove(filepath.Join(dir, "metrics.csv")))
				assert.OK(t, os.Mkdir(filepath.Join(dir, "metrics.total.csv"), 0o755)) // its trace is open already
				return &dropin.TopicResult{Done: 3, Elapsed: time.Second}, nil
			}
			want := tt.code
			if strict {
				want = tt.strict
			}
			code, err := Tool.Main(t.Context(), p)
			assert.True(t, code == want && started != (want == 2 && tt.before) && (err != nil) == (want == 2 && tt.before),
				"%s is a folder, %v, strict %v: exit %d, %v, started %v: %s", tt.file, tt.args, strict, code, err, started, errs.String())
			assert.True(t, tt.before || strings.Contains(errs.String(), "not all files of the step could be written"),
				"%s: %s", tt.file, errs.String())
		}
	}
}

func stepOf(t *testing.T, args ...string) *step {
	t.Helper()
	v := assert.Value(parse(args, t.Logf))(t)
	s := assert.Value(newStep(v, false, "", began, t.Logf))(t)
	return s
}

// Names are those of mongoose: the first is the one after the seed, in the radix, not padded. Those at random from the seed 1,
// those from 0 and those down from 10 are the expectations of mongoose's own tests.
func TestNames(t *testing.T) {
	for _, tt := range testkit.Table[struct {
		Args, Want string
	}](t, "testdata/names.yaml") {
		var args []string
		for o := range strings.FieldsSeq(tt.Args) {
			args = append(args, "--item-naming-"+o)
		}
		s := stepOf(t, args...)
		n, again := s.namer(), s.namer()
		var got []string
		want := strings.Fields(tt.Want)
		for i := range want {
			name, id := n.next()
			at, of := again.appendOf(nil, 0, uint64(i))
			assert.True(t, string(at) == name && of == id, "%s: record %d is %s (%d), and name %d %s (%d)", tt.Args, i, at, of, i, name, id)
			got = append(got, name)
		}
		assert.Equal(t, strings.Join(got, " "), tt.Want, "%s", tt.Args)
	}
	// Without a seed, two steps have different names.
	a, _ := stepOf(t).namer().next()
	b := stepOf(t)
	b.namingSeed++
	c, _ := b.namer().next()
	assert.True(t, a != c && matches(`^[0-9a-z]{1,12}$`, a), "got %s and %s", a, c)
}

// Records of several streams are items in the order of the run.
func TestNamesOfStreams(t *testing.T) {
	s := stepOf(t, "--item-naming-type=serial", "--item-naming-seed=-1", "--item-naming-radix=10")
	n := s.namer()
	n.divided(s.streams(map[string]any{"topic": map[string]any{"partitions": 3}}))
	for _, tt := range []struct {
		stream int32
		event  uint64
		want   int64
	}{{0, 0, 0}, {2, 0, 2}, {0, 1, 3}, {1, 4, 13}} {
		_, id := n.appendOf(nil, tt.stream, tt.event)
		assert.Equal(t, id, tt.want, "item of event %d of stream %d", tt.event, tt.stream)
	}
}

// The numbers are less than the radix to the power of the length, as a real number.
func TestWrap(t *testing.T) {
	for _, tt := range []struct{ radix, length, want int64 }{
		{36, 12, 4738381338321616896},
		{36, 13, math.MaxInt64},
		{10, 2, 100},
		{2, 63, math.MaxInt64},
		{2, 62, 1 << 62},
		{35, 12, 3379220508056640512}, // 35^12 is 3379220508056640625, which no real number is
	} {
		assert.Equal(t, wrapOf(tt.radix, tt.length), tt.want, "%d^%d", tt.radix, tt.length)
	}
}

// Wrong options for names are errors.
func TestNamesErrors(t *testing.T) {
	for arg, want := range map[string]string{
		"--item-naming-length=0":               "is not from 1 to 64",
		"--item-naming-radix=37":               "is not from 2 to 36",
		"--item-naming-type=other":             "unknown type",
		"--item-naming-seed=abc":               "not a 64-bit integer",
		"--item-naming-prefix=${foo()}":        "--item-naming-prefix: at",
		"--item-naming-prefix=${time:nanos()}": "current time",
	} {
		v := assert.Value(parse([]string{arg, "--storage-driver-record-key-enabled"}, t.Logf))(t)
		_, err := newStep(v, false, "", began, t.Logf)
		assert.ErrorHas(t, err, want, "%s", arg)
	}
}

// Sizes, and numbers in columns.
func TestNumbers(t *testing.T) {
	for n, want := range map[uint64]string{0: "0B", 1023: "1023B", 1024: "1KB", 2000000: "1.907MB", 10 << 20: "10MB", 102400 + 512: "100.5KB", 20<<30 + 1<<29: "20.50GB"} {
		assert.Equal(t, bytesText(n), want, "%d bytes", n)
	}
	for _, tt := range []struct {
		x    float64
		n    int
		want string
	}{{1234.5678, 8, "1234.567"}, {12345678.9, 8, "12345678"}, {0.5, 7, "0.5"}, {1e-9, 7, "0"}, {4.81394942941553e-4, 7, "4.81E-4"}, {1.5e-4, 7, "1.5E-4"}, {1.23456789e-5, 10, "1.23456E-5"}, {9.99999e-4, 8, "9.999E-4"}, {123456789, 8, "1.2345E8"}, {123456789012, 8, "1.234E11"}, {1e7, 7, "1.0E7"}, {31365.05, 8, "31365.05"}} {
		assert.Equal(t, fixed(tt.x, tt.n), tt.want, "%g in %d", tt.x, tt.n)
	}
}

// A count of failures that is too long for its column does not look like another number.
func TestManyFailures(t *testing.T) {
	for _, tt := range []struct {
		n             uint64
		right, strict string
	}{{0, "     0", "     0"}, {999_999, "999999", "999999"}, {1_000_000, "1.00E6", "000000"}, {1_234_567, "1.23E6", "234567"}, {12_345_678_901, "1.2E10", "678901"}} {
		assert.Equal(t, left((&step{}).failed(tt.n), 6), tt.right, "%d", tt.n)
		assert.Equal(t, left((&step{strict: true}).failed(tt.n), 6), tt.strict, "with --strict %d", tt.n)
		var b strings.Builder
		(&table{w: &b, s: &step{headerEach: 20}}).row(&metrics{fail: tt.n})
		assert.Has(t, b.String(), "|           0|"+tt.right+"|")
	}
}

// A list has places if they were written with it, and it did not change since.
func TestPlaces(t *testing.T) {
	write := func(t *testing.T, withOffsets bool) string {
		t.Helper()
		list := filepath.Join(t.TempDir(), "items.csv")
		w := assert.Value(newListWriter(list, "t"))(t)
		for i := range int64(5) {
			offset := 10 + i
			if !withOffsets && i == 3 {
				offset = -1
			}
			assert.OK(t, w.add(fmt.Appendf(nil, "t/%d,%d,10,0/0\n", i, i), int32(i/2), offset))
		}
		assert.OK(t, w.close())
		return list
	}
	check := func(t *testing.T, list, topic string) error {
		t.Helper()
		items := assert.Value(readItems(list))(t)
		return (&step{topic: topic, items: items}).checkPlaces(list)
	}
	list := write(t, true)
	assert.OK(t, check(t, list, "t"))
	if text, err := os.ReadFile(placesOf(list)); err != nil || !strings.Contains(string(text), "\n0,10,2\n1,12,2\n2,14\n# of the list with 5 lines, crc32c ") {
		t.Errorf("the places are %q (%v)", text, err)
	}
	assert.Equal(t, check(t, list, "other"), errOther, "another topic")
	_, err := os.Stat(placesOf(write(t, false)))
	assert.True(t, os.IsNotExist(err), "a record has no offset: %v", err)
	for name, change := range map[string]func(text string) string{
		"a line less":  func(text string) string { return text[:strings.LastIndex(text[:len(text)-1], "\n")+1] },
		"another size": func(text string) string { return strings.Replace(text, ",10,", ",11,", 1) },
	} {
		list := write(t, true)
		assert.OK(t, os.WriteFile(list, []byte(change(string(assert.Value(os.ReadFile(list))(t)))), 0o600))
		assert.Equal(t, check(t, list, "t"), errOther, "%s", name)
	}
	list = write(t, true)
	text, _ := os.ReadFile(placesOf(list))
	assert.OK(t, os.WriteFile(placesOf(list), []byte(strings.Replace(string(text), "1,12,2", "1,12,x", 1)), 0o600))
	assert.ErrorHas(t, check(t, list, "t"), `items.csv.places:4: "x" is not a number of records`, "a wrong line")
}

// A list with places is read by them, at a rate if one is given.
func TestReadsByPlaces(t *testing.T) {
	t.Chdir(t.TempDir())
	dir := assert.Value(os.Getwd())(t)
	list := filepath.Join(dir, "items.csv")
	w := assert.Value(newListWriter(list, "t"))(t)
	assert.OK(t, w.add([]byte("t/a,1,10,0/0\n"), 0, 3))
	assert.OK(t, w.close())
	v, err := parse([]string{"--read", "--item-input-file=" + list, "--load-op-limit-rate=7", "--storage-driver-limit-concurrency=3", "--load-op-recycle"}, t.Logf)
	assert.OK(t, err)
	s := assert.Value(newStep(v, false, "", began, func(f string, args ...any) { t.Errorf("warning: "+f, args...) }))(t)
	got := map[string]string{}
	for _, e := range s.workload(false).Entries {
		got[e.Name] = strings.Join(e.Values, " ")
	}
	for name, want := range map[string]string{"op": "read", "items-in": placesOf(list), "rate": "7/s", "max-in-flight": "3", "recycle": "true", "failures": "100000"} {
		assert.Equal(t, got[name], want, "%s", name)
	}
}
