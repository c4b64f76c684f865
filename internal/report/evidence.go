package report

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
)

// idLetters is how long the id of a report is, in base 36.
const idLetters = 8

// IDOf makes a report's id of its run id, which is random.
func IDOf(runID uint64) string {
	s := strconv.FormatUint(runID, 36)
	for len(s) < idLetters {
		s = "0" + s
	}
	return s[len(s)-idLetters:]
}

// Encoded is an interval as it stands in the JSON of a report, and its hash.
// Intervals are encoded as they end, so that little is left to do when the run
// does.
type Encoded struct {
	JSON []byte
	Sum  [sha256.Size]byte // of JSON
}

// Encode encodes an interval.
func (iv *Interval) Encode() (Encoded, error) {
	b, err := json.Marshal(iv)
	if err != nil {
		return Encoded{}, fmt.Errorf("encode an interval: %w", err)
	}
	return Encoded{JSON: b, Sum: sha256.Sum256(b)}, nil
}
