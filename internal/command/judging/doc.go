// Package judging has the commands that compare stored reports: collate, compare and verify.
// It turns arguments into questions to package judge, and answers into output and exit codes.
// It does not know what makes two reports comparable.
package judging

import (
	"context"
	"io"

	"carronade/internal/command"
)

// Tools are the parts of the program that the commands need.
type Tools struct {
	command.Console
	Stores command.Stores
	Err    io.Writer // for the output of confirming commands
	// Interleave runs two workload files alternately (A B B A ...), each repeat times, stores
	// their reports at a place, and returns the ids of both. Its progress goes to stderr.
	Interleave func(ctx context.Context, place, base, candidate string, repeat int) (baseIDs, candidateIDs []string, err error)
}
