package measure

import (
	"encoding/binary"
	"time"
)

// A row is an interval of a series, encoded. As an Interval it would take a KB more than its cells, and a
// series has thousands.
type row struct {
	phase string
	start time.Duration
	cells int    // bytes of the packed cells and the lags
	data  []byte // the rest; immutable
}

// rowBytes is what a row takes in addition to its data.
const rowBytes = 64

// newRow encodes an interval with compact histograms.
func newRow(iv *Interval) row {
	r := row{phase: iv.Phase, start: iv.Start, cells: iv.cellBytes()}
	c := rowCoder{data: make([]byte, 0, r.cells+512)}
	of := *iv // its fields are taken by address
	of.code(&c)
	r.data = append(make([]byte, 0, len(c.data)), c.data...) // without spare capacity
	return r
}

// interval decodes the row. Histograms of the result share the packed cells.
func (r *row) interval() Interval {
	iv := Interval{Phase: r.phase, Start: r.start}
	iv.code(&rowCoder{data: r.data, reads: true})
	return iv
}

// code writes or reads what a row has of an interval.
func (iv *Interval) code(c *rowCoder) {
	length := iv.End - iv.Start
	codeNumber(c, &length)
	iv.End = iv.Start + length
	codeNumber(c, &iv.Within)
	codeNumber(c, &iv.Arrived)
	u := &iv.Generator
	for _, v := range append(iv.Counts.Fields(), &iv.InFlight, &u.RSS, &u.MaxRSS, &u.GCPauses) {
		codeNumber(c, v)
	}
	for _, v := range []*time.Duration{&u.CPU, &u.GCPauseMax, &u.GCCPU} {
		codeNumber(c, v)
	}
	codeNumber(c, &iv.LagEvents)
	codeSlice(c, &iv.LagLogs, func(v *int64) { codeNumber(c, v) })
	codeSlice(c, &iv.Groups, func(v *GroupInterval) {
		codeNumber(c, &v.Consumed)
		codeNumber(c, &v.Backlog)
		codeNumber(c, &v.Unassigned)
	})
	codeSlice(c, &iv.Statuses, func(v *Status) {
		codeNumber(c, &v.Code)
		codeNumber(c, &v.Batches)
		codeNumber(c, &v.Events)
	})
	codeSlice(c, &iv.Classes, func(v *ClassCount) {
		c.text(&v.Class)
		codeNumber(c, &v.Events)
		codeNumber(c, &v.Batches)
	})
	iv.Each(func(_ string, h **Histogram) {
		exists := *h != nil
		if c.flag(&exists); !exists {
			return
		}
		if c.reads {
			*h = &Histogram{}
		}
		(*h).code(c)
	})
}

// code writes or reads a compact histogram.
func (h *Histogram) code(c *rowCoder) {
	for _, v := range []*uint64{&h.count, &h.sumLo, &h.sumHi, &h.below, &h.above} {
		codeNumber(c, v)
	}
	codeNumber(c, &h.min)
	codeNumber(c, &h.max)
	c.bytes(&h.packed)
}

// A rowCoder writes values to the end of data, or reads them from its beginning, so that one function
// does both. It reads only what a rowCoder of this process wrote.
type rowCoder struct {
	data  []byte
	reads bool
}

// codeNumber writes or reads a number of any sign.
func codeNumber[T ~int | ~int64 | ~uint64](c *rowCoder, v *T) {
	if !c.reads {
		c.data = binary.AppendVarint(c.data, int64(*v))
		return
	}
	n, size := binary.Varint(c.data)
	*v, c.data = T(n), c.data[size:]
}

// codeSlice writes or reads a slice, each element with f. Nil stays nil.
func codeSlice[S ~[]E, E any](c *rowCoder, s *S, f func(*E)) {
	n := len(*s)
	if codeNumber(c, &n); c.reads && n > 0 {
		*s = make(S, n)
	}
	for i := range *s {
		f(&(*s)[i])
	}
}

// text writes or reads a text. Others may read the one that it writes at the same time.
func (c *rowCoder) text(v *string) {
	b := []byte(*v)
	if c.bytes(&b); c.reads {
		*v = string(b)
	}
}

func (c *rowCoder) flag(v *bool) {
	n := 0
	if *v {
		n = 1
	}
	codeNumber(c, &n)
	*v = n > 0
}

// bytes writes bytes, or reads them without a copy; nil if there are none.
func (c *rowCoder) bytes(v *[]byte) {
	n := len(*v)
	codeNumber(c, &n)
	if !c.reads {
		c.data = append(c.data, *v...)
		return
	}
	if n > 0 {
		*v = c.data[:n:n]
	}
	c.data = c.data[n:]
}
