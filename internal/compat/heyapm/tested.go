package heyapm

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"carronade/internal/compat"
	"carronade/internal/report"
	"carronade/internal/system"
)

// test is the shell's command of that name, for a running server. It keeps the
// given number of requests in flight, and sends each once the one before it is
// answered.
//
//	test <duration> <events> <spans> <frames> <concurrency>
func (t *legacyRun) test(ctx context.Context, args []string, given map[string]bool) (int, error) {
	w, length, err := parseTest(args)
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
		if given[name] {
			fmt.Fprintf(t.p.Err, "warning: -%s has no effect with test, whose arguments set the load and the duration\n", name)
		}
	}
	warnAuthWithoutURL(t.p.Err, given)
	if !t.headersValid() {
		return 1, nil
	}
	base := t.bases.list[0]
	if len(t.bases.list) > 1 {
		return 1, fmt.Errorf("test takes one server, but there are %d -base-url", len(t.bases.list))
	}
	if w.target, err = targetOf(base); err != nil {
		return 1, fmt.Errorf("-base-url: %w", err)
	}
	w.url = strings.TrimRight(base, "/") + "/" + w.path
	plain, _, _, err := w.body()
	if err != nil {
		return 1, err
	}
	fmt.Fprintf(t.p.Out, "started new work, payload size is %s...\n", decimal(float64(len(plain))))
	t.run, t.profile = length, "test"
	doc := t.workload(w, t.headersByReference())
	t.underTest(doc)
	began := time.Now()
	var kept compat.Kept
	d, err := t.p.Run(ctx, doc, compat.Observer{Opened: func() {}, Kept: func(k compat.Kept) { kept = k }})
	if err != nil {
		if ctx.Err() != nil {
			fmt.Fprint(t.p.Out, "work cancelled\nnot saving this report: work cancelled\n")
			return exit(t.p, system.ExitInterrupted), nil //nolint:nilerr // an interrupt is not an error
		}
		return notStarted(t.p.Strict), err
	}
	v := volumesOf(d)
	if t.p.Strict {
		v = strictVolumes(d, time.Since(began).Seconds())
	}
	fmt.Fprint(t.p.Out, testReport(args, w.url, d, v), keptLines(kept))
	writeWarnings(t.p.Err, d)
	return exit(t.p, outcome(d)), nil
}

const testForm = "test <duration> <events> <spans> <frames> <concurrency>"

func parseTest(args []string) (*work, time.Duration, error) {
	if len(args) < 5 {
		return nil, 0, fmt.Errorf("%s: got %d arguments", testForm, len(args))
	}
	length, err := time.ParseDuration(args[0])
	if err != nil || length <= 0 {
		return nil, 0, fmt.Errorf("%s: %q is not a duration", testForm, args[0])
	}
	var n [4]int
	for i, text := range args[1:5] {
		if n[i], err = strconv.Atoi(text); err != nil || n[i] < 0 {
			return nil, 0, fmt.Errorf("%s: %q is not a number", testForm, text)
		}
	}
	// The tool's composer always wrote at least one event and one frame.
	w := &work{part: part{path: v1Transactions, intake: "v1", events: max(n[0], 1), spans: n[1], frames: max(n[2], 1), concurrency: n[3]}}
	if w.spans == 0 {
		w.path = v1Errors
	}
	if w.concurrency < 1 {
		return nil, 0, fmt.Errorf("%s: concurrency %d sends nothing", testForm, w.concurrency)
	}
	return w, length, nil
}

// volumes are the numbers in a test's lines.
type volumes struct {
	answers          float64 // requests/s
	pushed, accepted float64 // bytes/s before compression
	ms               float64 // per request

	elapsed float64 // s, until everything had stopped; 0: without --strict
}

// volumesOf are the volumes during sending, over that time. They do not include the
// answers after it. The time per request is the service time.
func volumesOf(d *report.Document) volumes {
	t := &d.Totals
	v := volumes{answers: t.AnswersPerS, accepted: t.BytesPerS, pushed: t.BytesPerS}
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

// strictVolumes are computed as in the tool: over the time until everything had
// stopped, with 1000/rate as the time per request. That is too short by a factor of
// the concurrency.
func strictVolumes(d *report.Document, elapsed float64) volumes {
	v := volumes{
		elapsed: elapsed, answers: rateOf(answers(d), elapsed), pushed: rateOf(d.Totals.Bytes, elapsed), accepted: rateOf(d.Totals.AckedBytes, elapsed),
	}
	if rate := rateOf(acceptedOf(d), elapsed); rate > 0 {
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

// testReport is the tool's report of a test: volumes, the table of responses, the time
// per request and, if wanted, the documents in Elasticsearch and the server's
// memory.
func testReport(args []string, url string, d *report.Document, v volumes) string {
	var b strings.Builder
	fmt.Fprintf(&b, "on branch %s , cmd = %v\n\n", branchOf(d.System), args)
	fmt.Fprintf(&b, "pushed %s / sec , accepted %s / sec\n", decimal(v.pushed), decimal(v.accepted))
	b.WriteString(responses(url, 0, d, v.answers))
	b.WriteString("\n")
	strict := v.elapsed > 0
	if d.Indexed != nil {
		b.WriteString(indexedLine(d.Indexed, strict, v.elapsed))
	}
	fmt.Fprintf(&b, "%.2f ms / request\n", v.ms)
	b.WriteString(memoryLines(d.System, strict, v.accepted))
	return b.String()
}

// keptLines are the tool's last lines, about the report. The tool knew only
// Elasticsearch.
func keptLines(k compat.Kept) string {
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
func inElasticsearch(place string) bool {
	scheme, _, ok := strings.Cut(place, "://")
	return ok && (scheme == elasticScheme || scheme == elasticScheme+"+https")
}

// decimal formats a number of bytes as the tool does: with powers of ten and a
// small b.
func decimal(n float64) string {
	if n < 1000 {
		return fmt.Sprintf("%d b", int64(n))
	}
	i := -1
	for ; n >= 1000 && i < len("kMGTPE")-1; i++ {
		n /= 1000
	}
	return fmt.Sprintf("%.1f%cb", n, "kMGTPE"[i])
}
