package store

import (
	"encoding/json"
	"time"

	"carronade/internal/host"
)

// A process on another machine, or in another container, is taken to be alive
// unless nothing was heard from it for Missing. It reports at least once per
// Pulse.
const (
	Pulse   = 20 * time.Second
	Missing = 6 * Pulse
)

// Alive reports whether the process that writes a report is still there: owner
// is its host.Identity as JSON, heard the time of its last sign of life.
func Alive(owner string, heard time.Time) bool {
	var id host.Identity
	if json.Unmarshal([]byte(owner), &id) != nil {
		return false
	}
	if alive, known := id.Alive(); known {
		return alive
	}
	return time.Since(heard) < Missing
}
