// Package judging is the commands that hold stored reports against each other:
// collate, compare and verify. It turns what was typed into questions to
// package judge and answers into output and exit codes, and refuses to know
// what makes two reports comparable.
package judging

import "carronade/internal/command"

// Tools are what the commands need of the program.
type Tools struct {
	command.Console
	Stores command.Stores
}
