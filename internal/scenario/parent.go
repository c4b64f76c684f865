package scenario

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/host"
)

// The limits of a script, unless Options has others.
const (
	DefaultMemory  = 256 << 20
	DefaultCompute = 10 * time.Second
	DefaultDepth   = 1000
	DefaultSteps   = 10_000
)

// killAfter is how long the child has to stop its interpreter before it is killed.
const killAfter = 2 * time.Second

// A Runner runs the steps of a scenario, in the parent. Start, Check and Report are called by
// one goroutine.
type Runner interface {
	// Start checks a step and returns what runs it. The error of an invalid step is a *Fault.
	// The function runs on a goroutine of its own, until the step has ended. The end of its
	// context stops the step as an interrupt does.
	Start(number int, s *Step) (run func(ctx context.Context) *Ended, err error)
	// Check is Host.Check.
	Check(at, report string, limits []string) (bool, error)
	// Report is Host.Report.
	Report(at, reference string) (json.RawMessage, error)
}

// Options say how to run a script.
type Options struct {
	Script  Script
	Command []string // of the child: a process that calls Main
	Runner  Runner

	Memory   int64         // of the child, in bytes
	Compute  time.Duration // between two steps that the script starts or awaits
	MaxSteps int           // the next step ends the scenario
	For      time.Duration // 0: no limit
	Bounds   Bounds        // zero: DefaultBounds

	Print func(text string)
	Warn  func(text string)
	Mark  func(at, kind, text string) error // nil: the language has no marks
}

// A Reason is why a scenario ended.
type Reason string

// The reasons.
const (
	ByScript    Reason = "script"      // it came to its end
	ByFault     Reason = "fault"       // it failed
	ByTime      Reason = "time"        // Options.For
	BySteps     Reason = "steps"       // Options.MaxSteps
	BySleep     Reason = "sleep"       // of a dry run, that only sleeps
	Interrupted Reason = "interrupted" // the context ended
)

// Run runs a script to its end. When ctx ends, or a limit of Options, the steps in progress are
// stopped as by an interrupt, the child is killed, and Run returns after the steps. The fault is
// the script's, or nil. The error is of a child that cannot be started.
func Run(ctx context.Context, o Options) (Reason, *Fault, error) { //nolint:gocritic // options by value
	c, err := startChild(&o)
	if err != nil {
		return "", nil, err
	}
	p := &parent{Options: o, child: c, steps: map[int]*running{}, changed: make(chan struct{}, 1)}
	if p.Bounds == (Bounds{}) {
		p.Bounds = DefaultBounds()
	}
	go p.watchMemory()
	p.ctx, p.stopAll = context.WithCancelCause(ctx)
	defer p.stopAll(nil)
	if o.For > 0 {
		stop := time.AfterFunc(o.For, func() { p.stopAll(errTime) })
		defer stop.Stop()
	}
	fault := p.serve()
	reason := ByScript
	switch cause := context.Cause(p.ctx); {
	case errors.Is(cause, errTime):
		reason, fault = ByTime, nil
	case errors.Is(cause, errSteps):
		reason, fault = BySteps, nil
	case errors.Is(cause, errSleep):
		reason, fault = BySleep, nil
	case cause != nil:
		reason, fault = Interrupted, nil
	case fault != nil:
		reason = ByFault
	}
	if reason == ByFault {
		p.stopAll(nil) // nothing decides about the steps any more
	}
	p.active.Wait()
	c.end()
	return reason, fault, nil
}

// The causes of an end that is not the script's.
var (
	errTime  = errors.New("the time of the scenario is over")
	errSteps = errors.New("the scenario has all its steps")
	errSleep = errors.New("the script only sleeps")
)

// A parent is the parent's side of one scenario.
type parent struct {
	Options
	child   *child
	ctx     context.Context // of all steps
	stopAll context.CancelCauseFunc

	mu      sync.Mutex
	steps   map[int]*running // those whose end was not awaited
	changed chan struct{}    // has an element after a step has ended
	active  sync.WaitGroup

	number int
	warned []string
	use    use
}

// A running is a step whose end was not awaited.
type running struct {
	stop  func()
	ended *Ended // nil: in progress
}

// serve answers the child until it ends. It returns the script's fault.
func (p *parent) serve() *Fault {
	text, err := encode(&beginning{Script: p.Script, Memory: p.Memory, Compute: p.Compute})
	for {
		if err != nil {
			return &Fault{At: p.Script.Path, Text: err.Error()}
		}
		if fault, ok := p.send(text); !ok {
			return fault
		}
		r, fault, ok := p.receive()
		switch {
		case !ok:
			return fault
		case r.Do == doEnd:
			return p.withHint(r.Fault)
		}
		if fault = p.use.exceed(&r, &p.Bounds, p.inProgress); fault != nil {
			p.child.kill()
			fault.At = cmp.Or(fault.At, p.Script.Path)
			return fault
		}
		answer, ok := p.answer(&r)
		if !ok {
			return p.over()
		}
		if text, err = encode(answer); errors.Is(err, errLongLine) {
			text, err = encode(&reply{Fault: &Fault{At: r.At, Text: fmt.Sprintf("the report has more than %d MiB, which is too much for a script", mostLine>>20)}})
		}
	}
}

// silence is how long the child may neither ask nor take an answer, nor use the processor where the
// system tells that. The child itself measures how long the script computes, in processor time, so
// this is for a process that does not run: another program stopped it, for example.
func (p *parent) silence() time.Duration {
	return silences*min(p.Compute, math.MaxInt64/(2*silences)) + killAfter
}

// silences is how much longer than its processor time a script may take.
const silences = 10

// receive waits for a request; false if there is none any more, with the fault.
func (p *parent) receive() (request, *Fault, bool) { return waitFor(p, p.child.requests) }

// send writes a line to the child; false if it is not taken, with the fault. A child that does not
// read would block the write for ever, once the pipe is full.
func (p *parent) send(line []byte) (*Fault, bool) {
	written := make(chan error, 1)
	go func() {
		_, err := p.child.stdin.Write(line)
		written <- err
	}()
	failed, fault, ok := waitFor(p, written)
	if failed != nil {
		return p.over(), false
	}
	return fault, ok
}

// waitFor waits for a value that comes when the child has done something. It returns false and the
// fault if the channel is closed, the child is silent, or the scenario is over.
func waitFor[T any](p *parent, values <-chan T) (T, *Fault, bool) {
	var none T
	w := p.watch()
	defer w.Stop()
	for {
		select {
		case v, ok := <-values:
			if !ok {
				return none, p.over(), false
			}
			return v, nil, true
		case <-w.C:
			if fault := p.silent(w); fault != nil {
				return none, fault, false
			}
		case <-p.ctx.Done():
			return none, p.over(), false
		}
	}
}

// A silenceWatch is a timer of the child's silence.
type silenceWatch struct {
	*time.Timer
	cpu time.Duration // of the child when it began
}

func (p *parent) watch() *silenceWatch {
	return &silenceWatch{time.NewTimer(p.silence()), host.CPUOf(p.child.process.Pid())}
}

// silent ends a child that was silent. It returns nil if the child ran in that time: then the watch
// begins again.
func (p *parent) silent(w *silenceWatch) *Fault {
	if cpu := host.CPUOf(p.child.process.Pid()); cpu > w.cpu {
		w.cpu = cpu
		w.Reset(p.silence())
		return nil
	}
	p.child.kill()
	return &Fault{At: p.Script.Path, Text: tooSilent(p.silence()), Hint: tooSilentHint}
}

// over ends the child when the scenario is over or the child is gone, and says why if it is gone.
func (p *parent) over() *Fault {
	if p.ctx.Err() != nil {
		p.child.kill()
		return nil //nolint:nilerr // the code that ended the scenario reports the reason
	}
	return p.child.fault(p)
}

// withHint adds the hint of a limit.
func (p *parent) withHint(f *Fault) *Fault {
	switch {
	case f == nil || f.Hint != "":
	case f.Text == tooLong(p.Compute):
		f.Hint = tooLongHint
	case f.Text == tooMuch(p.Memory):
		f.Hint = tooMuchHint
	}
	return f
}

// answer does what a request asks for; false if the scenario is over.
func (p *parent) answer(r *request) (*reply, bool) {
	var (
		out reply
		err error
	)
	switch r.Do {
	case doStart:
		if r.Step == nil {
			err = errors.New("a step is missing")
			break
		}
		if p.number >= p.MaxSteps {
			p.stopAll(errSteps)
			return nil, false
		}
		out.Number, err = p.start(r.Step)
	case doStop:
		p.stop(r.Numbers)
	case doAwait:
		ended, ok := p.await(r.Limit, r.Numbers)
		if !ok {
			return nil, false
		}
		out.Ended = ended
	case doCheck:
		out.OK, err = p.Runner.Check(r.At, r.Text, r.Limits)
	case doMark:
		if p.Mark != nil {
			err = p.Mark(r.At, r.Kind, r.Text)
		}
	case doReport:
		out.Report, err = p.Runner.Report(r.At, r.Text)
	case doPrint:
		p.Print(r.Text)
	case doWarn:
		if !slices.Contains(p.warned, r.Text) && len(p.warned) < mostWarnings {
			p.warned = append(p.warned, r.Text)
			p.Warn(r.Text)
		}
	}
	if err != nil && !errors.As(err, &out.Fault) { // of a store, for example
		out.Fault = &Fault{At: r.At, Text: err.Error()}
	}
	return &out, true
}

// start begins a step.
func (p *parent) start(s *Step) (int, error) {
	p.number++
	number := p.number
	run, err := p.Runner.Start(number, s)
	if err != nil {
		return number, err
	}
	ctx, stop := context.WithCancel(p.ctx)
	one := &running{stop: stop}
	p.mu.Lock()
	p.steps[number] = one
	p.mu.Unlock()
	p.active.Go(func() {
		defer stop()
		ended := run(ctx)
		p.mu.Lock()
		one.ended = ended
		p.mu.Unlock()
		select {
		case p.changed <- struct{}{}:
		default:
		}
	})
	return number, nil
}

// inProgress is how many steps have not ended.
func (p *parent) inProgress() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.steps {
		if one.ended == nil {
			n++
		}
	}
	return n
}

// stop stops steps.
func (p *parent) stop(numbers []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range numbers {
		if one := p.steps[n]; one != nil {
			one.stop()
		}
	}
}

// await waits until one of the steps has ended, for the limit at most; false if the scenario is
// over.
func (p *parent) await(limit time.Duration, numbers []int) (*Ended, bool) {
	if p.Script.Dry && len(numbers) == 0 {
		if p.use.sleep(limit, &p.Bounds) {
			p.stopAll(errSleep)
			return nil, false
		}
		return nil, true
	}
	var timeout <-chan time.Time
	if limit >= 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		timeout = t.C
	}
	for {
		if e := p.take(numbers); e != nil {
			return e, true
		}
		select {
		case <-p.changed:
		case <-timeout:
			return nil, true
		case <-p.ctx.Done():
			return nil, false
		case <-p.child.gone:
			return nil, false
		}
	}
}

// take returns the end of one of the steps, the first by number; nil if none has ended.
func (p *parent) take(numbers []int) *Ended {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range slices.Sorted(slices.Values(numbers)) {
		if one := p.steps[n]; one != nil && one.ended != nil {
			delete(p.steps, n)
			return one.ended
		}
	}
	return nil
}

// A child is the process of a script.
type child struct {
	process  *host.Child
	requests chan request  // closed when the child has ended, or wrote something else
	gone     chan struct{} // closed with it
	stdin    *os.File
	stderr   *said
	problem  error       // of a line of the child; read after gone
	full     atomic.Bool // it was killed for its memory
}

// startChild starts the process.
func startChild(o *Options) (*child, error) {
	cmd := exec.Command(o.Command[0], o.Command[1:]...) //nolint:gosec,noctx // our own program; ended by end
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the process of the script: %w", err)
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		in.Close()
		stdin.Close()
		return nil, fmt.Errorf("start the process of the script: %w", err)
	}
	c := &child{stdin: stdin, stderr: &said{}, requests: make(chan request), gone: make(chan struct{})}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, stdout, c.stderr
	c.process, err = host.StartPiped(cmd)
	in.Close()
	stdout.Close()
	if err != nil {
		out.Close()
		stdin.Close()
		return nil, fmt.Errorf("start the process of the script: %w", err)
	}
	from := newLines(out, nil)
	go func() {
		defer out.Close()
		defer close(c.gone)
		defer close(c.requests)
		for {
			var r request
			if err := from.read(&r); err != nil {
				if !errors.Is(err, io.EOF) {
					c.problem = err
				}
				return
			}
			c.requests <- r
			if r.Do == doEnd {
				return
			}
		}
	}()
	return c, nil
}

// kill ends the process at once.
func (c *child) kill() { c.process.Kill() }

// end waits for the end of the process, and kills it if it does not end.
func (c *child) end() {
	c.stdin.Close()
	select {
	case <-c.process.Done():
	case <-time.After(killAfter):
		c.kill()
		<-c.process.Done()
	}
	for range c.requests { // until its output is read
	}
}

// fault says why the process ended before the script did.
func (c *child) fault(p *parent) *Fault {
	c.end()
	if c.problem != nil {
		return &Fault{At: p.Script.Path, Text: c.problem.Error()}
	}
	state := c.process.State()
	text := c.stderr.String()
	switch death := host.DeathSignal(state); {
	case c.full.Load(), state.ExitCode() == childFull, strings.Contains(text, "out of memory"), strings.Contains(text, "cannot allocate memory"):
		return &Fault{At: p.Script.Path, Text: tooMuch(p.Memory), Hint: tooMuchHint}
	case state.ExitCode() == childLate:
		return &Fault{At: p.Script.Path, Text: tooLong(p.Compute), Hint: tooLongHint}
	case death != "":
		return &Fault{At: p.Script.Path, Text: "the process of the script was ended by a signal: " + death}
	default:
		first, _, _ := strings.Cut(text, "\n")
		return &Fault{At: p.Script.Path, Text: fmt.Sprintf("the process of the script ended with exit code %d: %s", state.ExitCode(), first)}
	}
}

// A said keeps the beginning of what the child says on stderr: of a crash, the first lines say
// why. Safe for concurrent use.
type said struct {
	mu  sync.Mutex
	buf []byte
}

// mostSaid is how much of it is kept, in bytes.
const mostSaid = 4 << 10

// Write implements io.Writer.
func (t *said) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b[:min(len(b), mostSaid-len(t.buf))]...)
	return len(b), nil
}

func (t *said) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
