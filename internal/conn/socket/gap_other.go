//go:build !linux

package socket

import "time"

// RunDelays measures how long threads waited for a processor: not known here.
type RunDelays struct{}

// Waited returns 0: not known here.
func (*RunDelays) Waited() time.Duration { return 0 }

// Close does nothing.
func (*RunDelays) Close() {}
