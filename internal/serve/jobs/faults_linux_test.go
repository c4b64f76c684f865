package jobs

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestReadOnlyFolder(t *testing.T) {
	dir := testkit.Mount(t, "4096k")
	q := open(t, Options{Dir: filepath.Join(dir, "data")})
	wait(t, q, submit(t, q, request("x")).ID)
	assert.OK(t, q.Close(soon(t)))
	testkit.Seal(t, dir)
	for _, data := range []string{filepath.Join(dir, "data"), filepath.Join(dir, "new")} {
		if _, err := Open(t.Context(), Options{Dir: data}); !errors.Is(err, ErrReadOnly) || protocoltest.HintOf(err) == "" || !strings.Contains(err.Error(), data) {
			t.Errorf("got %v (%s), want %v", err, protocoltest.HintOf(err), ErrReadOnly)
		}
	}
}

// On a full disk no job is accepted, what a running job prints is lost and the
// job is not, and the queue goes on when there is space.
func TestFullDisk(t *testing.T) {
	dir := testkit.Mount(t, "4096k")
	var problems atomic.Int32
	q := open(t, Options{Dir: filepath.Join(dir, "data"), QueuedPerUser: 1 << 20, Queued: 1 << 20, Problem: func(err error) {
		problems.Add(1)
		if !errors.Is(err, ErrFull) || protocoltest.HintOf(err) == "" {
			t.Errorf("got the problem %v (%s), want %v", err, protocoltest.HintOf(err), ErrFull)
		}
	}})
	gate := filepath.Join(t.TempDir(), "gate")
	first := submit(t, q, request("x", "out:before", "until:"+gate, "lines:20000:50", "note:"+gate+".printed|", "until:"+gate+".free", "out:after"))
	printed(t, q, first.ID, "before")
	ballast := testkit.Fill(t, dir)
	touch(t, gate)
	var last Job
	for {
		j, _, err := q.Submit(t.Context(), request("x", "out:"+strings.Repeat("x", 1000)))
		if errors.Is(err, ErrFull) && protocoltest.HintOf(err) != "" {
			break
		}
		if err != nil {
			t.Fatalf("got %v (%s), want %v", err, protocoltest.HintOf(err), ErrFull)
		}
		last = j
	}
	appears(t, gate+".printed")
	free := func() { assert.OK(t, os.Remove(ballast)) }
	free()
	touch(t, gate+".free")
	if j := wait(t, q, first.ID); j.State != Done {
		t.Errorf("got %+v", j)
	}
	if text := outputOf(t, q, first.ID, false); !strings.HasPrefix(text, "before\n") || !strings.Contains(text, "bytes of output could not be stored here") || !strings.HasSuffix(text, "after\n") {
		t.Errorf("got %q ... %q", text[:min(99, len(text))], text[max(0, len(text)-99):])
	}
	if last.ID != 0 {
		assert.OK(t, q.Cancel(t.Context(), last.ID))
	}

	// A job that ends while the disk is full.
	j := submit(t, q, request("y", "out:up", "until:"+gate+".end"))
	printed(t, q, j.ID, "up")
	testkit.Fill(t, dir)
	touch(t, gate+".end")
	for ctx := soon(t); problems.Load() == 0; runtime.Gosched() {
		assert.OK(t, ctx.Err(), "the end of the job was stored on a full disk")
	}
	if got, err := q.Job(t.Context(), j.ID); err != nil || got.State != Running {
		t.Errorf("got %+v and %v, want a running job until its end is stored", got, err)
	}
	free()
	j = wait(t, q, j.ID)
	assert.True(t, j.State == Done, "got %+v", j)
}

func TestFullDiskFromTheStart(t *testing.T) {
	dir := testkit.Mount(t, "64k")
	testkit.Fill(t, dir)
	if _, err := Open(t.Context(), Options{Dir: filepath.Join(dir, "data")}); !errors.Is(err, ErrFull) || protocoltest.HintOf(err) == "" {
		t.Errorf("got %v (%s), want %v", err, protocoltest.HintOf(err), ErrFull)
	}
}
