package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"carronade/internal/verdict/find"
	"carronade/measure"
)

// idLetters is the length of a report's id, in base 36.
const idLetters = 8

// IDOf derives a report's id from its run id, which is random.
func IDOf(runID uint64) string {
	s := strconv.FormatUint(runID, 36)
	for len(s) < idLetters {
		s = "0" + s
	}
	return s[len(s)-idLetters:]
}

// Encoded is an interval in JSON, with its hash. Intervals are encoded as they end, to save
// time at the end of the run.
type Encoded struct {
	// The identity of the interval. It replaces the intervals of its phase that it covers: a
	// long series is joined in pairs.
	Phase        string
	StartS, EndS float64

	JSON []byte
	Sum  Sum // of JSON
}

// A Sum is the SHA-256 of an interval's JSON.
type Sum [sha256.Size]byte

// Encode encodes an interval, which keeps the hash and must not change afterwards. An interval
// that was read keeps its JSON.
func (iv *Interval) Encode() (Encoded, error) {
	b, err := iv.line()
	if err != nil {
		return Encoded{}, err
	}
	e := Encoded{Phase: iv.Phase, StartS: iv.StartS, EndS: iv.EndS, JSON: b, Sum: sha256.Sum256(b)}
	iv.sum = &e.Sum
	return e, nil
}

// MarshalJSON encodes the interval's fields.
func (iv Interval) MarshalJSON() ([]byte, error) { return iv.marshal() } //nolint:gocritic // rows in slices are encoded by value, too

// marshal encodes the interval's fields in one line, with the same escaping as WriteJSON,
// since the hash depends on the bytes.
func (iv *Interval) marshal() ([]byte, error) {
	type fields Interval
	form := fields(*iv)
	if iv.times != nil {
		form.Histograms = iv.encodeTimes()
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(&form)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Sum returns the hash of the interval's JSON, without encoding it again if it
// was encoded or read.
func (iv *Interval) Sum() (Sum, error) {
	if iv.sum == nil {
		if _, err := iv.Encode(); err != nil {
			return Sum{}, err
		}
	}
	return *iv.sum, nil
}

// Seal completes a document with its hash: SHA-256 over the document without intervals and
// hash, in JSON with sorted keys, followed by the hashes of the intervals in order. After a
// change, seal again. The error is of values that JSON cannot encode.
func (d *Document) Seal() error {
	d.raw = nil
	head, err := d.Head()
	if err != nil {
		return err
	}
	if d.Hash, err = d.digest(head); err != nil {
		return err
	}
	d.computedHash = d.Hash
	return nil
}

// Check compares a document with its hash and returns a *Tampered if they differ. A document
// that was read is checked as read, including fields unknown to this program.
func (d *Document) Check() error {
	found := d.computedHash
	if found == "" {
		head, err := d.Head()
		if err == nil {
			found, err = d.digest(head)
		}
		if err != nil {
			return err
		}
	}
	if d.Hash == "" || d.Hash != found {
		return &Tampered{ID: d.ID, Want: d.Hash, Got: found}
	}
	return nil
}

// A Tampered is the error of a report that was changed or is incomplete.
type Tampered struct {
	ID   string
	Want string // as stated in the report; "" if missing
	Got  string
}

// Error implements error.
func (t *Tampered) Error() string {
	if t.Want == "" {
		return fmt.Sprintf("report %s has no hash, so it cannot be checked", t.ID)
	}
	return fmt.Sprintf("report %s was changed after it was made, or is incomplete: its hash is %.12s, and it says %.12s", t.ID, t.Got, t.Want)
}

// Head returns the document's JSON without its intervals, in one line, to be stored next to a
// row per interval. For a document that was read it is the JSON as read, including unknown
// fields, so its hash stays valid.
func (d *Document) Head() ([]byte, error) {
	if d.raw != nil {
		return d.raw, nil
	}
	return d.ownHead()
}

// ownHead is the head in this program's encoding.
func (d *Document) ownHead() ([]byte, error) {
	head := *d
	head.Intervals = nil
	b, err := json.Marshal(head.form())
	if err != nil {
		return nil, fmt.Errorf("encode a report: %w", err)
	}
	return b, nil
}

// knowsAllFields reports whether this program would write the document exactly
// as it was read.
func (d *Document) knowsAllFields() bool {
	for i := range d.Intervals {
		iv := &d.Intervals[i]
		b, err := iv.marshal()
		if err != nil || iv.sum == nil || sha256.Sum256(b) != *iv.sum {
			return false
		}
	}
	head, err := d.ownHead()
	if err != nil {
		return false
	}
	hash, err := d.digest(head)
	return err == nil && hash == d.computedHash
}

// encodable is the value to encode for a file, without the rows of a run: the document, or its
// fields as read if the hash is of those.
func (d *Document) encodable() (any, error) {
	read := d.raw != nil || slices.ContainsFunc(d.Intervals, func(iv Interval) bool { return iv.raw != nil })
	if !read || d.knowsAllFields() {
		head := *d
		if len(head.Intervals) > 0 {
			head.Intervals = []Interval{}
		}
		return head.form(), nil
	}
	text, err := d.Head()
	if err != nil {
		return nil, err
	}
	var head map[string]json.RawMessage
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("write the report as JSON: %w", err)
	}
	fields := make(map[string]any, len(head)+1)
	for name, raw := range head {
		fields[name] = raw
	}
	if d.IsRun() {
		fields["intervals"] = []Interval{}
	}
	return fields, nil
}

// line is the interval's JSON in one line.
func (iv *Interval) line() ([]byte, error) {
	if iv.raw != nil {
		return iv.raw, nil
	}
	b, err := iv.marshal()
	if err != nil {
		return nil, fmt.Errorf("encode an interval: %w", err)
	}
	return b, nil
}

// Join makes a document of the result of Head and of encoded intervals, in order, which it
// keeps. Check checks them as given.
func Join(head []byte, intervals [][]byte) (*Document, error) {
	var d Document
	if err := json.Unmarshal(head, &d); err != nil {
		return nil, fmt.Errorf("read a report: %w", cutShort(err))
	}
	switch d.Schema {
	case Schema:
	case SearchSchema:
		d.Search = &Search{Answer: &find.Answer{}}
		if err := json.Unmarshal(head, d.Search); err != nil {
			return nil, fmt.Errorf("read the report of a search: %w", cutShort(err))
		}
	case ScenarioSchema:
		of := scenarioForm{Scenario: &Scenario{}}
		if err := json.Unmarshal(head, &of); err != nil {
			return nil, fmt.Errorf("read the report of a scenario: %w", cutShort(err))
		}
		d.Scenario = of.Scenario
	default:
		return nil, fmt.Errorf("read a report: its schema is %q and this program reads %q", d.Schema, Schema)
	}
	d.Intervals = make([]Interval, len(intervals))
	for i, b := range intervals {
		if err := json.Unmarshal(b, &d.Intervals[i]); err != nil {
			return nil, fmt.Errorf("read interval %d of report %s: %w", i+1, d.ID, cutShort(err))
		}
		sum := Sum(sha256.Sum256(b))
		d.Intervals[i].sum, d.Intervals[i].raw = &sum, b
	}
	d.raw = head
	var err error
	d.computedHash, err = d.digest(head)
	return &d, err
}

// digest computes the hash from the JSON of the head, which may have intervals
// and a hash, and from the intervals' own hashes.
func (d *Document) digest(head []byte) (string, error) {
	// Decode to plain values: keys get sorted and numbers normalized, so the hash does not
	// depend on the encoder.
	var fields map[string]any
	if err := json.Unmarshal(head, &fields); err != nil {
		return "", fmt.Errorf("read a report: %w", cutShort(err))
	}
	delete(fields, "intervals")
	delete(fields, "hash")
	canonical, err := json.Marshal(fields)
	if err != nil {
		return "", fmt.Errorf("hash a report: %w", err)
	}
	h := sha256.New()
	h.Write(canonical)
	for i := range d.Intervals {
		sum, err := d.Intervals[i].Sum()
		if err != nil {
			return "", err
		}
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// cutShort rewords the error of truncated JSON.
func cutShort(err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok && syntax.Error() == "unexpected end of JSON input" {
		return errors.New("the file is truncated")
	}
	return err
}

// split separates the JSON of a document, in any layout, into the arguments of Join.
func split(data []byte) (head []byte, intervals [][]byte, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, nil, err
	}
	var rows []json.RawMessage
	if raw, ok := fields["intervals"]; ok {
		if err := json.Unmarshal(raw, &rows); err != nil {
			return nil, nil, err
		}
		delete(fields, "intervals")
	}
	for _, row := range rows {
		var line bytes.Buffer
		if err := json.Compact(&line, row); err != nil {
			return nil, nil, err
		}
		intervals = append(intervals, line.Bytes())
	}
	head, err = json.Marshal(fields)
	return head, intervals, err
}

// Histogram joins the histograms of a time over the measurement: response, service,
// send_delay, batching, queueing, failed_service or end_to_end, or of the ages of missing values of a
// time (see measure.AgesOf); nil if there are none. It decodes them on each call. Intervals that cannot be decoded are left out; Check
// reports them.
func (d *Document) Histogram(name string) *measure.Histogram {
	var out *measure.Histogram
	for i := range d.Intervals {
		if d.Intervals[i].Phase != measure.Measurement {
			continue
		}
		if h := d.Intervals[i].Histogram(name); h != nil {
			if out == nil {
				out = measure.NewHistogram()
			}
			out.Merge(h)
		}
	}
	out.Refine(d.Times.named(name))
	return out
}

// missingIn is the time whose missing values have their ages in a histogram; nil if it is not one of ages.
func (iv *Interval) missingIn(histogram string) *measure.Summary {
	for i := range times {
		if times[i].row != nil && measure.AgesOf(times[i].Name) == histogram {
			return times[i].row(iv)
		}
	}
	return nil
}

// Histogram decodes a histogram of the interval, by the name of its time; nil
// if nothing was measured or it cannot be decoded.
func (iv *Interval) Histogram(name string) *measure.Histogram {
	text := iv.encodedTime(name)
	if text == "" {
		return nil
	}
	h, err := measure.DecodeHDR(text)
	if err != nil {
		return nil
	}
	if r := iv.missingIn(name); r != nil && h.Count() == r.Censored {
		// The smallest age decides which percentiles are lower bounds, and the largest is a
		// bound of the maximum. Older reports have only the smallest: for the others the buckets
		// suffice.
		h.Refine(&measure.Summary{
			Count: h.Count(), Min: r.CensoredMin,
			Mean: cmp.Or(r.CensoredMean, float64(h.Mean())/1e3), Max: cmp.Or(r.CensoredMax, float64(h.Max())/1e3),
		})
	}
	h.Refine(iv.Time(name))
	return h
}
