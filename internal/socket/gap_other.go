//go:build !linux

package socket

import "time"

// Gaps tells for how long threads waited for a processor, where that is known.
type Gaps struct{}

// Waited is not known.
func (*Gaps) Waited() time.Duration { return 0 }

// Close does nothing.
func (*Gaps) Close() {}
