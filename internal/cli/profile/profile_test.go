package profile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	targetapm "carronade/internal/apm"
	"carronade/internal/apm/wire"
	"carronade/internal/cli/cmdutil"
	"carronade/internal/kafka"
	traffic "carronade/internal/profile"
	targetriemann "carronade/internal/riemann"
	standinriemann "carronade/internal/riemann/standin"
	riemannwire "carronade/internal/riemann/wire"
	"carronade/internal/workload"
	"carronade/payload"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/units"
)

func fitted(t *testing.T, path string, args ...string) (out, words string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	note := func(format string, args ...any) { fmt.Fprintf(&stderr, format+"\n", args...) }
	tools := Tools{
		Console: cmdutil.Console{Out: &stdout, Note: note, Warn: func(text string) { note("warning: %s", text) }, In: strings.NewReader("")},
		Err:     &stderr, Index: targetriemann.Kind{},
	}
	cmd := Command(tools)
	cmd.SetArgs(append([]string{path}, args...))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func agents(t *testing.T, requests int) []byte {
	t.Helper()
	mk, err := wire.NewMaker(wire.Makeup{Events: wire.Range{Min: 1, Max: 9}, Spans: wire.Range{Max: 4}, Frames: wire.Range{Min: 2, Max: 2}, Mix: [wire.Kinds]int{6, 0, 2, 1, 1}}, 1)
	assert.OK(t, err)
	var out []byte
	for n := range requests {
		b := mk.Make(uint64(n))
		b.Stamp(1, uint64(n), 1767323045_000_000+int64(n)*10_000)
		out = append(out, b.Bytes...)
	}
	return out
}

// riemannIndex starts a server of Riemann with 40 events, and returns its target.
func riemannIndex(t *testing.T) string {
	t.Helper()
	server := assert.Value(standinriemann.Start(standinriemann.Options{Listen: "127.0.0.1:0"}))(t)
	t.Cleanup(func() { server.Close() })
	var m riemannwire.Msg
	for i := range 40 {
		m.Events = append(m.Events, riemannwire.Event{
			Service: fmt.Sprintf("secret service %d", i), Host: fmt.Sprintf("secret host %d", i%4), State: []string{"ok", "ok", "critical", "secret state"}[i%4],
			Description: "a secret text", Tags: []string{"a", "b"}, Attributes: []riemannwire.Attribute{{Key: "zone", Value: "secret zone"}},
			HasTTL: true, TTL: 3600, Metric: riemannwire.Metric{Kind: riemannwire.Float, Real: float64(i % 7)},
		})
	}
	c := assert.Value(net.Dial("tcp", server.Addr()))(t)
	defer c.Close()
	assert.Value(c.Write(riemannwire.AppendFramed(nil, &m)))(t)
	if _, err := c.Read(make([]byte, 1)); err != nil { // the answer
		t.Fatal(err)
	}
	return "riemann://" + server.Addr()
}

// files are one of each format.
func files(t *testing.T) map[string][]byte {
	t.Helper()
	var lines []byte
	for i := range 2000 {
		lines = fmt.Appendf(lines, `{"key":"secret %d","value":"a secret value %d","ts":%d,"headers":["trace","secret %d"]}`+"\n", i%100, i*i, 1767323045000+i*2, i)
	}
	return map[string][]byte{"apm": agents(t, 200), "ndjson": lines}
}

// Every workload is one that can be run, and has nothing of what was read.
func TestWorkloadsAreValid(t *testing.T) {
	sources := map[string]string{"riemann index": riemannIndex(t)}
	for kind, data := range files(t) {
		sources[kind] = filepath.Join(t.TempDir(), "file")
		assert.OK(t, os.WriteFile(sources[kind], data, 0o600))
	}
	for kind, path := range sources {
		t.Run(kind, func(t *testing.T) {
			out, words, err := fitted(t, path)
			assert.Must(t, err == nil, "got %v\n%s", err, words)
			docs, err := workload.Read(kind, strings.NewReader(out))
			assert.Must(t, err == nil, "got %v of\n%s", err, out)
			w, err := workload.Resolve([]protocol.Kind{kafka.Kind{}, targetriemann.Kind{}, targetapm.Kind{}}, nil, docs[0])
			assert.Must(t, err == nil, "got %v of\n%s", err, out)
			got := w.String("rate") != "" || w.String("shape") != ""
			assert.True(t, got == (kind != "riemann index") && w.String("target") != path, "got a schedule (%t), or the source as target, in\n%s", got, out)
			assert.True(t, strings.Contains(strings.Join(strings.Fields(words), " "), "all that it has"), "got the summary\n%s", words)
			asJSON, _, err := fitted(t, path, "--json")
			var d profileDocument
			assert.True(t, err == nil && json.Unmarshal([]byte(asJSON), &d) == nil && d.Schema == profileSchema &&
				d.Source.Kind == kind && d.Workload == out, "got %v and %.200s", err, asJSON)
			for _, text := range []string{out, words, asJSON} {
				assert.True(t, !strings.Contains(text, "secret"), "got something of what was read in\n%s", text)
			}
			for line := range strings.Lines(out + words) {
				assert.True(t, len(line) <= 81 || strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "warning: "),
					"got a line of %d columns: %s", len(line), line)
			}
			n := strings.Count(words, "\n")
			assert.True(t, n <= 40, "got a summary of %d lines, want at most 40", n)
		})
	}
}

func TestRequestsAreKept(t *testing.T) {
	dir := t.TempDir()
	path, kept := filepath.Join(dir, "file"), filepath.Join(dir, "kept")
	data := agents(t, 20)
	assert.OK(t, os.WriteFile(path, data, 0o600))
	out, _, err := fitted(t, path, "--keep-samples", kept)
	assert.Must(t, err == nil && strings.Contains(out, "corpus: "+kept+"\n"), "got %v and\n%s", err, out)
	got, err := os.ReadFile(kept)
	assert.True(t, err == nil && bytes.Equal(got, data), "got %d bytes and %v, want the %d of the requests", len(got), err, len(data))
}

// Values that are kept are those of the source, empty ones and a last one too.
func TestValuesAreKept(t *testing.T) {
	for _, values := range [][]string{{"a", "", "b", ""}, {""}, {"", ""}, {"a\nb", "", "\x00", ""}} {
		t.Chdir(t.TempDir())
		path, kept := "file", "kept" // short, so that the payload is on one line
		var lines []byte
		for _, v := range values {
			text := assert.Value(json.Marshal(map[string]string{"value": v}))(t)
			lines = append(append(lines, text...), '\n')
		}
		assert.OK(t, os.WriteFile(path, append(lines, `{"value":null}`...), 0o600))
		out, _, err := fitted(t, path, "--keep-samples", kept)
		assert.OK(t, err)
		_, spec, _ := strings.Cut(out, "payload: ")
		spec, _, _ = strings.Cut(spec, "\n")
		if plain, err := strconv.Unquote(spec); err == nil {
			spec = plain
		}
		gen := assert.Value(payload.New(payload.Spec{Size: "1", Payload: strings.Replace(spec, ",random", "", 1)}))(t)
		var got []string
		for i := range values {
			got = append(got, string(gen.AppendValue(nil, uint64(i))))
		}
		assert.Same(t, got, values, "%s", spec)
	}
}

// A file is not replaced by what is written about it.
func TestTheSourceIsNotReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	data := []byte("{\"value\":\"v\"}\n")
	for _, flag := range []string{"--output", "--keep-samples"} {
		assert.OK(t, os.WriteFile(path, data, 0o600))
		_, _, err := fitted(t, path, flag, filepath.Join(filepath.Dir(path), ".", "file"))
		if got, _ := os.ReadFile(path); err == nil || !strings.Contains(err.Error(), "it is the file that is read") || !bytes.Equal(got, data) {
			t.Errorf("%s: got %v, and the file has %q", flag, err, got)
		}
	}
}

func TestTruncatedFilesAreRefused(t *testing.T) {
	for kind, data := range files(t) {
		t.Run(kind, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			assert.OK(t, os.WriteFile(path, data[:len(data)-20], 0o600))
			_, _, err := fitted(t, path)
			var w *protocol.Error
			assert.True(t, errors.As(err, &w) && w.Hint != "" && strings.HasPrefix(w.Error(), path+", as "+kind),
				"got %v, want an error with the file, the format and a hint", err)
		})
	}
}

func TestScalarsAreQuoted(t *testing.T) {
	for _, test := range []struct{ value, want string }{
		{"100", "100"},
		{"kafka://127.0.0.1:9092/t", "kafka://127.0.0.1:9092/t"},
		{"zipf(10,1.1)", `"zipf(10,1.1)"`},
		{"a: b", `"a: b"`},
		{"-x", `"-x"`},
		{"", `""`},
		{`id=${string:format("%02d", 1)}`, `"id=${string:format(\"%02d\", 1)}"`},
	} {
		got := scalar(test.value)
		assert.True(t, got == test.want, "got %s of %s, want %s", got, test.value, test.want)
	}
}

// Contents are compared also if they were sent with another codec than the source's.
func TestCheckOfContents(t *testing.T) {
	gzip := traffic.Content{Codec: "gzip", Ratio: 0.4, Of: "batches"}
	for _, tt := range []struct {
		name      string
		got, want traffic.Content
		rows      int
		holds     bool
		words     string
	}{
		{"alike", traffic.Content{Codec: "gzip", Ratio: 0.41}, gzip, 1, true, "compresses to 41% for 40%"},
		{"too well", traffic.Content{Codec: "gzip", Ratio: 0.3}, gzip, 1, false, "compresses to 30% for 40%"},
		{"another codec", traffic.Content{Codec: "zstd", Ratio: 0.9}, gzip, 1, false, ", by zstd and not by gzip"},
		{"nothing came", traffic.Content{}, gzip, 1, false, ", by none and not by gzip"},
		{"a source without contents", gzip, traffic.Content{}, 0, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &checking{Holds: true}
			c.content(tt.got, tt.want)
			assert.Must(t, len(c.Distances) == tt.rows && c.Holds == tt.holds, "got %+v, want %d with %v", c, tt.rows, tt.holds)
			if tt.rows > 0 && !strings.HasSuffix(c.Distances[0].words, tt.words) {
				t.Errorf("got %q, want %q", c.Distances[0].words, tt.words)
			}
		})
	}
}

// TestFinish checks what is said of how the reading of a file ended.
func TestFinish(t *testing.T) {
	nothing, broken := errors.New("nothing"), &traffic.Error{Where: "record 3", Err: errors.New("no JSON")}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name  string
		ctx   context.Context
		err   error
		found uint64
		cut   bool // it is a pipe, whose reading ended before the pipe did
		want  error
		whole bool
	}{
		{"all was read", t.Context(), nil, 3, false, nil, true},
		{"all was read, and it has nothing", t.Context(), nil, 0, false, nothing, true},
		{"enough was read", t.Context(), traffic.ErrEnough, 3, false, nil, false},
		{"interrupted before the first", canceled, traffic.ErrEnough, 0, false, context.Canceled, false},
		{"a broken one", t.Context(), broken, 2, false, broken, false},
		{"a pipe ends after a broken one", t.Context(), broken, 2, true, nil, false},
		{"a pipe ends after a broken one, the only one", t.Context(), broken, 0, true, broken, false},
		{"a pipe ends before the first", t.Context(), nil, 0, true, nothing, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := &input{Reader: bufio.NewReader(strings.NewReader("")), ctx: tt.ctx}
			if tt.cut {
				in.waiting = &waiting{cut: true}
			}
			var src source
			assert.Equal(t, in.finish(&src, tt.err, tt.found, nothing), tt.want)
			got, want := fmt.Sprint(src.Whole, src.Interrupted, src.Broken), fmt.Sprint(tt.whole, tt.ctx.Err() != nil, map[bool]int{true: 1}[tt.cut && tt.err != nil])
			assert.Equal(t, got, want, "whole, interrupted, broken")
		})
	}
}

// A named pipe that no program writes ends with --for, and when the user interrupts; one that is written is read.
func TestNamedPipe(t *testing.T) {
	for _, tt := range []struct {
		name, sent string
		args       []string
		interrupt  bool
		want       string // in the error, or in what it printed
	}{
		{"no writer", "", []string{"--for", "200ms"}, false, "within 200 ms (--for)"},
		{"interrupted", "", nil, true, "exit 130"},
		{"written", strings.Repeat(`{"value":"some text"}`+"\n", 7), nil, false, "7 records, all that it has"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "pipe")
			if out, err := exec.CommandContext(t.Context(), "mkfifo", path).CombinedOutput(); err != nil {
				t.Skipf("no named pipe can be made: %v: %s", err, out)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.interrupt {
				time.AfterFunc(100*time.Millisecond, cancel)
			}
			if tt.sent != "" {
				go func() { _ = os.WriteFile(path, []byte(tt.sent), 0o600) }()
			}
			var stdout, stderr bytes.Buffer
			note := func(format string, args ...any) { fmt.Fprintf(&stderr, format+"\n", args...) }
			cmd := Command(Tools{Console: cmdutil.Console{Out: &stdout, Note: note, Warn: func(text string) { note("%s", text) }}, Err: &stderr})
			cmd.SetArgs(append([]string{path}, tt.args...))
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			done := make(chan error, 1)
			go func() { done <- cmd.ExecuteContext(ctx) }()
			err := testkit.Wait(t, "it waits no longer", done)
			text := stderr.String()
			if exit := (cmdutil.Exit{}); errors.As(err, &exit) {
				text = fmt.Sprintf("exit %d", exit.Code)
			} else if err != nil {
				text = err.Error()
			}
			assert.Has(t, text, tt.want)
		})
	}
}

// A quiet stdin ends with --for, or when the user interrupts, and what came until then is the sample.
func TestQuietStdin(t *testing.T) {
	const whole = `{"key":"a","value":"some text"}` + "\n"
	const request = `{"metadata":{"service":{"name":"a","agent":{"name":"go","version":"1"}}}}` + "\n" +
		`{"transaction":{"id":"1","trace_id":"1","type":"request","duration":1,"span_count":{"started":0}}}` + "\n"
	for _, tt := range []struct {
		name, sent string
		args       []string
		interrupt  bool
		records    int
		want       string // error; with records a part of the summary
	}{
		{"some records", strings.Repeat(whole, 10), []string{"--for", "300ms"}, false, 10, ""},
		{"a broken record at the end", strings.Repeat(whole, 3) + "{]\n", []string{"--for", "300ms"}, false, 3, "line 4, the last that arrived, is broken"},
		{"the same, interrupted", strings.Repeat(whole, 3) + "{]\n", nil, true, 3, "exit 130"},
		{"a broken record at the end of many", strings.Repeat(whole, 4000) + "{]\n", []string{"--for", "300ms"}, false, 4000, "line 4001, the last that arrived, is broken"},
		{"nothing but a broken record", "{]\n", []string{"--for", "300ms"}, false, 0, "line 1: it is not JSON"},
		{"a broken request at the end", strings.Repeat(request, 2) + "{]\n", []string{"--for", "300ms"}, false, 1, "line 5, the last that arrived, is broken"},
		{"a record in two", strings.Repeat(whole, 3) + whole[:9], []string{"--for", "300ms"}, false, 3, ""},
		{"a broken record in two", strings.Repeat(whole, 3) + "{]", []string{"--for", "300ms"}, false, 3, ""},
		{"a broken record among others", strings.Repeat(whole, 4) + "{]\n" + strings.Repeat(whole, 9), []string{"--for", "300ms"}, false, 0, "line 5"},
		{"the same, interrupted", strings.Repeat(whole, 4) + "{]\n" + strings.Repeat(whole, 9), nil, true, 0, "line 5"},
		{"a broken request among others", strings.Repeat(request, 2) + "{]\n" + strings.Repeat(request, 3), []string{"--for", "300ms"}, false, 0, "line 5"},
		{"some requests", strings.Repeat(request, 7), []string{"--for", "300ms"}, false, 7, ""},
		{"nothing", "", []string{"--for", "300ms"}, false, 0, "nothing arrived from stdin within 300 ms (--for)"},
		{"nothing, of a format", "", []string{"--for", "300ms", "--format", "apm"}, false, 0, "nothing arrived"},
		{"interrupted", strings.Repeat(whole, 5), nil, true, 5, "exit 130"},
		{"interrupted before anything", "", nil, true, 0, "exit 130"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in, out := io.Pipe()
				defer out.Close()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					_, _ = out.Write([]byte(tt.sent))
					if tt.interrupt {
						time.AfterFunc(100*time.Millisecond, cancel)
					}
				}()
				var stdout, stderr bytes.Buffer
				note := func(format string, args ...any) { fmt.Fprintf(&stderr, format+"\n", args...) }
				cmd := Command(Tools{Console: cmdutil.Console{Out: &stdout, Note: note, Warn: func(text string) { note("%s", text) }, In: in}, Err: &stderr})
				cmd.SetArgs(append([]string{"-"}, tt.args...))
				cmd.SilenceErrors, cmd.SilenceUsage = true, true
				err := cmd.ExecuteContext(ctx)
				text := ""
				if exit := (cmdutil.Exit{}); errors.As(err, &exit) {
					text = fmt.Sprintf("exit %d", exit.Code)
				} else if err != nil {
					text = err.Error()
				}
				if text == "" && tt.records > 0 {
					text = stderr.String() // it succeeded
				}
				assert.Must(t, strings.Contains(text, tt.want) && (tt.want != "" || !strings.Contains(text, "broken")),
					"got %q, want %q\n%s", text, tt.want, stderr.String())
				unit := "record"
				if strings.HasPrefix(tt.sent, request) {
					unit = "event"
				}
				want := "stdin: " + units.Plural(tt.records, unit) + ", a sample"
				assert.True(t, tt.records <= 0 || strings.Contains(stderr.String(), want), "got %s, want %q in it", stderr.String(), want)
			})
		})
	}
}
