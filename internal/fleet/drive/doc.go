// Package drive joins the protocol of a fleet (package fleet), its bus (fleet/bus) and the
// engine (package run): Serve is the process of an agent, and a Fleet is the operator's side
// of a run.
//
// The plan of a run is its workload, resolved, and the number of clients of all agents
// together. An agent's share is which of them are its own. Frames are the intervals of a run,
// and the result is everything that an agent measured, all as compressed JSON.
package drive

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
	Rebalance  time.Duration
	Freezes    int
	Frozen     time.Duration
}

// mostDecoded limits what a message decodes to.
const mostDecoded = 512 << 20

var (
	encoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
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

// packSnapshot encodes an interval.
func packSnapshot(s *load.Snapshot) ([]byte, error) {
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
		Unanswered: s.Unanswered, Rebalance: s.Rebalance, Freezes: s.Freezes, Frozen: s.Frozen,
	})
}

// unpackSnapshot decodes an interval.
func unpackSnapshot(data []byte) (*load.Snapshot, error) {
	var s snapshot
	if err := unpack(data, &s); err != nil {
		return nil, err
	}
	out := &load.Snapshot{
		At: s.At, Phase: s.Phase, Left: s.Left, Endless: s.Endless,
		Unanswered: s.Unanswered, Rebalance: s.Rebalance, Freezes: s.Freezes, Frozen: s.Frozen,
	}
	if err := errors.Join(json.Unmarshal(s.Rows, &out.Rows), json.Unmarshal(s.Total, &out.Total)); err != nil {
		return nil, err
	}
	return out, nil
}
