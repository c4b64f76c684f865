//go:build unix

package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func init() {
	maps.Copy(languages, map[string]Language{"reads": reads, "waits": waits, "computes": computes, "fills": fills})
}

// reads says its process, and reads a report.
func reads(_ *Script, h Host) error {
	if err := h.Print(strconv.Itoa(os.Getpid())); err != nil {
		return err
	}
	_, err := h.Report("", "")
	return err
}

// waits is a script on a machine that runs something else.
func waits(_ *Script, h Host) error {
	stopped := make(chan string, 1)
	h.OnLimit(func(text string) {
		select {
		case stopped <- text:
		default:
		}
	})
	select {
	case text := <-stopped:
		return errors.New(text)
	case <-time.After(3 * time.Second):
		return nil
	}
}

// computes is a script in a call that the interpreter cannot stop.
func computes(*Script, Host) error {
	for { //nolint:staticcheck // this is what it is for
	}
}

// fills needs memory that is not of Go's runtime.
func fills(_ *Script, h Host) error {
	b, err := syscall.Mmap(-1, 0, 256<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return err
	}
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	_, err = h.Await(-1)
	return err
}

// A stopping runner stops the child when it reads a report, which is longer than a pipe.
type stopping struct{ pid int }

func (*stopping) Start(int, *Step) (func(context.Context) *Ended, error) {
	return nil, errors.New("none")
}
func (*stopping) Check(string, string, []string) (bool, error) { return true, nil }

func (s *stopping) Report(string, string) (json.RawMessage, error) {
	if err := syscall.Kill(s.pid, syscall.SIGSTOP); err != nil {
		return nil, err
	}
	return json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`), nil
}

func runChild(t *testing.T, language string, compute time.Duration) (Reason, *Fault) {
	t.Helper()
	exe := assert.Value(os.Executable())(t)
	r := &stopping{}
	reason, fault, err := Run(t.Context(), Options{
		Script: Script{Path: "test.js", Language: language}, Command: []string{exe}, Runner: r,
		Memory: 32 << 20, Compute: compute, MaxSteps: 10,
		Print: func(text string) { r.pid, _ = strconv.Atoi(text) },
	})
	assert.OK(t, err)
	return reason, fault
}

// A child that is stopped cannot take its answer: the parent does not wait for ever.
func TestStoppedChild(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	reason, fault := runChild(t, "reads", 50*time.Millisecond)
	assert.True(t, reason == ByFault && fault != nil && strings.Contains(fault.Text, "has neither asked nor taken an answer for 2.5 s") && fault.Hint != "",
		"got %s, %+v", reason, fault)
}

// A script that does not run does not compute.
func TestBusyMachine(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	reason, fault := runChild(t, "waits", time.Second)
	assert.True(t, reason == ByScript && fault == nil, "got %s, %+v", reason, fault)
}

// A script that cannot be stopped ends with its process.
func TestComputes(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	reason, fault := runChild(t, "computes", 2*time.Second)
	assert.True(t, reason == ByFault && fault != nil && fault.Text == tooLong(2*time.Second) && fault.Hint == tooLongHint, "got %s, %+v", reason, fault)
}
