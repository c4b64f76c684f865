package wire

import (
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// An Event is the state of a service on a host at a time. An empty text is absent.
type Event struct {
	Time          int64 // seconds since 1970
	TimeMicros    int64 // microseconds since 1970; readers prefer it to Time
	HasTime       bool
	HasTimeMicros bool
	HasTTL        bool
	TTL           float32 // seconds after Time until the index expires it

	Host, Service, State, Description string

	Tags       []string
	Attributes []Attribute
	Metric     Metric
}

// An Attribute is a custom field.
type Attribute struct{ Key, Value string }

// MetricKind is which of the metric's fields of the schema is set.
type MetricKind uint8

// The kinds of metric, in the order in which readers prefer them.
const (
	NoMetric MetricKind = iota
	Sint64
	Double
	Float
)

// String returns the name of the kind in options.
func (k MetricKind) String() string {
	return [...]string{"none", "sint64", "double", "float"}[k&3]
}

// A Metric is an event's number. Int is the value of a Sint64, Real that of a
// Double or a Float; the other is 0.
type Metric struct {
	Kind MetricKind
	Int  int64
	Real float64
}

// Value returns the metric as a float64, 0 if there is none. Whole numbers beyond
// 2^53 lose digits.
func (m Metric) Value() float64 {
	if m.Kind == Sint64 {
		return float64(m.Int)
	}
	return m.Real
}

// When returns the event's time, from the microseconds if given, else from the
// seconds, and whether it has one. A server sets the time of an event without one
// to that of its arrival.
func (e *Event) When() (time.Time, bool) {
	switch {
	case e.HasTimeMicros:
		return time.UnixMicro(e.TimeMicros).UTC(), true
	case e.HasTime:
		return time.Unix(e.Time, 0).UTC(), true
	}
	return time.Time{}, false
}

// Field numbers of Event. Field 6 occurs only in State, as once.
const (
	fieldTime        = 1
	fieldState       = 2
	fieldService     = 3
	fieldHost        = 4
	fieldDescription = 5
	fieldTags        = 7
	fieldTTL         = 8
	fieldAttributes  = 9
	fieldTimeMicros  = 10
	fieldSint64      = 13
	fieldDouble      = 14
	fieldFloat       = 15

	fieldKey   = 1 // of Attribute
	fieldValue = 2
)

// Tags of the fields, each one byte long: number<<3 | wire type.
const (
	tagTime       = fieldTime<<3 | byte(protowire.VarintType)
	tagTTL        = fieldTTL<<3 | byte(protowire.Fixed32Type)
	tagTimeMicros = fieldTimeMicros<<3 | byte(protowire.VarintType)
	tagSint64     = fieldSint64<<3 | byte(protowire.VarintType)
	tagDouble     = fieldDouble<<3 | byte(protowire.Fixed64Type)
	tagFloat      = fieldFloat<<3 | byte(protowire.Fixed32Type)
)

// EventSize returns the bytes that AppendEvent appends.
func EventSize(e *Event) int {
	n := textSize(e.State) + textSize(e.Service) + textSize(e.Host) + textSize(e.Description)
	if e.HasTime {
		n += 1 + protowire.SizeVarint(uint64(e.Time))
	}
	for _, t := range e.Tags {
		n += 1 + protowire.SizeBytes(len(t))
	}
	if e.HasTTL {
		n += 1 + 4
	}
	for i := range e.Attributes {
		n += 1 + protowire.SizeBytes(attributeSize(&e.Attributes[i]))
	}
	if e.HasTimeMicros {
		n += 1 + protowire.SizeVarint(uint64(e.TimeMicros))
	}
	switch e.Metric.Kind {
	case Sint64:
		n += 1 + protowire.SizeVarint(protowire.EncodeZigZag(e.Metric.Int))
	case Double:
		n += 1 + 8
	case Float:
		n += 1 + 4
	}
	return n
}

// AppendEvent appends the event without its length. The time in seconds is the
// first field; the time in microseconds and then the metric are the last ones.
// So all of them can be found, and changed, without reading the rest.
func AppendEvent(dst []byte, e *Event) []byte {
	if e.HasTime {
		dst = protowire.AppendVarint(append(dst, tagTime), uint64(e.Time))
	}
	dst = appendText(dst, fieldState, e.State)
	dst = appendText(dst, fieldService, e.Service)
	dst = appendText(dst, fieldHost, e.Host)
	dst = appendText(dst, fieldDescription, e.Description)
	for _, t := range e.Tags {
		dst = protowire.AppendString(protowire.AppendTag(dst, fieldTags, protowire.BytesType), t)
	}
	if e.HasTTL {
		dst = protowire.AppendFixed32(append(dst, tagTTL), math.Float32bits(e.TTL))
	}
	for i := range e.Attributes {
		a := &e.Attributes[i]
		dst = protowire.AppendTag(dst, fieldAttributes, protowire.BytesType)
		dst = protowire.AppendVarint(dst, uint64(attributeSize(a)))
		// The schema requires the key, so it is written even if empty.
		dst = protowire.AppendString(protowire.AppendTag(dst, fieldKey, protowire.BytesType), a.Key)
		dst = appendText(dst, fieldValue, a.Value)
	}
	if e.HasTimeMicros {
		dst = protowire.AppendVarint(append(dst, tagTimeMicros), uint64(e.TimeMicros))
	}
	switch e.Metric.Kind {
	case Sint64:
		dst = protowire.AppendVarint(append(dst, tagSint64), protowire.EncodeZigZag(e.Metric.Int))
	case Double:
		dst = protowire.AppendFixed64(append(dst, tagDouble), math.Float64bits(e.Metric.Real))
	case Float:
		dst = protowire.AppendFixed32(append(dst, tagFloat), math.Float32bits(float32(e.Metric.Real)))
	}
	return dst
}

func textSize(s string) int {
	if s == "" {
		return 0
	}
	return 1 + protowire.SizeBytes(len(s))
}

func appendText(dst []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return dst
	}
	return protowire.AppendString(protowire.AppendTag(dst, field, protowire.BytesType), s)
}

func attributeSize(a *Attribute) int {
	return 1 + protowire.SizeBytes(len(a.Key)) + textSize(a.Value)
}
