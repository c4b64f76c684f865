package run

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/system"
	"carronade/internal/verdict/fault"
	"carronade/load"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// sleeper starts a process that does nothing.
func sleeper(t *testing.T) int {
	t.Helper()
	cmd := exec.Command(testkit.Program(t, "sleep"), "60")
	assert.OK(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid
}

// state is the state of a process in the kernel: T if it stands still.
func state(t *testing.T, pid int) string {
	t.Helper()
	text := assert.Value(os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)))(t)
	_, rest, _ := strings.Cut(string(text), ") ")
	return rest[:1]
}

// TestStoppedAtExit: a program that exits without waiting for its run leaves no process standing.
func TestStoppedAtExit(t *testing.T) {
	pid := sleeper(t)
	var mu sync.Mutex
	var end func()
	marked, abort := make(chan struct{}, 2), make(chan struct{})
	done := make(chan *report.Document)
	go func() {
		d, err := Execute(t.Context(), Job{
			Workload: resolve(t, &fakeKind{}, "rate=100/s", "for=1h", fmt.Sprintf("fault=0s:stop=pid:%d,1h", pid)), Abort: abort,
			Started: func(f func()) { mu.Lock(); end = f; mu.Unlock() },
			Marked:  func(fault.Mark) { marked <- struct{}{} },
		})
		assert.True(t, err == nil, "%v", err)
		done <- d
	}()
	<-marked
	var how syscall.WaitStatus
	_, err := syscall.Wait4(pid, &how, syscall.WUNTRACED, nil)
	assert.True(t, err == nil && how.Stopped(), "the process does not stand still: %v, %v", how, err)
	mu.Lock()
	last := end
	mu.Unlock()
	if last == nil {
		t.Error("nothing would be undone at an exit")
	} else {
		last()
		assert.True(t, state(t, pid) != "T", "the process still stands still after an exit")
	}
	close(abort)
	d := <-done
	assert.True(t, d != nil && len(d.Faults.Marks) == 2, "got %+v, want the marks of a fault and its heal", d)
	mu.Lock()
	defer mu.Unlock()
	assert.True(t, end == nil, "after the run there is still something to undo")
}

// TestStoppedAndGone: a fault has no heal if its process ended while it stood still.
func TestStoppedAndGone(t *testing.T) {
	pid := sleeper(t)
	e := &execution{Job: Job{Workload: resolve(t, &fakeKind{}, "rate=100/s", "for=1h")}}
	e.Marked = func(fault.Mark) { // it was stopped
		err := syscall.Kill(pid, syscall.SIGKILL)
		assert.True(t, err == nil, "%v", err)
		_, err = syscall.Wait4(pid, nil, 0, nil)
		assert.True(t, err == nil, "%v", err)
	}
	rec := fault.NewRecorder(time.Second, 1, 1, func(int32) int { return 0 })
	j := &injector{e: e, mark: &Marker{e: e, rec: rec, began: time.Now()}, stopped: map[int]bool{}}
	j.signal(t.Context(), t.Context(), &fault.Fault{Action: fault.Stop, What: fault.PID, Number: pid})
	marks := rec.Marks()
	assert.True(t, len(marks) == 1 && marks[0].Kind == fault.MarkFault, "the marks are %+v, want one of a fault", marks)
	assert.True(t, len(j.problems) == 1 && strings.HasPrefix(j.problems[0], fmt.Sprintf("--fault stop pid %d: ", pid)),
		"the problems are %q, want that the process is gone", j.problems)
}

// TestFaultRefused: why a process cannot be signalled has a way out of its own.
func TestFaultRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"another user's", fmt.Errorf("process 7: %w", host.ErrNotPermitted), "run as the user whose process it is"},
		{"ended", fmt.Errorf("process 7: %w", host.ErrNoProcess), "give the number that ps shows"},
		{"the first process", host.MaySignal(1), "name the process: stop=pid:N"},
		{"this program", host.MaySignal(os.Getpid()), "name the process: stop=pid:N"},
	} {
		got := signalHint(fault.Stop, tt.err)
		assert.True(t, strings.HasPrefix(got, tt.want), "%s: got %q for %v, want %q", tt.name, got, tt.err, tt.want)
	}
	_, err := Execute(t.Context(), Job{Workload: resolve(t, &fakeKind{}, "rate=100/s", "for=9s", "fault=1s:stop=pid:1,1s")})
	var e *protocol.Error
	assert.True(t, errors.As(err, &e) && e.Hint == "name the process: stop=pid:N", "got %v, want a hint", err)
}

// TestOtherProcess: a fault is not made to the process that has the number of an ended one.
func TestOtherProcess(t *testing.T) {
	pid := sleeper(t)
	was, ok := host.Identify(pid)
	assert.Must(t, ok, "the process is not known")
	was.Start += "0"
	j := &injector{named: map[int]host.Identity{pid: was}}
	f := &fault.Fault{Action: fault.Kill, What: fault.PID, Number: pid}
	pids, err := j.processes(t.Context(), f)
	assert.True(t, err != nil, "%v would be killed: it is another process", pids)
	j.named[pid], _ = host.Identify(pid)
	assert.Value(j.processes(t.Context(), f))(t)
}

// What a command prints, and its secrets, are not in the report; it may print a lot and have several lines.
func TestExec(t *testing.T) {
	testkit.Program(t, "cat")
	for _, tt := range []struct{ name, command, mark, problem string }{
		{"a login", "curl() { :; }; curl -u admin:hunter2x http://x", "", ""},
		{"a password", "true --password hunter2x", "", ""},
		{"printed", "true --password hunter2x; echo hunter2x; false", "", "exit status 1: ***"},
		{"a script", "echo hi; true | cat", "echo hi; true | cat", ""},
		{"several lines", "true\necho two", "true echo two", ""},
		{"much output", "head -c 300000000 /dev/zero; echo; echo end; exit 3", "", "exit status 3: end"},
		{"no such program", "nosuchprogram", "nosuchprogram", "exit status 127"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			done := make(chan struct{})
			d := assert.Value(Execute(t.Context(), Job{
				Workload: resolve(t, &fakeKind{}, "rate=100/s", "for=1h", "at=0s", "exec="+tt.command), Abort: done,
				Marked: func(fault.Mark) { close(done) },
			}))(t)
			n := len(d.Faults.Marks)
			assert.Must(t, n == 1, "%d marks, want 1", n)
			name := d.Faults.Marks[0].Name
			problems := strings.Join(slices.DeleteFunc(d.Problems, func(s string) bool { return !strings.HasPrefix(s, "--exec ") }), "; ")
			assert.True(t, !strings.Contains(name+problems, "hunter2x"), "a secret is in the report: %s; %s", name, problems)
			assert.True(t, tt.mark == "" || name == tt.mark, "the mark is %q, want %q", name, tt.mark)
			assert.True(t, strings.Contains(problems, tt.problem) && (tt.problem != "" || problems == ""),
				"the problems are %q, want %q", problems, tt.problem)
			assert.True(t, len(problems) <= 1000, "the problem has %d bytes", len(problems))
		})
	}
}

// TestExecEnds: a command that is still running when the run ends is killed, with what it started.
func TestExecEnds(t *testing.T) {
	testkit.Program(t, "sleep")
	started := filepath.Join(t.TempDir(), "started")
	w := resolve(t, &fakeKind{}, "rate=100/s", "for=2h", "at=0s", "exec=touch "+started+"; sleep 600; true", "at=1h", "exec=true")
	stop, done := make(chan struct{}), make(chan *report.Document, 1)
	go func() {
		d, err := Execute(t.Context(), Job{Workload: w, Abort: stop})
		assert.True(t, err == nil, "%v", err)
		done <- d
	}()
	testkit.Until(t, "the command runs", func() bool { _, err := os.Stat(started); return err == nil })
	close(stop)
	d := testkit.Wait(t, "the run has ended, and with it the command", done)
	for _, want := range []string{"it was still running when the run ended", "1 command of --exec not run: the run ended before"} {
		assert.True(t, strings.Contains(strings.Join(d.Problems, "; "), want), "the problems are %q, without %q", d.Problems, want)
	}
}

// over is a context that has ended, but whose Done channel does not say so.
type over struct{ context.Context }

func (over) Err() error { return context.Canceled }

// TestExecFailsAtTheEnd: a command that failed was not still running, also if the run ended just after it.
func TestExecFailsAtTheEnd(t *testing.T) {
	e := &execution{Job: Job{Workload: resolve(t, &fakeKind{}, "rate=100/s", "for=1h")}}
	j := &injector{e: e, mark: &Marker{e: e, ended: true}}
	j.exec(over{t.Context()}, fault.MarkFault, "exit 3")
	want := []string{"--exec exit 3: exit status 3"}
	assert.True(t, slices.Equal(j.problems, want), "the problems are %q, want %q", j.problems, want)
}

// A first interrupt lets a stopped process go on while the run waits for its last answers.
func TestInterruptHeals(t *testing.T) {
	pid := sleeper(t)
	ctx, interrupt := context.WithCancel(t.Context())
	marked, abort := make(chan fault.Mark, 2), make(chan struct{})
	done := make(chan *report.Document)
	go func() {
		d, err := Execute(ctx, Job{
			Workload: resolve(t, &fakeKind{noAnswers: true}, "rate=100/s", "for=1h", "drain=1h", fmt.Sprintf("fault=0s:stop=pid:%d,1h", pid)), Abort: abort,
			Marked: func(m fault.Mark) { marked <- m },
		})
		assert.True(t, err == nil, "%v", err)
		done <- d
	}()
	<-marked
	interrupt()
	m := <-marked
	assert.True(t, m.Kind == fault.MarkHeal, "got %+v, want a heal", m)
	assert.True(t, state(t, pid) != "T", "the process still stands still after an interrupt")
	select {
	case <-done:
		t.Fatal("the run has ended: it was to wait for answers")
	default:
	}
	close(abort)
	<-done
}

// TestRestartCutOff: a restart that was not over when the run ended is a problem.
func TestRestartCutOff(t *testing.T) {
	testkit.Program(t, "sleep")
	marked := make(chan struct{})
	d := assert.Value(Execute(t.Context(), Job{
		Workload: resolve(t, &fakeKind{}, "rate=100/s", "for=1h", "system-cmd=sleep 1000", "fault=0s:restart=system,1h"), Abort: marked,
		Marked: func(fault.Mark) { close(marked) },
	}))(t)
	want := "--fault restart system: the run ended before the system was ready again"
	assert.True(t, slices.Contains(d.Problems, want), "the problems are %q, want %q", d.Problems, want)
}

// TestUnconnected: a run whose own fault left no connection ends when none comes back, with the score
// of the fault, as if its system had ended.
func TestUnconnected(t *testing.T) {
	const ever = 24 * time.Hour
	for _, tt := range []struct {
		name        string
		from, until time.Duration // the connection is lost
		set         []string      // PID and OTHER are processes
		stopped     load.Reason
		least, most float64 // seconds of the measurement
		exit        int
	}{
		{"for good", 20 * time.Second, ever, []string{"fault=20s:kill=pid:PID"}, load.ByLoss, 80, 83, host.ExitUntrusted},
		{"for good, with a limit", 20 * time.Second, ever, []string{"fault=20s:kill=pid:PID", "slo=outage<30s"}, load.ByLoss, 80, 83, host.ExitUntrusted},
		{"for good, in a round trip", 20 * time.Second, ever, []string{"op=roundtrip", "fault=20s:kill=pid:PID"}, load.ByLoss, 80, 83, host.ExitUntrusted},
		{"until it is started again", 20 * time.Second, 70 * time.Second, []string{"fault=20s:kill=pid:PID"}, load.ByTime, 300, 300, host.ExitOK},
		{"but it did not end anything", 20 * time.Second, ever, []string{"fault=20s:stop=pid:PID,10s"}, load.ByTime, 300, 300, host.ExitOK},
		{"at the end of the measurement", 245 * time.Second, ever, []string{"fault=245s:kill=pid:PID"}, load.ByTime, 300, 300, host.ExitOK},
		{"until a later fault is over", 20 * time.Second, ever, []string{"fault=20s:kill=pid:PID", "fault=150s:stop=pid:OTHER,30s"}, load.ByLoss, 240, 243, host.ExitUntrusted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.most > 100 {
				testkit.Need(t, "a second")
			}
			named := strings.NewReplacer("PID", fmt.Sprint(sleeper(t)), "OTHER", fmt.Sprint(sleeper(t)))
			for i := range tt.set {
				tt.set[i] = named.Replace(tt.set[i])
			}
			synctest.Test(t, func(t *testing.T) {
				m := &fakeKind{perBatch: 1, consumeDelay: time.Millisecond, lostFrom: tt.from, lostUntil: tt.until}
				d := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: resolve(t, m, append(tt.set, "rate=100/s", "for=5m", "drain=10s")...)}))(t)
				if e := d.Totals.ElapsedS; d.Stopped != tt.stopped || e < tt.least || e > tt.most {
					t.Errorf("ended by %s after %v s, want %s after %v to %v", d.Stopped, e, tt.stopped, tt.least, tt.most)
				}
				assert.Equal(t, d.Partial, tt.stopped == load.ByLoss, "cut short")
				assert.Equal(t, d.ExitCode(), tt.exit, "exit: %+v; %+v; %q", d.Trust, d.Checks, d.Problems)
				assert.Must(t, len(d.Faults.Scores) != 0, "the fault has no score")
				black := d.Faults.Scores[0].Whole.Blackout
				assert.True(t, black != nil && black.More != (tt.until < ever) && black.S >= 49, "the blackout is %+v", black)
			})
		})
	}
}

// TestUnconnectedReading: the same for a run that only reads, whose score says for how long nothing came.
func TestUnconnectedReading(t *testing.T) {
	const ever = 24 * time.Hour
	for _, tt := range []struct {
		name        string
		until       time.Duration // the connection is lost from 20 s on
		set         []string      // PID is a process
		stopped     load.Reason
		least, most float64 // seconds of the measurement
		exit        int
		blackout    float64
	}{
		{"for good", ever, []string{"fault=20s:kill=pid:PID"}, load.ByLoss, 80, 83, host.ExitUntrusted, 60},
		{"for good, with a limit", ever, []string{"fault=20s:kill=pid:PID", "slo=outage<30s"}, load.ByLoss, 80, 83, host.ExitUntrusted, 60},
		{"until it is started again", 70 * time.Second, []string{"fault=20s:kill=pid:PID"}, load.ByTime, 300, 300, host.ExitOK, 50},
		{"stopped, with a limit", 24 * time.Second, []string{"fault=20s:stop=pid:PID,4s", "slo=outage<5s"}, load.ByTime, 300, 300, host.ExitOK, 4},
		{"stopped for longer than it would wait", 50 * time.Second, []string{"fault=20s:stop=pid:PID,30s"}, load.ByTime, 300, 300, host.ExitOK, 30},
		{"marked, and silent", ever, []string{"at=20s", "exec=true"}, load.ByIdle, 30, 31, host.ExitOK, 10},
		{"stopped for too long", 28 * time.Second, []string{"fault=20s:stop=pid:PID,8s", "slo=outage<5s"}, load.ByTime, 300, 300, host.ExitBroken, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i := range tt.set {
				tt.set[i] = strings.ReplaceAll(tt.set[i], "PID", fmt.Sprint(sleeper(t)))
			}
			synctest.Test(t, func(t *testing.T) {
				m := &fakeKind{feed: 10 * time.Millisecond, lostFrom: 20 * time.Second, lostUntil: tt.until}
				d := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: resolve(t, m, append(tt.set, "op=consume", "for=5m")...)}))(t)
				if e := d.Totals.ElapsedS; d.Stopped != tt.stopped || e < tt.least || e > tt.most {
					t.Errorf("ended by %s after %v s, want %s after %v to %v", d.Stopped, e, tt.stopped, tt.least, tt.most)
				}
				assert.Equal(t, d.Partial, tt.stopped == load.ByLoss, "cut short")
				assert.Equal(t, d.ExitCode(), tt.exit, "exit: %+v; %+v; %q", d.Trust, d.Checks, d.Problems)
				assert.Must(t, len(d.Faults.Scores) != 0, "the fault has no score")
				black := d.Faults.Scores[0].Whole.Blackout
				assert.True(t, black != nil && black.More != (tt.until < ever) && black.S >= tt.blackout-0.2 &&
					black.S <= tt.blackout+2, "the blackout is %+v, want %v s", black, tt.blackout)
				<-m.session.ended
			})
		})
	}
}

// A run that reads, and ends because nothing arrives, says that it had no connection.
func TestIdleWithoutConnection(t *testing.T) {
	for _, tt := range []struct {
		name string
		from time.Duration // the connection is lost
		want bool
	}{{"lost", 5 * time.Second, true}, {"not known", 0, false}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &fakeKind{lostFrom: tt.from, lostUntil: time.Hour}
				if tt.from > 0 {
					m.feed = 10 * time.Millisecond
				}
				d := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: resolve(t, m, "op=consume")}))(t)
				assert.Equal(t, d.Stopped, load.ByIdle, "ended by")
				const warning = "nothing arrived for 10s (--idle-timeout) because there was no connection: there may be more to read"
				assert.Equal(t, slices.Contains(d.Warnings, warning), tt.want, "whether it warns: %q", d.Warnings)
				<-m.session.ended
			})
		})
	}
}

// A nodes kind has targets with an address for each node.
type nodes struct{ protocol.Kind }

func (nodes) Capabilities() protocol.KindCapabilities {
	return protocol.KindCapabilities{DefaultPort: func(string) string { return "17" }}
}

// A surveyed session counts the final surveys.
type surveyed struct {
	protocol.Session
	n int
}

func (s *surveyed) Capabilities() protocol.SessionCapabilities {
	return protocol.SessionCapabilities{Survey: func(context.Context) error { s.n++; return nil }}
}

// TestEndOfSystem: the run goes on without its own system only if a fault of its own has ended that.
func TestEndOfSystem(t *testing.T) {
	testkit.Program(t, "sleep")
	for _, tt := range []struct {
		name, hosts string
		own         bool // the fault kills the system
		crashes     bool // the system ends by itself
		gone        bool // what the fault kills has ended before
		goesOn      bool
	}{
		{"its fault killed it", "a,b", true, false, false, true},
		{"the only address", "a", true, false, false, false},
		{"its fault killed another, and it ended by itself", "a,b", false, true, false, false},
		{"its fault reached nothing, and it ended by itself", "a,b", false, true, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := assert.Value(system.Start(t.Context(), system.Spec{Command: "sleep 1000"}))(t)
			t.Cleanup(func() { _ = s.Stop() })
			w := resolve(t, &fakeKind{}, "rate=100/s", "for=1h")
			w.Kind, w.URL = nodes{w.Kind}, &url.URL{Scheme: "fake", Host: tt.hosts}
			asked := &surveyed{}
			e := &execution{Job: Job{Workload: w}, system: &underTest{System: s}, session: asked}
			rec := fault.NewRecorder(time.Second, 1, 1, func(int32) int { return 0 })
			j := &injector{e: e, mark: &Marker{e: e, rec: rec, began: time.Now()}}
			assert.True(t, !e.goesOn() && e.endedAlone() == "", "it has ended before it did")
			pid := s.Members()[0]
			if !tt.own {
				pid = sleeper(t)
			}
			if tt.gone {
				pid = 1 << 30
			}
			j.signal(t.Context(), t.Context(), &fault.Fault{Action: fault.Kill, What: fault.PID, Number: pid})
			if tt.crashes {
				assert.OK(t, host.End(s.Members()[0]))
			}
			<-s.Died()
			assert.Equal(t, e.goesOn(), tt.goesOn, "whether it goes on")
			assert.Equal(t, e.endedAlone() == "", tt.goesOn, "whether the end was expected")
			var r load.Result
			e.interrupted(&r)
			assert.Equal(t, r.Stopped == load.Interrupted, tt.goesOn, "whether an interrupt of the waiting counts")
			e.survey(t.Context(), new(outcome))
			assert.Equal(t, asked.n == 1, tt.goesOn, "requests for the final state")
			asking := make(chan load.Reason, 1)
			over := make(chan struct{})
			end := sync.OnceFunc(func() { close(over) })
			if e.goesOn() {
				end()
			}
			e.await(t.Context(), watchedFleet{func(why load.Reason) { asking <- why; end() }, over}, e.system.died())
			assert.Equal(t, len(asking) == 0, tt.goesOn, "whether a fleet goes on")
		})
	}
}
