package run

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"carronade/load"
)

// A recorded is a record that was read again.
type recorded struct {
	outcome *load.Outcome
	log     int32           // of the outcome
	dues    []time.Duration // of the outcome's events; nil: all like the first
	arrival *load.Arrival
	left    [2]uint64
	logs    *Logs
	froze   *[2]time.Duration // from, to
}

var errRecords = errors.New("records of a generator cannot be read")

// readRecords calls f for each record of a chunk. What f gets is valid during the call.
func readRecords(chunk []byte, f func(r *recorded)) (err error) {
	d := &recordReader{data: chunk, last: newRecordState()}
	for len(d.data) > 0 && !d.broken {
		var r recorded
		switch kind := d.byte(); kind {
		case outcomeRecord:
			d.outcome(&r)
		case arrivalRecord:
			r.arrival = d.arrival()
		case leftOutRecord:
			r.left = [2]uint64{d.uint(), d.uint()}
		case logsRecord:
			r.logs = d.logs()
		case frozeRecord:
			from, length := d.time(), d.time()
			r.froze = &[2]time.Duration{from, from + length}
		default:
			return fmt.Errorf("%w: there is a record of kind %d", errRecords, kind)
		}
		if !d.broken {
			f(&r)
		}
	}
	if d.broken {
		return fmt.Errorf("%w: one is cut off, or has an impossible number", errRecords)
	}
	return nil
}

// mostOfBatch limits the events of a batch that is read, so that no chunk needs much memory.
const mostOfBatch = 1 << 20

// A recordReader reads a chunk.
type recordReader struct {
	data   []byte
	last   recordState
	broken bool
	stamps []load.Stamp
	dues   []time.Duration
}

func (d *recordReader) byte() byte {
	if len(d.data) == 0 {
		d.broken = true
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return b
}

func (d *recordReader) uint() uint64 {
	v, n := binary.Uvarint(d.data)
	if n <= 0 {
		d.broken = true
		d.data = nil
		return 0
	}
	d.data = d.data[n:]
	return v
}

func (d *recordReader) int() int64 {
	v, n := binary.Varint(d.data)
	if n <= 0 {
		d.broken = true
		d.data = nil
		return 0
	}
	d.data = d.data[n:]
	return v
}

// upTo is a number that is at most so large.
func (d *recordReader) upTo(most uint64) int32 {
	v := d.uint()
	if v > most {
		d.broken = true
		return 0
	}
	return int32(v)
}

// time is a time since the start, or the length of one.
func (d *recordReader) time() time.Duration {
	v := d.uint()
	if v > math.MaxInt64/2 { // two of them have a sum
		d.broken = true
		return 0
	}
	return time.Duration(v)
}

func (d *recordReader) sum() uint32 {
	if len(d.data) < 4 {
		d.broken = true
		d.data = nil
		return 0
	}
	v := binary.LittleEndian.Uint32(d.data)
	d.data = d.data[4:]
	return v
}

func (d *recordReader) logs() *Logs {
	n := d.uint()
	logs := new(Logs)
	if n > uint64(len(d.data)) || json.Unmarshal(d.data[:n], logs) != nil || len(logs.Starts) != len(logs.Names) {
		d.broken = true
		return nil
	}
	d.data = d.data[n:]
	return logs
}

// diff is a time as a difference to the one before.
func (d *recordReader) diff() time.Duration {
	d.last.at += time.Duration(d.int())
	return d.last.at
}

const mostIndex = 1<<31 - 1

func (d *recordReader) outcome(r *recorded) {
	o := &load.Outcome{Place: -1, Sent: -1}
	o.DueFirst, o.DueLast, o.FirstSent = -1, -1, -1
	flags := d.byte()
	o.Stream = d.upTo(mostIndex)
	r.log = d.upTo(mostIndex)
	o.First = d.last.next[o.Stream] + uint64(d.int())
	o.Events = d.upTo(mostOfBatch)
	d.last.next[o.Stream] = o.First + uint64(o.Events)
	o.Acked = o.Events
	if flags&wholeAcked == 0 {
		o.Acked, o.Unknown = d.upTo(uint64(o.Events)), d.upTo(uint64(o.Events))
		o.Failed = o.Events - o.Acked - o.Unknown
		d.broken = d.broken || o.Failed < 0
	}
	if flags&hasPlace != 0 {
		o.Place = d.last.place[r.log] + d.int()
		d.last.place[r.log] = o.Place + int64(o.Events)
		d.broken = d.broken || o.Place < 0
	}
	if flags&hasSum != 0 {
		o.Sum = d.sum()
	}
	if flags&wasWritten != 0 {
		o.Sent = 0
	}
	if flags&hasTimes != 0 {
		d.times(r, o, flags)
	}
	r.outcome = o
}

func (d *recordReader) times(r *recorded, o *load.Outcome, flags byte) {
	o.Phase = d.upTo(mostIndex)
	if flags&hasDue != 0 {
		o.DueFirst = d.diff()
		o.DueLast = o.DueFirst
	}
	o.Ready, o.Free = d.diff(), d.diff()
	if flags&hasDue != 0 {
		o.Late = max(0, time.Duration(d.uint()))
	}
	if flags&wasWritten != 0 {
		o.Sent = d.diff()
	}
	if flags&sentBefore != 0 {
		o.Attempt, o.FirstSent = 1, d.diff()
	}
	if flags&ownDues == 0 {
		return
	}
	d.dues = append(d.dues[:0], o.DueFirst)
	for k := int32(1); k < o.Events && !d.broken; k++ {
		d.dues = append(d.dues, d.dues[k-1]+time.Duration(d.int()))
	}
	r.dues = d.dues
	o.DueLast = d.dues[len(d.dues)-1]
}

func (d *recordReader) arrival() *load.Arrival {
	a := &load.Arrival{ProducerID: -1}
	flags := d.byte()
	a.Corrupt = flags&isCorrupt != 0
	a.Log = d.upTo(mostIndex)
	a.Base = d.last.base[a.Log] + d.int()
	a.Events = d.upTo(mostOfBatch)
	d.last.base[a.Log] = a.Base + int64(a.Events)
	a.Sum = d.sum()
	if flags&sameTimes == 0 {
		came := arrivalTimes{at: d.diff()}
		came.earliest = came.at - time.Duration(d.int())
		if flags&isTimed != 0 {
			came.requested = came.at - time.Duration(d.int())
			came.waited = time.Duration(d.int())
		}
		d.last.came = came
	}
	a.At, a.Earliest, a.Requested, a.Waited = d.last.came.at, d.last.came.earliest, d.last.came.requested, d.last.came.waited
	if flags&hasStamps != 0 {
		a.Stamps = d.stampsOf(a)
	}
	return a
}

func (d *recordReader) stampsOf(a *load.Arrival) []load.Stamp {
	d.stamps = d.stamps[:0]
	last := d.last.stamp[a.Log]
	for !d.broken {
		head := d.uint()
		if head == 0 {
			break
		}
		n := head >> 1
		if n > mostOfBatch || len(d.stamps)+int(n) > mostOfBatch {
			d.broken = true
			break
		}
		s := load.Stamp{Bad: head&1 == 1, Run: d.sum()}
		s.Stream = int32(d.int())
		s.Index = last.Index + uint64(d.int())
		s.Offset = last.Offset + d.int()
		for range n {
			d.stamps = append(d.stamps, s)
			last = s
			s.Index++
			s.Offset++
		}
	}
	d.last.stamp[a.Log] = last
	return d.stamps
}
