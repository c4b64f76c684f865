package workload

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/load"
	"carronade/protocol"
)

// Mix is the operation of a workload with parts.
const Mix = "mix"

// mostParts limits the parts of a workload.
const mostParts = 32

// A Part is one load of a workload with several.
type Part struct {
	Name     string
	Weight   float64   // of a part with its own pace: the number of its events
	Paced    bool      // it has its own rate or shape, as all other parts have
	Workload *Workload // its own target and operation, with the settings of the whole

	weighted string // where a weight was given; "": nowhere
}

// Share is the part's share of all events.
func (p *Part) Share(of []Part) float64 {
	sum := 0.0
	for i := range of {
		sum += of[i].Weight
	}
	if sum == 0 { // nothing is due
		return 1 / float64(len(of))
	}
	return p.Weight / sum
}

// Parts are the loads of which the workload consists; nil for one load.
func (w *Workload) Parts() []Part { return w.parts }

// PartTable is the table of the settings that only parts have.
func PartTable() []Setting {
	return []Setting{
		{Option: protocol.Option{Name: "weight", Type: protocol.Float, Default: "1", Independent: true, Help: "its share of all events, relative to the other parts; 0: none"}, check: checkWeight},
		{Option: protocol.Option{Name: "name", Word: "NAME", Independent: true, Help: "its name in the report (default: its operation)"}, check: checkPartName},
	}
}

func checkWeight(text string) error {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f < 0 || f > 1e9 {
		return fmt.Errorf("must be a number from 0 to 1e9, not %s", text)
	}
	return nil
}

func checkPartName(text string) error {
	if len(text) > 40 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errors.New("must be at most 40 characters in one line")
	}
	return nil
}

// partsOf returns the parts of a document, of which at most one has any.
func partsOf(docs ...*Document) []*Document {
	for _, d := range docs {
		if d != nil && len(d.Parts) > 0 {
			return d.Parts
		}
	}
	return nil
}

// resolveMix resolves a workload with parts: each part with the settings of the whole that
// apply to it, and the whole with those that apply to all.
func resolveMix(kinds []protocol.Kind, flags, file *Document, parts []*Document) (*Workload, error) {
	if len(parts) > mostParts {
		return nil, &Error{Where: "parts", Err: fmt.Errorf("are %d, but a workload has at most %d", len(parts), mostParts)}
	}
	flags, file = orNone(flags), orNone(file)
	var (
		faults []error
		out    = make([]Part, len(parts))
		own    = make([]resolving, len(parts))
		used   = make(map[string]bool) // settings of the whole that apply to some part
	)
	for i, d := range parts {
		out[i].Weight = 1
		for _, e := range d.Entries {
			mine, err := out[i].take(e)
			if err != nil {
				faults = append(faults, err)
			} else if !mine {
				own[i].file.Entries = append(own[i].file.Entries, e)
				out[i].Paced = out[i].Paced || ownPace(e.Name)
			}
		}
		if len(d.Parts) > 0 {
			faults = append(faults, &Error{Where: "part " + strconv.Itoa(i+1), Err: errors.New("has parts of its own"), Hint: "list them beside the others, with weights that multiply"})
		}
		table, op := tableOf(kinds, flags, &own[i].file, file)
		own[i].flags.Entries = inherited(table, op, flags, nil, used)
		own[i].file.Entries = append(inherited(table, op, file, own[i].file.Entries, used), own[i].file.Entries...)
	}
	faults = append(faults, checkPaces(out, flags, file)...)
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	// What applies to no part fails in the first one, with the usual error.
	unused := func(d *Document) (out []Entry) {
		for _, e := range d.Entries {
			if !used[e.Name] {
				out = append(out, e)
			}
		}
		return out
	}
	own[0].flags.Entries = append(own[0].flags.Entries, unused(flags)...)
	own[0].file.Entries = append(own[0].file.Entries, unused(file)...)
	seen := make(map[string]bool)
	for i := range own {
		w, err := resolveOne(kinds, &own[i].flags, &own[i].file)
		if err == nil {
			err = w.fitsMix()
		}
		if err != nil {
			if !seen[err.Error()] { // an error of the whole is in every part
				faults = append(faults, inPart(i, err))
			}
			seen[err.Error()] = true
			continue
		}
		out[i].Workload = w
		out[i].Name = cmp.Or(out[i].Name, w.Op)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	nameApart(out)
	return newMix(out)
}

// ownPace reports whether a setting of the load may be one of a part.
func ownPace(name string) bool { return name == "rate" || name == "shape" }

// checkPaces returns what is wrong if parts have their own rates or shapes: then all of them have
// one, and neither weights nor a pace of the whole.
func checkPaces(parts []Part, whole ...*Document) (faults []error) {
	paced := slices.IndexFunc(parts, func(p Part) bool { return p.Paced })
	if paced < 0 {
		return nil
	}
	for i := range parts {
		switch p := &parts[i]; {
		case !p.Paced:
			faults = append(faults, &Error{Where: "part " + strconv.Itoa(i+1), Err: fmt.Errorf("has no rate of its own, and part %d has one", paced+1), Hint: "give every part a rate or a shape, or give none and one rate beside parts"})
		case p.weighted != "":
			faults = append(faults, &Error{Where: p.weighted, Err: errors.New("has no meaning for a part with a rate or a shape of its own"), Hint: "leave out the weight or the rate"})
		}
	}
	for _, d := range whole {
		for _, e := range d.Entries {
			_, events, err := parseWarmup(strings.Join(e.Values, " "))
			switch {
			case ownPace(e.Name) || e.Name == "concurrency":
				faults = append(faults, &Error{Where: e.Where, Err: errors.New("cannot be combined with parts that have rates of their own"), Hint: "leave it out"})
			case e.Name == "warmup" && err == nil && events > 0:
				faults = append(faults, &Error{Where: e.Where, Err: errors.New("cannot be a number of events if parts have rates of their own"), Hint: "give a time, such as 5s"})
			}
		}
	}
	return faults
}

// A resolving is what a part is made of: its own settings and those of the whole.
type resolving struct{ flags, file Document }

func orNone(d *Document) *Document {
	if d == nil {
		return new(Document)
	}
	return d
}

// inPart says in which part an error is, unless it has a line of a file.
func inPart(i int, err error) error {
	if e, ok := errors.AsType[*Error](err); ok && strings.Contains(e.Where, ":") {
		return err
	}
	return fmt.Errorf("part %d: %w", i+1, err)
}

// take applies a setting that only parts have, and reports whether it is one.
func (p *Part) take(e Entry) (mine bool, err error) {
	s := find(PartTable(), e.Name)
	if s == nil {
		if l := find(Table(nil), e.Name); l != nil && l.Name != "op" && !ownPace(l.Name) {
			return false, &Error{Where: e.Where, Err: errors.New("applies to the whole workload, not to one part"), Hint: "put it beside parts"}
		}
		return false, nil
	}
	if len(e.Values) != 1 {
		return true, &Error{Where: e.Where, Err: fmt.Errorf("takes one value, not %d", len(e.Values))}
	}
	if err := s.Check(e.Values[0]); err != nil {
		return true, At(e.Where, err)
	}
	if e.Name == "name" {
		p.Name = e.Values[0]
	} else {
		p.Weight, _ = strconv.ParseFloat(e.Values[0], 64) // checked
		p.weighted = e.Where
	}
	return true, nil
}

// tableOf returns the table and the operation of a part, by the first of the documents that has
// its target and its operation; a nil table if the target is wrong.
func tableOf(kinds []protocol.Kind, docs ...*Document) (table []Setting, op string) {
	last := func(name string) string {
		for _, d := range docs {
			for _, e := range slices.Backward(d.Entries) {
				if e.Name == name && len(e.Values) > 0 {
					return e.Values[0]
				}
			}
		}
		return ""
	}
	kind, _, err := ParseTarget(kinds, last("target"))
	if err != nil {
		return nil, ""
	}
	table = Table(kind)
	if op = last("op"); op == "" {
		op = find(table, "op").Default
	}
	return table, op
}

// inherited are the settings of the whole that apply to a part, without those that the part has
// itself. It notes what applies.
func inherited(table []Setting, op string, whole *Document, own []Entry, used map[string]bool) (out []Entry) {
	for _, e := range whole.Entries {
		if s := find(table, e.Name); e.Name != "target" && (s == nil || !s.AppliesTo(op)) {
			continue
		}
		used[e.Name] = true
		if !slices.ContainsFunc(own, func(o Entry) bool { return o.Name == e.Name }) {
			out = append(out, e)
		}
	}
	return out
}

// fitsMix returns an error if the workload cannot be a part.
func (w *Workload) fitsMix() error {
	switch {
	case w.Op == Consume || w.Op == RoundTrip || w.Op == Pipeline:
		e := &Error{Where: "op", Err: fmt.Errorf("%s cannot be a part: a part sends, or reads one record after the other", w.Op), Hint: "leave it out"}
		if slices.Contains(w.Kind.Ops(), ReadSingle) {
			e.Hint = "--op read reads records by their offsets"
		}
		return e
	case w.Verify():
		return &Error{Where: "verify", Err: errors.New("what several loads send together is not read back"), Hint: "run the part alone with --verify"}
	case w.Trace() != "":
		return &Error{Where: "trace", Err: errors.New("several loads together have no trace"), Hint: "run the part alone with --trace"}
	case w.Has("index"):
		return &Error{Where: "index", Err: errors.New("what several loads send together is not counted in an index"), Hint: "run the part alone with --index"}
	}
	return nil
}

// nameApart gives parts of the same name numbers.
func nameApart(parts []Part) {
	count := make(map[string]int)
	for i := range parts {
		count[parts[i].Name]++
	}
	next := make(map[string]int)
	for i := range parts {
		if name := parts[i].Name; count[name] > 1 {
			next[name]++
			parts[i].Name = fmt.Sprintf("%s %d", name, next[name])
		}
	}
}

// newMix makes the whole of its parts.
func newMix(parts []Part) (*Workload, error) {
	first := parts[0].Workload
	w := &Workload{
		Kind: &mixKind{parts}, URL: first.URL, Op: Mix, parts: parts, values: make(map[string]value),
	}
	var (
		targets []string
		sum     float64
	)
	for i := range parts {
		of := parts[i].Workload
		if !slices.Contains(targets, of.text) {
			targets = append(targets, of.text)
		}
		sum += parts[i].Weight
		for _, text := range of.Warnings {
			if !slices.Contains(w.Warnings, text) {
				w.Warnings = append(w.Warnings, text)
			}
		}
		if of.Unacknowledged() != first.Unacknowledged() {
			return nil, &Error{Where: "parts", Err: errors.New("some of them are never acknowledged, others are"), Hint: "give all of them acknowledgements, or none"}
		}
	}
	if !(sum > 0) && !parts[0].Paced {
		return nil, &Error{Where: "weight", Err: errors.New("is 0 for all parts"), Hint: "give at least one of them a weight above 0"}
	}
	w.text = strings.Join(targets, ", ")
	for _, s := range first.table {
		if s.Kind == "" && s.Name != "op" && !(parts[0].Paced && ownPace(s.Name)) {
			w.table = append(w.table, s)
			if v, ok := first.values[s.Name]; ok {
				w.values[s.Name] = v
			}
		}
	}
	if parts[0].Paced {
		if err := w.weigh(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// partTexts are the parts in a line each: the setting "parts" of a report.
func (w *Workload) partTexts() []string {
	var out []string
	for i := range w.parts {
		p := &w.parts[i]
		text := p.Name + ": "
		if !p.Paced {
			text += "weight " + strconv.FormatFloat(p.Weight, 'g', -1, 64) + ", "
		}
		text += p.Workload.Op + " " + p.Workload.text
		for _, r := range p.Own() {
			if r.From != FromDefault {
				text += " " + r.Name + "=" + r.Text()
			}
		}
		out = append(out, text)
	}
	return out
}

// Own are the settings that a part does not share with the whole: the options of its target, and
// its own pace.
func (p *Part) Own() []Resolved {
	return slices.DeleteFunc(p.Workload.Settings(), func(r Resolved) bool {
		return find(p.Workload.table, r.Name).Kind == "" && !(p.Paced && ownPace(r.Name))
	})
}

// weigh sets the weights of parts with their own paces: the events that are due in the
// measurement, or in an hour if neither its time nor its number of events is limited.
func (w *Workload) weigh() error {
	all, warm, err := w.schedule()
	if err != nil {
		return err
	}
	end := load.Never
	if span := w.Duration("for"); span > 0 {
		end = warm + span
	}
	if n := w.Count("count"); n > 0 {
		if last := all.Due(all.Count(warm) + n - 1); last < end {
			end = last + 1
		}
	}
	if end == load.Never {
		end = warm + time.Hour
	}
	for i := range w.parts {
		s, _, err := w.parts[i].Workload.schedule()
		if err != nil {
			return inPart(i, err)
		}
		w.parts[i].Weight = float64(s.Count(end) - s.Count(warm))
	}
	return nil
}

// appendParts appends the parts as JSON.
func (w *Workload) appendParts(b []byte) []byte {
	b = append(b, `"parts":[`...)
	for i := range w.parts {
		p := &w.parts[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, `{"name":`...), quote(p.Name)...)
		if !p.Paced {
			b = append(b, `,"weight":`...)
			b = strconv.AppendFloat(b, p.Weight, 'g', -1, 64)
		}
		b = append(append(b, `,"target":`...), quote(p.Workload.text)...)
		b = append(append(b, `,"op":`...), quote(p.Workload.Op)...)
		for _, r := range p.Own() {
			b = append(b, ',')
			b = p.Workload.appendSetting(b, &r)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// spec is what to open for the part: a share of what the whole asks for.
func (p *Part) spec(of []Part, whole *protocol.Spec) (protocol.Spec, error) {
	s, err := p.Workload.Spec()
	if err != nil {
		return s, err
	}
	share := func(n uint64) uint64 { return uint64(math.Ceil(float64(n) * p.Share(of))) }
	s.RunID, s.Room, s.Logf = whole.RunID, whole.Room, whole.Logf
	if s.Count = share(s.Count); !p.Paced {
		s.Most = share(s.Most)
	}
	return s, nil
}

// mixKind opens the parts of a workload as one target.
type mixKind struct{ parts []Part }

// Name implements protocol.Kind.
func (mixKind) Name() string { return Mix }

// Schemes implements protocol.Kind.
func (mixKind) Schemes() []string { return nil }

// Ops implements protocol.Kind.
func (mixKind) Ops() []string { return []string{Mix} }

// Options implements protocol.Kind: the parts have them.
func (mixKind) Options() []protocol.Option { return nil }

// Capabilities implements protocol.Kind. The parts have had their presets, and fitsMix refuses a
// part that is verified.
func (k mixKind) Capabilities() protocol.KindCapabilities {
	return protocol.KindCapabilities{
		Unacknowledged: k.unacknowledged, Check: k.check, DefaultPort: k.defaultPort, Needs: k.needs,
	}
}

func (k mixKind) check(whole protocol.Spec) error {
	for i := range k.parts {
		p := &k.parts[i]
		s, err := p.spec(k.parts, &whole)
		if err == nil {
			err = protocol.Check(p.Workload.Kind, s)
		}
		if err != nil {
			return fmt.Errorf("part %s: %w", p.Name, err)
		}
	}
	return nil
}

// needs are those of all parts, which are open at the same time.
func (k mixKind) needs(whole protocol.Spec) (needs []protocol.Need) {
	for i := range k.parts {
		p := &k.parts[i]
		of := p.Workload.Kind.Capabilities().Needs
		if of == nil {
			continue
		}
		if s, err := p.spec(k.parts, &whole); err == nil { // Open says why not
			needs = append(needs, of(s)...)
		}
	}
	return needs
}

// defaultPort is that of the first part, whose URL the whole has.
func (k mixKind) defaultPort(scheme string) string {
	return protocol.DefaultPort(k.parts[0].Workload.Kind, scheme)
}

// unacknowledged: all parts are, or none is.
func (k mixKind) unacknowledged(*url.URL, protocol.Values) bool {
	return k.parts[0].Workload.Unacknowledged()
}
