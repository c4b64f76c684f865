package measure

import "time"

// Indexed is what a store behind the system contained before and after a run: not the
// system's answers to events, but what became of them.
type Indexed struct {
	Address string // address of the store
	Store   string // the product and version that it reports, such as "Elasticsearch 8.19.21"
	Nodes   int    // of its cluster; 0: not reported
	Pattern string // indices that were counted

	Before, After uint64 // documents
	Expected      uint64 // events that the system acknowledged

	Span   time.Duration // from the first event fired to the last observed change of the count
	Waited time.Duration // time waited after the firing until the count no longer changed
	Stable bool          // the count no longer changed when the wait ended
	Queued *float64      // events still queued in the system at the end; nil: not reported

	HealthBefore, HealthAfter string // as reported by the store: "green", "yellow", "red"

	// Note explains what a share below LowShare usually means; "" above it.
	Note string
}

// LowShare is the share of the expected documents below which a component between the
// system and its store is usually too slow.
const LowShare = 0.9

// Documents returns how many documents were added during the run; negative if more were
// deleted.
func (x *Indexed) Documents() int64 { return int64(x.After) - int64(x.Before) }

// Share returns documents divided by expected documents; false without any. It is above
// 1 if others index, too, or if events arrived whose answers were lost.
func (x *Indexed) Share() (float64, bool) {
	if x.Expected == 0 {
		return 0, false
	}
	return float64(x.Documents()) / float64(x.Expected), true
}

// Rate returns documents per second over the span, 0 without one.
func (x *Indexed) Rate() float64 {
	if x.Span <= 0 {
		return 0
	}
	return float64(x.Documents()) / x.Span.Seconds()
}
