package live

import (
	"encoding/json"
	"strconv"
	"time"

	"carronade/measure"
)

// mostFrameBytes limits a frame, as JSON.
const mostFrameBytes = 4096

// A Frame has the numbers of a span of a run: of a second, of ten seconds, and so on.
// Its percentiles are those of the events of this span, also if it was merged from
// shorter ones. They are neither cumulative nor averages.
type Frame struct {
	// Number counts the seconds' frames of the run, from 1. The number of a merged frame
	// is that of its last one.
	Number int64   `json:"n"`
	Span   int64   `json:"span"` // how many seconds' frames it has: 1, 10, 100, ...
	From   Seconds `json:"from"` // since the start of the run
	To     Seconds `json:"to"`
	Phase  string  `json:"phase"`   // in which it ends
	Left   Micros  `json:"left_us"` // of the measurement; null if no time ends it

	Counts Counts `json:"counts"`
	// Warmup is the part of Counts whose events belong to the warm-up.
	Warmup *Counts `json:"warmup,omitempty"`

	InFlight int64 `json:"in_flight"` // events, at the end
	Lag      Level `json:"lag"`       // reading: events behind the end of the logs, at the end; with a backlog: acked and not read

	Response  Times  `json:"response"`
	Service   Times  `json:"service"`
	EndToEnd  Times  `json:"end_to_end"`
	SendDelay Micros `json:"send_delay_p99_us"`
	// Bins count the values of the first of response, end to end and service that is not null, in bins of a histogram:
	// first the number of the first bin, then the count of each until the last that has any. Bin i is from 10^(i/20) us
	// to 10^((i+1)/20) us. There are none if that time has only lower bounds.
	Bins []int64 `json:"bins,omitempty"`

	// The generator's own state.
	Freezes    int64  `json:"freezes"`       // times that the process did not run for 10 ms or longer
	Frozen     Micros `json:"frozen_max_us"` // the longest of them
	CPU        Micros `json:"cpu_us"`        // processor time
	Memory     int64  `json:"rss"`           // resident bytes, at the end
	GCPauses   int64  `json:"gc_pauses"`
	GCPauseMax Micros `json:"gc_pause_max_us"`

	Gauges []Gauge `json:"gauges,omitempty"` // other programs' own metrics, the latest values
	Marks  []Mark  `json:"marks,omitempty"`
}

// Times are percentiles of a time of one frame.
type Times struct {
	P50 Micros `json:"p50_us"`
	P90 Micros `json:"p90_us"`
	P99 Micros `json:"p99_us"`
	Max Micros `json:"max_us"`
	// AtLeast is the lowest percentile that is only a lower bound, because events without
	// an answer lie beyond it; 100: only the maximum is, 0: all are known.
	AtLeast int64 `json:"at_least,omitempty"`
}

// A Gauge is a number that the system under test, a server or this machine reported.
type Gauge struct {
	From  string  `json:"from"` // see measure.Gauge
	Name  string  `json:"name"`
	Unit  string  `json:"unit,omitempty"`
	Value float64 `json:"value"`
}

// A Mark is a remark on a moment of a run.
type Mark struct {
	At   Seconds `json:"at"`
	Text string  `json:"text"`
	Kind string  `json:"kind,omitempty"` // "fault" and "heal": the text is that and a name; "freeze"
}

// Counts are those of measure.Counts. They are signed: the last frame of a run corrects
// what was known too late, such as how many events of a schedule that was cut short
// were due.
type Counts = measure.CountsOf[int64]

// Micros is a time in nanoseconds, in JSON in microseconds. A negative one does not
// exist: it is null.
type Micros int64

// NoTime is a time that does not exist, such as a percentile of nothing.
const NoTime Micros = -1

// MarshalJSON encodes microseconds.
func (m Micros) MarshalJSON() ([]byte, error) {
	if m < 0 {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(m)/1e3, 'f', -1, 64), nil
}

// UnmarshalJSON decodes microseconds.
func (m *Micros) UnmarshalJSON(text []byte) error {
	v, err := number(text, 1e3)
	*m = Micros(v)
	return err
}

// Seconds is a time since the start of a run in nanoseconds, in JSON in seconds.
type Seconds int64

// MarshalJSON encodes seconds.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', -1, 64), nil
}

// UnmarshalJSON decodes seconds.
func (s *Seconds) UnmarshalJSON(text []byte) error {
	v, err := number(text, 1e9)
	*s = Seconds(v)
	return err
}

// Level is a number of events; a negative one is not known, and null in JSON.
type Level int64

// MarshalJSON encodes the number.
func (l Level) MarshalJSON() ([]byte, error) {
	if l < 0 {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(l), 10), nil
}

// UnmarshalJSON decodes the number.
func (l *Level) UnmarshalJSON(text []byte) error {
	v, err := number(text, 1)
	*l = Level(v)
	return err
}

// number decodes a JSON number in units of unit; null is -1.
func number(text []byte, unit float64) (int64, error) {
	if string(text) == "null" {
		return -1, nil
	}
	var v float64
	if err := json.Unmarshal(text, &v); err != nil {
		return 0, err
	}
	const most = 1 << 62
	switch v *= unit; {
	case v < -most:
		return -most, nil
	case v > most:
		return most, nil
	case v < 0:
		return int64(v - 0.5), nil
	}
	return int64(v + 0.5), nil
}
