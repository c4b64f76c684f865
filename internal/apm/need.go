package apm

import (
	"carronade/internal/apm/wire"
	"carronade/internal/conn/web"
	"carronade/internal/place"
	"carronade/protocol"
)

// Prices of generated events, in bytes before compression: a request of 10 transactions with 3 spans each has
// 59,321 bytes, 26,114 without stack frames, and one with 100 frames each 1,126,202. A request in flight
// takes a copy: 9,000 callers of such requests take 641 MiB more than one.
const (
	transactionBytes = 850
	spanBytes        = 450
	frameBytes       = 320
	leastBytes       = 200 // of any kind: a metricset or a log
)

// Needs is what the bodies and connections take.
func (Kind) Needs(s protocol.Spec) []protocol.Need {
	v := s.Options
	connection := web.ConnectionNeed(s)
	if file := v.String("corpus"); file != "" {
		corpus := protocol.Need{Setting: "corpus", Number: 1}
		if info, err := place.Stat(file); err == nil && info.Mode().IsRegular() {
			corpus.Bytes = min(info.Size(), mostCorpus)
		}
		return []protocol.Need{corpus, connection}
	}
	events, each := requestEvents(v)
	made := protocol.Need{Setting: "events", Number: events, Bytes: 2 * each} // encoded, and with its head
	flying := connection.Number * each
	switch { // without a schedule, as many as may be are in flight
	case s.Scheduled || v.Bool("repeat-body"):
	case s.Given["max-in-flight"]:
		return []protocol.Need{made, connection, {Setting: "max-in-flight", Number: int64(max(1, s.MaxInFlight)), Bytes: flying * events}}
	case s.Given["clients"] || s.Concurrency > 0:
		connection.Bytes += events * each
	default:
		made.Bytes += flying
	}
	return []protocol.Need{made, connection}
}

// requestEvents returns the mean number of events of a generated request, without the spans of its
// transactions, and the bytes of each, with them.
func requestEvents(v protocol.Values) (events, each int64) {
	m, err := parseMakeup(v)
	if err != nil {
		return 0, 0 // Open says why
	}
	mean := func(r wire.Range) float64 { return float64(r.Min+r.Max) / 2 }
	bytes := transactionBytes + mean(m.Spans)*(spanBytes+mean(m.Frames)*frameBytes)
	switch {
	case m.Mix != [wire.Kinds]int{}:
		bytes = leastBytes
	case m.Protocol == wire.RUMV3:
		bytes /= 2
	}
	return int64(mean(m.Events)), int64(bytes)
}
