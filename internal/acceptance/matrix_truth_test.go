package acceptance

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
)

// This file finds out what the times of a run really were, from two sides that
// share one clock: the generator's trace (when a batch was due and sent) and the
// stand-in's record (when it had the batch, and when it wrote the answer).
//
// What is true, where the stand-in answers each request by itself after a fixed
// delay and the in-flight bound is wider than anything the run reaches:
//
//   - The service time of a batch is answered - sent. What comes after the answer
//     was written is the generator's: it was not there to read it. What lies
//     between *sent* and the arrival is the generator's too as soon as it is more
//     than a transit takes, since the stand-in reads at all times: the generator
//     noted *sent* and did not run before it wrote. It is the system's where the
//     system was stopped.
//   - The response time of an event, had the generator been prompt, is the service
//     time of its batch: without linger a batch is ready when its first event is
//     due (batching is 0), and under so wide a bound nothing queues. That holds for
//     the burst after a freeze, too: each of its requests is answered after the
//     same delay, and would have been, had it been sent when it was due.
//   - Where the *system* was stopped the generator is prompt by assumption, and
//     whatever kept it from sending was the system: the response time is
//     answered - due.
//   - End to end, the system's part ends when the answer to the fetch that carries
//     the event is written. A prompt consumer asks again at once. Where the
//     generator asked later than that, an event that was waiting would have been
//     served at once or one round of fetching later: both are kept, as an interval.
//   - Without a schedule (closed loop, full speed) the generator's own lateness
//     changes what is sent, and not how long it takes: service times are judged.
//
// A write is not an instant: the other side may have the answer when the call
// begins, or when it returns. So each truth is an interval, some microseconds wide
// as a rule.

const (
	transit  = int64(100 * time.Microsecond) // from sent to arrived, when nobody is late
	lateness = int64(time.Millisecond)       // from due to sent, when nobody is late
	askGap   = int64(time.Millisecond)       // from an answer to the next fetch, when nobody is late
	never    = int64(math.MinInt64)
)

// A batch is a row of the trace; times are the machine's monotonic clock.
type batch struct {
	lane, sequence, partition, offset, events int64
	due, dueLast, sent, done, consumed        int64
}

// readTrace reads the rows that were acked whole.
func readTrace(path string) ([]batch, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return nil, err
	}
	text, ok := file.Lookup("carronade.started_monotonic_ns")
	if !ok {
		return nil, errors.New("the trace does not say when its run began")
	}
	began, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, err
	}
	type row struct {
		Lane      int64  `parquet:"lane"`
		Sequence  int64  `parquet:"sequence"`
		Due       *int64 `parquet:"due_ns,optional"`
		DueLast   *int64 `parquet:"due_last_ns,optional"`
		Sent      *int64 `parquet:"sent_ns,optional"`
		Done      int64  `parquet:"done_ns"`
		Consumed  *int64 `parquet:"consumed_ns,optional"`
		Partition *int64 `parquet:"partition,optional"`
		Offset    *int64 `parquet:"log_offset,optional"`
		Events    int64  `parquet:"events"`
		Acked     int64  `parquet:"acked"`
	}
	rows, err := parquet.Read[row](f, info.Size())
	if err != nil {
		return nil, err
	}
	at := func(p *int64) int64 {
		if p == nil {
			return never
		}
		return began + *p
	}
	plain := func(p *int64) int64 {
		if p == nil {
			return -1
		}
		return *p
	}
	var out []batch
	for _, r := range rows {
		if r.Acked != r.Events || r.Sent == nil {
			continue
		}
		out = append(out, batch{
			lane: r.Lane, sequence: r.Sequence, partition: plain(r.Partition), offset: plain(r.Offset), events: r.Events,
			due: at(r.Due), dueLast: at(r.DueLast), sent: at(r.Sent), done: at(&r.Done), consumed: at(r.Consumed),
		})
	}
	return out, nil
}

// A served is a row of a stand-in's record.
type served struct {
	connection, kind          string
	partition, offset, events int64
	arrived, writing, ended   int64 // never: not answered
}

// readRecord reads a record, in the order of each connection.
func readRecord(path string) ([]served, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.ReuseRecord = true
	lines, err := r.Read()
	if err != nil {
		return nil, err
	}
	column := map[string]int{}
	for i, name := range lines {
		column[name] = i
	}
	type sequenced struct {
		served
		sequence int64
	}
	var all []sequenced
	for {
		line, err := r.Read()
		if err != nil {
			if len(line) > 0 || !errors.Is(err, io.EOF) {
				return nil, err
			}
			break
		}
		number := func(name string, none int64) int64 {
			v, e := strconv.ParseInt(line[column[name]], 10, 64)
			if e != nil {
				return none
			}
			return v
		}
		all = append(all, sequenced{served{
			connection: line[column["connection"]], kind: line[column["kind"]],
			partition: number("partition", -1), offset: number("offset", -1), events: number("events", -1),
			arrived: number("arrived_ns", never), writing: number("writing_ns", never), ended: number("answered_ns", never),
		}, number("sequence", -1)})
	}
	slices.SortStableFunc(all, func(a, b sequenced) int { return int(a.sequence - b.sequence) })
	out := make([]served, len(all))
	for i := range all {
		out[i] = all[i].served
	}
	return out, nil
}

// A pair is a batch and how it was served; of a round trip, also the answer that
// carried it to the consumer and the one before on that connection.
type pair struct {
	batch
	by           served
	fetch        *served
	fetchedAfter int64 // when the answer before that was written; never: there was none
}

// join finds how each batch was served: by its place in the log, where it has
// one, else by its place in the order of its connection.
func join(batches []batch, record []served) ([]pair, error) {
	pairs := make([]pair, len(batches))
	for i := range batches {
		pairs[i] = pair{batch: batches[i], fetchedAfter: never}
	}
	if len(batches) > 0 && batches[0].offset >= 0 {
		return pairs, joinByPlace(pairs, record)
	}
	return pairs, joinByOrder(pairs, record)
}

func joinByPlace(pairs []pair, record []served) error {
	type log struct {
		kind      string
		partition int64
	}
	logs, before := map[log][]*served{}, map[*served]int64{}
	last := map[string]int64{} // answer of a connection
	for i := range record {
		s := &record[i]
		if s.offset < 0 || s.ended == never {
			continue
		}
		k := log{s.kind, s.partition}
		logs[k] = append(logs[k], s)
		if s.kind == "fetch" {
			before[s] = never
			if at, ok := last[s.connection]; ok && at < s.arrived {
				before[s] = at
			}
			last[s.connection] = s.ended
		}
	}
	for _, l := range logs {
		slices.SortFunc(l, func(a, b *served) int { return int(a.offset - b.offset) })
	}
	find := func(kind string, p *pair) *served {
		l := logs[log{kind, p.partition}]
		i, _ := slices.BinarySearchFunc(l, p.offset+1, func(s *served, end int64) int { return int(s.offset - end) })
		if i--; i < 0 || p.offset >= l[i].offset+l[i].events {
			return nil
		}
		return l[i]
	}
	for i := range pairs {
		p := &pairs[i]
		by := find("produce", p)
		if by == nil {
			return fmt.Errorf("the record lacks offset %d of partition %d", p.offset, p.partition)
		}
		if p.by = *by; p.consumed == never {
			continue
		}
		if p.fetch = find("fetch", p); p.fetch == nil {
			return fmt.Errorf("nobody fetched offset %d of partition %d", p.offset, p.partition)
		}
		p.fetchedAfter = before[p.fetch]
	}
	return nil
}

// joinByOrder: answers come in the order of requests on a connection, and a lane
// is a connection. Which one it is: the one for which causes come before effects.
func joinByOrder(pairs []pair, record []served) error {
	connections := map[string][]served{}
	for _, s := range record {
		if s.events != 0 { // else it asked for something
			connections[s.connection] = append(connections[s.connection], s)
		}
	}
	lanes := map[int64][]*pair{}
	for i := range pairs {
		lanes[pairs[i].lane] = append(lanes[pairs[i].lane], &pairs[i])
	}
	const slack = int64(50 * time.Microsecond)
	for lane, rows := range lanes {
		slices.SortFunc(rows, func(a, b *pair) int { return int(a.sequence - b.sequence) })
		found := ""
		for name, c := range connections {
			fits := int(rows[len(rows)-1].sequence) < len(c)
			for _, p := range rows {
				if !fits {
					break
				}
				s := c[p.sequence]
				fits = s.ended != never && s.arrived >= p.sent-slack && s.writing <= p.done+slack
			}
			if fits && (found == "" || len(c) < len(connections[found])) {
				found = name
			}
		}
		if found == "" {
			return fmt.Errorf("no connection of %d fits lane %d of %d batches", len(connections), lane, len(rows))
		}
		for _, p := range rows {
			p.by = connections[found][p.sequence]
		}
		delete(connections, found)
	}
	return nil
}

// causal checks that causes come before effects: else the clocks do not fit.
func causal(pairs []pair) error {
	const slack = int64(50 * time.Microsecond)
	for i := range pairs {
		p := &pairs[i]
		switch {
		case p.by.ended == never:
			return fmt.Errorf("batch %d of lane %d was acked, and the stand-in says that it was not answered", p.sequence, p.lane)
		case p.by.arrived < p.sent-slack:
			return fmt.Errorf("batch %d of lane %d arrived %d ns before it was sent", p.sequence, p.lane, p.sent-p.by.arrived)
		case p.done < p.by.writing-slack:
			return fmt.Errorf("batch %d of lane %d was done %d ns before it was answered", p.sequence, p.lane, p.by.writing-p.done)
		}
	}
	return nil
}

// A spread is times with how often each was; a truth is bounded by two.
type spread []struct{ ns, n int64 }

func (s *spread) add(ns, n int64) { *s = append(*s, struct{ ns, n int64 }{ns, n}) }

// percentile is the nearest rank, in microseconds.
func (s spread) percentile(p float64) float64 {
	slices.SortFunc(s, func(a, b struct{ ns, n int64 }) int { return int(a.ns - b.ns) })
	total := int64(0)
	for _, x := range s {
		total += x.n
	}
	rank := int64(math.Ceil(p / 100 * float64(total)))
	for _, x := range s {
		if rank -= x.n; rank <= 0 {
			return float64(x.ns) / 1e3
		}
	}
	return math.NaN()
}

// A truth is what the times of a run were: each lies between least and most.
type truth struct{ least, most spread }

func (t *truth) add(least, most, n int64) {
	t.least.add(min(least, most), n)
	t.most.add(max(least, most), n)
}

// Which times of a run are judged.
const (
	ofService  = "service"
	ofResponse = "response"
	ofEndToEnd = "end_to_end"
)

// truthOf says what the times were. stopped: it was the system that stood still.
func truthOf(what string, pairs []pair, stopped bool) (t truth) {
	typical := typicalOf(what, pairs)
	for i := range pairs {
		p := &pairs[i]
		switch {
		case what == ofEndToEnd && p.fetch == nil:
		case stopped && what != ofService && p.due != never:
			least, most := p.by.writing, p.by.ended
			if what == ofEndToEnd {
				least, most = p.fetch.writing, p.fetch.ended
			}
			for k := range p.events {
				t.add(least-p.dueOf(k), most-p.dueOf(k), 1)
			}
		default:
			least, most := p.served(what, stopped)
			if p.late() {
				least = min(least, typical)
			}
			n := p.events
			if what == ofService {
				n = 1
			}
			t.add(least, most, n)
		}
	}
	return t
}

// late tells whether the generator sent a batch late. It did so with many others,
// or with more events than it would have had, and paid for that.
func (p *pair) late() bool { return p.due != never && p.sent-p.due > lateness }

// typicalOf is the median of what was not sent late.
func typicalOf(what string, pairs []pair) int64 {
	var prompt spread
	for i := range pairs {
		if p := &pairs[i]; !p.late() && (what != ofEndToEnd || p.fetch != nil) {
			_, most := p.served(what, false)
			prompt.add(most, 1)
		}
	}
	if len(prompt) == 0 {
		return math.MaxInt64
	}
	return int64(prompt.percentile(50) * 1e3)
}

// served is how long the system took for a batch, from when it was sent.
func (p *pair) served(what string, stopped bool) (least, most int64) {
	since := max(p.sent, p.by.arrived-transit)
	if stopped {
		since = p.sent
	}
	if what == ofEndToEnd {
		least, most = p.consumable(stopped)
		return least - since, most - p.sent
	}
	return p.by.writing - since, p.by.ended - p.sent
}

// dueOf is when the k-th event was due, at a constant rate.
func (p *pair) dueOf(k int64) int64 {
	if p.events < 2 {
		return p.due
	}
	return p.due + (p.dueLast-p.due)*k/(p.events-1)
}

// consumable is when a prompt consumer would have had the batch.
func (p *pair) consumable(stopped bool) (least, most int64) {
	f := p.fetch
	late := p.fetchedAfter != never && f.arrived-p.fetchedAfter > askGap && f.arrived > p.by.arrived
	if stopped || !late {
		return f.writing, f.ended
	}
	// It would have asked after the answer before, or have been waiting already.
	asked := p.fetchedAfter + askGap
	serve := f.ended - f.arrived
	at := max(p.by.arrived, asked)
	return min(f.writing, at+serve-askGap), min(f.ended, at+2*serve+askGap)
}
