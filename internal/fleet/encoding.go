package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"carronade/load"
)

// A plan is what all agents of a run get.
type plan struct {
	Workload json.RawMessage `json:"workload"` // as in a report: with references to secrets, not with secrets
	RunID    uint64          `json:"run_id"`
	Clients  int             `json:"clients"` // of all agents together
}

// A share is what one agent gets.
type share struct {
	From int `json:"from"` // clients: From up to To, To excluded
	To   int `json:"to"`
	// Reads is set for an agent that reads what the others send, Recorded for all agents of a
	// run that has one: they keep records for the ledger.
	Reads    bool `json:"reads,omitempty"`
	Recorded bool `json:"recorded,omitempty"`
}

// A snapshot is a frame: an interval of one agent. Histograms are in the rows only.
type snapshot struct {
	At      time.Duration
	Phase   string
	Left    time.Duration
	Endless bool
	Rows    json.RawMessage
	Total   json.RawMessage

	Unanswered bool
	Consuming  bool
	Rebalance  time.Duration
	Freezes    int
	Frozen     time.Duration

	Records [][]byte `json:",omitempty"` // for the ledger, compressed
}

// mostDecoded limits what a message decodes to.
const mostDecoded = 512 << 20

var (
	encoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
		if err != nil {
			panic(err) // the options are constant
		}
		return e
	})
	decoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostDecoded))
		if err != nil {
			panic(err)
		}
		return d
	})
)

// pack encodes a value as compressed JSON.
func pack(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return encoder().EncodeAll(text, nil), nil
}

// unpack decodes what pack returned.
func unpack(data []byte, v any) error {
	text, err := decoder().DecodeAll(data, nil)
	if err != nil {
		return fmt.Errorf("not compressed as expected: %w", err)
	}
	return json.Unmarshal(text, v)
}

// framedRecords is how many chunks of records a frame has at most, so that it is not too
// large. Others come with later frames and with the result.
const framedRecords = 3

// packSnapshot encodes an interval, with records for the ledger.
func packSnapshot(s *load.Snapshot, records [][]byte) ([]byte, error) {
	rows, err := json.Marshal(s.Rows)
	if err != nil {
		return nil, err
	}
	total, err := json.Marshal(s.Total)
	if err != nil {
		return nil, err
	}
	return pack(snapshot{
		At: s.At, Phase: s.Phase, Left: s.Left, Endless: s.Endless, Rows: rows, Total: total,
		Unanswered: s.Unanswered, Consuming: s.Consuming, Rebalance: s.Rebalance, Freezes: s.Freezes, Frozen: s.Frozen,
		Records: compress(records),
	})
}

// compress compresses chunks of records: their bytes do not compress well inside of a text.
func compress(chunks [][]byte) [][]byte {
	var all [][]byte
	for _, c := range chunks {
		all = append(all, encoder().EncodeAll(c, nil))
	}
	return all
}

// mostChunk limits what a chunk of records decodes to.
const mostChunk = 4 << 20

// expand is the inverse of compress.
func expand(chunks [][]byte) ([][]byte, error) {
	var all [][]byte
	for _, c := range chunks {
		data, err := decoder().DecodeAll(c, nil)
		if err == nil && len(data) > mostChunk {
			err = errors.New("it is too large")
		}
		if err != nil {
			return nil, fmt.Errorf("records of events cannot be read: %w", err)
		}
		all = append(all, data)
	}
	return all, nil
}

// unpackSnapshot decodes an interval.
func unpackSnapshot(data []byte) (*load.Snapshot, [][]byte, error) {
	var s snapshot
	if err := unpack(data, &s); err != nil {
		return nil, nil, err
	}
	records, err := expand(s.Records)
	if err != nil {
		return nil, nil, err
	}
	out := &load.Snapshot{
		At: s.At, Phase: s.Phase, Left: s.Left, Endless: s.Endless,
		Unanswered: s.Unanswered, Consuming: s.Consuming, Rebalance: s.Rebalance, Freezes: s.Freezes, Frozen: s.Frozen,
	}
	if err := errors.Join(json.Unmarshal(s.Rows, &out.Rows), json.Unmarshal(s.Total, &out.Total)); err != nil {
		return nil, nil, err
	}
	return out, records, nil
}
