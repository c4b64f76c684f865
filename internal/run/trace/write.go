package trace

import (
	"strconv"
	"time"

	"carronade/load"
)

// write writes blocks until the channel is closed.
func (t *Trace) write() {
	defer close(t.done)
	tick := time.NewTicker(flushAfter / 4)
	defer tick.Stop()
	for {
		select {
		case b, ok := <-t.full:
			if !ok {
				t.flush()
				return
			}
			for i := range b.n {
				t.row(&b.rows[i])
			}
			b.n = 0
			t.free <- b // does not block: the channel has room for all blocks
		case <-tick.C:
			if time.Since(t.since) > max(flushAfter, time.Since(t.began)/flushShare) {
				t.flush()
			}
		}
	}
}

// row adds the rows of an outcome.
func (t *Trace) row(r *row) {
	if t.err != nil {
		t.lost += t.rowsOf(r)
		return
	}
	switch {
	case t.o.Every > 0:
		t.events(r)
	case r.batches == 1:
		t.put(r)
	default:
		for i := range r.batches {
			s := r.batch(i)
			t.put(&s)
		}
	}
}

// events adds the chosen events of a batch or a batch group.
func (t *Trace) events(r *row) {
	each := r.events / r.batches
	t.sampler.each(r.stream, r.index, r.events, func(k int32) {
		s := *r
		if r.batches > 1 {
			s = r.batch(k / each)
			k %= each
		}
		due := time.Duration(absent)
		if t.o.Due != nil && s.due >= 0 {
			due = s.due
			if s.dueLast != s.due {
				due = t.o.Due(s.stream, s.index+uint64(k))
			}
		}
		e := s.event(k, due)
		t.put(&e)
	})
}

// put adds one row.
func (t *Trace) put(r *row) {
	if t.err != nil { // the trace stopped within this batch group
		t.lost++
		return
	}
	key, log := t.keyOf(r), int32(absent)
	if t.o.Partition != nil {
		log = t.o.Partition(r.stream)
	}
	if t.o.Rows != nil {
		t.out = Row{
			Stream: r.stream, Event: r.index, Key: key, Phase: t.o.Phases[r.phase], Due: r.due, Sent: r.sent, Done: r.done, Requested: r.requested, Consumed: r.at,
			Partition: log, Offset: r.offset, Events: r.events, Bytes: r.bytes, Acked: r.acked, Class: r.class,
		}
		t.o.Rows(t.o.Started, &t.out)
		t.written++
		return
	}
	c := &t.cols
	c[colLane].put(int64(r.lane))
	c[colSequence].put(int64(r.seq))
	c[colAttempt].put(int64(r.attempt))
	c[colStream].put(int64(r.stream))
	c[colEvent].put(int64(r.index))
	c[colKey].text(key)
	c[colPhase].word(r.phase)
	c[colDue].putIf(int64(r.due))
	c[colDueLast].putIf(int64(r.dueLast))
	c[colSent].putIf(int64(r.sent))
	c[colDone].put(int64(r.done))
	c[colRequested].putIf(int64(r.requested))
	c[colConsumed].putIf(int64(r.at))
	c[colPartition].putIf(int64(log))
	c[colLogOffset].putIf(r.offset)
	c[colEvents].put(int64(r.events))
	c[colBytes].put(r.bytes)
	c[colWire].put(r.wire)
	c[colAcked].put(int64(r.acked))
	c[colFailed].put(int64(r.failed))
	c[colUnknown].put(int64(r.unknown()))
	c[colOutcome].word(r.outcome())
	if r.class == load.OK {
		c[colClass].word(absent)
	} else {
		c[colClass].word(int32(r.class))
	}
	if r.status == 0 {
		c[colStatus].putIf(absent)
	} else {
		c[colStatus].putIf(int64(r.status))
	}
	c[colRetries].put(int64(r.retries))
	t.rows++
	if c[colLane].rows == t.sizes.page {
		t.endPages()
	}
	if t.rows == t.sizes.group {
		t.flush()
	}
}

// keyOf is the key of a row of one event, nil if it is unknown.
func (t *Trace) keyOf(r *row) []byte {
	if t.o.Key == nil || r.events != 1 {
		return nil
	}
	key, ok := t.o.Key(t.key[:0], r.stream, r.index)
	t.key = key
	if !ok {
		return nil
	}
	return key
}

// endPages ends the pages of all columns.
func (t *Trace) endPages() {
	for _, c := range t.cols {
		c.page(&t.pages)
	}
}

// flush writes the rows so far as a row group.
func (t *Trace) flush() {
	t.since = time.Now()
	if t.rows == 0 || t.err != nil {
		return
	}
	t.endPages()
	if at := t.started.Swap(0); at != 0 {
		t.file.about = append(t.file.about, keyValue{startedMonotonic, strconv.FormatInt(at, 10)})
	}
	if err := t.file.add(t.cols[:], t.rows); err != nil {
		t.stop(err)
		return
	}
	t.written += uint64(t.rows)
	t.rows = 0
	for _, c := range t.cols {
		c.clear()
	}
}

// stop permanently ends writing, for example on a full disk. The run continues.
func (t *Trace) stop(err error) {
	t.err = t.writeError(err)
	t.lost += uint64(t.rows)
	t.rows = 0
	for _, c := range t.cols {
		*c = *newColumn(c.def, c.words) // releases the memory
	}
}
