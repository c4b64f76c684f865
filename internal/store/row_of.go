package store

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/report"
	"carronade/units"
)

// RowVersion is the version of RowOf. It is raised whenever RowOf makes a different row
// of the same report, so that stored rows are made again.
const RowVersion = 19

// RowOf makes the row of a report. Measured fields are absent if nothing was
// measured.
func RowOf(d *report.Document) Row {
	b := builder{fields: make([]Field, 0, 192)}
	b.identity(d)
	b.settings(d)
	b.measured(d)
	b.ceiling(d)
	b.system(d)
	b.target(d)
	b.host(d)
	b.attachments(d)
	return Row{ID: d.ID, At: d.StartedAt.UTC(), Fields: b.sorted()}
}

// A builder collects fields.
type builder struct {
	fields []Field
}

func (b *builder) put(name string, v Value) {
	b.fields = append(b.fields, Field{Name: name, Value: v})
}

// number adds a number, unless it is NaN or infinite.
func (b *builder) number(name string, k ValueKind, x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return
	}
	b.put(name, Value{Kind: k, Num: x, Independent: independent[name]})
}

func (b *builder) count(name string, n uint64) { b.number(name, KindCount, float64(n)) }

// text adds a text that is not empty.
func (b *builder) text(name, text string) {
	if text = strings.TrimSpace(text); text != "" {
		b.put(name, Value{Kind: KindText, Text: text, Independent: independent[name]})
	}
}

func (b *builder) time(name string, t time.Time) {
	if !t.IsZero() {
		b.number(name, KindTime, float64(t.UnixMilli())/1e3)
	}
}

func (b *builder) bool(name string, ok bool) {
	x := 0.0
	if ok {
		x = 1
	}
	b.number(name, KindBool, x)
}

// sorted is the fields by name. Of several with one name, the first is kept.
func (b *builder) sorted() []Field {
	slices.SortStableFunc(b.fields, func(a, b Field) int { return cmp.Compare(a.Name, b.Name) })
	b.fields = slices.CompactFunc(b.fields, func(a, b Field) bool { return a.Name == b.Name })
	return slices.Clone(b.fields)
}

// identity is the report's id and labels, and how the run ended.
func (b *builder) identity(d *report.Document) {
	b.text("id", d.ID)
	b.time("started", d.StartedAt)
	b.time("ended", d.EndedAt)
	b.text("version", d.Version)
	b.text("note", d.Note)
	b.text("mode", string(d.Mode))
	b.text("stopped", string(d.Stopped))
	b.bool("partial", d.Partial)
	b.bool("trusted", d.Trust.OK)
	b.text("trust_level", string(d.TrustLevel()))
	b.text("machine", d.MachineCause())
	b.number("exit", KindNumber, float64(d.ExitCode()))
	b.text("limits", limits(d.Checks))
	b.count("repetition", uint64(max(d.Repetition, 1)))
	b.count("repetitions", uint64(max(d.Repetitions, 1)))
	b.text("replaces", d.Replaces)
	b.count("warnings", uint64(len(d.Warnings)))
	for _, k := range sortedKeys(d.Labels) {
		b.put(labelPrefix+k, guess(d.Labels[k]))
	}
}

// limits is the worst outcome of the limits; "" if there are none.
func limits(checks []report.Check) string {
	worst := ""
	for _, c := range checks {
		switch {
		case !c.OK && !c.CannotTell:
			return "broken"
		case !c.OK:
			worst = "cannot tell"
		case worst == "":
			worst = "holds"
		}
	}
	return worst
}

// target is the address of the target, and what it reported about itself.
func (b *builder) target(d *report.Document) {
	address, scheme := d.Target, ""
	if u, err := url.Parse(d.Target); err == nil && u.Scheme != "" {
		if address = u.Scheme + "://" + u.Host + u.Path; u.Opaque != "" { // as it is typed, and as reports show it
			u.User, u.RawQuery, u.Fragment = nil, "", ""
			address = u.String()
		}
		scheme, _, _ = strings.Cut(u.Scheme, "+")
	}
	b.text("target", address)
	b.text("kind", scheme)
	b.flatten("target.", generic(d.Facts), 3)
}

// settings are the workload's settings, and the flags of the system under test,
// by their names.
func (b *builder) settings(d *report.Document) {
	b.text("op", d.Op)
	flags := false
	for _, s := range d.Settings {
		switch s.Name {
		case "label", "note", "op", "revision":
			continue // each has its own place
		case "system-flag":
			continue // one field per flag, below
		}
		v := TypedValue(s.Type, s.Value)
		v.Independent, v.Derived = s.Independent, s.Preset
		b.put(s.Name, v)
	}
	w := generic(d.Workload)
	for _, text := range texts(w["system-flag"]) {
		if name, value, ok := strings.Cut(text, "="); ok {
			flags = true
			b.flag(name, value)
		}
	}
	if d.System != nil && !flags { // a report that was not made from a workload of carronade
		if given, ok := generic(d.System.Facts)["flags"].(map[string]any); ok {
			for _, k := range sortedKeys(given) {
				b.flag(k, scalar(given[k]))
			}
		}
	}
	b.put("system-mem", Value{Kind: KindSize, Num: unlimited, Text: "none", Independent: true}) // unless it was set
}

// flag adds a flag of the system under test. If it is given several times, the
// last one counts, as with most programs.
func (b *builder) flag(name, value string) {
	v := guess(value)
	v.Independent = true
	name = flagPrefix + name
	for i := range b.fields {
		if b.fields[i].Name == name {
			b.fields[i].Value = v
			return
		}
	}
	b.put(name, v)
}

// TypedValue parses a setting by the type it has in the workload.
func TypedValue(kind, text string) Value {
	parse := func(k ValueKind, x float64, err error) Value {
		if err != nil {
			return Value{Kind: KindText, Text: text}
		}
		return Value{Kind: k, Num: x, Text: text}
	}
	switch kind {
	case "bool":
		x := 0.0
		if text == "true" {
			x = 1
		}
		return Value{Kind: KindBool, Num: x, Text: text}
	case "number":
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return parse(KindNumber, f, nil)
		}
		n, err := units.ParseCount(text)
		return parse(KindNumber, float64(n), err)
	case "duration":
		t, err := units.ParseDuration(text)
		return parse(KindDuration, t.Seconds(), err)
	case "size":
		n, err := units.ParseSize(exactSize(text))
		return parse(KindSize, float64(n), err)
	case "rate":
		r, err := units.ParseRate(exactRate(text))
		return parse(KindRate, r, err)
	case "share":
		x, err := units.ParseShare(text)
		return parse(KindShare, x, err)
	case "list":
		return Value{Kind: KindText, Text: text}
	}
	return guess(text)
}

// exactSize and exactRate rewrite texts that are refused as ambiguous today. Older
// reports have them as settings: 64K was 64KiB, 64KB and 64kb were 64kB, and 3m was 3M/s.
func exactSize(text string) string {
	number := strings.TrimRight(text, "kKmMgGtTbB")
	letter := strings.ToUpper(text[len(number):])
	switch {
	case len(letter) == 1 && letter != "B":
		return number + letter + "iB"
	case letter == "KB":
		return number + "kB"
	}
	return number + letter
}

func exactRate(text string) string {
	if strings.HasSuffix(text, "m") && !strings.Contains(text, "/") {
		return text + "/s"
	}
	return text
}

// guess parses a text that may be a plain number, a bool, or a time or size
// with its unit. A number with a suffix for thousands stays a text: 10k is
// 10,000 of one thing and 10,240 of another.
func guess(text string) Value {
	v := Value{Kind: KindText, Text: text}
	switch {
	case text == "":
		return v
	case text == "true" || text == "false":
		v.Kind = KindBool
		if text == "true" {
			v.Num = 1
		}
		return v
	case !strings.ContainsAny(text[:1], "0123456789.-"):
		return v
	}
	if x, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(x) && !math.IsInf(x, 0) {
		v.Kind, v.Num = KindNumber, x
	} else if t, err := units.ParseDuration(text); err == nil {
		v.Kind, v.Num = KindDuration, t.Seconds()
	} else if n, err := units.ParseSize(text); err == nil && strings.ContainsAny(text, "bB") {
		v.Kind, v.Num = KindSize, float64(n)
	}
	return v
}

// generic is a value as JSON decodes it, so that it is the same for a report
// that was just made and for one that was read.
func generic(v any) map[string]any {
	if v == nil {
		return nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var m map[string]any
	if json.Unmarshal(text, &m) != nil {
		return nil
	}
	return m
}

// texts are the texts of a list, or a single text.
func texts(v any) (out []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, x := range v {
			out = append(out, scalar(x))
		}
	}
	return out
}

// scalar is a text, number or bool of JSON as text; "" for anything else.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
