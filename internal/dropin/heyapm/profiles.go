package heyapm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A heyPart of a profile is one kind of request, sent repeatedly.
type heyPart struct {
	path   string // below the base URL, as in the tool
	intake string // carronade's setting; "" is a health check, which is not sent here
	// Per request: events, spans of each event, stack frames of each span or error.
	// Without spans, the events are errors.
	events, spans, frames int

	concurrency int
	perS        float64 // maximum requests per second and caller; 0: no limit
}

func (p *heyPart) isSent() bool { return p.intake != "" }

// eventsPerRequest is the number of events of a request, including spans.
func (p *heyPart) eventsPerRequest() int { return p.events * (1 + p.spans) }

const (
	v1Errors       = "v1/errors"
	v1Transactions = "v1/transactions"
	rumErrors      = "v1/client-side/errors"
	rumEvents      = "v1/client-side/transactions"
)

// The parts of profiles are named by the size of their bodies there: errors of 13
// and 5 kB, transactions of 162 and 1.8 kB.
func errorsOf13kB(concurrency int, perS float64) heyPart {
	return heyPart{path: v1Errors, intake: "v1", events: 1, frames: 31, concurrency: concurrency, perS: perS}
}

func errorsOf5kB(concurrency int, perS float64) heyPart {
	return heyPart{path: v1Errors, intake: "v1", events: 1, frames: 10, concurrency: concurrency, perS: perS}
}

// framesOfSpan makes a span of 17 kB, the size in the profiles.
const framesOfSpan = 47

func heyTransactions(events, spans, frames, concurrency int, perS float64) heyPart {
	return heyPart{path: v1Transactions, intake: "v1", events: events, spans: spans, frames: frames, concurrency: concurrency, perS: perS}
}

func heyRUM(path string, events, spans, frames, concurrency int) heyPart {
	return heyPart{path: path, intake: "rum-v2", events: events, spans: spans, frames: frames, concurrency: concurrency}
}

var healthCheck = heyPart{path: "healthcheck", concurrency: 1, perS: 1}

// heyProfiles are all profiles by name.
var heyProfiles = makeHeyProfiles()

func makeHeyProfiles() map[string][]heyPart {
	all := map[string][]heyPart{
		"heavy":     {errorsOf13kB(3, 10), errorsOf5kB(1, 10), heyTransactions(10, 1, 40, 50, 10), healthCheck},
		"tiny":      {errorsOf13kB(3, 10), errorsOf5kB(1, 10), heyTransactions(1, 1, 1, 50, 10), healthCheck},
		"baddeploy": {errorsOf13kB(50, 10), errorsOf5kB(50, 10), heyTransactions(10, 1, 40, 2, 10), healthCheck},
		"maxspans":  {heyTransactions(1, 500, framesOfSpan, 4, 10), healthCheck},
		"huge":      {heyTransactions(2, 500, framesOfSpan, 3, 1), healthCheck},
		"1mb":       {heyTransactions(28, 2, framesOfSpan, 100, 0)},
		"rum":       {heyRUM(rumErrors, 1, 0, 5, 2), heyRUM(rumEvents, 1, 5, 0, 2), healthCheck},
		"rumtiny":   {heyRUM(rumEvents, 1, 1, 0, 2), healthCheck},
	}
	for i := 1; i < 10; i++ {
		all[fmt.Sprintf("%dmb", 5*i)] = []heyPart{heyTransactions(i, 286, framesOfSpan, 100, 0)}
	}
	for i := 1; i < 8; i++ {
		all[fmt.Sprintf("%dkb", 130*i)] = []heyPart{heyTransactions(7*i, 1, framesOfSpan, 100, 0)}
	}
	return all
}

func heyProfileNames() string { return strings.Join(slices.Sorted(maps.Keys(heyProfiles)), " ") }
