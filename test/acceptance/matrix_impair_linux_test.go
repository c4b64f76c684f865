//go:build conformance

package acceptance

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/parquettest"
)

// This file contains the impairments of a run: of the generator, or of the system.

// An impairment is one disturbance of a run.
type impairment struct {
	name         string
	system       bool // it stops the system, so the generator is not to blame
	fitsShortRun bool // it fits into a run of three seconds

	// Before the run: flags and environment, and whether this machine allows it.
	flags    func(t *testing.T, dir string) []string
	env      []string
	possible func() error
	// During the run, once events are sent.
	during func(t *testing.T, generator, system int)
}

func stopProcess(t *testing.T, pid int, lengths ...time.Duration) {
	t.Helper()
	for i, d := range lengths {
		if i > 0 {
			pause(t, 200*time.Millisecond)
		}
		if syscall.Kill(pid, syscall.SIGSTOP) != nil {
			return // the run is over
		}
		pause(t, d)
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

func repeated(n int, d time.Duration) (all []time.Duration) {
	for range n {
		all = append(all, d)
	}
	return all
}

func impairments() (all []impairment) {
	add := func(i impairment) { all = append(all, i) }
	const six = 6
	for _, s := range []struct {
		name    string
		small   bool
		lengths []time.Duration
	}{
		{"50ms", true, repeated(1, 50*time.Millisecond)},
		{"200ms", true, repeated(1, 200*time.Millisecond)},
		{"500ms", true, repeated(1, 500*time.Millisecond)},
		{"2s", false, repeated(1, 2*time.Second)},
		{"6x100ms", true, repeated(six, 100*time.Millisecond)},
	} {
		add(impairment{name: "generator stopped " + s.name, fitsShortRun: s.small, during: func(t *testing.T, generator, _ int) { stopProcess(t, generator, s.lengths...) }})
		add(impairment{name: "system stopped " + s.name, fitsShortRun: s.small, system: true, during: func(t *testing.T, _, system int) { stopProcess(t, system, s.lengths...) }})
	}
	for name, hook := range map[string]string{
		"sending late once": "send=200ms@1500ms", "sending late often": "send=20ms/200ms",
		"reading late once": "receive=200ms@1500ms", "reading late often": "receive=20ms/200ms",
		"wall clock set": "wall=1h@1500ms",
	} {
		add(impairment{name: name, fitsShortRun: true, env: []string{"CARRONADE_IMPAIR=" + hook}, possible: hooksExist})
	}
	add(impairment{name: "duty cycle of 20 %", fitsShortRun: true, during: func(t *testing.T, generator, _ int) {
		for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); {
			stopProcess(t, generator, 80*time.Millisecond)
			pause(t, 20*time.Millisecond)
		}
	}})
	add(impairment{name: "quota of 20 %", fitsShortRun: true, possible: func() error { _, err := limitCPU(0); return err }, during: func(t *testing.T, generator, _ int) {
		undo := assert.Value(limitCPU(generator))(t)
		pause(t, 1500*time.Millisecond)
		undo()
	}})
	add(impairment{name: "eight hogs", fitsShortRun: true, during: func(t *testing.T, _, _ int) {
		stop := startHogs(t, 8)
		pause(t, 1500*time.Millisecond)
		stop()
	}})
	add(impairment{name: "collector always on", fitsShortRun: true, env: []string{"GOMEMLIMIT=8MiB", "GOGC=5"}})
	add(impairment{name: "slow HDR file", fitsShortRun: true, flags: func(t *testing.T, dir string) []string {
		return []string{"--hdr", slowPipe(t, dir, 2*time.Second), "--interval", "100ms"}
	}})
	return all
}

// hooksExist reports as an error that the build tag impair adds no files to the program.
var hooksExist = sync.OnceValue(func() error {
	out, err := exec.Command("go", "list", "-tags", "impair", "-f", `{{join .GoFiles "\n"}}`, "carronade/...").Output()
	if err != nil {
		return fmt.Errorf("listing the program's files: %w", err)
	}
	plain, err := exec.Command("go", "list", "-f", `{{join .GoFiles "\n"}}`, "carronade/...").Output()
	if err != nil {
		return fmt.Errorf("listing the program's files: %w", err)
	}
	if string(out) == string(plain) {
		return fmt.Errorf("the program has no files for the tag impair")
	}
	return nil
})

// impairedProgram builds the program with the hooks and returns its path.
var impairedProgram = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "carronade-impair")
	build := exec.Command("go", "build", "-buildvcs=false", "-tags", "impair", "-o", path, "carronade")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build carronade with hooks: %w\n%s", err, out)
	}
	return path, nil
})

// limitCPU gives a process a fifth of a processor, by a control group. With pid 0 it only tries whether that is allowed.
func limitCPU(pid int) (undo func(), err error) {
	for _, v := range []struct{ root, file, value, procs string }{
		{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "20000", "cgroup.procs"},
		{"/sys/fs/cgroup", "cpu.max", "20000 100000", "cgroup.procs"},
	} {
		dir := filepath.Join(v.root, fmt.Sprintf("carronade-matrix-%d", os.Getpid()))
		if err = os.Mkdir(dir, 0o755); err != nil {
			continue
		}
		if err = os.WriteFile(filepath.Join(dir, v.file), []byte(v.value), 0o644); err == nil && pid > 0 {
			err = os.WriteFile(filepath.Join(dir, v.procs), []byte(fmt.Sprint(pid)), 0o644)
		}
		undo = func() {
			if pid > 0 {
				_ = os.WriteFile(filepath.Join(v.root, v.procs), []byte(fmt.Sprint(pid)), 0o644)
			}
			_ = os.Remove(dir)
		}
		if err != nil || pid == 0 {
			undo()
		}
		if err == nil {
			return undo, nil
		}
	}
	return nil, fmt.Errorf("no control group for processors may be made: %w", err)
}

func startHogs(t *testing.T, n int) (stop func()) {
	t.Helper()
	self := assert.Value(os.Executable())(t)
	var ends []func()
	for range n {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), hogEnv+"=1")
		in := assert.Value(cmd.StdinPipe())(t)
		assert.OK(t, testkit.Launch(cmd))
		ends = append(ends, sync.OnceFunc(func() {
			_ = in.Close()
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}))
	}
	stop = func() {
		for _, end := range ends {
			end()
		}
	}
	t.Cleanup(stop)
	return stop
}

// slowPipe is a file that accepts almost no data for some time: a named pipe with room for one page, which is not read.
func slowPipe(t *testing.T, dir string, d time.Duration) string {
	t.Helper()
	path := filepath.Join(dir, "pipe")
	assert.OK(t, syscall.Mkfifo(path, 0o600))
	f := assert.Value(os.OpenFile(path, os.O_RDWR, 0))(t)
	const setPipeSize = 1031 // F_SETPIPE_SZ
	_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), setPipeSize, 4096)
	assert.Must(t, errno == 0, "%v", errno)
	assert.OK(t, syscall.SetNonblock(int(f.Fd()), true))
	closed := make(chan struct{})
	t.Cleanup(func() { close(closed) })
	go func() {
		defer f.Close()
		select {
		case <-time.After(d):
		case <-closed:
			return
		}
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		buf := make([]byte, 64<<10)
		for {
			for n := 1; n > 0; {
				n, _ = syscall.Read(int(f.Fd()), buf)
			}
			select {
			case <-tick.C:
			case <-closed:
				return
			}
		}
	}()
	return path
}

// A runProbe is a goroutine of the test that wakes every millisecond. While it did
// not run, perhaps nothing else on this machine did.
type runProbe struct {
	longest    time.Duration
	total      time.Duration // of the wake-ups that were late by more than a millisecond
	stop, done chan struct{}
}

func startProbe() *runProbe {
	w := &runProbe{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		const every = time.Millisecond
		tick := time.NewTicker(every)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-tick.C:
			case <-w.stop:
				return
			}
			now := time.Now()
			late := now.Sub(last) - every
			w.longest = max(w.longest, late)
			if late > every {
				w.total += late
			}
			last = now
		}
	}()
	return w
}

func (w *runProbe) end() {
	close(w.stop)
	<-w.done
}

// blamesGenerator reports whether a reason says that the generator did not run.
func blamesGenerator(reasons []string) bool {
	for _, r := range reasons {
		for _, word := range []string{"generator", "froze", "freeze", "lag", "delay", "thread"} {
			if strings.Contains(strings.ToLower(r), word) {
				return true
			}
		}
	}
	return false
}

// This file joins a generator's trace with a stand-in's record.

// noTime is a time that does not exist.
const noTime = int64(math.MinInt64)

// A batch is a row of the trace; times are those of the machine's monotonic clock, in nanoseconds.
type batch struct {
	lane, sequence, partition, offset, events, due, dueLast, sent, done, consumed int64
}

// readTrace reads the rows whose events were all acked.
func readTrace(path string) ([]batch, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := parquettest.Read(data)
	if err != nil {
		return nil, err
	}
	began, err := strconv.ParseInt(file.Meta["carronade.started_monotonic_ns"], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the start of the run: %w", err)
	}
	type row struct {
		Lane      int64  `parquet:"connection"`
		Sequence  int64  `parquet:"sequence"`
		Due       *int64 `parquet:"due_ns"`
		DueLast   *int64 `parquet:"due_last_ns"`
		Sent      *int64 `parquet:"sent_ns"`
		Done      int64  `parquet:"done_ns"`
		Consumed  *int64 `parquet:"consumed_ns"`
		Partition *int64 `parquet:"partition"`
		Offset    *int64 `parquet:"log_offset"`
		Events    int64  `parquet:"events"`
		Acked     int64  `parquet:"acked"`
	}
	at := func(p *int64) int64 {
		if p == nil {
			return noTime
		}
		return began + *p
	}
	orMinusOne := func(p *int64) int64 {
		if p == nil {
			return -1
		}
		return *p
	}
	var out []batch
	for _, r := range parquettest.Rows[row](file) {
		if r.Acked != r.Events || r.Sent == nil {
			continue
		}
		out = append(out, batch{
			lane: r.Lane, sequence: r.Sequence, partition: orMinusOne(r.Partition), offset: orMinusOne(r.Offset), events: r.Events,
			due: at(r.Due), dueLast: at(r.DueLast), sent: at(r.Sent), done: at(&r.Done), consumed: at(r.Consumed),
		})
	}
	return out, nil
}

// A served is a row of a stand-in's record.
type served struct {
	connection, kind          string
	partition, offset, events int64
	arrived, writing, ended   int64 // noTime: not answered
}

// readRecord reads a record, sorted by the sequence in each connection.
func readRecord(path string) ([]served, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.ReuseRecord = true
	lines, err := r.Read()
	if err != nil {
		return nil, err
	}
	column := map[string]int{}
	for i, name := range lines {
		column[name] = i
	}
	type sequenced struct {
		served
		sequence int64
	}
	var all []sequenced
	for {
		line, err := r.Read()
		if err != nil {
			if len(line) > 0 || !errors.Is(err, io.EOF) {
				return nil, err
			}
			break
		}
		number := func(name string, none int64) int64 {
			v, e := strconv.ParseInt(line[column[name]], 10, 64)
			if e != nil {
				return none
			}
			return v
		}
		all = append(all, sequenced{served{
			connection: line[column["connection"]], kind: line[column["kind"]],
			partition: number("partition", -1), offset: number("offset", -1), events: number("events", -1),
			arrived: number("arrived_ns", noTime), writing: number("writing_ns", noTime), ended: number("answered_ns", noTime),
		}, number("sequence", -1)})
	}
	slices.SortStableFunc(all, func(a, b sequenced) int { return int(a.sequence - b.sequence) })
	out := make([]served, len(all))
	for i := range all {
		out[i] = all[i].served
	}
	return out, nil
}

// A pair is a batch and how it was served; for a round trip, also the answer that
// delivered it to the consumer and the previous answer on that connection.
type pair struct {
	batch
	by           served
	fetch        *served
	fetchedAfter int64 // when the previous answer was written; noTime: there was none
}

// join finds how each batch was served: by its offset in the log, if it has one, or else by its position on its connection.
func join(batches []batch, record []served) ([]pair, error) {
	pairs := make([]pair, len(batches))
	for i := range batches {
		pairs[i] = pair{batch: batches[i], fetchedAfter: noTime}
	}
	if len(batches) > 0 && batches[0].offset >= 0 {
		return pairs, joinByPlace(pairs, record)
	}
	return pairs, joinByOrder(pairs, record)
}

func joinByPlace(pairs []pair, record []served) error {
	type log struct {
		kind      string
		partition int64
	}
	logs, before := map[log][]*served{}, map[*served]int64{}
	last := map[string]int64{} // last answer of each connection
	for i := range record {
		s := &record[i]
		if s.offset < 0 || s.ended == noTime {
			continue
		}
		k := log{s.kind, s.partition}
		logs[k] = append(logs[k], s)
		if s.kind == "fetch" {
			before[s] = noTime
			if at, ok := last[s.connection]; ok && at < s.arrived {
				before[s] = at
			}
			last[s.connection] = s.ended
		}
	}
	for _, l := range logs {
		slices.SortFunc(l, func(a, b *served) int { return int(a.offset - b.offset) })
	}
	find := func(kind string, p *pair, offset int64) *served {
		l := logs[log{kind, p.partition}]
		i, _ := slices.BinarySearchFunc(l, offset+1, func(s *served, end int64) int { return int(s.offset - end) })
		if i--; i < 0 || offset >= l[i].offset+l[i].events {
			return nil
		}
		return l[i]
	}
	for i := range pairs {
		p := &pairs[i]
		// A client library may split a batch: the last part answers it.
		end := p.offset + max(p.events, 1) - 1
		by := find("produce", p, end)
		if by == nil {
			return fmt.Errorf("offset %d of partition %d is not in the record", end, p.partition)
		}
		if p.by = *by; p.consumed == noTime {
			continue
		}
		if p.fetch = find("fetch", p, p.offset); p.fetch == nil {
			return fmt.Errorf("no fetch of offset %d of partition %d is in the record", p.offset, p.partition)
		}
		p.fetchedAfter = before[p.fetch]
	}
	return nil
}

// joinByOrder joins by position: answers are in the order of requests on a connection, and a lane is a
// connection. The connection of a lane is the one for which causes precede effects.
func joinByOrder(pairs []pair, record []served) error {
	connections := map[string][]served{}
	for _, s := range record {
		if s.events != 0 { // 0: a query
			connections[s.connection] = append(connections[s.connection], s)
		}
	}
	lanes := map[int64][]*pair{}
	for i := range pairs {
		lanes[pairs[i].lane] = append(lanes[pairs[i].lane], &pairs[i])
	}
	const slack = int64(50 * time.Microsecond)
	for lane, rows := range lanes {
		slices.SortFunc(rows, func(a, b *pair) int { return int(a.sequence - b.sequence) })
		found := ""
		for name, c := range connections {
			fits := int(rows[len(rows)-1].sequence) < len(c)
			for _, p := range rows {
				if !fits {
					break
				}
				s := c[p.sequence]
				fits = s.ended != noTime && s.arrived >= p.sent-slack && s.writing <= p.done+slack
			}
			if fits && (found == "" || len(c) < len(connections[found])) {
				found = name
			}
		}
		if found == "" {
			return fmt.Errorf("no connection of %d fits lane %d of %d batches", len(connections), lane, len(rows))
		}
		for _, p := range rows {
			p.by = connections[found][p.sequence]
		}
		delete(connections, found)
	}
	return nil
}

// causal checks that causes precede effects: otherwise the clocks do not agree.
func causal(pairs []pair) error {
	const slack = int64(50 * time.Microsecond)
	for i := range pairs {
		p := &pairs[i]
		switch {
		case p.by.ended == noTime:
			return fmt.Errorf("batch %d of lane %d was acked, but the record has no answer", p.sequence, p.lane)
		case p.by.arrived < p.sent-slack:
			return fmt.Errorf("batch %d of lane %d arrived %d ns before it was sent", p.sequence, p.lane, p.sent-p.by.arrived)
		case p.done < p.by.writing-slack:
			return fmt.Errorf("batch %d of lane %d was done %d ns before it was answered", p.sequence, p.lane, p.by.writing-p.done)
		}
	}
	return nil
}
