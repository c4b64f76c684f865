package workload

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"carronade/payload"
	"carronade/protocol"
)

// Resolve makes a workload of flags and a file (either may be nil): flags override the file,
// the file the defaults. It checks everything that does not need the network; several errors
// are joined, each an *Error.
func Resolve(kinds []protocol.Kind, flags, file *Document) (*Workload, error) {
	if parts := partsOf(flags, file); parts != nil {
		return resolveMix(kinds, flags, file, parts)
	}
	return resolveOne(kinds, flags, file)
}

// resolveOne is Resolve for one load.
func resolveOne(kinds []protocol.Kind, flags, file *Document) (*Workload, error) {
	w := &Workload{values: make(map[string]value)}
	given := func(name string) (Entry, bool) {
		for _, d := range []*Document{flags, file} {
			if d == nil {
				continue
			}
			for _, e := range slices.Backward(d.Entries) {
				if e.Name == name && len(e.Values) > 0 {
					return e, true
				}
			}
		}
		return Entry{}, false
	}

	e, ok := given("target")
	if !ok {
		return nil, &protocol.Error{Err: errors.New("no target was given"), Hint: "a target is a URL, such as " + examples(kinds)}
	}
	if len(e.Values) != 1 {
		return nil, &protocol.Error{Doing: e.Where, Err: errors.New("must be one URL")}
	}
	var err error
	if w.Kind, w.URL, err = ParseTarget(kinds, e.Values[0]); err != nil {
		return nil, err
	}
	w.text = e.Values[0]
	w.table = Table(w.Kind)

	// The operation is first, since it decides which settings apply.
	w.Op = find(w.table, "op").Default
	if e, ok := given("op"); ok {
		if err := find(w.table, "op").Check(e.Values[0]); err != nil {
			return nil, At(e.Where, err)
		}
		w.Op = e.Values[0]
	}

	var faults []error
	fault := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	for i, d := range []*Document{file, flags} {
		if d == nil {
			continue
		}
		from := FromFile + Origin(i)
		for _, e := range d.Entries {
			if e.Name != "target" {
				fault(w.set(kinds, e, from))
			}
		}
	}
	if len(faults) == 0 {
		fault(w.preset())
	}
	for i := range w.table {
		s := &w.table[i]
		_, set := w.values[s.Name]
		if !set && s.Default != "" && s.AppliesTo(w.Op) && !s.FlagOnly {
			w.values[s.Name] = value{texts: []string{s.Default}}
		}
	}
	if len(faults) == 0 {
		if name, err := w.require(); err != nil {
			e, _ := given(name)
			fault(At(e.Where, err))
		} else {
			faults = w.conflicts(given)
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	w.warnOfInFlight()
	return w, nil
}

// warnOfInFlight says so if a closed loop has more batches in flight than the limit that was
// given allows. Some kinds apply that limit themselves, the engine does not.
func (w *Workload) warnOfInFlight() {
	if w.usualInFlight() {
		return
	}
	if limits := w.Kind.Capabilities().LimitsInFlight; limits != nil && limits(w.options()) {
		return
	}
	limit, all := w.Count("max-in-flight"), w.Count("concurrency")
	if all > limit*max(1, w.Count("clients")) {
		w.Warnings = append(w.Warnings, fmt.Sprintf("--max-in-flight %d has no effect: --concurrency %d is the limit, over all connections", limit, all))
	}
}

// set applies one entry.
func (w *Workload) set(kinds []protocol.Kind, e Entry, from Origin) error {
	s := find(w.table, e.Name)
	if s == nil {
		return w.unknown(kinds, e, from)
	}
	switch {
	case s.FlagOnly && from == FromFile:
		return &protocol.Error{Doing: e.Where, Err: errors.New("says where output goes, which is not part of a workload"), Hint: "give --" + s.Name + " on the command line"}
	case !s.AppliesTo(w.Op):
		if s.Type == protocol.Bool && len(e.Values) == 1 && e.Values[0] == "false" {
			return nil
		}
		return &protocol.Error{Doing: e.Where, Err: fmt.Errorf("has no meaning for the operation %s", w.Op), Hint: meaningHint(s, w.Kind.Ops())}
	case s.Type != protocol.List && len(e.Values) != 1:
		return &protocol.Error{Doing: e.Where, Err: fmt.Errorf("takes one value, not %d", len(e.Values))}
	}
	if s.Bare != "" && slices.Equal(e.Values, []string{"true"}) { // in a file the way to give no value
		e.Values = []string{s.Bare}
	}
	for _, text := range e.Values {
		err := s.Check(text)
		if err == nil && s.Visible != nil && from == FromFlag && e.Where == "--"+s.Name { // a drop-in takes what its tool takes
			err = s.Visible(text)
		}
		if err != nil {
			return At(e.Where, err)
		}
	}
	if s.FlagOnly {
		return nil
	}
	v := value{texts: e.Values, from: from}
	if old := w.values[s.Name]; s.Type == protocol.List && old.from == from {
		v.texts = slices.Concat(old.texts, e.Values)
	}
	w.values[s.Name] = v
	return nil
}

// preset applies the presets of given options.
func (w *Workload) preset() error {
	of := w.Kind.Capabilities().Presets
	if of == nil {
		return nil
	}
	presets, warnings, err := of(w.URL, w.options(), w.given())
	if err != nil {
		return err
	}
	w.Warnings = append(w.Warnings, warnings...)
	w.presetInFlight = presets["max-in-flight"]
	for _, name := range slices.Sorted(maps.Keys(presets)) {
		s := find(w.table, name)
		if _, set := w.values[name]; set || s == nil || !s.AppliesTo(w.Op) {
			continue
		}
		if err := s.Check(presets[name]); err != nil {
			return At(name+", as preset", err)
		}
		w.values[name] = value{texts: []string{presets[name]}, from: FromPreset}
	}
	return nil
}

// given returns the settings with a value from the user.
func (w *Workload) given() map[string]bool {
	given := make(map[string]bool, len(w.values))
	for name, v := range w.values {
		given[name] = v.from > FromPreset
	}
	return given
}

// options are the values of the kind's options, including defaults.
func (w *Workload) options() protocol.Values {
	v := make(protocol.Values)
	for _, o := range w.Kind.Options() {
		if given, ok := w.values[o.Name]; ok {
			v[o.Name] = given.texts
		} else if s := find(w.table, o.Name); s.Default != "" && s.AppliesTo(w.Op) {
			v[o.Name] = []string{s.Default}
		}
	}
	return v
}

func meaningHint(s *Setting, ops []string) string {
	var fit []string
	for _, op := range ops {
		if s.AppliesTo(op) {
			fit = append(fit, op)
		}
	}
	if len(fit) == 0 {
		return "leave it out"
	}
	return "it goes with --op " + strings.Join(fit, " or --op ")
}

// unknown is the error of an unknown setting, with a suggestion.
func (w *Workload) unknown(kinds []protocol.Kind, e Entry, from Origin) error {
	for _, k := range kinds {
		if slices.ContainsFunc(k.Options(), func(o protocol.Option) bool { return o.Name == e.Name }) {
			return &protocol.Error{
				Doing: e.Where, Err: fmt.Errorf("has no meaning for %s target", aKind(w.Kind)),
				Hint: fmt.Sprintf("it is an option of %s targets", k.Name()),
			}
		}
	}
	if find(PartTable(), e.Name) != nil {
		return &protocol.Error{Doing: e.Where, Err: errors.New("belongs to a part of a workload"), Hint: "put it into the list parts of a workload file"}
	}
	err := &protocol.Error{Doing: e.Where, Err: errors.New("unknown setting"), Hint: "carronade run --help-all lists them all"}
	if near := NearestSetting(e.Name, Names([]protocol.Kind{w.Kind})); near != "" {
		if from == FromFlag {
			near = "--" + near
		}
		err.Hint = "did you mean " + near + "?"
	}
	return err
}

// Names lists the names of all settings of the kinds, each once.
func Names(kinds []protocol.Kind) []string {
	names := []string{"target"}
	for _, k := range append([]protocol.Kind{nil}, kinds...) {
		for _, s := range Table(k) {
			if !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// conflicts checks settings against each other.
func (w *Workload) conflicts(given func(string) (Entry, bool)) []error {
	var faults []error
	fault := func(name, hint, format string, args ...any) {
		e, ok := given(name)
		if !ok {
			e.Where = name
		}
		faults = append(faults, &protocol.Error{Doing: e.Where, Err: fmt.Errorf(format, args...), Hint: hint})
	}
	var paces []string
	for _, name := range []string{"rate", "shape", "concurrency"} {
		if w.Has(name) {
			paces = append(paces, name)
		}
	}
	if len(paces) > 1 {
		fault(paces[1], "a rate or a shape makes an open loop, --concurrency a closed one: give only one",
			"cannot be combined with %s", strings.Join(append(paces[:1:1], paces[2:]...), " and "))
		return faults
	}
	if w.String("overload") == "drop" && w.Given("overload") && !w.Has("rate") && !w.Has("shape") {
		fault("overload", "add --rate or --shape", "dropping needs a schedule: without one no event is due")
	}
	if w.String("overload") == "drop" && w.Op == Pipeline && w.String("read-queue") != "0" {
		fault("overload", "add --read-queue 0, which does not limit what waits to be read", "events that wait for the queue of reads are not dropped")
	}
	w.systemConflicts(fault)
	if w.Verify() && !slices.Contains(w.Kind.Ops(), Consume) && !w.Kind.Capabilities().Verifies {
		fault("verify", "leave it out", "%s target cannot be read back", aKind(w.Kind))
	}
	w.groupConflicts(fault)
	w.backlogConflicts(fault)
	if w.Has("trace-events") && w.Trace() == "" {
		fault("trace-events", "add --trace FILE", "selects the rows of a trace, but no trace is written")
	}
	if n, m := w.Count("batch-events"), w.Count("concurrency"); n > 0 && m > 0 && n*m > 1e9 {
		fault("concurrency", "lower one of them", "%d batches of %d events each are more than memory holds", m, n)
	}
	if w.Has("size") {
		if _, err := payload.New(payload.Spec{Size: w.String("size")}); err != nil {
			e, _ := given("size")
			faults = append(faults, At(e.Where, err))
		}
	}
	if len(faults) == 0 {
		if _, _, err := w.schedule(); err != nil {
			e, _ := given("warmup")
			faults = append(faults, At(e.Where, err))
		}
	}
	if len(faults) == 0 {
		w.faultConflicts(fault)
	}
	return faults
}

// aKind is a kind's name with its article.
func aKind(k protocol.Kind) string {
	if strings.ContainsAny(k.Name()[:1], "aeiou") {
		return "an " + k.Name()
	}
	return "a " + k.Name()
}
