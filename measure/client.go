package measure

// A Client counts what a target's connections to one server (a broker, one of a
// cluster) did over a run.
type Client struct {
	Broker           string  `json:"broker"`            // its id and address
	Requests         uint64  `json:"requests"`          // of the measured operation, without metadata
	Batches          uint64  `json:"batches"`           // in these requests
	Events           uint64  `json:"events"`            // in these batches
	EventsPerBatch   float64 `json:"events_per_batch"`  // mean
	Bytes            uint64  `json:"bytes"`             // of the batches before compression
	WireBytes        uint64  `json:"wire_bytes"`        // both directions
	CompressionRatio float64 `json:"compression_ratio"` // batch bytes after over before compression; 1: none
	ThrottleSeconds  float64 `json:"throttle_s"`        // requested by the broker, summed
	Reconnects       uint64  `json:"reconnects"`        // connections beyond the first of each client
}
