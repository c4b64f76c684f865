package apm

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"carronade/internal/apm/wire"
	"carronade/internal/conn/web"
	"carronade/internal/place"
	"carronade/protocol"
)

// mostCorpus bounds the recorded bytes in memory.
const mostCorpus = 256 << 20

// A corpus has recorded requests in memory. It implements source.
type corpus struct {
	protocol  wire.Protocol
	bodies    []*wire.Body // at least the first; see openCorpus
	least     int          // events of the smallest request
	most      int          // events of the largest request
	unstamped int          // events without a field to stamp
	cut       bool         // the file has more requests
}

// openCorpus reads a file of recorded requests. Without keep the corpus has only the first of them: it is for
// what must be known before it is clear that all fit into the memory.
func openCorpus(file string, v protocol.Values, keep bool) (*corpus, error) {
	fail := func(err error, hint string) (*corpus, error) {
		return nil, &protocol.Error{Doing: "read --corpus " + file, Err: err, Hint: hint}
	}
	const form = "lines of JSON, as agents send them: a metadata line, and then events, for each request"
	c := &corpus{}
	var err error
	if c.protocol, err = protocolOf(v); err != nil {
		return fail(err, "")
	}
	if c.protocol == wire.V1 {
		return fail(errors.New("v1 documents cannot be replayed"), "choose another --intake, or leave out --corpus")
	}
	f, err := place.Open(file)
	if err != nil {
		return fail(err, "give a file of "+form)
	}
	defer f.Close()
	r := wire.NewCorpus(place.TextReader(f), 0)
	for size := 0; ; {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fail(err, "it must have "+form)
		}
		if b.Events() == 0 {
			continue
		}
		if size += b.Plain; size > mostCorpus && c.most > 0 {
			c.cut = true
			break
		}
		if keep || c.most == 0 {
			c.bodies = append(c.bodies, b)
		}
		c.most = max(c.most, b.Events())
		if c.least == 0 || b.Events() < c.least {
			c.least = b.Events()
		}
	}
	if len(c.bodies) == 0 {
		return fail(errors.New("there are no events in it"), "it must have "+form)
	}
	short := bytes.HasPrefix(bytes.ReplaceAll(c.bodies[0].Bytes[:min(64, len(c.bodies[0].Bytes))], []byte(" "), nil), []byte(`{"m":`))
	if short != (c.protocol == wire.RUMV3) {
		if short {
			return fail(errors.New("it uses the short names of RUM v3"), "add --intake rum-v3")
		}
		return fail(errors.New("it does not use the short names of RUM v3"), "leave out --intake rum-v3")
	}
	c.unstamped = r.Unstamped()
	return c, nil
}

// Make implements source: body n of the corpus, which repeats.
func (c *corpus) Make(n uint64) *wire.Body { return c.bodies[n%uint64(len(c.bodies))].Clone() }

// Counts implements source.
func (c *corpus) Counts(n uint64) wire.Counts { return c.bodies[n%uint64(len(c.bodies))].Counts }

// Hops implements source.
func (c *corpus) Hops() int { return 1 }

// Path implements source.
func (c *corpus) Path() string { return c.protocol.Path(false) }

// ContentType implements source.
func (c *corpus) ContentType() string { return c.protocol.ContentType() }

// makePartial implements source: it takes the first lines of a request that has
// enough events.
func (c *corpus) makePartial(events int) (*wire.Body, error) {
	for _, b := range c.bodies {
		if b.Events() < events {
			continue
		}
		r, err := wire.NewCorpus(bytes.NewReader(b.Bytes), events).Next()
		if err == nil && r.Events() == events {
			return r, nil
		}
	}
	return nil, fmt.Errorf("%w: no recorded request can be cut to %d events", web.ErrRemainder, events)
}
