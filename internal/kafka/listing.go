package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/franz"
	"carronade/internal/kafka/wire"
	"carronade/internal/place"
	"carronade/protocol"
	"carronade/units"
)

// mostRuns limits the runs of consecutive records of a list that is read: each takes 24
// bytes.
const mostRuns = 1 << 24

// errListTooLong is the error of a list above this limit.
var errListTooLong = fmt.Errorf("the list has more than %s runs of consecutive records: split it", units.FormatCount(mostRuns))

// replicaWait is how long records that were acked a moment ago may not be readable yet.
const replicaWait = 3 * time.Second

// listed returns the records of the list that the run reads.
func listed(ctx context.Context, cl *cluster.Cluster) (*items, error) {
	c := cl.Config
	wrong := func(err error, hint string) (*items, error) {
		return nil, &protocol.Error{Doing: "read the list of items-in", Err: err, Hint: hint}
	}
	list := &items{recycle: c.Recycle}
	need := make([]int64, cl.Partitions()) // the ends that partitions have if all records exist
	topic, err := wire.ReadList(c.ItemsIn, func(r wire.ListRun) error {
		if int(r.Partition) >= cl.Partitions() {
			return fmt.Errorf("the topic %s has %s, and no partition %d", c.Topic, units.Plural(cl.Partitions(), "partition"), r.Partition)
		}
		if uint64(r.Count) > math.MaxInt64-list.n {
			return errors.New("the list has more than 2^63 records")
		}
		list.add(r.Partition, r.Offset, uint64(r.Count))
		need[r.Partition] = max(need[r.Partition], r.Offset+r.Count)
		if len(list.spans) > mostRuns {
			return errListTooLong
		}
		return nil
	})
	switch {
	case err != nil:
		return wrong(err, "a line is PARTITION,OFFSET or PARTITION,OFFSET,COUNT, as --items-out writes it")
	case topic != "" && topic != c.Topic:
		return wrong(fmt.Errorf("%s is a list of records of the topic %s, not of %s", c.ItemsIn, topic, c.Topic),
			"read that topic, or remove the comment that names it")
	case list.n == 0:
		return wrong(fmt.Errorf("%s has no records", c.ItemsIn), "write a list with --items-out FILE, while producing")
	}
	for deadline := time.Now().Add(replicaWait); ; {
		if list.ends, err = cl.Ends(ctx); err != nil {
			return nil, err
		}
		missing := false
		for i := range min(len(need), len(list.ends)) {
			missing = missing || list.ends[i] < need[i]
		}
		if !missing || time.Now().After(deadline) {
			return list, nil
		}
		if err := cluster.Pause(ctx, cluster.MetadataPause); err != nil {
			return nil, err
		}
	}
}

// mostInLine limits the records of one line of a list that is written, so that
// partitions take turns when it is read.
const mostInLine = 4096

// A listing writes the list of the records that were acked or read. A nil listing writes
// nothing. It is safe for concurrent use.
type listing struct {
	out *wire.ListWriter

	mu       sync.Mutex
	runs     []wire.ListRun // not written yet, by partition; Count 0: none
	records  uint64
	unplaced uint64 // acked, but the broker did not say where they are
}

// openListing makes the list, after everything else is open: a run that cannot start
// leaves an older one unchanged.
func openListing(cl *cluster.Cluster) (*listing, error) {
	c := cl.Config
	if c.ItemsOut == "" {
		return nil, nil
	}
	wrong := func(err error, hint string) (*listing, error) {
		return nil, &protocol.Error{Doing: "make the list of items-out", Err: err, Hint: hint}
	}
	if in, err := place.Stat(c.ItemsIn); err == nil {
		if out, err := place.Stat(c.ItemsOut); err == nil && os.SameFile(in, out) {
			return wrong(fmt.Errorf("%s is also the list of items-in", c.ItemsOut), "give two files")
		}
	}
	out, err := wire.CreateList(c.ItemsOut, c.Topic)
	if err != nil {
		return wrong(err, "check that its folder exists and can be written, and that the disk is not full")
	}
	return &listing{out: out, runs: make([]wire.ListRun, cl.Partitions())}, nil
}

// add adds records. An offset below 0 is not known.
func (l *listing) add(part int32, offset, n int64) {
	if l == nil || n <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if offset < 0 || int(part) >= len(l.runs) {
		l.unplaced += uint64(n)
		return
	}
	l.records += uint64(n)
	r := &l.runs[part]
	if r.Count > 0 && r.Offset+r.Count == offset {
		r.Count += n
	} else {
		l.out.Add(*r)
		*r = wire.ListRun{Partition: part, Offset: offset, Count: n}
	}
	if r.Count >= mostInLine {
		l.out.Add(*r)
		r.Count = 0
	}
}

// finish writes the rest.
func (l *listing) finish() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.runs {
		l.out.Add(l.runs[i])
		l.runs[i].Count = 0
	}
	if err := l.out.Close(); err != nil {
		return fmt.Errorf("--items-out: %w", err)
	}
	return nil
}

// facts adds the number of records in the list.
func (l *listing) facts(f map[string]any) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f["items_listed"] = l.records
}

func (l *listing) warnings() []string {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unplaced == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the list of items-out lacks %s: the broker acknowledged them without an offset", units.Plural(int(l.unplaced), "record"))}
}

// openList makes the list of the session, if one was requested.
func (s *session) openList() (err error) {
	if s.list, err = openListing(s.cl); err != nil || s.list == nil {
		return err
	}
	switch out := s.out.(type) {
	case *producer:
		out.list = s.list
	case *franz.Producer:
		out.Acked = s.list.add
	}
	if s.by != nil {
		s.by.list = s.list
	}
	return nil
}

// appendFound appends the offsets of a batch's records within [from, to), without their
// partition. The records are not compressed.
func appendFound(dst []wire.ListRun, b *wire.Batch, records []byte, from, to int64) []wire.ListRun {
	note := func(offset, n int64) {
		if k := len(dst); k > 0 && dst[k-1].Offset+dst[k-1].Count == offset {
			dst[k-1].Count += n
			return
		}
		dst = append(dst, wire.ListRun{Offset: offset, Count: n})
	}
	last := b.BaseOffset + int64(b.LastOffsetDelta)
	if int64(b.NumRecords) == int64(b.LastOffsetDelta)+1 { // without gaps
		if first := max(from, b.BaseOffset); first < to {
			note(first, min(last+1, to)-first)
		}
		return dst
	}
	wire.ForEachRecord(records, b.NumRecords, func(r *wire.Record) error { //nolint:errcheck // they were counted before
		if offset := b.BaseOffset + int64(r.OffsetDelta); offset >= from && offset < to {
			note(offset, 1)
		}
		return nil
	})
	return dst
}
