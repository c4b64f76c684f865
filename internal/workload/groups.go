package workload

// Groups returns how many consumer groups read what a run writes; 0: there are none. Members without a number of
// groups are those of one.
func (w *Workload) Groups() int {
	if !w.Has("groups") && w.Has("members") {
		return 1
	}
	return int(w.Count("groups")) //nolint:gosec // the table bounds it
}

// groupConflicts checks the settings of groups against others.
func (w *Workload) groupConflicts(fault func(name, hint, format string, args ...any)) {
	if w.Groups() == 0 {
		return
	}
	name := "groups"
	if !w.Has(name) {
		name = "members"
	}
	switch {
	case !w.Kind.Capabilities().Groups:
		fault(name, "leave it out", "%s target has no consumer groups", aKind(w.Kind))
	case w.Trace() != "":
		fault("trace", "leave it out", "a trace has one time of reading for each event, and each group has its own")
	}
}
