package measure

// An Encoding says when the bytes of a run's events were made. What was done before the
// run is missing from its times and its processor time.
type Encoding struct {
	Events   string `json:"events"`             // Pooled or Fresh
	Distinct uint64 `json:"distinct,omitempty"` // pooled: different events, after which they repeat; 0: not known
	Except   string `json:"except,omitempty"`   // pooled: what differs in every event nevertheless, such as "ids and times"

	Codec string `json:"codec,omitempty"` // "" without compression
	// CodecMeasured is the share of the codec's work that was done during the run, by bytes
	// before compression; nil without compression, or if it is not known.
	CodecMeasured *float64 `json:"codec_measured,omitempty"`
}

// The values of Events.
const (
	Pooled = "pooled" // encoded before the run, and sent again and again
	Fresh  = "fresh"  // encoded as they were sent; their bytes repeat only if the payload does
)

// Compressed sets the codec, and the share of its work that was done during the run.
func (e *Encoding) Compressed(codec string, measured float64) {
	e.Codec, e.CodecMeasured = codec, &measured
}

// Join makes e describe the events of both: what differs is not known, and events are fresh if
// those of one are.
func (e *Encoding) Join(of *Encoding) {
	if e.Events != of.Events {
		e.Events, e.Distinct, e.Except = Fresh, 0, ""
	}
	if e.Distinct != of.Distinct {
		e.Distinct = 0
	}
	if e.Except != of.Except {
		e.Except = ""
	}
	if e.Codec != of.Codec || e.CodecMeasured == nil || of.CodecMeasured == nil || *e.CodecMeasured != *of.CodecMeasured {
		e.CodecMeasured = nil
	}
	if e.Codec != of.Codec {
		e.Codec = ""
	}
}
