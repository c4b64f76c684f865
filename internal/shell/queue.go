package shell

import (
	"context"
	"crypto/sha1" //nolint:gosec // a short name, as in the tool
	"encoding/hex"
	"io"
	"strings"
	"time"
)

// A Request is what somebody submits.
type Request struct {
	System string // jobs of one system run one after the other
	User   string
	Typed  string // the line as typed, for lists of jobs
	Args   []string
	Dir    string
	Env    []string
}

// A State is where a job is in its life.
type State string

// The states. The last four are final.
const (
	Queued      State = "queued"
	Running     State = "running"
	Done        State = "done"
	Failed      State = "failed"
	Cancelled   State = "cancelled"
	Interrupted State = "interrupted"
)

// A Job is a request and what became of it.
type Job struct {
	ID int64
	Request
	State                     State
	Submitted, Started, Ended time.Time
	Exit                      int
	Reason                    string
}

// A Filter selects jobs.
type Filter struct {
	System string
	User   string
	States []State
	Newest int
}

// A Queue runs jobs, those of one system one after the other. It is safe for
// concurrent use.
type Queue interface {
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
