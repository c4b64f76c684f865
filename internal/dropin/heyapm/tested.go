package heyapm

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/place"
	"carronade/internal/report"
	"carronade/load"
)

// test is the shell's command of that name, for a running server. It keeps the
// given number of requests in flight, and sends each once the one before it is
// answered.
//
//	test <duration> <events> <spans> <frames> <concurrency>
func (t *heyLegacy) test(ctx context.Context, args []string) (int, error) {
	w, length, err := parseHeyTest(args)
	if err != nil {
		return 1, err
	}
	if err := t.serverFlags(args[5:]); err != nil {
		return 1, err
	}
	args = args[:5]
	for _, f := range []struct {
		given bool
		name  string
	}{{t.describe, "describe"}, {t.dump, "dump"}, {t.shell, "server"}} {
		if f.given {
			return 1, fmt.Errorf("-%s and test: give one of them", f.name)
		}
	}
	for _, name := range []string{"profile", "run"} {
		if t.given[name] {
			fmt.Fprintf(t.p.Err, "warning: -%s has no effect with test, whose arguments set the load and the duration\n", name)
		}
	}
	t.warnAuthWithoutURL()
	if !t.headersValid() {
		return 1, nil
	}
	base := t.bases.list[0]
	if len(t.bases.list) > 1 {
		return 1, fmt.Errorf("test takes one server, but there are %d -base-url", len(t.bases.list))
	}
	if w.target, err = apmTarget(base); err != nil {
		return 1, fmt.Errorf("-base-url: %w", err)
	}
	w.url = strings.TrimRight(base, "/") + "/" + w.path
	t.run, t.profile = length, "test"
	doc := t.workload(w, t.headersByReference())
	t.underTest(doc)
	began := time.Now()
	var kept dropin.Kept
	started := func(facts map[string]any) { // which intake the server has, and so the size, is known only now
		size, _ := requestOf(facts)["bytes"].(float64)
		fmt.Fprintf(t.p.Out, "started new work, payload size is %s...\n", decimalBytes(size))
	}
	d, err := t.p.Run(ctx, doc, dropin.Observer{Found: started, Opened: func() {}, Kept: func(k dropin.Kept) { kept = k }})
	if err != nil {
		if ctx.Err() != nil {
			fmt.Fprint(t.p.Out, heyCancelled)
		}
		return heyNoReport(ctx, t.p, err)
	}
	if acceptedOf(d) == 0 && d.Stopped == load.Interrupted {
		fmt.Fprint(t.p.Out, heyCancelled)
		return heyExit(t.p, heyOutcome(d)), nil
	}
	v := heyVolumesOf(d)
	if t.p.Strict {
		v = heyStrictVolumes(d, time.Since(began).Seconds())
	}
	if path, ok := requestOf(d.Facts)["path"].(string); ok {
		w.url = heyURL(base, path)
	}
	fmt.Fprint(t.p.Out, heyTestReport(args, w.url, d, v))
	if acceptedOf(d) == 0 {
		fmt.Fprintf(t.p.Out, "not saving this report: no accepted requests\n")
	} else {
		fmt.Fprint(t.p.Out, heyKeptLines(kept))
	}
	writeHeyWarnings(t.p.Err, d)
	return heyExit(t.p, heyOutcome(d)), nil
}

// requestOf are the facts of a run's requests.
func requestOf(facts map[string]any) map[string]any {
	request, _ := facts["request"].(map[string]any)
	return request
}

// heyURL is the URL of a path on the server of a base URL.
func heyURL(base, path string) string {
	u, err := url.Parse(base)
	if err != nil {
		return path
	}
	return u.Scheme + "://" + u.Host + path
}

// heyCancelled is what the tool prints if a test was cancelled.
const heyCancelled = "work cancelled\nnot saving this report: work cancelled\n"

// heyTestTimeout is the timeout of a request of test, where profiles have 3 s.
const heyTestTimeout = 30 * time.Second

const heyTestForm = "test <duration> <events> <spans> <frames> <concurrency>"

func parseHeyTest(args []string) (*heyWork, time.Duration, error) {
	if len(args) < 5 {
		return nil, 0, fmt.Errorf("%s: got %d arguments", heyTestForm, len(args))
	}
	length, err := time.ParseDuration(args[0])
	if err != nil || length <= 0 {
		return nil, 0, fmt.Errorf("%s: %q is not a duration", heyTestForm, args[0])
	}
	var n [4]int
	for i, text := range args[1:5] {
		if n[i], err = strconv.Atoi(text); err != nil || n[i] < 0 {
			return nil, 0, fmt.Errorf("%s: %q is not a number", heyTestForm, text)
		}
	}
	// The tool's composer always wrote at least one event and one frame.
	w := &heyWork{heyPart: heyPart{path: v1Transactions, intake: "auto", events: max(n[0], 1), spans: n[1], frames: max(n[2], 1), concurrency: n[3]}, sized: true}
	if w.spans == 0 {
		w.path = v1Errors
	}
	if w.concurrency < 1 {
		return nil, 0, fmt.Errorf("%s: concurrency %d sends nothing", heyTestForm, w.concurrency)
	}
	return w, length, nil
}

// heyVolumes are the numbers in a test's lines.
type heyVolumes struct {
	answers          float64 // requests/s
	pushed, accepted float64 // bytes/s before compression
	ms               float64 // per request

	elapsed float64 // s, until everything had stopped; 0: without --strict
}

// heyVolumesOf are the volumes during sending, over that time. They do not include the
// answers after it. The time per request is the service time.
func heyVolumesOf(d *report.Document) heyVolumes {
	t := &d.Totals
	v := heyVolumes{answers: t.AnswersPerS, accepted: t.BytesPerS, pushed: t.BytesPerS}
	accepted := 0.0 // requests/s
	if t.Acked > 0 {
		accepted = t.EventsPerS * float64(acceptedOf(d)) / float64(t.Acked)
	}
	if t.Batches > 0 {
		v.pushed += max(t.AnswersPerS-accepted, 0) * float64(t.Bytes) / float64(t.Batches)
	}
	if d.Service != nil {
		v.ms = d.Service.Mean / 1e3
	}
	return v
}

// heyStrictVolumes are computed as in the tool: over the time until everything had
// stopped, with 1000/rate as the time per request. That is too short by a factor of
// the concurrency.
func heyStrictVolumes(d *report.Document, elapsed float64) heyVolumes {
	v := heyVolumes{
		elapsed: elapsed, answers: dropin.PerSecond(float64(answersOf(d)), elapsed), pushed: dropin.PerSecond(float64(d.Totals.Bytes), elapsed), accepted: dropin.PerSecond(float64(d.Totals.AckedBytes), elapsed),
	}
	if rate := dropin.PerSecond(float64(acceptedOf(d)), elapsed); rate > 0 {
		v.ms = 1000 / rate
	}
	return v
}

// acceptedOf is the number of requests that were answered with 202.
func acceptedOf(d *report.Document) (n uint64) {
	for _, s := range d.Totals.Statuses {
		if s.Code == http.StatusAccepted {
			n += s.Batches
		}
	}
	return n
}

// heyTestReport is the tool's report of a test: volumes, the table of responses, the time
// per request and, if wanted, the documents in Elasticsearch and the server's
// memory.
func heyTestReport(args []string, url string, d *report.Document, v heyVolumes) string {
	var b strings.Builder
	fmt.Fprintf(&b, "on branch %s , cmd = %v\n\n", branchOf(d.System), args)
	fmt.Fprintf(&b, "pushed %s / sec , accepted %s / sec\n", decimalBytes(v.pushed), decimalBytes(v.accepted))
	b.WriteString(heyResponses(url, 0, d, v.answers))
	b.WriteString("\n")
	strict := v.elapsed > 0
	if d.Indexed != nil {
		b.WriteString(indexedLine(d.Indexed, strict, v.elapsed))
	}
	fmt.Fprintf(&b, "%.2f ms / request\n", v.ms)
	b.WriteString(memoryLines(d.System, strict, v.accepted))
	return b.String()
}

// heyKeptLines are the tool's last lines, about the report. The tool knew only
// Elasticsearch.
func heyKeptLines(k dropin.Kept) string {
	switch {
	case k.Place == "":
		return fmt.Sprintf("not saving this report: %s\n", k.Why)
	case inElasticsearch(k.Place):
		return "saving report\nreport indexed in elasticsearch\n"
	}
	return fmt.Sprintf("saving report\nreport %s saved in %s\n", k.ID, k.Place)
}

// inElasticsearch reports whether a report is in a store in Elasticsearch, and not in a
// file whose name begins with that word.
func inElasticsearch(text string) bool {
	p, err := place.Store(text)
	return err == nil && p.Kind == place.Cluster
}

// decimalBytes formats a number of bytes as the tool does: with powers of ten and a
// small b.
func decimalBytes(n float64) string {
	if n < 1000 {
		return fmt.Sprintf("%d b", int64(n))
	}
	i := -1
	for ; n >= 1000 && i < len("kMGTPE")-1; i++ {
		n /= 1000
	}
	return fmt.Sprintf("%.1f%cb", n, "kMGTPE"[i])
}
