package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/internal/host"
	"carronade/internal/run"
	"carronade/internal/sandbox"
	"carronade/internal/serve"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A small machine, as a laptop has: 6 GiB are free.
var laptop = protocol.Room{Memory: 6 << 30, From: "this machine has %s free", Files: 1 << 20, Open: 10}

// TestFit: the numbers that decide memory are priced before anything is made, and what is usual fits a laptop.
func TestFit(t *testing.T) {
	s := &session{Program: &Program{Kinds: Kinds(), Room: &laptop}}
	big := filepath.Join(t.TempDir(), "big")
	f := assert.Value(os.Create(big))(t)
	assert.OK(t, f.Truncate(900<<20))
	f.Close()
	for _, tt := range testkit.Table[struct {
		Line, Want string // what is refused; "": nothing
	}](t, "testdata/fit.yaml") {
		t.Run(tt.Line, func(t *testing.T) {
			tt.Line = strings.Replace(tt.Line, "BIG", big, 1)
			var d workload.Document
			for i, word := range strings.Fields(tt.Line) {
				if name, value, ok := strings.Cut(word, "="); ok && i > 0 {
					d.Add(name, "--"+name, value)
				} else {
					d.Add("target", "target", word)
				}
			}
			w := assert.Value(workload.Resolve(s.Kinds, &d, nil))(t)
			err := s.fit(w)
			if tt.Want == "" && err != nil || tt.Want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.Want)) {
				t.Errorf("got %v, want %q", err, tt.Want)
			}
		})
	}
}

// TestPricedParts: the parts of a workload are open at the same time.
func TestPricedParts(t *testing.T) {
	s := &session{Program: &Program{Kinds: Kinds(), Room: &laptop}}
	for n, fits := range map[string]bool{"1000": true, "3000": false} {
		docs, err := workload.ParseDocuments("w", []byte("rate: 1/s\nparts:\n  - target: null://\n    name: a\n    clients: "+n+"\n  - target: null://\n    name: b\n    clients: "+n+"\n"))
		assert.OK(t, err)
		w := assert.Value(workload.Resolve(s.Kinds, nil, docs[0]))(t)
		err = s.fit(w)
		assert.True(t, (err == nil) == fits, "%s clients each: %v", n, err)
	}
}

// TestPricedTopics: the names of topics have a price.
func TestPricedTopics(t *testing.T) {
	var errs bytes.Buffer
	p := &Program{
		Kinds: Kinds(), Room: &protocol.Room{Memory: 100 << 20, From: "this machine has %s free"}, In: strings.NewReader(""), Out: &errs, Err: &errs,
		Args: []string{"topics", "create", "kafka://127.0.0.1:1/t", "--count", "10M", "--no-store"},
	}
	if code := p.Main(); code != host.ExitFailed || !strings.Contains(errs.String(), "error: --count 10,000,000 takes 238 MiB of memory, 25 B each, and this machine has 100 MiB free\nhint: give --count 4100000 or fewer") {
		t.Errorf("exit %d\n%s", code, errs.String())
	}
}

// TestRefusedBeforeAnythingIsMade: no command that runs workloads begins with one that does not fit, also the
// last one of several.
func TestRefusedBeforeAnythingIsMade(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "w.yaml")
	assert.OK(t, os.WriteFile(file, []byte("- target: null://\n  for: 1s\n- target: null://\n  for: 1s\n  clients: 1000000\n"), 0o600))
	for _, args := range [][]string{
		{"run", "null://", "--clients", "1000000"},
		{"run", "-f", file},
		{"run", "null://", "--for", "1s", "--vary", "clients=1,1000000"},
		{"find", "null://", "--slo", "p99<5ms", "--clients", "1000000"},
		{"calibrate", "--target", "null", "--clients", "1000000"},
	} {
		var out, errs bytes.Buffer
		p := &Program{Kinds: Kinds(), Room: &laptop, Args: args, In: strings.NewReader(""), Out: &out, Err: &errs}
		if code := p.Main(); code != host.ExitFailed || !strings.Contains(errs.String(), "--clients 1,000,000 takes 1.22 TiB of memory") || out.Len() > 0 {
			t.Errorf("%q: exit %d\n%s%s", args, code, out.String(), errs.String())
		}
	}
}

// TestJobMemory: the limit of a server holds for its jobs, and is divided by those that run at once.
func TestJobMemory(t *testing.T) {
	v := serving{parallel: 4, jobMemory: "8GiB"}
	rules := v.rules("files", "")
	assert.True(t, rules.Memory == 2<<30, "a job may take %d bytes", rules.Memory)
	v = serving{parallel: 1}
	got, all := v.rules("files", "").Memory, host.AllMemory()
	assert.True(t, got == int64(all/2), "a job may take %d of %d bytes", got, all)
	for _, text := range []string{"1KiB", "much", "-1"} {
		v := serving{listen: "127.0.0.1", parallel: 1, jobMemory: text}
		assert.ErrorHas(t, v.check(), "--job-memory", "%q", text)
	}
	v = serving{listen: "127.0.0.1", parallel: 1, jobDisk: "1KiB"}
	assert.ErrorHas(t, v.check(), "--job-disk")
	v.jobDisk = "2GiB"
	assert.OK(t, v.check())
	assert.Equal(t, v.disk(t.TempDir(), 0), 2<<30, "--job-disk")
	v.jobDisk = ""
	assert.True(t, v.disk(t.TempDir(), 0) > 0, "the files of jobs have no limit")
	if host.FreeDisk(t.TempDir()) > 0 {
		assert.True(t, v.disk(t.TempDir(), 1<<41) >= 1<<40, "after a restart, files that are there would be above the limit")
	}
	if sandbox.Memory() > 0 {
		ends := make(chan error, 1)
		near := &session{Program: &Program{}, rules: &serve.Rules{Memory: 1 << 30}, interrupt: func(cause error) { ends <- cause }}
		near.watchMemory(1 << 20)
		err := <-ends
		assert.True(t, errors.Is(err, run.ErrMemory), "got %v", err)
		assert.ErrorHas(t, err, "1 GiB", "--job-memory")
	}
	parallel := &session{Program: &Program{Kinds: Kinds(), Room: &laptop}, rules: &serve.Rules{Memory: 1 << 30}}
	var doc workload.Document
	doc.Add("target", "test", "null://")
	doc.Add("pool", "test", "600MiB")
	w := assert.Value(workload.Resolve(Kinds(), &doc, nil))(t)
	_, free, err := parallel.take(w)
	assert.OK(t, err)
	_, _, err = parallel.take(w)
	assert.ErrorHas(t, err, "the other runs of this job leave it", "a second run at the same time")
	free()
	_, _, err = parallel.take(w)
	assert.OK(t, err, "a run after it")
	assert.ErrorHas(t, parallel.fitScript(2<<30), "--script-memory 2GiB takes", "a script")
	s := &session{Program: &Program{Room: &laptop}, rules: &serve.Rules{Memory: 1 << 30}}
	r := s.room()
	assert.True(t, r.Memory == 1<<30 && r.From == "a job of this server may take %s", "got %+v", r)
	s.rules.Memory = 7 << 30 // more than is free
	r = s.room()
	assert.True(t, r.Memory == laptop.Memory && r.From == laptop.From, "got %+v", r)
}
