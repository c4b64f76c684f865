package cluster

import (
	"fmt"

	"carronade/protocol"
	"carronade/units"
)

// NeverAssigned is the error of a group some of whose partitions got no member in the time of a request. last is the
// group's last error, "" if there was none.
func (cl *Cluster) NeverAssigned(group string, left int, last string) error {
	text := fmt.Sprintf("%d of %s had no member after %s (--request-timeout)", left, units.Plural(uint64(cl.Partitions()), "partition"), //nolint:gosec // not negative
		units.FlagDuration(cl.Config.RequestTimeout))
	if last != "" {
		text += ": " + last
	}
	return &protocol.Error{
		Doing: "wait for the assignment of the group " + group, Err: fmt.Errorf("%s", text),
		Hint: "look at the coordinator of the group and at its other members, or give more time with --request-timeout",
	}
}
