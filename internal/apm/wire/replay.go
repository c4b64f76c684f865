package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// Bounds of a corpus.
const (
	maxLine     = 1 << 20  // bytes of one line
	maxRecorded = 16 << 20 // bytes of one request
)

// A Corpus reads recorded requests from lines of intake v2 or RUM v3, one after
// the other, so that a file of any size is replayed in bounded memory. A
// request begins with its metadata.
//
// Ids of 16 or 32 hex digits are replaced, and references stay valid: the same id
// is replaced with the same new one everywhere in the corpus. That needs no table
// of ids, since the new id is a bijection of the old one. Other ids do not change.
// Times, numbers and texts, are shifted so that the last of a request is the time it is stamped with. Texts become
// those of UTC with microseconds.
type Corpus struct {
	lines *bufio.Reader
	most  int // events in a request
	at    int // number of the line

	metadata  []byte
	next      []byte // a line that was read, and begins the next request
	unstamped int    // lines without an id or time to stamp
}

// NewCorpus reads r. A request has at most most events; one that was recorded with
// more is split into several, each with its metadata. 0 means as recorded, up to
// 16 MiB.
func NewCorpus(r io.Reader, most int) *Corpus {
	if most <= 0 {
		most = math.MaxInt
	}
	return &Corpus{lines: bufio.NewReaderSize(r, 64<<10), most: most}
}

// Unstamped is how many lines so far contain nothing that Stamp changes.
func (c *Corpus) Unstamped() int { return c.unstamped }

// Next reads the next request. At the end it returns io.EOF. Stamp needs the number
// of the pass over the corpus as the number of the batch, so that each pass has
// different ids.
func (c *Corpus) Next() (*Body, error) {
	if c.next == nil {
		line, err := c.line()
		if err != nil {
			return nil, err
		}
		c.next = line
	}
	line := c.next
	c.next = nil
	if isMetadata(line) {
		c.metadata, line = line, nil
	} else if c.metadata == nil {
		return nil, fmt.Errorf("line %d of the corpus is not metadata: want an object whose first name is metadata or m", c.at)
	}
	b := &Body{Bytes: append(bytes.Clone(c.metadata), '\n')}
	for {
		if line != nil {
			places := len(b.places)
			if err := b.record(line); err != nil {
				return nil, fmt.Errorf("line %d of the corpus: %w", c.at, err)
			}
			if len(b.places) == places {
				c.unstamped++
			}
		}
		if b.Events() >= c.most {
			break
		}
		var err error
		if line, err = c.line(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if isMetadata(line) || len(b.Bytes)+len(line) > maxRecorded {
			c.next = line
			break
		}
	}
	b.Plain = len(b.Bytes)
	b.indexTimes()
	return b, nil
}

// line reads the next line that is not empty. The caller may keep it.
func (c *Corpus) line() ([]byte, error) {
	var line []byte
	for {
		part, err := c.lines.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("line %d of the corpus is longer than %d bytes", c.at+1, maxLine)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			if errors.Is(err, io.EOF) {
				return nil, io.EOF
			}
			return nil, fmt.Errorf("reading the corpus: %w", err)
		}
		c.at++
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
		line = line[:0]
	}
}

// lineKind is the first name in a line's object.
func lineKind(line []byte) []byte {
	var t Tokens
	t.Reset(line)
	if tok, err := t.Next(); err != nil || tok != BeginObject {
		return nil
	}
	if tok, err := t.Next(); err != nil || tok != Key {
		return nil
	}
	return t.Raw()
}

func isMetadata(line []byte) bool {
	k := lineKind(line)
	return string(k) == "metadata" || string(k) == "m"
}

// KindOfLine returns the kind of the event in a line; ok is false for metadata and
// for anything else.
func KindOfLine(line []byte) (k Kind, ok bool) {
	switch string(lineKind(line)) {
	case "transaction", "x":
		return Transaction, true
	case "span":
		return Span, true
	case "error", "e":
		return Error, true
	case "metricset", "me":
		return Metricset, true
	case "log":
		return Log, true
	}
	return 0, false
}

// rule is the meaning of an event's member.
type rule uint8

const (
	ruleID      rule = iota + 1 // an id
	ruleIDs                     // an array of ids
	ruleTime                    // microseconds since 1970, or a text
	ruleObjects                 // an array of objects with ids
)

var rules = map[string]rule{
	"id": ruleID, "trace_id": ruleID, "parent_id": ruleID, "transaction_id": ruleID, "span_id": ruleID,
	"tid": ruleID, "pid": ruleID, "xid": ruleID,
	"trace.id": ruleID, "transaction.id": ruleID, "span.id": ruleID, "@timestamp": ruleTime, // of a log
	"timestamp": ruleTime, "child_ids": ruleIDs, "links": ruleObjects, "y": ruleObjects, "me": ruleObjects,
}

// record appends the line of an event, with a place for each of its ids and times. What follows the event's object
// is sent as it is: servers ignore it.
func (b *Body) record(line []byte) error {
	k, ok := KindOfLine(line)
	if !ok {
		return fmt.Errorf("%.30q is not an event", line)
	}
	t := Tokens{LooseText: true}
	t.Reset(line)
	b.Counts[k]++
	base := len(b.Bytes)
	copied := 0 // of the line
	for {
		tok, err := t.Next()
		if err != nil {
			return err
		}
		if t.Depth() == 0 {
			break
		}
		if tok != Key {
			continue
		}
		if t.Depth() == 1 {
			continue // the name of the kind, before the event
		}
		// Members of nested objects are custom data, except in links and in the
		// spans and metrics of RUM's transactions.
		name := string(t.Raw())
		if tok, err = t.Next(); err != nil {
			return err
		}
		switch r := rules[name]; {
		case r == ruleID && tok == String:
			b.recordID(base, &t)
		case r == ruleTime && tok == Number:
			b.recordTime(base, &t)
		case r == ruleTime && tok == String:
			if at, ok := ParseTime(Unquote(t.Raw())); ok {
				b.Bytes = append(b.Bytes, line[copied:t.Start()+1]...)
				b.places = append(b.places, place{at: int32(len(b.Bytes)), form: formTime, val: uint64(at.UnixMicro())})
				b.Bytes = append(b.Bytes, make([]byte, formSizes[formTime])...)
				copied = t.End() - 1
				base += formSizes[formTime] - len(t.Raw())
			}
		case r == ruleIDs && tok == BeginArray:
			err = b.recordIDs(base, &t)
		case r == ruleObjects && tok == BeginArray:
			var n int
			n, err = b.recordNested(base, &t)
			switch name {
			case "y":
				b.Counts[Span] += n
			case "me":
				b.Counts[Metricset] += n
			}
		default:
			err = t.Skip(tok)
		}
		if err != nil {
			return err
		}
	}
	b.Bytes = append(append(b.Bytes, line[copied:]...), '\n')
	return nil
}

// ParseTime parses a time with its offset, which may be without colon or minutes, as servers do.
func ParseTime(s string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

func (b *Body) recordIDs(base int, t *Tokens) error {
	for {
		tok, err := t.Next()
		if err != nil || tok == EndArray {
			return err
		}
		if tok == String {
			b.recordID(base, t)
		} else if err := t.Skip(tok); err != nil {
			return err
		}
	}
}

// recordNested reads an array of objects with ids, and returns the number of
// objects.
func (b *Body) recordNested(base int, t *Tokens) (n int, err error) {
	depth := t.Depth()
	for {
		tok, err := t.Next()
		if err != nil || tok == EndArray {
			return n, err
		}
		if tok == BeginObject && t.Depth() == depth+1 {
			n++
		}
		if tok != Key {
			if t.Depth() > depth+1 {
				err = t.Skip(tok)
			}
			if err != nil {
				return n, err
			}
			continue
		}
		r := rules[string(t.Raw())]
		if tok, err = t.Next(); err != nil {
			return n, err
		}
		if r == ruleID && tok == String {
			b.recordID(base, t)
		} else if err = t.Skip(tok); err != nil {
			return n, err
		}
	}
}

func (b *Body) recordID(base int, t *Tokens) {
	raw := t.Raw()
	p := place{at: int32(base + t.Start() + 1)}
	switch len(raw) {
	case formSizes[formID]:
		v, ok := parseHex(raw)
		if !ok {
			return
		}
		p.form, p.val = formID, v
	case formSizes[formTrace]:
		hi, ok := parseHex(raw)
		lo, ok2 := parseHex(raw[16:])
		if !ok || !ok2 {
			return
		}
		p.form, p.val = formTrace, fold(hi, lo)
	default:
		return
	}
	b.places = append(b.places, p)
}

func (b *Body) recordTime(base int, t *Tokens) {
	raw := t.Raw()
	if len(raw) != formSizes[formMicro] {
		return
	}
	var v uint64
	for _, c := range raw {
		if c < '0' || c > '9' {
			return
		}
		v = v*10 + uint64(c-'0')
	}
	b.places = append(b.places, place{at: int32(base + t.Start()), form: formMicro, val: v})
}

// indexTimes makes the recorded times relative to the latest one.
func (b *Body) indexTimes() {
	last := int64(math.MinInt64)
	for i := range b.places {
		if b.places[i].isTime() {
			last = max(last, int64(b.places[i].val))
		}
	}
	for i := range b.places {
		if p := &b.places[i]; p.isTime() {
			p.val = uint64(int64(p.val) - last)
		}
	}
}
