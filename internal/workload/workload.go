package workload

import (
	"bytes"
	"encoding/json"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"carronade/internal/secret"
	"carronade/protocol"
	"carronade/units"
)

// A Workload is what to run: checked, with defaults filled in, and with the
// origin of each value. It is immutable, so several runs may share one.
type Workload struct {
	URL  *url.URL
	Kind protocol.Kind
	Op   string

	// Warnings are texts for the user about the settings.
	Warnings []string

	table  []Setting
	values map[string]value
	parts  []Part
	text   string // of the target, as typed

	presetInFlight string // the kind's default of max-in-flight; "": that of every workload
}

type value struct {
	texts []string
	from  Origin
}

// Origin is where a value came from, in rising priority.
type Origin uint8

// The origins.
const (
	FromDefault Origin = iota
	FromPreset         // from another setting: a profile, a client's own file
	FromFile
	FromFlag
)

// String returns the word used in the report's JSON.
func (o Origin) String() string { return [...]string{"default", "preset", "file", "flag"}[o] }

// A Resolved is one setting of a workload, for display.
type Resolved struct {
	Name  string
	Type  protocol.Type
	Texts []string
	From  Origin
	Group string
	// Independent settings are the conditions of a run; reports are grouped and
	// compared by them.
	Independent bool
	// Minor settings are about the report, or have a default that is off or
	// that runs are rarely compared by: the text does not show them.
	Minor bool
}

// Text is the value in one line.
func (r Resolved) Text() string { return strings.Join(r.Texts, " ") }

// firstTarget is the target of the first part, or of the workload.
func (w *Workload) firstTarget() string {
	if len(w.parts) > 0 {
		return w.parts[0].Workload.text
	}
	return w.text
}

// Target is the target's URL as typed; of a workload with parts, all of their targets.
func (w *Workload) Target() string { return w.text }

// Settings lists, in the order of the table, every setting that has a value
// and applies to the operation. Secrets appear as references, or as their
// option shows them.
func (w *Workload) Settings() []Resolved {
	var out []Resolved
	for i := range w.table {
		s := &w.table[i]
		v, ok := w.values[s.Name]
		if !ok || s.FlagOnly {
			continue
		}
		r := Resolved{Name: s.Name, Type: s.Type, Texts: v.texts, From: v.from, Group: s.Group, Independent: s.Independent}
		switch {
		case s.showAll != nil:
			r.Texts = s.showAll(v.texts)
		case s.Show != nil:
			r.Texts = make([]string, len(v.texts))
			for i, text := range v.texts {
				r.Texts[i] = s.Show(text)
			}
		}
		r.Minor = s.Aside || v.from == FromDefault && s.minor(r.Text())
		out = append(out, r)
	}
	if w.parts != nil {
		out = append(out, Resolved{Name: partsKey, Type: protocol.List, Texts: w.partTexts(), From: FromFile, Group: groupWork, Independent: true})
	}
	return out
}

// minor reports whether a setting with this default is minor.
func (s *Setting) minor(text string) bool {
	switch {
	case s.Name == "seed":
		return false
	case s.Name == "op", !s.Independent, slices.Contains([]string{"false", "none", "0", "0%"}, text):
		return true
	}
	// These matter only if another setting is set, which is then shown.
	return s.Group == "transactions" || s.Group == "connections" && s.Name != "clients"
}

// MarshalJSON writes the workload as a document for -f: the target, and each
// setting as the text of its flag. What a setting does not show must be filled
// in again.
func (w *Workload) MarshalJSON() ([]byte, error) {
	return w.document(func(*Resolved) bool { return true }), nil
}

// Essence is MarshalJSON with only what another machine needs to send the same events:
// settings that were given, and the seed. Limits, outputs, and the system under test are
// not among them.
func (w *Workload) Essence() []byte {
	return w.document(func(r *Resolved) bool {
		return r.Name == "seed" || r.Name == partsKey ||
			r.From > FromPreset && !strings.HasPrefix(r.Name, "system-") && !slices.Contains(notSent, r.Name)
	})
}

// notSent are settings that do not change what is sent.
var notSent = []string{
	"repeat", "failures", "failure-rate", "slo", "abort-on-fail", "percentiles", "hdr", "trace", "trace-events", "label", "note", "attach",
	"marks", "fault", "fault-ceiling", "at", "exec",
}

// document writes the settings that keep reports true for.
func (w *Workload) document(keep func(*Resolved) bool) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	b.WriteString(`"target":`)
	b.Write(quote(w.firstTarget()))
	for _, r := range w.Settings() {
		if !keep(&r) {
			continue
		}
		b.WriteByte(',')
		if r.Name == partsKey {
			b.Write(w.appendParts(nil))
			continue
		}
		b.Write(w.appendSetting(nil, &r))
	}
	b.WriteByte('}')
	return b.Bytes()
}

// appendSetting appends a setting as a member of a JSON object.
func (w *Workload) appendSetting(b []byte, r *Resolved) []byte {
	b = append(append(b, quote(r.Name)...), ':')
	switch find(w.table, r.Name).Type {
	case protocol.Bool:
		return append(b, r.Texts[0]...)
	case protocol.List:
		return append(b, quote(r.Texts)...)
	}
	return append(b, quote(r.Texts[len(r.Texts)-1])...)
}

func quote(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // strings and lists of strings always encode
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// Given reports whether the user set the value, directly or by a preset.
func (w *Workload) Given(name string) bool { return w.values[name].from != FromDefault }

// String returns a setting's text, "" if it has none.
func (w *Workload) String(name string) string {
	t := w.values[name].texts
	if len(t) == 0 {
		return ""
	}
	return t[len(t)-1]
}

// Has reports whether a setting has a value, which may be the default.
func (w *Workload) Has(name string) bool { return len(w.values[name].texts) > 0 }

// Bool returns a switch; false if it was not set.
func (w *Workload) Bool(name string) bool { return w.String(name) == "true" }

// Count returns a number, 0 without a value.
func (w *Workload) Count(name string) uint64 { return parsed(w, name, units.ParseCount) }

// Duration returns a duration, 0 without a value.
func (w *Workload) Duration(name string) time.Duration { return parsed(w, name, units.ParseDuration) }

// parsed reads a value that Resolve has checked.
func parsed[T any](w *Workload, name string, parse func(string) (T, error)) T {
	var zero T
	text := w.String(name)
	if text == "" {
		return zero
	}
	v, err := parse(text)
	if err != nil {
		panic("workload: " + name + " was not checked: " + err.Error())
	}
	return v
}

// Labels are the names and values for the report, without what looks like a
// secret; nil if there are none.
func (w *Workload) Labels() map[string]string {
	out, _ := ParseLabels(w.values["label"].texts) // they were checked
	return out
}

// ParseLabels parses labels NAME=VALUE, without what looks like a secret; nil if
// there are none.
func ParseLabels(texts []string) (map[string]string, error) {
	var (
		out  map[string]string
		mask secret.Mask
	)
	for _, l := range texts {
		if err := checkPair(l); err != nil {
			return nil, err
		}
		if out == nil {
			out = make(map[string]string)
		}
		k, v, _ := strings.Cut(l, "=")
		k = strings.TrimSpace(k)
		out[k] = mask.Value(k, v)
	}
	return out, nil
}

// Verify reports whether the sent events are to be read back.
func (w *Workload) Verify() bool { return w.Bool("verify") }

// Repeat is the number of runs, at least 1.
func (w *Workload) Repeat() int { return max(1, int(w.Count("repeat"))) }

// HDR is the file for the histograms, "" for none.
func (w *Workload) HDR() string { return w.String("hdr") }

// Trace is the file for rows of batches or events, "" for none.
func (w *Workload) Trace() string { return w.String("trace") }

// TraceEvents is N if one of N events has a row; 0: each batch has one.
func (w *Workload) TraceEvents() uint64 {
	share := w.share("trace-events")
	if share <= 0 {
		return 0
	}
	return uint64(min(math.Round(1/share), 1<<53))
}

// ClientMetrics reports whether the report shows what each connection did.
func (w *Workload) ClientMetrics() bool { return w.Bool("client-metrics") }

// IdleTimeout ends a run that consumes when nothing arrived for this long.
func (w *Workload) IdleTimeout() time.Duration { return w.Duration("idle-timeout") }

// Seed determines everything random in the run.
func (w *Workload) Seed() uint64 { return w.Count("seed") }

// OpenEnded reports whether only a signal, or the target, ends the run.
func (w *Workload) OpenEnded() bool {
	if w.readsOnce() || slices.ContainsFunc(w.parts, func(p Part) bool { return p.Weight > 0 && p.Workload.readsOnce() }) {
		return false
	}
	if w.Op == Consume {
		p, err := w.ReadPlan()
		return err != nil || p.Endless()
	}
	p, err := w.Plan()
	return err != nil || p.Endless()
}

// readsOnce reports whether the run ends when everything was read.
func (w *Workload) readsOnce() bool { return w.Op == ReadSingle && !w.Bool("recycle") }

// List returns the values of a setting that may be given several times.
func (w *Workload) List(name string) []string { return w.values[name].texts }

// Size returns a size in bytes, 0 without a value.
func (w *Workload) Size(name string) int64 { return parsed(w, name, units.ParseSize) }

// References returns the references of the workload's secrets, such as
// env:NAME, not their values.
func (w *Workload) References() []string {
	var out []string
	for i := range w.parts {
		out = append(out, w.parts[i].Workload.References()...)
	}
	for i := range w.table {
		s := &w.table[i]
		if !s.Secret && s.Show == nil {
			continue
		}
		for _, text := range w.values[s.Name].texts {
			if _, value, ok := strings.Cut(text, "="); ok && !s.Secret { // a header
				text = value
			}
			if secret.IsReference(text) {
				out = append(out, text)
			}
		}
	}
	return out
}
