package protocol

import (
	"errors"
	"time"

	"carronade/load"
)

// StageOptions are the options of the second stage of a pipeline, for an operation and under
// a heading of the kind.
func StageOptions(op, group string) []Option {
	ops := []string{op}
	return []Option{
		{
			Name: "read-delay", Type: Duration, Default: "0s", Ops: ops, Group: group, Independent: true,
			Help: "time from an event's ack to its read",
		},
		{
			Name: "read-in-flight", Type: Int, Default: "100", Ops: ops, Group: group, Independent: true,
			Help: "batches being read at a time, over all connections",
		},
		{
			Name: "read-queue", Type: Int, Default: "1M", Ops: ops, Group: group, Independent: true,
			Help: "events that may be acked and not yet read; then sending waits; 0: no limit",
		},
	}
}

// ParseStage reads the options of StageOptions.
func ParseStage(v Values) (load.StagePlan, error) {
	p := load.StagePlan{Name: "read", Delay: v.Duration("read-delay"), MaxInFlight: v.Int("read-in-flight"), Queue: uint64(max(0, v.Int("read-queue")))}
	switch {
	case p.Delay < 0 || p.Delay > 24*time.Hour:
		return p, &Error{Doing: "read the option read-delay", Err: errors.New("want a time from 0s to 24h"), Hint: "such as --read-delay 20s"}
	case p.MaxInFlight < 1 || p.MaxInFlight > 1e6:
		return p, &Error{Doing: "read the option read-in-flight", Err: errors.New("want a number from 1 to 1M"), Hint: "such as --read-in-flight 100"}
	}
	return p, nil
}
