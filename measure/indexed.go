package measure

import "time"

// Indexed is what a store behind the system had before a run and after it: not
// what the system said of events, but what became of them.
type Indexed struct {
	Where   string // the store's address
	Store   string // what it says it is, such as "Elasticsearch 8.19.21"
	Pattern string // which of its indices were counted

	Before, After uint64 // documents
	Expected      uint64 // events that the system said it had accepted

	Span   time.Duration // from the first event fired to the last change of the count that was seen
	Waited time.Duration // after the firing, for the count to stand still
	Still  bool          // it did, before the wait was over
	Queued *float64      // what the system said was still queued at the end; nil: it did not say

	HealthBefore, HealthAfter string // the store's own word: "green", "yellow", "red"

	// Note is what a share below LowShare usually means; "" above it.
	Note string
}

// LowShare is the share of the expected documents below which something between
// the system and its store is usually too slow.
const LowShare = 0.9

// Documents is how many came during the run; negative where some were deleted
// meanwhile.
func (x *Indexed) Documents() int64 { return int64(x.After) - int64(x.Before) }

// Share is documents by expected documents, false without any. It is above 1
// where others index, too, or where events whose answers were lost arrived.
func (x *Indexed) Share() (float64, bool) {
	if x.Expected == 0 {
		return 0, false
	}
	return float64(x.Documents()) / float64(x.Expected), true
}

// Rate is documents per second over the span, 0 without one.
func (x *Indexed) Rate() float64 {
	if x.Span <= 0 {
		return 0
	}
	return float64(x.Documents()) / x.Span.Seconds()
}
