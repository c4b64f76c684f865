package wire

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
)

// A builder writes one body. Its input is ASCII, apart from labels. text escapes only
// tabs, quotes and backslashes, the only characters in it that JSON requires to be
// escaped.
type builder struct {
	m       *Makeup
	rng     *rand.Rand
	shape   []outline
	before  [][]outline // of the earlier requests that share traces with this one, the latest first
	hop     int
	agent   *agent
	service string
	host    int

	out    []byte
	places []place
	counts Counts

	labelled uint64 // number of the next event with labels
	label    []byte // its label's value, while it is written
}

func (b *builder) raw(s string) { b.out = append(b.out, s...) }

func (b *builder) int(v int64) { b.out = strconv.AppendInt(b.out, v, 10) }

// millis writes microseconds as milliseconds.
func (b *builder) millis(us int64) {
	b.int(us / 1000)
	if f := us % 1000; f != 0 {
		b.out = append(b.out, '.', byte('0'+f/100), byte('0'+f/10%10), byte('0'+f%10))
	}
}

// text writes a JSON string.
func (b *builder) text(s string) {
	b.out = append(b.out, '"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '\t':
			b.raw(`\t`)
		case '"', '\\':
			b.out = append(b.out, '\\', c)
		default:
			b.out = append(b.out, c)
		}
	}
	b.out = append(b.out, '"')
}

// field writes `,"name":"value"`, or nothing without a value.
func (b *builder) field(name, value string) {
	if value == "" {
		return
	}
	b.key(name)
	b.text(value)
}

// key writes `,"name":`.
func (b *builder) key(name string) {
	b.raw(`,"`)
	b.raw(name)
	b.raw(`":`)
}

// labels writes the labels of the make-up as further fields of the open object.
func (b *builder) labels() {
	for i := range b.m.Labels {
		l := &b.m.Labels[i]
		b.label = l.Append(b.label[:0], b.labelled)
		for j, s := range []string{l.Name, string(b.label)} {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic(err) // every text can be written
			}
			b.raw([...]string{",", ":"}[j])
			b.out = append(b.out, quoted...)
		}
	}
	b.labelled++
}

// reserve reserves a place for a value that Stamp writes.
func (b *builder) reserve(f form, back int, val uint64) {
	b.places = append(b.places, place{at: int32(len(b.out)), form: f, back: uint8(back), val: val})
	for range formSizes[f] {
		b.out = append(b.out, '0')
	}
}

// id writes an id in quotes.
func (b *builder) id(f form, back int, val uint64) {
	b.out = append(b.out, '"')
	b.reserve(f, back, val)
	b.out = append(b.out, '"')
}

// A link says where in which trace an event is: its trace, and its caller.
type link struct {
	back   int    // the trace began this many requests before
	trace  uint64 // number of the trace
	parent uint64 // number in the request before this one; only if back > 0
}

// link finds the trace of the i-th transaction: it began in the first of the
// consecutive requests up to this one that have an i-th transaction.
func (b *builder) link(i int) link {
	l := link{trace: traceBit | uint64(i)}
	for _, before := range b.before {
		if i >= len(before) || before[i].kind != Transaction {
			break
		}
		l.back++
	}
	if l.back > 0 {
		l.parent = b.before[0][i].lastSpan()
	}
	return l
}

// A timing is the time of one transaction, in microseconds.
type timing struct {
	start    int64 // relative to the batch's time; negative
	duration int64
}

func (b *builder) timing() timing {
	d := b.m.Durations.draw(b.rng)
	// Agents send transactions that ended in the last seconds.
	return timing{start: -d - b.rng.Int64N(1000000), duration: d}
}

// child is the start, within the transaction, and the duration of the i-th of n
// spans, which run one after another.
func (t timing) child(rng *rand.Rand, i, n int) (offset, duration int64) {
	part := t.duration / int64(n)
	offset = int64(i) * part
	return offset, max(1, part-rng.Int64N(part/4+1))
}

var outcomes = [3]string{"success", "failure", "unknown"}

// drawOutcome draws the outcome and the status of a transaction.
func (b *builder) drawOutcome() (outcome string, status int) {
	o := pick(b.rng, b.m.Outcomes[:])
	status = 200
	switch o {
	case 0:
		status = *one(b.rng, []int{200, 200, 200, 201, 204, 304, 404})
	case 1:
		status = *one(b.rng, []int{500, 500, 502, 503, 504})
	}
	return outcomes[o], status
}

// frames draws the number of stack frames, and calls f for each with a line
// number.
func (b *builder) frames(f func(i int, fr *frame, line int)) {
	n := b.m.Frames.draw(b.rng)
	at := b.rng.IntN(len(b.agent.frames))
	for i := range n {
		f(i, &b.agent.frames[(at+i)%len(b.agent.frames)], 1+b.rng.IntN(1400))
	}
}

// stacktrace writes frames as a field of the open object, with the long names that
// v1 and v2 share.
func (b *builder) stacktrace() {
	if b.m.Frames.Max == 0 {
		return
	}
	b.raw(`,"stacktrace":[`)
	b.frames(func(i int, f *frame, line int) {
		if i > 0 {
			b.raw(`,`)
		}
		start := len(b.out)
		b.raw(`{"filename":`)
		b.text(f.file)
		b.key("lineno")
		b.int(int64(line))
		b.field("abs_path", f.path)
		b.field("module", f.module)
		b.field("function", f.function)
		b.key("library_frame")
		b.raw(strconv.FormatBool(f.library))
		if b.agent.rum {
			b.key("colno")
			b.int(int64(1 + b.rng.IntN(40000)))
		}
		if f.line != "" {
			b.field("context_line", f.line)
			b.sourceLines("pre_context")
			b.sourceLines("post_context")
		}
		if !f.library && !b.agent.rum && b.m.Protocol != RUMV2 {
			b.raw(`,"vars":{"id":"7d41","customer":5512`)
			b.pad(`,"self":"`, `"`, b.m.FrameBytes-(len(b.out)-start)-len(`}},`))
			b.raw(`}`)
		} else {
			b.pad(`,"vars":{"self":"`, `"}`, b.m.FrameBytes-(len(b.out)-start)-len(`},`))
		}
		b.raw(`}`)
	})
	b.raw(`]`)
}

// pad writes a field of n bytes: before and after, and text between them. It writes nothing if they
// do not fit.
func (b *builder) pad(before, after string, n int) {
	n -= len(before) + len(after)
	if n < 0 {
		return
	}
	b.raw(before)
	for ; n > len(padding); n -= len(padding) {
		b.raw(padding)
	}
	b.raw(padding[:n])
	b.raw(after)
}

// padding is like the text of an object in Python, which is most of a frame's variables.
const padding = "StrictRedis<ConnectionPool<Connection<host=cache.example.internal,port=6379,db=1>>> "

// sourceLines writes two adjacent source lines as a field.
func (b *builder) sourceLines(name string) {
	at := b.rng.IntN(len(neighbours) - 1)
	b.key(name)
	b.raw(`[`)
	b.text(neighbours[at])
	b.raw(`,`)
	b.text(neighbours[at+1])
	b.raw(`]`)
}

// named writes {"name":n,"version":v} as a field, or nothing without a name.
func (b *builder) named(field, name, version string) {
	if name == "" {
		return
	}
	b.key(field)
	b.raw(`{"name":`)
	b.text(name)
	b.field("version", version)
	b.raw(`}`)
}

// serviceObject writes the service, with the names that v1 and v2 share.
func (b *builder) serviceObject() {
	b.raw(`"service":{"name":`)
	b.text(b.service)
	b.field("version", "2026.4.1")
	b.field("environment", "production")
	b.named("agent", b.agent.name, b.agent.version)
	b.named("language", b.agent.language, b.agent.languageVersion)
	b.named("runtime", b.agent.runtime, b.agent.runtimeVersion)
	b.named("framework", b.agent.framework, b.agent.frameworkVersion)
	b.raw(`}`)
}

func (b *builder) hostname() string {
	return b.service + "-" + strconv.Itoa(b.host) + ".example.internal"
}
