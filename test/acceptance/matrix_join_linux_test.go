//go:build conformance

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

	"carronade/test/testkit/parquettest"
)

// This file joins a generator's trace with a stand-in's record.

// noTime is a time that does not exist.
const noTime = int64(math.MinInt64)

// A batch is a row of the trace; times are those of the machine's monotonic clock, in nanoseconds.
type batch struct {
	lane, sequence, partition, offset, events int64
	due, dueLast, sent, done, consumed        int64
}

// readTrace reads the rows whose events were all acked.
func readTrace(path string) ([]batch, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := parquettest.Read(data)
	if err != nil {
		return nil, err
	}
	began, err := strconv.ParseInt(file.Meta["carronade.started_monotonic_ns"], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the start of the run: %w", err)
	}
	type row struct {
		Lane      int64  `parquet:"connection"`
		Sequence  int64  `parquet:"sequence"`
		Due       *int64 `parquet:"due_ns"`
		DueLast   *int64 `parquet:"due_last_ns"`
		Sent      *int64 `parquet:"sent_ns"`
		Done      int64  `parquet:"done_ns"`
		Consumed  *int64 `parquet:"consumed_ns"`
		Partition *int64 `parquet:"partition"`
		Offset    *int64 `parquet:"log_offset"`
		Events    int64  `parquet:"events"`
		Acked     int64  `parquet:"acked"`
	}
	at := func(p *int64) int64 {
		if p == nil {
			return noTime
		}
		return began + *p
	}
	orMinusOne := func(p *int64) int64 {
		if p == nil {
			return -1
		}
		return *p
	}
	var out []batch
	for _, r := range parquettest.Rows[row](file) {
		if r.Acked != r.Events || r.Sent == nil {
			continue
		}
		out = append(out, batch{
			lane: r.Lane, sequence: r.Sequence, partition: orMinusOne(r.Partition), offset: orMinusOne(r.Offset), events: r.Events,
			due: at(r.Due), dueLast: at(r.DueLast), sent: at(r.Sent), done: at(&r.Done), consumed: at(r.Consumed),
		})
	}
	return out, nil
}

// A served is a row of a stand-in's record.
type served struct {
	connection, kind          string
	partition, offset, events int64
	arrived, writing, ended   int64 // noTime: not answered
}

// readRecord reads a record, sorted by the sequence in each connection.
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
			arrived: number("arrived_ns", noTime), writing: number("writing_ns", noTime), ended: number("answered_ns", noTime),
		}, number("sequence", -1)})
	}
	slices.SortStableFunc(all, func(a, b sequenced) int { return int(a.sequence - b.sequence) })
	out := make([]served, len(all))
	for i := range all {
		out[i] = all[i].served
	}
	return out, nil
}

// A pair is a batch and how it was served; for a round trip, also the answer that
// delivered it to the consumer and the previous answer on that connection.
type pair struct {
	batch
	by           served
	fetch        *served
	fetchedAfter int64 // when the previous answer was written; noTime: there was none
}

// join finds how each batch was served: by its offset in the log, if it has one, or
// else by its position on its connection.
func join(batches []batch, record []served) ([]pair, error) {
	pairs := make([]pair, len(batches))
	for i := range batches {
		pairs[i] = pair{batch: batches[i], fetchedAfter: noTime}
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
	last := map[string]int64{} // last answer of each connection
	for i := range record {
		s := &record[i]
		if s.offset < 0 || s.ended == noTime {
			continue
		}
		k := log{s.kind, s.partition}
		logs[k] = append(logs[k], s)
		if s.kind == "fetch" {
			before[s] = noTime
			if at, ok := last[s.connection]; ok && at < s.arrived {
				before[s] = at
			}
			last[s.connection] = s.ended
		}
	}
	for _, l := range logs {
		slices.SortFunc(l, func(a, b *served) int { return int(a.offset - b.offset) })
	}
	find := func(kind string, p *pair, offset int64) *served {
		l := logs[log{kind, p.partition}]
		i, _ := slices.BinarySearchFunc(l, offset+1, func(s *served, end int64) int { return int(s.offset - end) })
		if i--; i < 0 || offset >= l[i].offset+l[i].events {
			return nil
		}
		return l[i]
	}
	for i := range pairs {
		p := &pairs[i]
		// A client library may split a batch: the last part answers it.
		end := p.offset + max(p.events, 1) - 1
		by := find("produce", p, end)
		if by == nil {
			return fmt.Errorf("offset %d of partition %d is not in the record", end, p.partition)
		}
		if p.by = *by; p.consumed == noTime {
			continue
		}
		if p.fetch = find("fetch", p, p.offset); p.fetch == nil {
			return fmt.Errorf("no fetch of offset %d of partition %d is in the record", p.offset, p.partition)
		}
		p.fetchedAfter = before[p.fetch]
	}
	return nil
}

// joinByOrder joins by position: answers are in the order of requests on a connection, and a lane is a
// connection. The connection of a lane is the one for which causes precede effects.
func joinByOrder(pairs []pair, record []served) error {
	connections := map[string][]served{}
	for _, s := range record {
		if s.events != 0 { // 0: a query
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
				fits = s.ended != noTime && s.arrived >= p.sent-slack && s.writing <= p.done+slack
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

// causal checks that causes precede effects: otherwise the clocks do not agree.
func causal(pairs []pair) error {
	const slack = int64(50 * time.Microsecond)
	for i := range pairs {
		p := &pairs[i]
		switch {
		case p.by.ended == noTime:
			return fmt.Errorf("batch %d of lane %d was acked, but the record has no answer", p.sequence, p.lane)
		case p.by.arrived < p.sent-slack:
			return fmt.Errorf("batch %d of lane %d arrived %d ns before it was sent", p.sequence, p.lane, p.sent-p.by.arrived)
		case p.done < p.by.writing-slack:
			return fmt.Errorf("batch %d of lane %d was done %d ns before it was answered", p.sequence, p.lane, p.by.writing-p.done)
		}
	}
	return nil
}
