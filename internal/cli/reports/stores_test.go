package reports

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/reporttest"
)

// closing is a store that counts how many times it is closed.
type closing struct {
	store.Store
	closed int
	err    error
}

func (c *closing) Close() error { c.closed++; return c.err }

// A job gets the store that --store names. The store is closed also if the job fails, and both errors are returned.
func TestOpeningDo(t *testing.T) {
	failed, broken, shut := errors.New("the job failed"), errors.New("cannot be opened"), errors.New("does not close")
	for _, tt := range []struct {
		name             string
		open, job, close error
		want             []error
		closed           int
	}{
		{name: "no error", closed: 1},
		{name: "no store", open: broken, want: []error{broken}},
		{name: "the job fails", job: failed, want: []error{failed}, closed: 1},
		{name: "closing fails", close: shut, want: []error{shut}, closed: 1},
		{name: "both fail", job: failed, close: shut, want: []error{failed, shut}, closed: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &closing{err: tt.close}
			fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
			open := Stores(func(_ context.Context, place string) (store.Store, error) {
				assert.Equal(t, place, "here.db", "place")
				return s, tt.open
			}).Bind(fs)
			assert.OK(t, fs.Parse([]string{"--store", "here.db"}))
			ran := false
			err := open.Do(t.Context(), func(got store.Store) error {
				ran = true
				assert.True(t, got == store.Store(s) && s.closed <= 0, "the job got %v, closed %d times", got, s.closed)
				return tt.job
			})
			for _, want := range tt.want {
				assert.True(t, errors.Is(err, want), "got %v, want %v", err, want)
			}
			assert.True(t, (len(tt.want) > 0 || err == nil) && s.closed == tt.closed && ran != (tt.open != nil),
				"got %v, closed %d times, ran %v; want it closed %d times", err, s.closed, ran, tt.closed)
		})
	}
}

// The table of the load tool for Riemann has runs against Riemann alone, also over TLS.
func TestTableLikeRiemannLoad(t *testing.T) {
	s := newTestStore(t)
	kafka := s.keep("", "", time.Hour, 50e3)
	table := func(args ...string) (string, error) {
		var out bytes.Buffer
		cmd := (&commands{Tools{
			Console: cmdutil.Console{Out: &out, Note: func(string, ...any) {}, Warn: func(string) {}},
			Stores:  func(ctx context.Context, _ string) (store.Store, error) { return sqlite.Open(ctx, s.path) },
		}}).table()
		cmd.SetArgs(append(args, "--like", "riemann-load"))
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	_, err := table()
	assert.True(t, err != nil, "a table of no run")
	var own []string
	for _, target := range []string{"riemann://127.0.0.1:5555", "riemann+tls://127.0.0.1:5554"} {
		own = append(own, s.keep("", "", time.Minute, 50e3, func(d *report.Document) { d.Target = target }))
	}
	out, err := table("--as", "json")
	assert.True(t, err == nil && !strings.Contains(out, kafka) && strings.Contains(out, own[0]) && strings.Contains(out, own[1]), "%v:\n%s", err, out)
}

// A watched store calls a function before each report is read.
type watched struct {
	store.Store
	read func(n int)
	n    int
}

func (w *watched) Get(ctx context.Context, id string) (*report.Document, error) {
	w.read(w.n)
	w.n++
	return w.Store.Get(ctx, id)
}

// TestExportOneByOne: in a format with one report per file, each report is
// written before the next is read, since all may not fit into memory.
func TestExportOneByOne(t *testing.T) {
	const n = 5
	s := assert.Value(sqlite.Open(t.Context(), filled(t, n, 3)))(t)
	defer s.Close()
	dir := filepath.Join(t.TempDir(), "out")
	w := &watched{Store: s, read: func(before int) {
		files, err := os.ReadDir(dir)
		assert.True(t, err == nil, "%v", err)
		assert.Equal(t, len(files), before, "files after reports were read")
	}}
	c := &commands{}
	assert.OK(t, c.doExport(t.Context(), w, &exporting{as: "hdr", out: dir}, []string{"op=produce"}))
	assert.Equal(t, w.n, n, "reports read")
	files, err := os.ReadDir(dir)
	assert.True(t, err == nil && len(files) == n, "%d files, %v, want %d", len(files), err, n)
}

// An endless reader repeats a byte.
type endless struct {
	b    byte
	read int64
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.b
	}
	e.read += int64(len(p))
	return len(p), nil
}

// TestEachReportIsBounded: a document that is too large is refused when that many bytes were read, and a stream
// of several has no limit.
func TestEachReportIsBounded(t *testing.T) {
	ignore := func([]byte) error { return nil }
	large := &endless{b: 'x'}
	err := eachReport(t.Context(), io.MultiReader(strings.NewReader(`{"a":"`), large), ignore)
	assert.True(t, errors.Is(err, errTooLarge), "got %v", err)
	assert.True(t, large.read <= mostReport, "%d bytes were read", large.read)
	const each = mostReport/2 + 1
	var all []io.Reader
	for range 3 {
		all = append(all, strings.NewReader(`"`), io.LimitReader(&endless{b: 'x'}, each), strings.NewReader(`"`))
	}
	n := 0
	err = eachReport(t.Context(), io.MultiReader(all...), func([]byte) error { n++; return nil })
	assert.True(t, err == nil && n == 3, "%d documents, %v", n, err)
}

// TestEachReportEnds: an interrupt ends the reading of a stdin to which nothing is written.
func TestEachReportEnds(t *testing.T) {
	in, end := io.Pipe()
	defer end.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := eachReport(ctx, in, func([]byte) error { return nil })
	assert.True(t, errors.Is(err, context.Canceled), "got %v", err)
}

// A deletion names what it deleted, as long as that is readable.
func TestDeletedNames(t *testing.T) {
	s := newTestStore(t)
	ids := s.repeat(7, "main", "aaaa", 3*day, 50e3)
	for _, tt := range []struct {
		args []string
		want string
	}{{ids[:1], "deleted 1 report: " + ids[0] + "\n"}, {[]string{"branch=main", "--yes"}, "and 2 others\n"}} {
		code, words := s.run(append([]string{"delete"}, tt.args...)...)
		assert.True(t, code == host.ExitOK && strings.Contains(s.notes.String(), tt.want), "%s: got %d, %q, %q, want %q", tt.args, code, words, s.notes.String(), tt.want)
	}
	for _, tt := range []struct {
		args string
		code int
		says string
	}{
		{"", host.ExitFailed, "needs reports"},
		{"--older-than x", host.ExitFailed, "is not an age"},
		{"--older-than -5m --yes", host.ExitFailed, "is not an age"}, // all reports are younger than in five minutes
		{"--older-than= branch=main --yes", host.ExitFailed, "is not an age"},
		{"last --older-than 1d", host.ExitFailed, "goes with filters"},
		{"--older-than 400d --yes", host.ExitOK, ""},
	} {
		code, words := s.run(append([]string{"delete"}, strings.Fields(tt.args)...)...)
		assert.True(t, code == tt.code && strings.Contains(words, tt.says), "%s: got %d, %q, want %d, %q", tt.args, code, words, tt.code, tt.says)
	}
	s.repeat(2, "main", "bbbb", 9*day, 50e3)
	s.repeat(1, "main", "cccc", 1*day, 50e3)
	code, words := s.run("delete", "--older-than", "4d", "--yes")
	assert.True(t, code == host.ExitOK && strings.Contains(s.notes.String(), "deleted 2 reports: "), "got %d, %q, %q", code, words, s.notes.String())
	for n, want := range map[int]string{5: strings.Join(ids[:5], " "), 7: strings.Join(ids[:4], " ") + " and 3 others"} {
		assert.Equal(t, few(ids[:n]), want, "%d", n)
	}
}

// What a system printed cannot change the terminal; elsewhere it is written as it was.
func TestLogOnATerminal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports.db")
	s := assert.Value(sqlite.Open(t.Context(), path))(t)
	const made = "\x1b[31mmaking\x1b[0m\nmade\n"
	const text = "\x1b[31mred\x1b[0m\n\x1b]0;a title\a\nthe last line\n"
	d := reporttest.Document(1, 2)
	d.System = &report.System{Facts: map[string]any{}, LastLines: []string{}, Output: report.NewOutput(text, 0), BuildOutput: report.NewOutput(made, 9)}
	assert.OK(t, d.Seal())
	assert.OK(t, s.Put(t.Context(), d))
	assert.OK(t, s.Close())
	if r := runs(t, "log", "--store", path); r.out != text {
		t.Errorf("got %q (%s), want %q", r.out, r.words, text)
	}
	if r := runs(t, "log", "--store", path, "--build"); r.out != made || !strings.Contains(r.notes, "the first 9 B were not kept") {
		t.Errorf("got %q (%s, %s), want %q", r.out, r.words, r.notes, made)
	}
	if r := runsOn(t, true, "log", "--store", path, "--build"); strings.Contains(r.out, "\x1b") || strings.Count(r.out, "\n") != 2 || !strings.HasSuffix(r.out, "\nmade\n") {
		t.Errorf("got %q of the build on a terminal", r.out)
	}
	r := runsOn(t, true, "log", "--store", path)
	assert.True(t, !strings.ContainsAny(r.out, "\x1b\a") && strings.Count(r.out, "\n") == 3 &&
		strings.HasSuffix(r.out, "\nthe last line\n"), "got %q on a terminal", r.out)
}
