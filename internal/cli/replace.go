package cli

import (
	"fmt"

	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/load"
)

// This file replaces repetitions that were not trusted.

// replace adds the i-th task to the end of the tasks again, if its run was not trusted and is
// one of several. Of each workload, at most as many runs as were requested are replaced. The
// new run writes the files of the one that it replaces.
func (s *session) replace(o *outputs, i int, d *report.Document) bool {
	k := &o.tasks[i]
	if k.of < 2 || !replaceable(d) {
		return false
	}
	cause := ""
	if s.cause = d.MachineCause(); s.cause != "" {
		cause = " (" + s.cause + ")"
	}
	used := 0
	for j := range o.tasks {
		if o.tasks[j].w == k.w && o.tasks[j].replaces != "" {
			used++
		}
	}
	if used >= k.of {
		s.say("", fmt.Sprintf("repetition %d of %d (%s) is not trusted%s, and is not run again, because %d repetitions were replaced already", k.i+1, k.of, d.ID, cause, used))
		return false
	}
	again := *k
	again.replaces, again.kept = d.ID, nil
	o.tasks = append(o.tasks, again)
	s.say("", fmt.Sprintf("repetition %d of %d (%s) is not trusted%s: it will be run again", k.i+1, k.of, d.ID, cause))
	return true
}

// replaceable is whether a run that was not trusted can be replaced. One that failed, was
// interrupted, or ended because nothing was left of the system, says something that must not be lost.
func replaceable(d *report.Document) bool {
	code := d.ExitCode()
	return !d.Trust.OK && (code == host.ExitUntrusted || code == host.ExitBroken) && d.Stopped != load.BySystem && d.Stopped != load.ByLoss
}
