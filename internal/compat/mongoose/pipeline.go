package mongoose

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/compat"
	"carronade/internal/host"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
)

// fitsPipeline returns an error if a pipeline of these loads cannot run: it must write records
// and then read them.
func (l *loads) fitsPipeline() error {
	if len(l.parts) != 2 || l.parts[0].work != writeRecords || l.parts[1].work != readRecords {
		return errors.New("a " + pipelineLoad + " of records creates and then reads them")
	}
	if _, err := l.parts[0].v.duration("item-output-delay"); err != nil {
		return errors.New(inScenario(err.Error()))
	}
	return nil
}

// pipeline is the workload of a pipeline.
func (l *loads) pipeline() *workload.Document {
	create, read := l.parts[0].step, l.parts[1].step
	var d compat.Draft
	d.Document = *create.workload(true)
	// The client engine does not say where records are; this one sends the same at once.
	d.Entries = slices.DeleteFunc(d.Entries, func(e workload.Entry) bool { return e.Name == "engine" })
	d.Set("op", "--load-op-type", workload.Pipeline)
	if delay, _ := create.v.duration("item-output-delay"); delay > 0 { // checked
		d.Set("read-delay", "--item-output-delay", millis(delay))
	}
	if create.v.has("item-output-queue-limit") {
		d.Set("read-queue", "--item-output-queue-limit", create.v.text("item-output-queue-limit"))
	}
	if n := read.concurrency; n > 0 {
		d.Set("read-in-flight", "--storage-driver-limit-concurrency", strconv.Itoa(n))
	} else {
		d.Set("read-in-flight", "--storage-driver-limit-concurrency", "1M")
	}
	if !slices.Equal(create.brokers, read.brokers) || create.topic != read.topic {
		d.Setf("read-from", "--storage-net-node-addrs", "kafka://%s/%s", strings.Join(read.brokers, ","), read.topic)
	}
	if read.v.flag("item-data-verify") {
		d.Set("decode", "--item-data-verify", "true")
		d.Set("check-values", "--item-data-verify", create.check())
	}
	return &d.Document
}

// runPipeline runs a pipeline, with rows and results of both operations.
func (r *runner) runPipeline(ctx context.Context, l *loads) (int, error) {
	p := r.program
	create, read := *l.parts[0].step, *l.parts[1].step                                  // a pipeline has the id of the first
	read.id, read.period, read.headerEach = create.id, create.period, create.headerEach // one table
	create.trace = create.trace || read.v.flag("output-metrics-trace-persist")
	f, t, err := create.outputs(p, r.args, r.again(create.id))
	if err != nil {
		return host.ExitFailed, err
	}
	watched, watchedBack := apiOf(ctx).watch(&create), apiOf(ctx).watch(&read)
	defer watched.end()
	defer watchedBack.end()
	m, back := newMeter(&create), newMeter(&read)
	var tr *translation
	observer := compat.Observer{Interval: func(iv load.Snapshot) {
		m.interval(iv)
		n := iv.Interval.Consumed
		back.count(n, 0, n*(m.bytes/max(m.succ, 1)), iv.Interval.Length(), 0)
		back.at = m.at
		watched.look(m)
		watchedBack.look(back)
		if iv.Phase != measure.Drain && m.rows(t, f) || iv.Phase == measure.Drain && back.due() { // reading goes on after writing
			reads := back.metrics(time.Now())
			tr.read.times(reads)
			t.rowOf(&read, reads)
			f.rowOf(&read, reads)
		}
	}}
	tr = create.translation(f, create.namer(), &read, &observer)
	d, err := p.Run(ctx, l.pipeline(), observer)
	written := tr.end()
	if err != nil {
		return compat.NoReport(ctx, host.ExitFailed, err)
	}
	f.keepError(written)
	last := m.last(d)
	watched.show(last)
	create.end(p, f, t, last)
	if written == nil {
		reads := back.metrics(last.at)
		reads.succ, reads.bytes = tr.read.count, tr.read.bytes
		tr.read.times(reads)
		read.rates(reads)
		watchedBack.show(reads)
		t.rowOf(&read, reads)
		read.summary(p.Out, reads)
		f.totalOf(&read, reads)
	}
	printWarnings(p, d)
	return f.exit(p, create.withFailures(d.ExitCode(), last.fail)), nil
}
