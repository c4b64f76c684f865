package mongoose

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
)

// fitsPipeline returns an error if a pipeline of these loads cannot run: it must write records,
// and then read or delete them, or both.
func (l *loads) fitsPipeline() error {
	flow := l.beforeDeletion().parts
	if len(flow) > 2 || len(l.parts) < 2 || flow[0].work != writeRecords || len(flow) == 2 && flow[1].work != readRecords {
		return errors.New("a " + pipelineLoad + " of records creates, and then reads them, deletes them, or both")
	}
	if _, err := l.parts[0].v.duration("item-output-delay"); err != nil {
		return errors.New(inScenario(err.Error()))
	}
	return nil
}

// beforeDeletion is a pipeline without a last context that deletes records. Kafka removes the records of a log only
// from its beginning, so they are deleted when all are written and read.
func (l *loads) beforeDeletion() *loads {
	last := len(l.parts) - 1
	if last == 0 || l.parts[last].topicOp != "delete-records" {
		return l
	}
	flow := *l
	flow.parts = l.parts[:last]
	return &flow
}

// runWithDeletion runs a pipeline, and then what deletes its records.
func (r *runner) runWithDeletion(ctx context.Context, l *loads) (code int, err error) {
	flow := l.beforeDeletion()
	if len(flow.parts) > 1 {
		code, err = r.runPipeline(ctx, flow)
	} else {
		code, err = flow.parts[0].fire(ctx, r.program, r.args, r.again(flow.parts[0].id), time.Now())
	}
	if len(flow.parts) == len(l.parts) || err != nil || ctx.Err() != nil {
		return code, err
	}
	deletion := *l.parts[len(flow.parts)].step
	deletion.id = flow.parts[0].id
	deleted, err := deletion.fire(ctx, r.program, r.args, true, time.Now())
	return host.WorseExit(code, deleted), err
}

// pipeline is the workload of a pipeline.
func (l *loads) pipeline() *workload.Document {
	if len(l.parts) == 1 { // what follows deletes its records
		return l.parts[0].workload(false)
	}
	create, read := l.parts[0].step, l.parts[1].step
	var d dropin.Draft
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
	observer := dropin.Observer{Interval: func(iv load.Snapshot) {
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
		return dropin.NoReport(ctx, host.ExitFailed, err)
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
