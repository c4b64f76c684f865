package acceptance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// program is the path of the carronade under test: built here, unless CARRONADE_PROGRAM names an existing one, such as a release.
var program = os.Getenv("CARRONADE_PROGRAM")

// scratch is a folder for programs that the tests build. It is removed after them.
var scratch string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if os.Getenv(hogEnv) != "" {
		hog()
	}
	if flag.Parse(); testing.Short() {
		fmt.Println("with -short: the acceptance tests need the built program and real servers")
		return 0
	}
	// A test that does not set the data folder must not reach the user's reports.
	if os.Getenv("XDG_DATA_HOME") == "" {
		_ = os.Setenv("XDG_DATA_HOME", filepath.Join(os.DevNull, "data"))
	}
	defer testkit.EndSharedSearch()
	var err error
	if scratch, err = os.MkdirTemp("", "carronade-acceptance-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	if program != "" {
		return kafkatest.Main(m)
	}
	program = filepath.Join(scratch, "carronade")
	build := exec.Command("go", "build", "-o", program, "carronade") // with the flags of everybody, so that it is compiled once
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build carronade: %v\n%s", err, out)
		return 1
	}
	return kafkatest.Main(m)
}

// A session is a running carronade.
type session struct {
	t      testing.TB
	cmd    *exec.Cmd
	args   []string
	began  time.Time
	home   string // a new one, unless the test sets it
	env    []string
	stdout output

	mu     sync.Mutex
	stderr strings.Builder
	lines  chan struct{} // signals new text on stderr; closed at the end of stderr

	done chan struct{}
	err  error
}

// An output is what a program writes. It can be read while the program runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// An ended is the result of a run of the program.
type ended struct {
	code           int
	stdout, stderr string
	elapsed        time.Duration
}

// runTimeout bounds a run of the program; tests of quicker runs use less.
const runTimeout = 2 * time.Minute

func start(t testing.TB, args ...string) *session {
	t.Helper()
	s := prepare(t, args...)
	s.begin()
	return s
}

// prepare prepares the program without starting it, so that the test can change its settings and then call begin.
func prepare(t testing.TB, args ...string) *session {
	s := &session{t: t, args: args, lines: make(chan struct{}, 1), done: make(chan struct{})}
	s.cmd = exec.Command(program, args...)
	s.cmd.Stdout = &s.stdout
	return s
}

func (s *session) begin() {
	s.t.Helper()
	if s.home == "" {
		s.home = s.t.TempDir()
	}
	s.cmd.Env = append(os.Environ(), "HOME="+s.home, "XDG_DATA_HOME="+s.home, "XDG_CACHE_HOME="+s.home, "NO_COLOR=1")
	s.cmd.Env = append(s.cmd.Env, s.env...)
	read, write, err := os.Pipe()
	assert.OK(s.t, err)
	s.cmd.Stderr = write
	s.began = time.Now()
	err = testkit.Launch(s.cmd)
	write.Close()
	assert.OK(s.t, err, "start carronade")
	allRead := make(chan struct{})
	go func() {
		defer close(allRead)
		defer close(s.lines)
		defer read.Close()
		r := bufio.NewReader(read)
		for {
			line, err := r.ReadString('\n')
			s.mu.Lock()
			s.stderr.WriteString(line)
			s.mu.Unlock()
			select {
			case s.lines <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	go func() {
		<-allRead
		s.err = s.cmd.Wait()
		close(s.done)
	}()
	s.t.Cleanup(func() {
		select {
		case <-s.done:
		default:
			s.cmd.Process.Kill()
			<-s.done
		}
	})
}

// stderrText is what the program has written to stderr so far.
func (s *session) stderrText() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stderr.String()
}

// awaitStderr waits until stderr contains one of the texts.
func (s *session) awaitStderr(texts ...string) {
	s.t.Helper()
	ctx := testkit.Minute(s.t)
	for {
		stderr := s.stderrText()
		for _, text := range texts {
			if strings.Contains(stderr, text) {
				return
			}
		}
		select {
		case _, more := <-s.lines:
			if !more {
				s.t.Fatalf("carronade %s ended and did not print one of %q:\n%s", strings.Join(s.args, " "), texts, s.stderrText())
			}
		case <-ctx.Done():
			s.t.Fatalf("carronade %s did not print one of %q in a minute:\n%s", strings.Join(s.args, " "), texts, s.stderrText())
		}
	}
}

// awaitStdout waits until stdout contains a text n times.
func (s *session) awaitStdout(n int, text string) {
	s.t.Helper()
	end := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for strings.Count(s.stdout.String(), text) < n {
		select {
		case <-tick.C:
		case <-s.done:
			s.t.Fatalf("carronade %s ended and did not print %q %d times:\n%s%s", strings.Join(s.args, " "), text, n, s.stdout.String(), s.stderrText())
		case <-end:
			s.t.Fatalf("carronade %s did not print %q %d times in a minute:\n%s%s", strings.Join(s.args, " "), text, n, s.stdout.String(), s.stderrText())
		}
	}
}

// signal sends a signal, as Ctrl-C does.
func (s *session) signal(sig os.Signal) {
	s.t.Helper()
	assert.OK(s.t, s.cmd.Process.Signal(sig), "signal carronade")
}

// wait waits for the end. A program that does not end in time fails the test, which prints its stderr and goroutines.
func (s *session) wait(within time.Duration) ended {
	s.t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
		s.cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-s.done:
		case <-time.After(5 * time.Second):
			s.cmd.Process.Kill()
			<-s.done
		}
		s.t.Fatalf("carronade %s still ran after %v:\n%.20000s", strings.Join(s.args, " "), within, s.stderrText())
	}
	e := ended{stdout: s.stdout.String(), stderr: s.stderrText(), elapsed: time.Since(s.began)}
	var exit *exec.ExitError
	switch {
	case errors.As(s.err, &exit):
		e.code = exit.ExitCode()
	case s.err != nil:
		s.t.Fatalf("run carronade: %v", s.err)
	}
	for _, text := range []string{"panic:", "goroutine ", "runtime error"} {
		assert.True(s.t, !strings.Contains(e.stderr, text) && !strings.Contains(e.stdout, text),
			"carronade %s crashed:\n%.8000s", strings.Join(s.args, " "), e.stderr)
	}
	return e
}

func run(t testing.TB, args ...string) ended {
	t.Helper()
	return start(t, args...).wait(runTimeout)
}

func (e ended) want(t testing.TB, code int) ended {
	t.Helper()
	if e.code != code {
		t.Fatalf("exit %d, want %d\nstderr:\n%.6000s\nstdout:\n%s", e.code, code, e.stderr, brief(e.stdout))
	}
	return e
}

// wantOne checks that the exit code is one of several.
func (e ended) wantOneOf(t testing.TB, codes ...int) ended {
	t.Helper()
	if slices.Contains(codes, e.code) {
		return e
	}
	t.Fatalf("exit %d, want one of %v\nstderr:\n%.3000s\nstdout:\n%s", e.code, codes, e.stderr, brief(e.stdout))
	return e
}

func (e ended) succeeded(t testing.TB) ended {
	t.Helper()
	return e.wantUnlessSlow(t, 0)
}

// wantUnlessSlow checks the exit code of a run: code, or 3 if the machine, busy with brokers and other tests,
// was too slow as a generator and the report says so. Limits are not checked then.
func (e ended) wantUnlessSlow(t testing.TB, code int) ended {
	t.Helper()
	if e.code == 3 && strings.Contains(e.stdout, `"reasons"`) {
		if d := e.document(t); !*d.Trust.OK && len(d.Trust.Reasons) > 0 {
			t.Logf("the generator was too slow here: %q", d.Trust.Reasons)
			return e
		}
	}
	return e.want(t, code)
}

// says checks that stderr contains each of the texts, ignoring case.
func (e ended) says(t testing.TB, texts ...string) ended {
	t.Helper()
	for _, text := range texts {
		assert.Has(t, strings.ToLower(e.stderr), strings.ToLower(text))
	}
	return e
}

// pause waits for a time that is part of a test's scenario, such as the time before a run is disturbed.
func pause(t testing.TB, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal("the test ended")
	}
}

// brief is the part of a report that matters when a test fails: its verdicts and counts, without its series.
func brief(stdout string) string {
	var d map[string]json.RawMessage
	if json.Unmarshal([]byte(stdout), &d) != nil {
		return fmt.Sprintf("%.3000s", stdout)
	}
	var b strings.Builder
	for _, name := range []string{"stopped", "trust", "totals", "failures", "checks", "problems", "warnings", "ledger", "stall"} {
		var line bytes.Buffer
		if json.Compact(&line, d[name]) == nil {
			fmt.Fprintf(&b, "%s: %.800s\n", name, line.Bytes())
		}
	}
	return b.String()
}

func writeFile(t testing.TB, name, text string) {
	t.Helper()
	assert.OK(t, os.WriteFile(name, []byte(text), 0o600))
}

const hogEnv = "CARRONADE_TEST_HOG"

// hog spins until its standard input ends.
func hog() {
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); os.Exit(0) }()
	for { //nolint:staticcheck // its purpose is to use a processor
	}
}

func freePort(t testing.TB) string {
	t.Helper()
	return kafkatest.FreePort(t)
}
