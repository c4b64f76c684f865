package command

import (
	"context"

	"carronade/internal/report"
	"carronade/internal/store"
)

// Turns runs two workloads in turns, so that what drifts meets both: A B B A A
// B ... It prints no reports and returns those of each side as they came; with
// an error, which has the exit code, those that there are until then. An
// interrupted run is an error; one that broke a limit or is not to be trusted
// is not: its report says so.
type Turns func(ctx context.Context, t TurnsOf) ([2][]*report.Document, error)

// TurnsOf is what Turns runs.
type TurnsOf struct {
	Files  [2]string // with one workload each; "-" is stdin
	Repeat int       // how often each, at least 1
	// Store keeps the reports; nil: nobody does. It stays open.
	Store  store.Store
	Labels []string // K=V, for all reports to carry besides their own
	Note   string
	Quiet  bool // no progress
}
