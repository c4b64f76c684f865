package compat

import "time"

// per is a rate per second; 0 if the time is 0.
func per(n float64, d time.Duration) float64 { return perSecond(n, d.Seconds()) }

// perSecond is per for a number of seconds.
func perSecond(n, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return n / seconds
}
