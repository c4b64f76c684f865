package shell

import (
	"context"
	"crypto/sha1" //nolint:gosec // a short name, as in the tool
	"encoding/hex"
	"io"
	"strings"

	"carronade/internal/serve/jobs"
)

// A Queue runs jobs, those of one system one after the other, as a jobs.Queue does.
// It is safe for concurrent use.
type Queue interface {
	// Submit returns how many jobs must end before it starts, 0 if it starts at once.
	Submit(ctx context.Context, r jobs.Request) (jobs.Job, int, error)
	Cancel(ctx context.Context, id int64) error
	Jobs(ctx context.Context, f jobs.Filter) ([]jobs.Job, error)
	Output(ctx context.Context, id int64, follow bool, w io.Writer) error
	Wait(ctx context.Context, id int64) (jobs.Job, error)
}

// ID returns the short name that the shell shows for a job: the first six digits of
// the SHA-1 of its words. Equal words have equal ids.
func ID(typed string) string {
	sum := sha1.Sum([]byte(strings.Join(strings.Fields(typed), " "))) //nolint:gosec // see above
	return hex.EncodeToString(sum[:3])
}
