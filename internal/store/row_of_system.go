package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"carronade/internal/report"
	"carronade/internal/secret"
)

// Limits on facts, which may come from any program.
const (
	mostFacts = 400 // in total
	mostOwn   = 80  // in one object, so that none uses up the space of the ones after it; RestName stands for more
	mostText  = 160 // bytes of a text; a longer one is cut and gets a checksum
)

// RestName is the name, within an object of facts, of the checksum of those beyond
// the limits: two objects that differ in any of them are different. No fact has
// this name.
const RestName = "#rest"

// runFacts are facts of the system under test that describe only one run, or
// have separate fields.
var runFacts = []string{
	"flags", "environment", "pid", "process", "last_lines", "exit", "build_s", "build_cached", "ready_after_s",
	"branch", "revision", "revision_date", "unstaged_changes", "peak_rss_bytes", "cpu_s",
}

// system describes the system under test: which one it was, and what it
// consumed.
func (b *builder) system(d *report.Document) {
	s := d.System
	if s == nil {
		return
	}
	facts := generic(s.Facts)
	b.text("branch", scalar(facts["branch"]))
	b.text("revision", scalar(facts["revision"]))
	if at, err := time.Parse(time.RFC3339, scalar(facts["revision_date"])); err == nil {
		b.time("revision_date", at)
	}
	if dirty, ok := facts["unstaged_changes"].(bool); ok {
		b.bool("unstaged_changes", dirty)
	}
	for _, name := range runFacts {
		delete(facts, name)
	}
	b.flatten("system.", facts, 2)
	b.bool("died", s.Died)
}

// hostFields are the fields taken from a machine's description, with their
// names and kinds.
var hostFields = []struct {
	key, name string
	kind      ValueKind
}{
	{"name", "name", KindText},
	{"os", "os", KindText},
	{"kernel", "kernel", KindText},
	{"distribution", "distribution", KindText},
	{"arch", "arch", KindText},
	{"cpu", "cpu", KindText},
	{"cores", "cores", KindCount},
	{"cpu_limit", "cpu_limit", KindNumber},
	{"memory_bytes", "memory", KindSize},
	{"memory_limit_bytes", "memory_limit", KindSize},
	{"governor", "governor", KindText},
	{"machine", "machine", KindText},
	{"container", "container", KindText},
	{"virtual", "virtual", KindBool},
	{"go", "go", KindText},
	{"gomaxprocs", "gomaxprocs", KindCount},
}

// host describes the generator's machine, and the first of the others.
func (b *builder) host(d *report.Document) {
	b.machine("host.", generic(d.Host))
	if len(d.Hosts) > 0 {
		b.count("system.hosts", uint64(len(d.Hosts)))
		b.machine("system.host.", generic(d.Hosts[0]))
	}
}

func (b *builder) machine(prefix string, m map[string]any) {
	for _, f := range hostFields {
		switch v := m[f.key].(type) {
		case string:
			b.text(prefix+f.name, v)
		case float64:
			b.number(prefix+f.name, f.kind, v)
		case bool:
			b.bool(prefix+f.name, v)
		}
	}
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// shortened is a text that is short enough for a row. A longer one keeps its
// beginning, for people, and gets a checksum of all of it, so that two texts
// that differ anywhere stay different.
func shortened(text string) string {
	if len(text) <= mostText {
		return text
	}
	sum := checksum(text)
	cut := text[:mostText-len(sum)-len(" ... ")]
	return strings.ToValidUTF8(cut, "") + " ... " + sum
}

// checksum is a short checksum of a text: different texts have the same one
// with a probability of one in 2^48.
func checksum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "#" + hex.EncodeToString(sum[:6])
}

// AttachmentPrefix begins the names of fields that are checksums of attached
// files.
const AttachmentPrefix = "attachment."

// OriginalPrefix begins the names of fields that are hashes of attached files as they were
// before their secrets were masked; see report.Attachment.
const OriginalPrefix = "original."

// attachments are the checksums of the attached files, so that a difference
// between servers' configurations is noticed, and the hashes of the files themselves.
// Secrets that an older program left in a text are masked first.
func (b *builder) attachments(d *report.Document) {
	for _, a := range d.Attachments {
		name := strings.Map(func(r rune) rune {
			if r <= ' ' || strings.ContainsRune("=!<>~,", r) { // the syntax of filters
				return '_'
			}
			return r
		}, a.Name)
		b.text(AttachmentPrefix+name, checksum(new(secret.Mask).Text(a.Text)))
		b.text(OriginalPrefix+name, a.Original)
	}
}

// flatten adds the values of an object of facts, under dotted names. A list
// gives its length, and the versions that its entries name. Facts beyond the
// limits give a checksum.
func (b *builder) flatten(prefix string, facts map[string]any, depth int) {
	limit := len(b.fields) + mostFacts
	var walk func(prefix string, m map[string]any, depth int)
	walk = func(prefix string, m map[string]any, depth int) {
		own := 0
		rest := map[string]any{}
		for _, k := range sortedKeys(m) {
			if !plainName.MatchString(k) {
				continue
			}
			if own >= mostOwn || len(b.fields) >= limit {
				rest[k] = m[k]
				continue
			}
			own++
			name := prefix + k
			switch v := m[k].(type) {
			case map[string]any:
				if depth > 1 {
					walk(name+".", v, depth-1)
				}
			case []any:
				b.list(name, v)
			case string:
				if v != "" {
					x := guess(shortened(v))
					x.Independent = isIndependentFact(name)
					b.put(name, x)
				}
			case bool:
				b.bool(name, v)
			case float64:
				b.put(name, Value{Kind: KindNumber, Num: v, Independent: isIndependentFact(name)})
			}
		}
		if text, err := json.Marshal(rest); err == nil && len(rest) > 0 { // it came from JSON
			b.put(prefix+RestName, Value{Kind: KindText, Text: checksum(string(text)), Independent: isIndependentFact(prefix + RestName)})
		}
	}
	walk(prefix, facts, depth)
}

func (b *builder) list(name string, v []any) {
	b.count(name, uint64(len(v)))
	var versions []string
	for _, x := range v {
		if m, ok := x.(map[string]any); ok {
			if text := scalar(m["version"]); text != "" && !slices.Contains(versions, text) {
				versions = append(versions, text)
			}
		}
	}
	slices.Sort(versions)
	b.text(name+".version", strings.Join(versions, " "))
}

// isIndependentFact reports whether a fact that the target reported about
// itself says what was tested.
func isIndependentFact(name string) bool {
	return independent[name] || strings.HasPrefix(name, "target.topic.settings.")
}
