package wire

// A builder makes a message with places.
type builder struct {
	b      []byte
	places Places
}

// message adds a field with a message that fill makes.
func (e *builder) message(num int, fill func()) {
	e.b = appendTag(e.b, num, typeBytes)
	start := len(e.b)
	var first [forms]int
	for form, all := range e.places {
		first[form] = len(all)
	}
	fill()
	var length [10]byte
	n := len(AppendVarint(length[:0], uint64(len(e.b)-start)))
	e.b = append(e.b, length[:n]...)
	copy(e.b[start+n:], e.b[start:])
	copy(e.b[start:], length[:n])
	for form, all := range e.places {
		for i := first[form]; i < len(all); i++ {
			all[i].At += int32(n)
		}
	}
}

// place notes that the last bytes are fresh in each request.
func (e *builder) place(size int, form Form, val uint64) {
	e.places[form] = append(e.places[form], Place{int32(len(e.b) - size), val})
}

func (e *builder) text(num int, s string)     { e.b = AppendString(e.b, num, s) }
func (e *builder) uint(num int, v uint64)     { e.b = AppendUint(e.b, num, v) }
func (e *builder) double(num int, v float64)  { e.b = AppendDouble(e.b, num, v) }
func (e *builder) fixed64(num int, v uint64)  { e.b = AppendFixed64(e.b, num, v) }
func (e *builder) time(num int, offset int64) { e.fresh64(num, FormTime, uint64(offset)) }

// fresh64 adds a field of eight bytes that are fresh in each request.
func (e *builder) fresh64(num int, form Form, val uint64) {
	e.fixed64(num, 0)
	e.place(8, form, val)
}

// id adds a trace id or the id of a span.
func (e *builder) id(num int, form Form, val uint64) {
	size := 8
	if form == FormTraceID {
		size = 16
	}
	e.b = AppendMessage(e.b, num, make([]byte, size))
	e.place(size, form, val)
}

// attribute adds an attribute with a text.
func (e *builder) attribute(num int, key, value string) {
	e.message(num, func() {
		e.text(1, key)
		e.message(2, func() { e.b = AppendMessage(e.b, 1, []byte(value)) })
	})
}
