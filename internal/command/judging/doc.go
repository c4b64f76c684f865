// Package judging has the commands that compare stored reports: collate, compare and verify.
// It turns arguments into questions to package judge, and answers into output and exit codes.
// It does not know what makes two reports comparable.
package judging

import (
	"context"
	"io"

	"carronade/internal/command"
)

// Tools are what the commands need of the program.
type Tools struct {
	command.Console
	Stores command.Stores
	Err    io.Writer // what confirming commands write
	// Interleave runs two workload files in turns (A B B A ...), each so often,
	// keeps their reports in the store at a place, and returns the ids of both.
	// What it shows on the way goes to stderr.
	Interleave func(ctx context.Context, place, base, candidate string, repeat int) (baseIDs, candidateIDs []string, err error)
}
