package profile

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/place"
	traffic "carronade/internal/profile"
	"carronade/protocol"
	"carronade/units"
)

// A format is a kind of file.
type format struct {
	name  string
	about string
	// begins reports whether a file with this beginning has the format.
	begins func(head []byte) bool
	read   func(t *Tools, f *profileFlags, name string, in *input) (sample, error)
}

// sampleFormats are tried in this order.
func (t *Tools) sampleFormats() []format {
	all := []format{{"apm", "requests of APM agents, each begins with its metadata", traffic.IsAPM, (*Tools).readAPM}}
	for _, k := range t.Recorded {
		of := k.Capabilities().Recorded
		all = append(all, format{k.Name(), of.About, of.Begins, readRecorded(of)})
	}
	return append(all, format{"ndjson", "records as JSON, one a line", traffic.IsJSON, (*Tools).readNDJSON})
}

func (t *Tools) sampleFormatNames() []string {
	var names []string
	for _, f := range t.sampleFormats() {
		names = append(names, f.name)
	}
	return names
}

// An otherFormat is recognized by its beginning, and not read.
type otherFormat struct {
	name, hint string
	begins     []string
}

// otherFormats are those of which a sample that is read can be made.
func otherFormats() []otherFormat {
	return []otherFormat{
		{"Parquet", "make JSON lines of it: duckdb -c \"copy (from 'FILE') to 'records.ndjson' (format json)\"", []string{"PAR1"}},
		{
			"packets", "read the topic or the index itself, or make JSON lines of the packets' times and sizes with tshark, as docs/profile.md shows",
			[]string{"\xa1\xb2\xc3\xd4", "\xd4\xc3\xb2\xa1", "\xa1\xb2\x3c\x4d", "\x4d\x3c\xb2\xa1", "\n\r\r\n"},
		},
		{"HTTP", "leave out the heads: bodies of requests, each beginning with its metadata, are read", []string{"POST /", "PUT /", "GET /", "HTTP/1."}},
	}
}

// headSize is how much of a file decides its format.
const headSize = 64 << 10

// An input is a file that is read, until the context ends or the time is over.
type input struct {
	*bufio.Reader
	until   time.Time // zero: no limit
	ctx     context.Context
	waiting *waiting // nil: reading never waits
}

// cut reports whether the reader saw an end that its source does not have.
func (in *input) cut() bool { return in.waiting != nil && in.waiting.cut }

// ended reports whether reading ended where it had to: enough was read, or all until such an end. The
// last record may be incomplete then. If it is whole and broken, src says so. Any other error is one of
// what was read.
func (in *input) ended(src *source, err error) bool {
	if errors.Is(err, traffic.ErrEnough) {
		return true
	}
	at := (*traffic.Error)(nil)
	if in.waiting == nil || err != nil && !errors.As(err, &at) {
		return false
	}
	if _, end := in.Peek(1); end == nil || !in.cut() { // which waits for what comes after a broken record
		return false
	}
	if err != nil && !errors.Is(err, traffic.ErrIncomplete) {
		src.Broken++
		src.Warnings = append(src.Warnings, fmt.Sprintf("%s, the last that arrived, is broken, and what it belongs to does not count: %v", at.Where, at.Err))
	}
	return true
}

// finish notes in src how the reading ended, and returns err if that was an error. If no events were
// found, it returns why there is nothing to fit: nothing, if all was read.
func (in *input) finish(src *source, err error, found uint64, nothing error) error {
	switch {
	case in.ended(src, err):
		src.Interrupted = in.ctx.Err() != nil
	case err != nil:
		return err
	default:
		src.Whole = true
	}
	switch {
	case found > 0:
		return nil
	case src.Broken > 0:
		return err
	case in.ctx.Err() != nil:
		return context.Canceled
	}
	return nothing
}

// noEvents is the error of a file without events; hint says what to check.
func noEvents(name, hint string) error {
	return &protocol.Error{Err: fmt.Errorf("%s has no events", name), Hint: hint}
}

// stopped reports whether reading must end. A source that is waited for ends by itself, and what came
// until then is read.
func (in *input) stopped() bool {
	return in.waiting == nil && (in.ctx.Err() != nil || !in.until.IsZero() && time.Now().After(in.until))
}

// readFile reads a file in its format.
func (t *Tools) readFile(ctx context.Context, f *profileFlags, path string) (sample, error) {
	_, length, err := f.limits()
	if err != nil {
		return nil, err
	}
	file, err := t.open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	name := path
	if path == "-" {
		name = "stdin"
	}
	in := &input{ctx: ctx}
	var from io.Reader = file
	if path == "-" && mayWait(t.In) || path != "-" && mayWait(file) {
		reading, stop := context.WithCancel(ctx)
		defer stop()
		in.waiting = newWaiting(reading, file, length)
		from = in.waiting
	}
	in.Reader = bufio.NewReaderSize(place.TextReader(from), headSize)
	if length > 0 {
		in.until = time.Now().Add(length)
	}
	head, err := in.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, &protocol.Error{Err: fmt.Errorf("cannot read %s: %s", name, cmdutil.Reason(err))}
	}
	switch {
	case len(bytes.TrimSpace(head)) > 0:
	case ctx.Err() != nil:
		return nil, context.Canceled
	case in.cut():
		return nil, &protocol.Error{Err: fmt.Errorf("nothing arrived from %s within %s (--for)", name, units.FormatDuration(length)), Hint: "read for longer, or check what writes there"}
	default:
		return nil, &protocol.Error{Err: fmt.Errorf("%s is empty", name), Hint: "give a file with records"}
	}
	for _, of := range t.sampleFormats() {
		if of.name == f.format || f.format == "" && of.begins(head) {
			f.format = of.name
			found, err := of.read(t, f, name, in)
			return found, t.explained(err, of.name, name)
		}
	}
	for _, of := range otherFormats() {
		if slices.ContainsFunc(of.begins, func(b string) bool { return bytes.HasPrefix(head, []byte(b)) }) {
			return nil, &protocol.Error{Err: fmt.Errorf("%s is a file of %s, which is not read: only JSON lines and recorded requests are", name, of.name), Hint: strings.ReplaceAll(of.hint, "FILE", name)}
		}
	}
	var known string
	for _, of := range t.sampleFormats() {
		known += fmt.Sprintf("; %s: %s", of.name, of.about)
	}
	return nil, &protocol.Error{Err: fmt.Errorf("%s has none of the formats that can be read", name), Hint: "--format names the format of a file that is not recognized" + known}
}

// explained adds the file to an error of a reader.
func (t *Tools) explained(err error, format, name string) error {
	if _, ok := errors.AsType[*traffic.Error](err); ok {
		return &protocol.Error{Err: fmt.Errorf("%s, as %s: %w", name, format, err), Hint: "check that the file is complete, and its format (--format)"}
	}
	return err
}

// readNDJSON reads a file of records. Interrupted reading ends with what was read.
func (t *Tools) readNDJSON(f *profileFlags, name string, in *input) (sample, error) {
	to, err := f.limited(in)
	if err != nil {
		return nil, err
	}
	s := source{Kind: "ndjson", Name: name}
	err = traffic.NDJSON(in.Reader, to)
	nothing := &protocol.Error{Err: fmt.Errorf("%s has no records, as ndjson", name), Hint: "check the file, and its format (--format)"}
	if err := in.finish(&s, err, to.sampler.Records(), nothing); err != nil {
		return nil, err
	}
	return to.fit(s, 0, cmp.Or(f.to, recordTarget))
}

// The targets of workloads that were given none.
const (
	recordTarget = "kafka://127.0.0.1:9092/profile"
	apmTarget    = "apm+http://127.0.0.1:8200"
)
