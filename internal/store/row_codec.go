package store

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"
)

// A row as stores keep it:
//
//	version  1 byte, 2
//	id       length, bytes
//	at       seconds since the epoch (signed), nanoseconds
//	names    length in bytes, and for each field, sorted
//	  name   length shared with the previous name, length of the rest, the rest
//	and for each field
//	  tag    form in the low four bits, and the bits below
//	  num    unless it is a text: a signed number, or eight bytes of a float
//	  text   if the tag says so: length, bytes
//
// Lengths and numbers are varints. The names are separate because thousands of
// rows have the same ones: a reader of many rows decodes them once. Whether a
// run is still running is not part of it: the store knows.
const (
	codecVersion = 2

	tagForm        = 0x0f
	tagIndependent = 0x10
	tagText        = 0x20
	tagWhole       = 0x40 // num is a signed whole number, otherwise eight bytes of a float
	tagDerived     = 0x80
)

// nanoKinds are the kinds whose whole numbers may count billionths. Their forms
// come after those of the kinds.
var nanoKinds = [...]ValueKind{KindNumber, KindShare, KindDuration, KindRate, KindSpeed, KindTime}

// form is a kind and whether its number counts billionths, in four bits.
func form(k ValueKind, nano bool) byte {
	if nano {
		return byte(kinds) + byte(slices.Index(nanoKinds[:], k))
	}
	return byte(k)
}

// parseForm is the inverse of form.
func parseForm(b byte) (k ValueKind, nano, ok bool) {
	if b < byte(kinds) {
		return ValueKind(b), false, true
	}
	if b -= byte(kinds); int(b) < len(nanoKinds) {
		return nanoKinds[b], true, true
	}
	return 0, false, false
}

var errRow = errors.New("read a digest: it is truncated or not a digest")

// MarshalBinary encodes the row in a compact form, which depends only on the
// row.
func (r *Row) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, 64+16*len(r.Fields))
	b = append(b, codecVersion)
	b = appendText(b, r.ID)
	b = binary.AppendVarint(b, r.At.Unix())
	b = binary.AppendUvarint(b, uint64(r.At.Nanosecond()))
	names, before := make([]byte, 0, 12*len(r.Fields)), ""
	for i := range r.Fields {
		name := r.Fields[i].Name
		shared := 0
		for shared < min(len(before), len(name)) && before[shared] == name[shared] {
			shared++
		}
		names = binary.AppendUvarint(names, uint64(shared))
		names = appendText(names, name[shared:])
		before = name
	}
	b = binary.AppendUvarint(b, uint64(len(names)))
	b = append(b, names...)
	for i := range r.Fields {
		b = appendValue(b, r.Fields[i].Value)
	}
	return b, nil
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendValue(b []byte, v Value) []byte {
	whole, nano, ok := wholeOf(v.Num)
	if nano && !slices.Contains(nanoKinds[:], v.Kind) {
		nano, ok = false, false
	}
	tag := form(v.Kind, nano)
	tag |= bit(tagIndependent, v.Independent) | bit(tagDerived, v.Derived) | bit(tagText, v.Text != "") | bit(tagWhole, ok && v.Kind != KindText)
	b = append(b, tag)
	switch {
	case v.Kind == KindText:
	case ok:
		b = binary.AppendVarint(b, whole)
	default:
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Num))
	}
	if v.Text != "" {
		b = appendText(b, v.Text)
	}
	return b
}

func bit(b byte, set bool) byte {
	if set {
		return b
	}
	return 0
}

// wholeOf writes a number as a whole number of ones or of billionths (as for
// seconds), if that represents it exactly.
func wholeOf(x float64) (n int64, nano, ok bool) {
	const most = 1 << 48 // above it, eight bytes are as short
	if x == 0 && math.Signbit(x) {
		return 0, false, false
	}
	if math.Abs(x) < most && x == math.Trunc(x) {
		return int64(x), false, true
	}
	if y := math.Round(x * 1e9); math.Abs(y) < most && y/1e9 == x {
		return int64(y), true, true
	}
	return 0, false, false
}

// UnmarshalRow decodes one row. For many rows use a RowDecoder.
func UnmarshalRow(data []byte) (Row, error) { return NewRowDecoder(nil).Row(data) }

// A RowDecoder decodes rows that share their names and texts, so that thousands of
// them need little memory. It has one owner; its rows are safe to share.
type RowDecoder struct {
	texts     map[string]string
	selection Selection
	shapes    map[string]*shape // by the bytes of the names
	last      *shape            // of the previous row: the next one usually has the same
	fields    []Field
}

// A shape is the names of a row's fields. Rows of the same kind of run share
// it.
type shape struct {
	bytes  string
	fields []shapeField
}

// shapeField is a field of a shape.
type shapeField struct {
	name   string
	wanted bool
	text   string // its text in the previous row: often the same again
}

// mostShared limits how many texts are shared: texts that differ between
// thousands of reports are not worth a table. mostShapes limits the shapes.
const (
	mostShared = 1 << 16
	mostShapes = 1 << 10
)

// NewRowDecoder returns a decoder that keeps the fields that Select chooses; nil
// keeps all.
func NewRowDecoder(fields []string) *RowDecoder {
	return &RowDecoder{texts: make(map[string]string, 512), selection: Select(fields), shapes: make(map[string]*shape)}
}

// Row decodes a row. It does not keep data.
func (d *RowDecoder) Row(data []byte) (Row, error) {
	in := reader{data: data}
	if in.byte() != codecVersion {
		return Row{}, errRow
	}
	r := Row{ID: string(in.bytes())}
	sec := in.varint()
	nano := in.uvarint()
	names := in.bytes()
	if in.bad || nano >= 1e9 {
		return Row{}, errRow
	}
	r.At = time.Unix(sec, int64(nano)).UTC()
	sh := d.shape(names)
	if sh == nil {
		return Row{}, errRow
	}
	d.fields = d.fields[:0]
	for i := range sh.fields {
		at := &sh.fields[i]
		tag := in.byte()
		if !at.wanted && !(d.selection.Independent && tag&tagIndependent != 0) {
			in.skip(tag)
			continue
		}
		v, text, ok := in.value(tag)
		if !ok {
			return Row{}, errRow
		}
		switch {
		case len(text) == 0:
		case at.text == string(text):
			v.Text = at.text
		case string(text) == r.ID:
			v.Text = r.ID
		default:
			v.Text = d.shared(text)
			at.text = v.Text
		}
		d.fields = append(d.fields, Field{Name: at.name, Value: v})
	}
	if in.bad || len(in.data) > 0 {
		return Row{}, errRow
	}
	r.Fields = append(make([]Field, 0, len(d.fields)), d.fields...)
	return r, nil
}

// shape decodes names; nil if they are invalid.
func (d *RowDecoder) shape(names []byte) *shape {
	if d.last != nil && d.last.bytes == string(names) {
		return d.last
	}
	if sh := d.shapes[string(names)]; sh != nil {
		d.last = sh
		return sh
	}
	sh := &shape{bytes: string(names)}
	var name []byte
	for in := (reader{data: names}); len(in.data) > 0; {
		shared := in.uvarint()
		rest := in.bytes()
		if in.bad || shared > uint64(len(name)) {
			return nil
		}
		name = append(name[:shared], rest...)
		s := shapeField{name: d.shared(name)}
		if n := len(sh.fields); n > 0 && s.name <= sh.fields[n-1].name {
			return nil
		}
		s.wanted = d.selection.Has(s.name)
		sh.fields = append(sh.fields, s)
	}
	if len(d.shapes) < mostShapes {
		d.shapes[sh.bytes] = sh
	}
	d.last = sh
	return sh
}

// shared is a text as a string that equal texts share.
func (d *RowDecoder) shared(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	if s, ok := d.texts[string(text)]; ok {
		return s
	}
	s := string(text)
	if len(d.texts) < mostShared {
		d.texts[s] = s
	}
	return s
}

// A reader reads untrusted bytes. After an error it returns zeros.
type reader struct {
	data []byte
	bad  bool
}

func (r *reader) fail() { r.data, r.bad = nil, true }

func (r *reader) byte() byte {
	if len(r.data) == 0 {
		r.fail()
		return 0
	}
	b := r.data[0]
	r.data = r.data[1:]
	return b
}

func (r *reader) uvarint() uint64 {
	x, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.data = r.data[n:]
	return x
}

func (r *reader) varint() int64 {
	x, n := binary.Varint(r.data)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.data = r.data[n:]
	return x
}

func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.data)) {
		r.fail()
		return nil
	}
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}

// value reads the value after a tag.
func (r *reader) value(tag byte) (v Value, text []byte, ok bool) {
	kind, nano, ok := parseForm(tag & tagForm)
	v = Value{Kind: kind, Independent: tag&tagIndependent != 0, Derived: tag&tagDerived != 0}
	switch {
	case !ok || nano && tag&tagWhole == 0:
		return v, nil, false
	case v.Kind == KindText:
	case tag&tagWhole != 0:
		v.Num = float64(r.varint())
		if nano {
			v.Num /= 1e9
		}
	default:
		v.Num = r.float()
	}
	if tag&tagText != 0 {
		text = r.bytes()
	}
	return v, text, !r.bad
}

// skip skips the value after a tag. It is fast because most fields of most rows
// are not requested.
func (r *reader) skip(tag byte) {
	switch kind, nano, ok := parseForm(tag & tagForm); {
	case !ok || nano && tag&tagWhole == 0:
		r.fail()
		return
	case kind == KindText:
	case tag&tagWhole != 0:
		i := 0
		for i < len(r.data) && r.data[i] >= 0x80 {
			i++
		}
		if i >= min(len(r.data), binary.MaxVarintLen64) {
			r.fail()
			return
		}
		r.data = r.data[i+1:]
	case len(r.data) < 8:
		r.fail()
		return
	default:
		r.data = r.data[8:]
	}
	if tag&tagText == 0 {
		return
	}
	if len(r.data) > 0 && r.data[0] < 0x80 && int(r.data[0]) < len(r.data) {
		r.data = r.data[1+int(r.data[0]):]
		return
	}
	r.bytes()
}

func (r *reader) float() float64 {
	if len(r.data) < 8 {
		r.fail()
		return 0
	}
	x := math.Float64frombits(binary.LittleEndian.Uint64(r.data))
	r.data = r.data[8:]
	return x
}
