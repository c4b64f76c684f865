//go:build conformance

package acceptance

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// An edit replaces a text of a file, which has it once.
type edit struct{ old, text string }

// newTargetEdits are the files outside of its folder that a new kind of target changes: the list of kinds, and the settings by
// which its stored reports are grouped. Documents come on top; the tests of the command line name them.
var newTargetEdits = map[string][]edit{
	"internal/cli/targets.go": {
		{"\t\"carronade/internal/kafka\"\n", "\t\"carronade/internal/kafka\"\n\t\"carronade/internal/lines\"\n"},
		{"apm.Kind{}, null.Kind{}}", "apm.Kind{}, lines.Kind{}, null.Kind{}}"},
	},
	"internal/store/fields_independent_test.go": {
		{"\t\"carronade/internal/kafka\"\n", "\t\"carronade/internal/kafka\"\n\t\"carronade/internal/lines\"\n"},
		{"apm.Kind{}, null.Kind{}}", "apm.Kind{}, lines.Kind{}, null.Kind{}}"},
		{"\t\"null\": {\n", "\t\"lines\": {\n\t\t\"most-lines=100\",\n\t\t\"size=100\",\n\t},\n\t\"null\": {\n"},
	},
}

// TestNewTarget moves the protocol of examples/lines into a copy of the tree. With edits of two files outside of its folder the
// program has it: it builds, its rules of imports and its stored settings hold, the kind passes the suite of targets, and a run
// has a report. Where it is now, in a program of its own, no file of the tree has an edit, and the tests there show the same.
func TestNewTarget(t *testing.T) {
	t.Parallel()
	testkit.Need(t, "a build of the whole program")
	n := len(newTargetEdits)
	assert.True(t, n <= 2, "a new kind of target needs edits of %d files outside of its folder, want at most 2", n)
	tree := copyOfTree(t)
	for _, name := range []string{"kind.go", "lines_test.go"} {
		file := filepath.Join(tree, "internal", "lines", name)
		assert.OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
		assert.OK(t, os.Rename(filepath.Join(tree, "examples", "lines", name), file))
		replace(t, file, edit{"package main\n", "package lines\n"})
	}
	assert.OK(t, os.RemoveAll(filepath.Join(tree, "examples", "lines")))
	for name, edits := range newTargetEdits {
		replace(t, filepath.Join(tree, filepath.FromSlash(name)), edits...)
	}
	exe := filepath.Join(t.TempDir(), "carronade")
	for _, args := range [][]string{
		{"build", "-o", exe, "."},
		{"test", "-vet=off", "-run", "^(TestKind|TestTree|TestIndependentSettings)$", "./internal/lines", "./test/arch", "./internal/store"},
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir = tree
		out, err := cmd.CombinedOutput()
		assert.Must(t, err == nil, "go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	s := prepare(t, "run", "lines://"+linesServer(t), "--count", "5000", "--linger", "1ms", "--json", "--quiet")
	s.cmd.Path = exe
	s.begin()
	d := s.wait(runTimeout).wantOneOf(t, 0, 3).document(t) // 3: this machine is busy, which does not matter here
	assert.Equal(t, d.Totals.Acked, 5000, "events acked")
}

func copyOfTree(t *testing.T) string {
	t.Helper()
	tree := t.TempDir()
	for _, name := range []string{"app", "examples", "internal", "load", "measure", "payload", "protocol", "test", "units"} {
		assert.OK(t, os.CopyFS(filepath.Join(tree, name), os.DirFS(filepath.Join("../..", name))))
	}
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		data := assert.Value(os.ReadFile(filepath.Join("../..", name)))(t)
		assert.OK(t, os.WriteFile(filepath.Join(tree, name), data, 0o644))
	}
	return tree
}

func replace(t *testing.T, file string, edits ...edit) {
	t.Helper()
	data := assert.Value(os.ReadFile(file))(t)
	text := string(data)
	for _, e := range edits {
		n := strings.Count(text, e.old)
		assert.Must(t, n == 1, "%s has %q %d times, want once", file, e.old, n)
		text = strings.Replace(text, e.old, e.text, 1)
	}
	assert.OK(t, os.WriteFile(file, []byte(text), 0o644))
}

// linesServer starts a server of the protocol of examples/lines, which takes all lines, and returns its address.
func linesServer(t *testing.T) string {
	return testkit.Listen(t, func(c *net.TCPConn) {
		n := 0
		for in := bufio.NewScanner(c); in.Scan(); n++ {
			if len(in.Bytes()) == 0 { // the end of a batch
				fmt.Fprintln(c, n)
				n = -1
			}
		}
	})
}

// A standin is a stand-in that runs in its own process.
type standin struct {
	t    testing.TB
	cmd  *exec.Cmd
	addr string
}

// startStandin starts a stand-in of a kind and waits until it listens.
func startStandin(t testing.TB, kind string, args ...string) *standin {
	t.Helper()
	r := &standin{t: t, cmd: exec.Command(program, append([]string{"standin", kind}, args...)...)}
	out := assert.Value(r.cmd.StdoutPipe())(t)
	var stderr strings.Builder
	r.cmd.Stderr = &stderr
	assert.OK(t, testkit.Launch(r.cmd))
	t.Cleanup(r.kill)
	lines := bufio.NewScanner(out)
	for r.addr == "" && lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			r.addr = rest
		}
	}
	if r.addr == "" {
		_ = r.cmd.Wait()
		t.Fatalf("the stand-in ended before it listened: %s", stderr.String())
	}
	return r
}

func (r *standin) kill() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

// killInDebt stops the process for d and kills it, so that it owes answers then, also if the generator did not run just before.
func (r *standin) killInDebt(d time.Duration) {
	r.t.Helper()
	assert.OK(r.t, host.Pause(r.cmd.Process.Pid))
	pause(r.t, d)
	r.kill()
}

func (r *standin) freezeFor(d time.Duration) frozen {
	r.t.Helper()
	began := time.Now()
	assert.OK(r.t, host.Pause(r.cmd.Process.Pid))
	stopped := time.Now()
	pause(r.t, d)
	continuing := time.Now()
	assert.OK(r.t, host.Continue(r.cmd.Process.Pid))
	return frozen{began, continuing.Sub(stopped), time.Since(began)}
}
