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
)

// test is the shell's command of that name, for a server that runs: so many
// callers, each of which sends its next request when the last is answered.
//
//	test <duration> <events> <spans> <frames> <concurrency>
func (t *oneShot) test(ctx context.Context, args []string) (int, error) {
	w, length, err := parseTest(args)
	if err != nil {
		return 1, err
	}
	base := t.bases.list[0]
	if len(t.bases.list) > 1 {
		return 1, fmt.Errorf("test has one server, and there are %d -base-url", len(t.bases.list))
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
	began := time.Now()
	d, err := t.p.Fire(ctx, doc, compat.Eyes{Opened: func() {}})
	if err != nil {
		if ctx.Err() != nil {
			fmt.Fprintln(t.p.Out, "work cancelled")
			return t.code(report.ExitInterrupted), nil //nolint:nilerr // it was interrupted, which is no error
		}
		return 1, err
	}
	elapsed := d.Totals.ElapsedS
	if t.p.Strict {
		elapsed = time.Since(began).Seconds()
	}
	fmt.Fprint(t.p.Out, tested(args, w.url, d, elapsed, t.p.Strict))
	compat.Doubts(t.p.Err, d)
	return t.code(d.ExitCode()), nil
}

const testForm = "test <duration> <events> <spans> <frames> <concurrency>"

func parseTest(args []string) (*work, time.Duration, error) {
	if len(args) > 5 {
		return nil, 0, fmt.Errorf("%s: flags for the server, such as %s, are not taken, as no server is started; carronade run --system-cmd does", testForm, args[5])
	}
	if len(args) < 5 {
		return nil, 0, fmt.Errorf("%s: it has %d arguments", testForm, len(args))
	}
	length, err := time.ParseDuration(args[0])
	if err != nil || length <= 0 {
		return nil, 0, fmt.Errorf("%s: %q is no duration", testForm, args[0])
	}
	var n [4]int
	for i, text := range args[1:] {
		if n[i], err = strconv.Atoi(text); err != nil || n[i] < 0 {
			return nil, 0, fmt.Errorf("%s: %q is no number", testForm, text)
		}
	}
	// The tool's composer always wrote the first of each.
	w := &work{part: part{path: v1Transactions, intake: "v1", events: max(n[0], 1), spans: n[1], frames: max(n[2], 1), callers: n[3]}}
	if w.spans == 0 {
		w.path = v1Errors
	}
	if w.callers < 1 {
		return nil, 0, fmt.Errorf("%s: %d callers send nothing", testForm, w.callers)
	}
	return w, length, nil
}

// tested is the tool's report of a test: volumes before compression, the table
// of responses, and how long a request took. The tool had 1000/rate there, which
// is as many times too short as there are callers.
func tested(args []string, url string, d *report.Document, elapsed float64, strict bool) string {
	var b strings.Builder
	t := &d.Totals
	perS := func(n uint64) float64 {
		if elapsed <= 0 {
			return 0
		}
		return float64(n) / elapsed
	}
	fmt.Fprintf(&b, "on branch unknown , cmd = %v\n\n", args)
	fmt.Fprintf(&b, "pushed %s / sec , accepted %s / sec\n", decimal(perS(t.Bytes)), decimal(perS(t.AckedBytes)))
	b.WriteString(responses(url, 0, d, elapsed))
	b.WriteString("\n")
	var accepted uint64
	for _, s := range t.Statuses {
		if s.Code == http.StatusAccepted {
			accepted += s.Shots
		}
	}
	ms := 0.0
	if d.Service != nil {
		ms = d.Service.Mean / 1e3
	}
	if rate := perS(accepted); strict && rate > 0 {
		ms = 1000 / rate
	}
	fmt.Fprintf(&b, "%.2f ms / request\n", ms)
	return b.String()
}

// decimal is a number of bytes as the tool has it: powers of ten, and a small b.
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
