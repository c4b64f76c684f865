package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/units"
)

// A named pipe that no program writes ends with --for, and when the user interrupts; one that is
// written is read.
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
			cmd := Profile(ProfileTools{Console: Console{Out: &stdout, Note: note, Warn: func(text string) { note("%s", text) }}, Err: &stderr})
			cmd.SetArgs(append([]string{path}, tt.args...))
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			done := make(chan error, 1)
			go func() { done <- cmd.ExecuteContext(ctx) }()
			err := testkit.Wait(t, "it waits no longer", done)
			text := stderr.String()
			if exit := (Exit{}); errors.As(err, &exit) {
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
				cmd := Profile(ProfileTools{Console: Console{Out: &stdout, Note: note, Warn: func(text string) { note("%s", text) }, In: in}, Err: &stderr})
				cmd.SetArgs(append([]string{"-"}, tt.args...))
				cmd.SilenceErrors, cmd.SilenceUsage = true, true
				err := cmd.ExecuteContext(ctx)
				text := ""
				if exit := (Exit{}); errors.As(err, &exit) {
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
				if want := "stdin: " + units.Plural(tt.records, unit) + ", a sample"; tt.records > 0 && !strings.Contains(stderr.String(), want) {
					t.Errorf("got %s, want %q in it", stderr.String(), want)
				}
			})
		})
	}
}
