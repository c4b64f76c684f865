package workload

// Groups returns how many consumer groups read what a run writes; 0: there are none. Members without a number of
// groups are those of one.
func (w *Workload) Groups() int {
	if w.Op == Consume {
		return 0
	}
	if !w.Has("groups") && w.Has("members") {
		return 1
	}
	return int(w.Count("groups")) //nolint:gosec // the table bounds it
}

// groupConflicts checks the settings of groups against others.
func (w *Workload) groupConflicts(fault func(name, hint, format string, args ...any)) {
	if w.Op == Consume && w.Has("members") {
		w.members(fault)
		return
	}
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

// members makes those of a consuming run its clients.
func (w *Workload) members(fault func(name, hint, format string, args ...any)) {
	n := w.Count("members")
	switch {
	case !w.Kind.Capabilities().Groups:
		fault("members", "leave it out", "%s target has no consumer groups", aKind(w.Kind))
	case w.values["clients"].from > FromPreset && w.Count("clients") != n: // a report has both
		fault("members", "leave out one of them", "a consuming run's members are its clients, and --clients says %d", w.Count("clients"))
	default:
		w.SetClients(int(n)) //nolint:gosec // the table bounds it
	}
}
