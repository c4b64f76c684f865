// Package find searches for the ceiling of a system: the highest rate at which limits hold.
//
// The search is a state machine without clock, I/O and goroutines. Options.Next takes what
// happened so far and returns the next trial or the answer. The same history gives the same
// result, so a search can be stored, resumed, explained and simulated in virtual time.
//
// A trial is judged by the share of events that took longer than a limit allows, not by a
// percentile: a share has an error that can be estimated, and it counts events that were never
// answered. Late events come in clusters, because a queue that is long stays long for a while.
// The error of the share comes from the number and the sizes of these clusters (see judge.go).
package find
