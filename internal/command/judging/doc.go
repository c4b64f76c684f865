// Package judging has the commands that compare stored reports: collate, compare and verify.
// It turns arguments into questions to package judge, and answers into output and exit codes.
// It does not know what makes two reports comparable.
package judging

import (
	"context"
	"io"
	"time"

	"github.com/spf13/pflag"

	"carronade/internal/command"
	"carronade/internal/store"
)

// bindSame adds the flag that makes all addresses one system.
func bindSame(fs *pflag.FlagSet, same *bool) {
	fs.BoolVar(same, "same-system", false, "all reports are of one system, whatever its address")
}

// Tools are the parts of the program that the commands need.
type Tools struct {
	command.Console
	Stores command.Stores
	Err    io.Writer // for the output of confirming commands
	// Interleave runs two workload files alternately (A B B A ...), stores their reports, and
	// returns the ids of both. Its progress goes to stderr.
	Interleave func(context.Context, Interleaving) (baseIDs, candidateIDs []string, err error)
}

// An Interleaving says which workload files to run alternately, and how often.
type Interleaving struct {
	Place           string // of the store
	Base, Candidate string // the files
	// Sizes are the numbers of runs of each side after which Enough is asked, ascending; after
	// the last one it ends.
	Sizes     []int
	Enough    func(ctx context.Context, s store.Store, baseIDs, candidateIDs []string) (bool, error) // nil: never
	Budget    time.Duration                                                                          // no run begins that would end after it; 0: none
	Untrusted bool                                                                                   // runs that are not trusted are not replaced
}
