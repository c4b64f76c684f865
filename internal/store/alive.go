package store

import (
	"encoding/json"
	"time"

	"carronade/internal/system"
)

// A process of another machine, or of another container, is taken to be there
// unless nothing has been heard of it for Missing. It says something at least
// once a Pulse.
const (
	Pulse   = 20 * time.Second
	Missing = 6 * Pulse
)

// Alive tells whether the process that writes a report is still there: owner is
// its system.Identity as JSON, heard when it was last heard of.
func Alive(owner string, heard time.Time) bool {
	var id system.Identity
	if json.Unmarshal([]byte(owner), &id) != nil {
		return false
	}
	if alive, known := id.Alive(); known {
		return alive
	}
	return time.Since(heard) < Missing
}
