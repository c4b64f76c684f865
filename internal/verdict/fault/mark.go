package fault

import "time"

// Bin is the resolution of scores.
const Bin = 100 * time.Millisecond

// The kinds of marks.
const (
	MarkFault = "fault" // something was broken
	MarkHeal  = "heal"  // it was fixed
	MarkNote  = "note"  // a remark, which has no score
)

// A Mark is a moment of a run at which something was done to the system.
type Mark struct {
	Kind string `json:"kind"` // fault, heal or note
	Name string `json:"name"`
	// AtS is when, in seconds from the start of the run: the middle of the exchange by which it
	// became known. It is exact to BoundS.
	AtS    float64 `json:"at_s"`
	BoundS float64 `json:"bound_s"`
	By     string  `json:"by"` // what made it: mark, web, exec, fault, scenario
}

// At returns the moment of the mark.
func (m *Mark) At() time.Duration { return time.Duration(m.AtS * float64(time.Second)) }

// A Cell is what happened in one bin of a series. Counts are events.
type Cell struct {
	Due      uint32  // sent, by due time
	Dropped  uint32  // dropped by the generator, by due time: they never wait
	Answered uint32  // acked, by due time
	Over     uint32  // acked above the limit, failed or unknown, by due time
	Acked    uint32  // acked, by the time of the ack
	Failed   uint32  // failed or unknown, by the time of the outcome
	First    uint32  // when the first ack came, in microseconds of the bin, if Acked > 0
	Last     uint32  // likewise the last
	Empty    uint32  // in a run that only reads: when the system last said that nothing is left, in microseconds of the bin and one; 0: it did not
	Response float64 // sum of the response times of Answered, seconds
}

// add adds another series' bin.
func (c *Cell) add(o *Cell) {
	if o.Acked > 0 {
		if c.Acked == 0 || o.First < c.First {
			c.First = o.First
		}
		c.Last = max(c.Last, o.Last)
	}
	c.Due += o.Due
	c.Dropped += o.Dropped
	c.Answered += o.Answered
	c.Over += o.Over
	c.Acked += o.Acked
	c.Empty = max(c.Empty, o.Empty)
	c.Failed += o.Failed
	c.Response += o.Response
}

// arrived counts events that were acked or read at a time, in microseconds of the bin.
func (c *Cell) arrived(at, events uint32) {
	if events == 0 {
		return
	}
	if c.Acked == 0 || at < c.First {
		c.First = at
	}
	c.Last = max(c.Last, at)
	c.Acked += events
}

// settled returns how many events had their outcome in the bin.
func (c *Cell) settled() int64 { return int64(c.Acked) + int64(c.Failed) }

// offered returns how many events were due in the bin, sent or not, as far as they were recorded.
func (c *Cell) offered() int64 { return int64(c.Due) + int64(c.Dropped) }

// bad returns how many of the events that were due in the bin were not acked within the limit.
func (c *Cell) bad() int64 { return int64(c.Over) + int64(c.Dropped) }

// lost returns how many events failed in the bin, or were dropped.
func (c *Cell) lost() int64 { return int64(c.Failed) + int64(c.Dropped) }

// A Series is a stretch of consecutive bins of the whole run or of one lane.
type Series struct {
	From    time.Duration // when the first bin begins
	Waiting int64         // events due and without an outcome at From
	Cells   []Cell
	Offered []uint32 // events that the schedule had due in each bin; nil: the cells have them
}

// offered returns how many events were due in a bin, sent or not.
func (s *Series) offered(i int) int64 {
	if i < len(s.Offered) {
		return max(int64(s.Offered[i]), s.Cells[i].offered())
	}
	return s.Cells[i].offered()
}

// at returns when a bin begins.
func (s *Series) at(i int) time.Duration { return s.From + time.Duration(i)*Bin }
