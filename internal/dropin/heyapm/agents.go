package heyapm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/place"
	"carronade/internal/workload"
)

// heyAgents is the generator of 2019 to 2023: transactions and errors of agents, each
// kind at a separate rate.
type heyAgents struct {
	*heyRun
	target string
	refs   []heyRef
	pause  time.Duration
}

const (
	heyRunTime2023 = 30 * time.Second
	heyPause2023   = time.Minute // between the workloads of -bench

	// heyFastest is the shortest time between two events that sets a rate. Below it
	// agents send as fast as they can.
	heyFastest = time.Microsecond

	// A request contains the events of a tenth of a second, at most
	// maxEventsPerRequest; an agent's request lasts seconds.
	maxEventsPerRequest = 100
)

// A heyRef is an option that refers to a secret, and the flag that gave it.
type heyRef struct{ option, text, flag string }

// A heyStream is one kind of event with its rate.
type heyStream struct {
	name      string
	limit     int
	interval  time.Duration
	spans     [2]int // minimum and maximum; zeros for errors
	frames    [2]int
	limitFlag string // for error messages
}

func (t *heyAgents) main(ctx context.Context) (int, error) {
	t.maxSpans = max(t.maxSpans, t.minSpans)
	t.maxFrames = max(t.maxFrames, t.minFrames)
	if err := t.check(); err != nil {
		return 1, err
	}
	var err error
	if t.target, err = apmTarget(t.url); err != nil {
		return 1, fmt.Errorf("-apm-url: %w", err)
	}
	t.warn()
	t.referToSecrets()
	if t.bench {
		t.pause = heyPause2023
		return t.benchmark(ctx)
	}
	streams := []heyStream{
		{name: "transactions", limit: t.transactions, interval: t.transactionInterval, spans: [2]int{t.minSpans, t.maxSpans}, limitFlag: "-t"},
		{name: "errors", limit: t.errors, interval: t.errorInterval, frames: [2]int{t.minFrames, t.maxFrames}, limitFlag: "-e"},
	}
	if !t.given["run"] {
		t.run = heyRunTime2023
	}
	_, code, err := t.runStreams(ctx, streams, t.run, "")
	return code, err
}

func (t *heyAgents) check() error {
	switch {
	case t.instances < 1:
		return fmt.Errorf("-instances %d: must be at least 1", t.instances)
	case t.minSpans < 0 || t.minFrames < 0:
		return fmt.Errorf("-sm %d -em %d: must not be negative", t.minSpans, t.minFrames)
	case t.transactionInterval <= 0 || t.errorInterval <= 0:
		return fmt.Errorf("-tf %v -ef %v: a frequency must be a duration above 0", t.transactionInterval, t.errorInterval)
	case t.transactions <= 0 && t.errors <= 0 && !t.bench:
		return fmt.Errorf("-t %d -e %d: nothing is left to generate", t.transactions, t.errors)
	case t.run < 0 || t.flush < 0:
		return fmt.Errorf("-run %v -flush %v: must not be negative", t.run, t.flush)
	case t.given["run"] && t.run == 0 && t.bench:
		return errors.New("-run 0 and -bench: its first workload would never end")
	}
	return nil
}

// warn names the flags that have no effect.
func (t *heyAgents) warn() {
	for _, f := range [][2]string{
		{"delay", "agents start at once"},
		{"service-name", "it had no effect in hey-apm; there are four services"},
		{"rm", "carronade verify detects regressions, from the spread of earlier runs"},
		{"rd", "carronade verify detects regressions, from the spread of earlier runs"},
	} {
		if t.given[f[0]] {
			fmt.Fprintf(t.p.Err, "warning: -%s has no effect here: %s\n", f[0], f[1])
		}
	}
	t.warnAuthWithoutURL()
	if t.bench {
		for _, name := range []string{"e", "ef", "ex", "em", "sx", "sm", "t", "tf"} {
			if t.given[name] {
				fmt.Fprintf(t.p.Err, "warning: -%s has no effect with -bench\n", name)
			}
		}
		fmt.Fprintln(t.p.Err, "warning: -bench does not delete documents or compare with earlier reports here; carronade verify compares")
	}
}

// warnAuthWithoutURL names logins without the address that they are for.
func (t *heyRun) warnAuthWithoutURL() {
	for _, f := range [][2]string{{"es-auth", "es-url"}, {"apm-es-auth", "apm-es-url"}} {
		if t.given[f[0]] && !t.given[f[1]] {
			fmt.Fprintf(t.p.Err, "warning: -%s has no effect here without -%s\n", f[0], f[1])
		}
	}
}

// referToSecrets replaces secrets by references.
func (t *heyAgents) referToSecrets() {
	for _, f := range []struct{ flag, option, text string }{
		{"-apm-secret", "secret-token", t.secret}, {"-api-key", "api-key", t.key},
	} {
		if f.text == "" {
			continue
		}
		t.refs = append(t.refs, heyRef{f.option, t.reference(f.flag, f.text), f.flag})
	}
	t.secret, t.key = "", ""
	if t.indexURL != "" && t.indexAuth != "" {
		const flag = "-apm-es-auth"
		user, password := t.login(flag, t.indexAuth)
		t.refs = append(t.refs, heyRef{"index-user", user, flag}, heyRef{"index-password", password, flag})
	}
	if t.esURL != "" {
		t.refs = append(t.refs, heyRef{"store", t.reportStore(), "-es-url"})
	}
	t.indexAuth, t.esAuth = "", ""
}

// login splits user:password and replaces the password by a reference.
func (t *heyRun) login(flag, text string) (user, ref string) {
	user, password, _ := strings.Cut(text, ":")
	return user, t.reference(flag, password)
}

// reportStore is the address of the store that -es-url and -es-auth name.
func (t *heyRun) reportStore() string {
	user, password := "", ""
	if t.esAuth != "" {
		user, password = t.login("-es-auth", t.esAuth)
	}
	store, _ := place.OfServer(t.esURL, user, password) // the flag was checked
	return store
}

// runStreams runs streams at the same time, prints their result, and returns it.
func (t *heyAgents) runStreams(ctx context.Context, streams []heyStream, length time.Duration, name string) (*heyResult, int, error) {
	var (
		docs []*workload.Document
		of   []heyStream
	)
	for _, s := range streams {
		if s.limit > 0 {
			docs, of = append(docs, t.workload(&s, length, name)), append(of, s)
		}
	}
	began := time.Now()
	ds, err := t.p.RunTogether(ctx, docs)
	if err != nil {
		code, err := heyNoReport(ctx, t.p, err)
		return nil, code, err
	}
	r := &heyResult{elapsed: time.Since(began), strict: t.p.Strict}
	if !t.p.Strict {
		r.elapsed = 0
	}
	for i, d := range ds {
		r.add(&of[i], d)
		writeHeyWarnings(t.p.Err, d)
	}
	if t.p.Strict { // reaching a limit did not end a run, despite its help
		r.elapsed = max(r.elapsed, length)
	}
	t.log.printf("%s elapsed since event generation completed", r.drained.Round(time.Microsecond))
	fmt.Fprintln(t.p.Out, r.text())
	return r, heyExit(t.p, worstOutcome(ds)), nil
}

// workload translates a stream to a workload.
func (t *heyAgents) workload(s *heyStream, length time.Duration, name string) *workload.Document {
	var d dropin.Draft
	d.Set("target", "-apm-url", t.target)
	d.Set("verbose", "hey-apm", "true")
	d.Set("gzip", "hey-apm", "1")
	d.Set("clients", "-instances", strconv.Itoa(t.instances))
	d.Set("spans", "-sx", heyRange(s.spans))
	d.Set("frames", "-ex", heyRange(s.frames))
	if s.spans[1] > 0 || s.name == "transactions" {
		d.Set("mix", "-t", "transaction=1")
	} else {
		d.Set("mix", "-e", "error=1")
	}
	each := s.each()
	together := maxEventsPerRequest
	if s.interval >= heyFastest {
		perS := float64(time.Second) / float64(s.interval) * float64(t.instances)
		d.SetRate(s.rateFlag(), perS*each)
		together = min(together, max(1, int(math.Round(perS/10/float64(t.instances)))))
	} else {
		d.Set("concurrency", "-instances", strconv.Itoa(t.instances))
	}
	if s.limit < math.MaxInt {
		count := int(math.Round(float64(s.limit) * float64(t.instances) * each))
		together = min(together, max(1, s.limit))
		d.AtMost(s.limitFlag, strconv.Itoa(count))
		if s.spans[0] != s.spans[1] {
			fmt.Fprintf(t.p.Err, "warning: with %d to %d spans, %s %d is %d events, and the number of transactions is approximate\n", s.spans[0], s.spans[1], s.limitFlag, s.limit, count)
		}
	}
	d.Set("events", "hey-apm", strconv.Itoa(together))
	if length > 0 { // otherwise until -t and -e are reached, or an interrupt
		d.Set("for", "-run", length.String())
	}
	d.Set("drain", "-flush", cmp.Or(t.flush, time.Hour).String()) // 0 meant no limit
	if t.seed != 0 {
		d.Set("seed", "-seed", strconv.FormatUint(uint64(t.seed), 10))
	}
	if t.indexURL != "" {
		d.Set("index", "-apm-es-url", t.indexURL)
		d.Set("index-pattern", "-apm-es-url", map[bool]string{true: "logs-apm*", false: "traces-apm*"}[s.name == "errors"]) // as in the tool
	}
	for _, r := range t.refs {
		d.Set(r.option, r.flag, r.text)
	}
	d.Set("label", "hey-apm", "events="+s.name)
	if name != "" {
		d.Set("label", "-bench", "bench="+name)
	}
	return &d.Document
}

// each is the mean number of events per transaction or error, including its spans.
func (s *heyStream) each() float64 { return 1 + float64(s.spans[0]+s.spans[1])/2 }

func (s *heyStream) rateFlag() string {
	if s.name == "errors" {
		return "-ef"
	}
	return "-tf"
}

// heyRange formats a range for an option.
func heyRange(r [2]int) string {
	if r[0] == r[1] {
		return strconv.Itoa(r[0])
	}
	return fmt.Sprintf("%d-%d", r[0], r[1])
}
