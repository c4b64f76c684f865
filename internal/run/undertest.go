package run

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"carronade/internal/host"
	"carronade/internal/place"
	"carronade/internal/report"
	"carronade/internal/secret"
	"carronade/internal/system"
	"carronade/load"
	"carronade/protocol"
	"carronade/units"
)

// An underTest is the system under test of a run: built, started or found before the target is
// opened, watched, and stopped after the target is closed.
type underTest struct {
	*system.System
	build *system.Build
	// started is false for a system that was already running.
	started bool
	log     *systemLog    // nil if it was not requested
	before  system.Totals // when the sending began
	after   system.Totals // when everything was completed
}

// startSystem builds and starts the system under test, or finds it; nil if the workload has
// none.
func (e *execution) startSystem(ctx context.Context) (*underTest, error) {
	w := e.Workload
	if !w.HasSystem() {
		return nil, nil
	}
	spec, err := e.systemSpec()
	if err != nil {
		return nil, err
	}
	known := new(secret.Mask)
	known.Add(spec.Secrets...)
	spec.Launched, spec.Output = e.Started, e.printed("system")
	spec.Happened = func(name string, began time.Time, length time.Duration) { e.moments.add("system", name, began, length) }
	u := &underTest{started: spec.Command != "" || spec.Image != ""}
	if err := system.Check(spec); err != nil { // check first, since a build may take long
		return nil, err
	}
	if w.Has("system-checkout") || w.Has("system-build") {
		e.Logf("building the system under test")
		u.build, err = system.MakeBuild(ctx, system.BuildOrder{
			Dir: w.String("system-git"), Revision: w.String("system-checkout"), Branch: w.String("system-branch"), Fetch: w.String("system-fetch"),
			Command: w.String("system-build"), Within: w.Duration("system-build-within"), Logf: e.Logf,
			Mask: known, Launched: e.Started, Output: e.printed("build"),
		})
		if err != nil {
			return nil, err
		}
		spec.Build = u.build
	}
	if path := w.String("system-log"); path != "" {
		if u.log, err = openSystemLog(path); err != nil {
			u.release()
			return nil, err
		}
		spec.Output = u.log.tee(spec.Output)
	}
	if u.System, err = system.Start(ctx, spec); err != nil {
		u.release()
		return nil, err
	}
	return u, nil
}

// printed returns the function that shows the output of the build, or of the system; nil if
// it was not requested.
func (e *execution) printed(from string) func(line string) {
	if e.Job.Output == nil || !e.Workload.Bool("system-verbose") {
		return nil
	}
	return func(line string) { e.Job.Output(from, line) }
}

// printedBySystem returns what the system has printed, for the report.
func (e *execution) printedBySystem() *report.Output {
	text, cut := e.system.Output()
	return report.NewOutput(text, cut)
}

// printedByBuild returns what the build of the system has printed, in this run or in an earlier
// one; nil without a build. Once the build is released, its output may be removed.
func (e *execution) printedByBuild() (*report.Output, error) {
	text, cut, err := e.system.BuildOutput()
	return report.NewOutput(text, cut), err
}

func (u *underTest) release() {
	if u.build != nil {
		u.build.Release()
	}
	u.log.close()
}

// close stops what was started.
func (u *underTest) close() error {
	if u == nil {
		return nil
	}
	defer u.release()
	return u.Stop()
}

// died is closed when the system exits by itself; nil without a system, so that it never
// receives.
func (u *underTest) died() <-chan struct{} {
	if u == nil {
		return nil
	}
	return u.Died()
}

// lastAnswers is how long a run waits for answers after its system died: connections break at
// once, and their batches complete.
const lastAnswers = 300 * time.Millisecond

// systemSpec reads the settings.
func (e *execution) systemSpec() (system.Spec, error) {
	w := e.Workload
	s := system.Spec{
		Command: w.String("system-cmd"), PID: int(w.Count("system-pid")), Container: w.String("system-container"),
		Image: w.String("system-image"), Args: w.List("system-arg"), Env: w.List("system-env"), Dir: w.String("system-dir"),
		FlagFormat: w.String("system-flag-format"), Ready: w.String("system-ready"),
		ReadyWithin: w.Duration("system-ready-within"), StopWithin: w.Duration("system-stop-within"),
		Memory: w.Size("system-mem"), Engine: w.String("system-engine"), Publish: w.List("system-publish"),
		Git: w.String("system-git"), Branch: w.String("system-branch"), Revision: w.String("revision"), Vars: w.String("system-vars"), Metrics: w.String("system-metrics"),
		Names: w.List("system-names"), Stages: w.Kind.Capabilities().Stages, GCLog: w.String("system-gc-log"), JVMGC: w.Bool("system-jvm-gc"),
		Listen: listening(w.Kind, w.URL), Logf: e.Logf,
	}
	if w.Has("system-checkout") || w.Has("system-build") {
		s.Git = "" // the build's facts take its place
	}
	if text := w.String("system-cpus"); text != "" {
		var err error
		if s.CPUs, err = strconv.ParseFloat(text, 64); err != nil {
			return s, fmt.Errorf("--system-cpus: %w", err)
		}
	}
	for _, f := range w.List("system-flag") {
		name, value, _ := strings.Cut(f, "=")
		s.Flags = append(s.Flags, system.Flag{Name: name, Value: value})
	}
	s.Secrets = append(e.targetSecrets(), e.Job.Secrets...)
	for _, h := range w.List("system-header") {
		name, ref, _ := strings.Cut(h, "=")
		value, err := protocol.ReadSecret("system-header "+name, ref)
		if err != nil {
			return s, err
		}
		s.Secrets = append(s.Secrets, value)
		if s.Header == nil {
			s.Header = http.Header{}
		}
		s.Header.Set(name, value)
	}
	return s, nil
}

// targetSecrets returns the secrets of the target's options: the system may print one, for
// example when it logs a refused login. If one cannot be read, opening the target returns the
// error.
func (e *execution) targetSecrets() (out []string) {
	for _, o := range e.Workload.Kind.Options() {
		for _, text := range e.spec.Options.List(o.Name) {
			ref := text
			if i := strings.IndexAny(text, "=:"); o.Type == protocol.List && i >= 0 && !secret.IsReference(text) {
				ref = strings.TrimSpace(text[i+1:]) // K=env:NAME, K: env:NAME
			}
			if !secret.IsReference(ref) {
				continue
			}
			if value, err := protocol.ReadSecret(o.Name, ref); err == nil {
				out = append(out, value)
			}
		}
	}
	return out
}

// listening returns the addresses of a target: a system that is started must accept connections
// there before the load begins. The null target has none.
func listening(kind protocol.Kind, u *url.URL) (out []string) {
	port := protocol.DefaultPort(kind, u.Scheme)
	for h := range strings.SplitSeq(u.Host, ",") {
		switch _, own, err := net.SplitHostPort(h); {
		case err == nil && own != "":
			out = append(out, h)
		case h != "" && port != "":
			out = append(out, net.JoinHostPort(strings.Trim(strings.TrimSuffix(h, ":"), "[]"), port))
		}
	}
	return out
}

// begin notes the resources that the system had used when the sending began.
func (u *underTest) begin(ctx context.Context) {
	if u != nil {
		u.before = u.Begin(ctx)
	}
}

// finish notes the resources that it has used when everything is completed.
func (u *underTest) finish(ctx context.Context) {
	if u != nil {
		u.after = u.Finish(ctx)
	}
}

// warnings are those about the system, such as metrics that could not be read.
func (u *underTest) warnings() []string {
	if u == nil {
		return nil
	}
	return u.Warnings()
}

// ended returns how the system ended if it did so by itself; otherwise "".
func (u *underTest) ended() string {
	select {
	case <-u.died():
		return u.Exit().Status
	default:
		return ""
	}
}

// diedMeanwhile returns a better error if a target could not be opened because its system had
// ended.
func (e *execution) diedMeanwhile(err error) error {
	how := e.system.ended()
	if how == "" {
		return err
	}
	hint := "it printed nothing"
	if lines := e.system.LastLines(); len(lines) > 0 {
		hint = "its last output: " + strings.Join(lines[max(0, len(lines)-3):], "; ")
	}
	return &protocol.Error{Doing: "send to the system under test", Err: fmt.Errorf("it exited (%s) before the load began: %w", how, err), Hint: hint}
}

// members are the processes of the system; none without one.
func (u *underTest) members() []int {
	if u == nil {
		return nil
	}
	return u.Members()
}

// confirm asks what arrived in the store behind the system, if requested.
func (o *outcome) confirm(ctx context.Context, e *execution) {
	confirm := e.can().Confirm
	if confirm == nil || o.result == nil {
		return
	}
	waiting, cancel := e.waiting(ctx)
	defer cancel()
	x, err := confirm(waiting, o.result.Warmup.Acked+o.result.Measurement.Acked)
	if err != nil {
		o.warnings = append(o.warnings, "could not count what was indexed: "+err.Error())
	}
	o.indexed = x
}

// report returns the report's part about the system.
func (u *underTest) report(r *load.Result) *report.System {
	if u == nil {
		return nil
	}
	s := &report.System{Facts: u.Facts(), LastLines: []string{}}
	select {
	case <-u.Died():
		x := u.Exit()
		since := "it was started"
		if !u.started {
			since = "it was found"
		}
		s.Died, s.Exit, s.LastLines = true, fmt.Sprintf("%s, %s after %s", x.Status, units.FormatDuration(x.After.Round(time.Millisecond)), since), u.LastLines()
	default:
	}
	for _, name := range []string{"exit", "last_lines", "peak_rss_bytes", "cpu_s"} { // said below
		delete(s.Facts, name)
	}
	s.PeakRSSBytes = u.after.Peak
	s.CPUS = (u.after.CPU - u.before.CPU).Seconds()
	acked := r.Warmup.Acked + r.Measurement.Acked
	if rate, ok := system.PerCore(acked, u.after.CPU-u.before.CPU); ok {
		s.EventsPerCPUS = &rate
	}
	if x, ok := system.Efficiency(r.Measurement.AckedBytes, r.Measurement.Length(), u.after.Peak); ok {
		s.Efficiency = &x
	}
	s.GCPauses = u.after.Pauses - u.before.Pauses
	s.GCPauseS = (u.after.PauseTime - u.before.PauseTime).Seconds()
	s.GCPauseMaxS = u.after.PauseLongest.Seconds()
	return s
}

// otherHosts reads the descriptions of other machines.
func otherHosts(paths []string) ([]any, error) {
	var out []any
	for _, path := range paths {
		text, err := place.ReadFile(path)
		if err == nil {
			_, err = host.ParseHost(text)
		}
		var v any
		if err == nil {
			err = json.Unmarshal(text, &v)
		}
		if err != nil {
			return nil, &protocol.Error{Doing: "read --system-host " + path, Err: err, Hint: "create the file on that machine: carronade host --json > " + path}
		}
		out = append(out, v)
	}
	return out, nil
}
