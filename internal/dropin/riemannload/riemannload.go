// Package riemannload is the drop-in for riemann-load: its flags, its console, and the files
// of its metrics.
package riemannload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
)

// Tool is riemann-load, the load tool of 2013: its flags, the console block and the
// CSV rows that its metrics library wrote every second, and the four graphs drawn from
// them. The last console block and the last row of each file have the counts of the
// report. Facts about the tool come from its source (mgodave/riemann-client, load-test)
// and from that of its metrics library (Yammer Metrics 2).
var Tool = dropin.Tool{
	Name: "riemann-load", Short: "Riemann: events as fast as the server takes them (2013)", Kind: "riemann",
	Main: runRiemann,
}

const riemannDiffers = `
Here "mean rate" and "rtt" are those of the last second (--strict: since the
start), and the last block is of the whole run. Rates of 1, 5 and 15 minutes are
the means of those minutes, percentiles are of all samples, -n and -s are
ignored, and the graphs are drawn at the end. Reports go to a folder in the
current one. See docs/coming-from/riemann-load.md.
`

func runRiemann(ctx context.Context, p *dropin.Program) (int, error) {
	if p.Generation != "" && p.Generation != "2013" {
		return 1, fmt.Errorf("--generation %s: riemann-load has 2013 only", p.Generation)
	}
	if slices.Contains(p.Args, "--help") || slices.Contains(p.Args, "-h") {
		fmt.Fprintf(p.Out, "%s\n%s%s", riemannUsage, dropin.CommonHelp, riemannDiffers)
		return 0, nil
	}
	o, err := parseRiemann(p.Args)
	var (
		bad    riemannUnparsed
		thrown *dropin.Exception
	)
	switch {
	case errors.As(err, &bad):
		fmt.Fprint(p.Out, riemannUsage)
		fmt.Fprintf(p.Err, "%s\n", bad)
		if p.Strict { // the tool exited with 0 after its help
			return 0, nil
		}
		return 1, nil
	case errors.As(err, &thrown):
		fmt.Fprintln(p.Err, thrown)
		return 1, nil
	}
	o.warn(p)
	dir := filepath.Join(o.reports, strconv.FormatInt(time.Now().UnixNano(), 10))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 1, fmt.Errorf("-r %s: %w", o.reports, err)
	}
	fmt.Fprintf(p.Err, "Reports will be placed at %s\n", dir)
	m := newRiemannMetrics(&o, p.Strict)
	files := newRiemannFiles(dir)
	var drawn riemannCurves
	d, err := p.Run(ctx, o.workload(p.Strict), dropin.Observer{
		Opened: func() {}, // prints nothing; the run continues until an interrupt
		Interval: func(s load.Snapshot) {
			if !m.add(&s) {
				return
			}
			if s.Interval.Length() >= minStretch { // a shorter remainder is in the block at the end
				fmt.Fprint(p.Out, m.block(time.Now()))
				if s.Phase != measure.Drain {
					drawn.add(m)
				}
			}
			files.row(m)
		},
	})
	if err != nil {
		files.close()
		_ = os.Remove(dir) // succeeds only if nothing was written
		code := host.ExitFailed
		if p.Strict { // Java's exit code after an exception
			code = 1
		}
		return dropin.NoReport(ctx, code, err)
	}
	if !p.Strict {
		dropin.WriteWarnings(p.Err, d)
		m.end(d)
		fmt.Fprint(p.Out, m.block(time.Now()))
		for _, f := range d.Failures {
			fmt.Fprintf(p.Err, "%d messages were not acked: %s: %s\n", f.Batches, f.Class, f.Text)
		}
	}
	code := riemannExit(d, p.Strict)
	if err := errors.Join(files.close(), drawRiemann(dir, drawn)); err != nil {
		fmt.Fprintf(p.Err, "the reports are incomplete: %v\n", err)
		if !p.Strict && code != host.ExitInterrupted {
			code = host.ExitFailed
		}
	}
	return code, nil
}

// riemannExit is the exit code of a run. An interrupted Java program exits with 130, as
// carronade does.
func riemannExit(d *report.Document, strict bool) int {
	code := d.ExitCode()
	if strict && code != host.ExitInterrupted {
		return 0
	}
	return code
}

// warn names the flags that are ignored.
func (o *riemannOptions) warn(p *dropin.Program) {
	if o.netty != "" {
		fmt.Fprintf(p.Err, "warning: -n %s is ignored: each connection has a separate reader\n", o.netty)
	}
	if o.buffer != "" {
		fmt.Fprintf(p.Err, "warning: -s %s is ignored, as riemann-load itself never used it; carronade run --send-buffer sets the size of socket buffers\n", o.buffer)
	}
	for _, a := range o.furtherAddrs {
		fmt.Fprintf(p.Err, "warning: %s is ignored: only one address is used, %s\n", a, o.addr)
	}
}

// The limit of what a connection has in flight. The tool had none: it sent as long
// as the network accepted data. The limit is about the number of bytes between the
// tool's client and server, as in the published run with its 15,000 unacknowledged
// messages.
const (
	unackedBytes     = 16384 * singleEventBytes
	singleEventBytes = 22 // bytes of a message of one event, with its length
	eventBytes       = 18 // of each event in a message
	minUnacked       = 50 // writes that the tool's client queued
)

// workload translates the options to a workload.
func (o *riemannOptions) workload(strict bool) *workload.Document {
	var d dropin.Draft
	d.Set("target", "HOST:PORT", "riemann://"+o.addr)
	clients := o.connections
	if strict { // its pool reused the connection returned last
		clients = min(clients, o.workers)
	}
	d.Set("clients", "-c", strconv.Itoa(clients))
	d.Set("threads", "-w", strconv.Itoa(min(o.workers, clients)))
	d.Set("batch-events", "-b", strconv.Itoa(o.batch))
	d.Set("max-in-flight", "-b", strconv.Itoa(max(1, max(minUnacked, unackedBytes/(singleEventBytes-eventBytes+eventBytes*o.batch))/clients)))
	d.Set("interval", "riemann-load", "1s")
	for _, f := range [][2]string{
		{"service", "load-test"},
		{"host", "none"},
		{"state", "none"},
		{"description", "none"},
		{"tag", "none"},
		{"ttl", "none"},
		{"time", "none"},
		{"metric", "1"},
		{"metric-type", "float"},
	} {
		d.Set(f[0], "riemann-load", f[1])
	}
	return &d.Document
}
