package heyapm

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
)

// heyLegacy is the mode of 2018: all parts of a profile at once, for a time.
type heyLegacy struct{ *heyRun }

// heyWork is a part of a profile at one server.
type heyWork struct {
	heyPart
	url    string // as the tool prints it
	target string // carronade's
	sized  bool   // its frames and events have the sizes of the tool's
}

// The sizes of the tool's frames, and of its transactions and errors without spans and frames.
const (
	heyFrameBytes = 863
	heyEventBytes = 1240
)

const heyRunTime2018 = 10 * time.Second

func (t *heyLegacy) main(ctx context.Context) (int, error) {
	parts, ok := heyProfiles[t.profile]
	switch {
	case t.shell:
		if err := t.p.Serve(ctx); err != nil {
			return 1, err
		}
		return 0, nil
	case !ok:
		t.log.printf("[error] unknown profile")
		fmt.Fprintf(t.p.Err, "(there are %s)\n", heyProfileNames())
		return 1, nil
	}
	if err := t.setRunTime(); err != nil {
		return 1, err
	}
	if !t.headersValid() {
		return 1, nil
	}
	var all []heyWork
	for _, base := range t.bases.list {
		target, err := apmTarget(base)
		if err != nil {
			return 1, fmt.Errorf("-base-url: %w", err)
		}
		for _, p := range parts {
			all = append(all, heyWork{heyPart: p, url: strings.TrimRight(base, "/") + "/" + p.path, target: target})
		}
	}
	switch {
	case t.describe:
		return t.describeAll(all)
	case t.dump:
		return t.dumpAll(all)
	}
	return t.runAll(ctx, all)
}

// setRunTime sets the run's duration. A duration of 0 is refused: the tool ended
// before it had sent anything.
func (t *heyLegacy) setRunTime() error {
	switch {
	case !t.given["run"]:
		t.run = heyRunTime2018
	case t.run <= 0:
		return fmt.Errorf("-run %v sends nothing: leave it out for %v", t.run, heyRunTime2018)
	}
	return nil
}

// headersValid reports whether all headers are valid, and logs the first that is
// not.
func (t *heyLegacy) headersValid() bool {
	for _, h := range t.headers.list {
		if !strings.Contains(h, ":") {
			t.log.printf("[error] invalid header %q, use \"key: this is the value\"", h)
			return false
		}
	}
	return true
}

// runAll runs all work.
func (t *heyLegacy) runAll(ctx context.Context, all []heyWork) (int, error) {
	var (
		docs []*workload.Document
		at   []int // each workload's index in all
	)
	headers := t.headersByReference()
	for i := range all {
		w := &all[i]
		if !w.isSent() {
			fmt.Fprintf(t.p.Err, "warning: %s gets no requests: a run checks the server's health first, and watches its own metrics (--system-vars)\n", w.url)
			continue
		}
		if w.intake == "rum-v2" {
			fmt.Fprintf(t.p.Err, "warning: events of browsers go to /intake/v2/rum/events, which servers since 6.5 accept, and not to %s\n", w.path)
		}
		t.log.printf("[info] starting worker for %s", w.url)
		docs, at = append(docs, t.workload(w, headers)), append(at, i)
	}
	began := time.Now()
	ds, err := t.p.RunTogether(ctx, docs)
	if err != nil {
		if ctx.Err() != nil {
			t.log.interrupted()
		}
		return heyNoReport(ctx, t.p, err)
	}
	t.logEnd(ctx, all, at, ds)
	for i, d := range ds {
		if i > 0 {
			fmt.Fprintln(t.p.Out)
		}
		perS := d.Totals.AnswersPerS
		if t.p.Strict { // over one time for all, including the wait for the last answers
			perS = dropin.PerSecond(float64(answersOf(d)), time.Since(began).Seconds())
		}
		fmt.Fprint(t.p.Out, heyResponses(all[at[i]].url, at[i], d, perS))
		writeHeyWarnings(t.p.Err, d)
	}
	return heyExit(t.p, worstOutcome(ds)), nil
}

// logEnd logs how the work ended.
func (t *heyLegacy) logEnd(ctx context.Context, all []heyWork, at []int, ds []*report.Document) {
	timeUp := slices.ContainsFunc(ds, func(d *report.Document) bool { return d.Stopped == load.ByTime || d.Stopped == load.BySchedule })
	switch {
	case ctx.Err() != nil:
		t.log.interrupted()
	case timeUp:
		t.log.printf("[info] no more time left to make requests")
	}
	for _, i := range at {
		if timeUp || ctx.Err() != nil {
			t.log.printf("[info] stopping worker for %s", all[i].url)
		}
		t.log.printf("[info] worker done for %s", all[i].url)
	}
	if timeUp {
		t.log.printf("[info] stopped cleanly after time expired")
	} else {
		t.log.printf("[info] no more requests to make")
	}
}

// headersByReference are the headers, with secrets replaced by references.
func (t *heyLegacy) headersByReference() (out []string) {
	for _, h := range t.headers.list {
		name, value, _ := strings.Cut(h, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if secretHeader(name) && value != "" {
			value = t.reference("-header '"+name+": ...'", value)
		}
		out = append(out, name+": "+value)
	}
	return out
}

// secretHeader reports whether a header's value may be secret.
func secretHeader(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"auth", "token", "secret", "key", "cookie", "pass", "pw", "credential", "jaas"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// workload translates a part to a workload.
func (t *heyLegacy) workload(w *heyWork, headers []string) *workload.Document {
	var d dropin.Draft
	d.Set("target", "-base-url", w.target)
	d.Set("intake", "-profile", w.intake)
	d.Set("events", "-profile", strconv.Itoa(w.events))
	d.Set("spans", "-profile", strconv.Itoa(w.spans))
	d.Set("frames", "-profile", strconv.Itoa(w.frames))
	d.Set("clients", "-profile", strconv.Itoa(w.concurrency))
	each := w.eventsPerRequest()
	if w.perS > 0 {
		d.SetRate("-profile", w.perS*float64(w.concurrency*each))
		if t.requests == math.MaxInt32 {
			d.Set("overload", "-profile", "drop") // a late caller does not catch up
		}
	} else {
		d.Set("concurrency", "-profile", strconv.Itoa(w.concurrency))
	}
	d.Set("for", "-run", t.run.String())
	if t.requests < math.MaxInt32 {
		d.AtMost("-requests", strconv.Itoa(t.requests*each))
	}
	if w.sized {
		d.Set("frame-size", "-profile", strconv.Itoa(heyFrameBytes)+"B")
		d.Set("event-size", "-profile", strconv.Itoa(heyEventBytes)+"B")
	}
	timeout := time.Duration(t.timeout) * time.Second
	if w.sized && !t.given["timeout"] {
		timeout = heyTestTimeout
	}
	if timeout <= 0 {
		timeout = time.Hour // no timeout
	}
	d.Set("request-timeout", "-timeout", timeout.String())
	if !t.uncompressed {
		d.Set("gzip", "-disable-compression", "6")
	}
	if t.noKeepAlive {
		d.Set("keep-alive", "-disable-keepalive", "false")
	}
	if t.p.Strict {
		d.Set("repeat-body", "--strict", "true")
	}
	for _, h := range headers {
		d.Set("header", "-header", h)
	}
	d.Set("label", "-profile", "profile="+t.profile)
	return &d.Document
}
