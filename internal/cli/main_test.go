package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"carronade/internal/cli"
	"carronade/internal/report"
	"carronade/internal/standin"
	"carronade/internal/verdict/trust"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// The tests run the whole program in a separate process: the test binary, under the name carronade.
func TestMain(m *testing.M) {
	// A test that does not set the data folder must not reach the user's own reports.
	if os.Getenv("XDG_DATA_HOME") == "" {
		_ = os.Setenv("XDG_DATA_HOME", filepath.Join(os.DevNull, "data"))
	}
	testscript.Main(m, map[string]func(){
		"carronade-lines": lines,
		"carronade": func() {
			ends := hog()
			p := cli.OS(cli.Kinds())
			p.Measured, p.Others = trustByVariable(), othersByVariable()
			code := p.Main()
			if !ends { // it waits for the crash
				select {}
			}
			os.Exit(code)
		},
	})
}

// trustByVariable makes runs trusted or not by the variable CARRONADE_TEST_UNTRUSTED: "2,5" makes the second and the fifth run of
// the program untrusted, "none" no run, and all others are trusted however busy this machine is. Without the variable it is nil.
func trustByVariable() func(*report.Document) {
	list := os.Getenv("CARRONADE_TEST_UNTRUSTED")
	if list == "" {
		return nil
	}
	var n atomic.Int64 // steps of a scenario end at the same time
	untrusted := strings.Split(list, ",")
	return func(d *report.Document) {
		n := n.Add(1)
		d.Trust = measure.Trust{OK: true, Level: measure.Trusted}
		if slices.Contains(untrusted, strconv.FormatInt(n, 10)) {
			d.Trust = measure.Trust{Level: measure.NotTrusted, Reasons: []string{"the test says so"}}
		}
	}
}

// hog takes as many MiB as the argument hog=N says, again and again, as a faulty program would; a number from 64 on
// without a pause, until the program crashes.
func hog() (ends bool) {
	ends = true
	for _, arg := range os.Args {
		text, ok := strings.CutPrefix(arg, "hog=")
		if n, err := strconv.Atoi(text); ok && err == nil {
			ends = n < 64
			go func() {
				for kept := [][]byte{}; ; kept = append(kept, make([]byte, n<<20)) {
					if n < 64 {
						<-time.After(time.Millisecond)
					}
				}
			}()
		}
	}
	return ends
}

// othersByVariable makes up what else uses the machine: the share of its processors in the variable
// CARRONADE_TEST_OTHERS, and nothing without it, however busy this machine is.
func othersByVariable() *trust.Others {
	share, err := strconv.ParseFloat(os.Getenv("CARRONADE_TEST_OTHERS"), 64)
	return &trust.Others{WindowS: 0.1, Processors: 2, Programs: share, Disturb: err == nil}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testkit.Need(t, "minutes: the scripts run loads")
	files, err := filepath.Glob("testdata/script/*.txtar")
	assert.Must(t, err == nil && len(files) != 0, "got %d scripts and %v, want some", len(files), err)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       testkit.Update(),
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"broker": broker, "server": server, "measured": measured, "eventually": eventually},
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_DATA_HOME", filepath.Join(e.WorkDir, "data"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("NO_COLOR", "1")
			e.Setenv("LANG", "C.UTF-8")
			return nil
		},
	})
}

func broker(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: broker [FLAGS]")
	}
	server(ts, false, append([]string{"BROKER", "kafka"}, args...))
}

// server starts a stand-in for a script, and sets a variable to its address,
// and one for each of its other addresses, such as SERVER_UDP.
func server(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: server VARIABLE NAME [FLAGS]")
	}
	exe, err := exec.LookPath("carronade")
	ts.Check(err)
	c, err := standin.Spawn(context.Background(), exe, append([]string{args[1], "--listen", "127.0.0.1:0"}, args[2:]...)...)
	ts.Check(err)
	ts.Setenv(args[0], c.Addr())
	for _, name := range []string{"udp", "tls", "ws"} {
		ts.Setenv(args[0]+"_"+strings.ToUpper(name), c.AddrOf(name))
	}
	ts.Defer(func() { _ = c.Stop() })
}

// measured runs the program like exec, but accepts exit code 3 like 0: on a
// machine that is busy with other tests, a run may rightly be not trusted.
func measured(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 || args[0] != "carronade" {
		ts.Fatalf("usage: measured carronade ARGS")
	}
	err := ts.Exec("carronade", args[1:]...)
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) {
		ts.Fatalf("%v: %v", args, err)
	}
}

// eventually runs the program like exec, again and again until it succeeds: what it asks for may take a moment to be there.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 || args[0] != "carronade" {
		ts.Fatalf("usage: eventually carronade ARGS")
	}
	var err error
	for end := time.After(time.Minute); ; {
		if err = ts.Exec("carronade", args[1:]...); err == nil {
			return
		}
		select {
		case <-end:
			ts.Fatalf("%v: %v", args, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// A command line is a value: several run in one process independently.
func TestProgramsSideBySide(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	counts := []string{"1000", "2000", "3000"}
	outs := make([]bytes.Buffer, len(counts))
	var all3 sync.WaitGroup
	for i, n := range counts {
		all3.Go(func() {
			p := &cli.Program{
				Kinds: cli.Kinds(), Args: []string{"run", "null://", "--count", n, "--json", "--quiet"},
				In: strings.NewReader(""), Out: &outs[i], Err: new(bytes.Buffer),
			}
			code := p.Main()
			assert.True(t, code == 0 || code == 3, "--count %s: exit code %d", n, code)
		})
	}
	all3.Wait()
	for i, n := range counts {
		var d struct {
			Totals struct{ Acked json.Number }
		}
		assert.OK(t, json.Unmarshal(outs[i].Bytes(), &d), "%s", outs[i].String())
		assert.Equal(t, d.Totals.Acked.String(), n, "--count acked")
	}
}

// The second signal calls Exit; the first only stops the run.
func TestProgramSignals(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	signals := make(chan os.Signal, 1)
	var out, words bytes.Buffer
	p := &cli.Program{
		Kinds: cli.Kinds(), Args: []string{"run", "null://", "--rate", "1k/s", "--for", "10m", "--interval", "20ms", "--json"},
		In: strings.NewReader(""), Out: &out, Err: writer(func(b []byte) {
			words.Write(b)
			if bytes.Contains(b, []byte("measurement")) {
				select {
				case signals <- os.Interrupt:
				default:
				}
			}
		}),
		Signals: signals,
		Exit:    func(int) {},
	}
	code := p.Main()
	assert.True(t, code == 130, "exit code: got %d, want 130; it said:\n%s", code, words.String())
	assert.True(t, strings.Contains(out.String(), `"partial": true`), "the report is not marked as partial:\n%s", out.String())
}

// A program whose parent was killed gets TERM several times. They count as one, so the run keeps its report.
func TestTermOfKilledParent(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	signals := make(chan os.Signal, 3)
	var out, words bytes.Buffer
	var sent sync.Once
	p := &cli.Program{
		Kinds: cli.Kinds(), Args: []string{"run", "null://", "--rate", "1k/s", "--for", "10m", "--interval", "20ms", "--json"},
		In: strings.NewReader(""), Out: &out, Err: writer(func(b []byte) {
			words.Write(b)
			if bytes.Contains(b, []byte("measurement")) {
				sent.Do(func() {
					for range cap(signals) {
						signals <- syscall.SIGTERM
					}
				})
			}
		}),
		Signals: signals,
		Exit:    func(int) { t.Error("it exits at once") },
	}
	code := p.Main()
	assert.True(t, code == 130, "exit code: got %d, want 130; it said:\n%s", code, words.String())
	assert.True(t, strings.Contains(out.String(), `"partial": true`), "the report is not marked as partial:\n%s", out.String())
}

// A writer is a function that gets the written bytes.
type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }
