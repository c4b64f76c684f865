package live

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"

	"carronade/measure"
)

// mostKept is how many frames of each span a Series keeps: an hour of seconds, ten hours
// of ten seconds.
const mostKept = 3600

// A Series keeps the frames of one run in little memory: some 100 bytes for each. Of the
// newest it keeps those of a second, of older ones those that were merged. It is not safe
// for concurrent use.
type Series struct {
	spans [spanCount]kept
	names []string // of phases, and of gauges with their sources and units
	last  int64    // the number of the newest frame of a second
}

// kept are the frames of one span, oldest first, in blocks.
type kept struct {
	blocks []block
	frames int
	last   int64 // the number of the newest
}

// A block has consecutive frames, encoded.
type block struct {
	data   []byte
	ends   []uint32 // where each ends
	packed bool     // data is compressed: no more follow
}

// pack compresses a full block.
func (b *block) pack() {
	var out bytes.Buffer
	z, _ := flate.NewWriter(&out, flate.BestSpeed) // the level is valid
	z.Write(b.data)                                //nolint:errcheck // a buffer takes everything
	z.Close()
	b.data, b.packed = bytes.Clone(out.Bytes()), true
}

// unpacked returns the block with data that can be read.
func (b *block) unpacked() block {
	if !b.packed {
		return *b
	}
	data, _ := io.ReadAll(flate.NewReader(bytes.NewReader(b.data))) // pack made it
	return block{data: data, ends: b.ends}
}

const perBlock = 60

// errFrame: a frame of another program may be anything.
var errFrame = errors.New("a frame has an unknown span, or a number that does not follow")

// Add adds a frame. It does not retain it.
func (s *Series) Add(f *Frame) error {
	i, of := 0, int64(1)
	for of < f.Span && i < spanCount-1 {
		of *= tenfold
		i++
	}
	if of != f.Span || f.Number < f.Span || f.Number%f.Span != 0 {
		return errFrame
	}
	k := &s.spans[i]
	if f.Number <= k.last {
		return errFrame
	}
	k.last = f.Number
	s.last = max(s.last, f.Number)
	if n := len(k.blocks); n == 0 || len(k.blocks[n-1].ends) == perBlock {
		if n > 0 {
			k.blocks[n-1].pack()
		}
		k.blocks = append(k.blocks, block{})
	}
	b := &k.blocks[len(k.blocks)-1]
	b.data = s.append(b.data, f)
	b.ends = append(b.ends, uint32(len(b.data)))
	k.frames++
	if k.frames-len(k.blocks[0].ends) >= mostKept {
		k.frames -= len(k.blocks[0].ends)
		k.blocks = slices.Delete(k.blocks, 0, 1)
	}
	return nil
}

// View returns the series as it is now. It may be read while frames are added to s.
func (s *Series) View() *Series {
	v := *s // what is added later is beyond the lengths that it has
	for i := range v.spans {
		v.spans[i].blocks = slices.Clone(v.spans[i].blocks)
	}
	return &v
}

// Last is the number of the newest frame; 0 if there is none.
func (s *Series) Last() int64 { return s.last }

// Bytes is the memory that the frames take.
func (s *Series) Bytes() int {
	n := 0
	for i := range s.spans {
		for _, b := range s.spans[i].blocks {
			n += cap(b.data) + 4*cap(b.ends) + 48
		}
	}
	for _, name := range s.names {
		n += len(name) + 16
	}
	return n
}

// After returns the frames that have anything after number n, in order of time: those of
// a second as far as they are kept, and merged ones for the rest. Together they cover
// each second once.
func (s *Series) After(n int64) []Frame {
	out := s.spans[0].after(n, s.names)
	for i := 1; i < spanCount; i++ {
		longer := s.spans[i].after(n, s.names)
		out = replace(longer, out, n)
	}
	return out
}

// replace puts longer frames in the place of shorter ones where those are not complete
// after number after.
func replace(longer, shorter []Frame, after int64) []Frame {
	var out []Frame
	for i := range longer {
		l := &longer[i]
		first := l.Number - l.Span + 1
		n := 0
		for n < len(shorter) && shorter[n].Number < first {
			n++
		}
		out, shorter = append(out, shorter[:n]...), shorter[n:]
		n = 0
		covered := int64(0)
		for n < len(shorter) && shorter[n].Number <= l.Number {
			covered += shorter[n].Span
			n++
		}
		if covered >= l.Number-max(first-1, after) {
			out = append(out, shorter[:n]...)
		} else {
			out = append(out, *l)
		}
		shorter = shorter[n:]
	}
	return append(out, shorter...)
}

// after returns the frames with a number above n.
func (k *kept) after(n int64, names []string) []Frame {
	var out []Frame
	for i := len(k.blocks) - 1; i >= 0; i-- {
		b := k.blocks[i].unpacked()
		for j := len(b.ends) - 1; j >= 0; j-- {
			f := b.frame(j, names)
			if f.Number <= n {
				slices.Reverse(out)
				return out
			}
			out = append(out, f)
		}
	}
	slices.Reverse(out)
	return out
}

// numbers are all numbers of a frame that every frame has, in a fixed order.
func (f *Frame) numbers() []*int64 {
	all := []*int64{
		&f.Number, &f.Span, (*int64)(&f.From), (*int64)(&f.To), (*int64)(&f.Left), &f.InFlight, (*int64)(&f.Lag), (*int64)(&f.SendDelay),
		&f.Freezes, (*int64)(&f.Frozen), (*int64)(&f.CPU), &f.Memory, &f.GCPauses, (*int64)(&f.GCPauseMax),
	}
	for _, t := range []*Times{&f.Response, &f.Service, &f.EndToEnd} {
		all = append(all, (*int64)(&t.P50), (*int64)(&t.P90), (*int64)(&t.P99), (*int64)(&t.Max), &t.AtLeast)
	}
	return append(all, countsOf(f, false)...)
}

// What a frame may have besides its numbers.
const (
	hasWarmup = 1 << iota
	hasLate
	hasBins
)

// countsOf are the counters of a frame that are rare, or the others.
func countsOf(f *Frame, late bool) (all []*int64) {
	for i, n := range f.Counts.Fields() {
		if measure.Counters[i].Late == late {
			all = append(all, n)
		}
	}
	return all
}

// append encodes a frame.
func (s *Series) append(b []byte, f *Frame) []byte {
	for _, v := range f.numbers() {
		b = binary.AppendVarint(b, *v)
	}
	b = binary.AppendUvarint(b, s.name(f.Phase))
	flags := len(b)
	b = append(b, 0)
	if f.Warmup != nil {
		b[flags] |= hasWarmup
		for _, v := range f.Warmup.Fields() {
			b = binary.AppendVarint(b, *v)
		}
	}
	if late := countsOf(f, true); slices.ContainsFunc(late, func(n *int64) bool { return *n != 0 }) {
		b[flags] |= hasLate
		for _, v := range late {
			b = binary.AppendVarint(b, *v)
		}
	}
	if len(f.Bins) > 0 {
		b[flags] |= hasBins
		b = binary.AppendUvarint(b, uint64(len(f.Bins)))
		for _, v := range f.Bins {
			b = binary.AppendVarint(b, v)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(f.Gauges)))
	for _, g := range f.Gauges {
		b = binary.AppendUvarint(b, s.name(g.From+"\x00"+g.Name+"\x00"+g.Unit))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(g.Value)))
	}
	if len(f.Marks) == 0 {
		return append(b, 0)
	}
	text, _ := json.Marshal(f.Marks) // texts and times can be encoded
	b = binary.AppendUvarint(b, uint64(len(text)))
	return append(b, text...)
}

// mostNames limits the names of a run: a system's metrics may have ever new ones.
const mostNames = 1000

// name returns the number of a name. Beyond the limit all have that of the first.
func (s *Series) name(text string) uint64 {
	i := slices.Index(s.names, text)
	if i < 0 && len(s.names) < mostNames {
		i = len(s.names)
		s.names = append(s.names, text)
	}
	return uint64(max(i, 0))
}

// frame decodes frame i.
func (b *block) frame(i int, names []string) (f Frame) {
	from := uint32(0)
	if i > 0 {
		from = b.ends[i-1]
	}
	rest := b.data[from:b.ends[i]]
	next := func() int64 {
		v, n := binary.Varint(rest)
		rest = rest[n:]
		return v
	}
	count := func() uint64 {
		v, n := binary.Uvarint(rest)
		rest = rest[n:]
		return v
	}
	for _, v := range f.numbers() {
		*v = next()
	}
	f.Phase = names[count()]
	flags := count()
	if flags&hasWarmup != 0 {
		f.Warmup = &Counts{}
		for _, v := range f.Warmup.Fields() {
			*v = next()
		}
	}
	if flags&hasLate != 0 {
		for _, v := range countsOf(&f, true) {
			*v = next()
		}
	}
	if flags&hasBins != 0 {
		f.Bins = make([]int64, count())
		for i := range f.Bins {
			f.Bins[i] = next()
		}
	}
	for range count() {
		name := bytes.SplitN([]byte(names[count()]), []byte{0}, 3)
		value := float64(math.Float32frombits(binary.LittleEndian.Uint32(rest)))
		rest = rest[4:]
		if len(name) == 3 {
			f.Gauges = append(f.Gauges, Gauge{From: string(name[0]), Name: string(name[1]), Unit: string(name[2]), Value: value})
		}
	}
	if n := count(); n > 0 {
		_ = json.Unmarshal(rest[:n], &f.Marks) // append made it
	}
	return f
}
