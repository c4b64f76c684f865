package shell

import (
	"context"
	"crypto/sha1" //nolint:gosec // a short name, as in the tool
	"encoding/hex"
	"io"
	"strings"

	"carronade/internal/jobs"
)

// The types of a queue are those of internal/jobs.
type (
	Request = jobs.Request
	Job     = jobs.Job
	Filter  = jobs.Filter
	State   = jobs.State
)

// The states of jobs.
const (
	Queued      = jobs.Queued
	Running     = jobs.Running
	Done        = jobs.Done
	Failed      = jobs.Failed
	Cancelled   = jobs.Cancelled
	Interrupted = jobs.Interrupted
)

// A Queue runs jobs, those of one system one after the other. It is safe for
// concurrent use. internal/jobs has it.
type Queue interface {
	// Submit returns how many jobs of the same system come first.
	Submit(ctx context.Context, r Request) (Job, int, error)
	Cancel(ctx context.Context, id int64) error
	Jobs(ctx context.Context, f Filter) ([]Job, error)
	Output(ctx context.Context, id int64, follow bool, w io.Writer) error
	Wait(ctx context.Context, id int64) (Job, error)
}

// ID returns the short name that the shell shows for a job: the first six digits of
// the SHA-1 of its words. Equal words have equal ids.
func ID(typed string) string {
	sum := sha1.Sum([]byte(strings.Join(strings.Fields(typed), " "))) //nolint:gosec // see above
	return hex.EncodeToString(sum[:3])
}
