package cluster

import (
	"math/rand/v2"
	"time"
)

// With connections.max.reauth.ms, or with a token that expires, a login is valid
// for a limited time. Afterwards the broker closes the connection at the next
// request (KIP-368). So a connection that stays open logs in again before that
// time, in order with its other requests: earlier requests are answered first, and
// nothing is sent until the new login is done.

// A LoginTerm is how long a login is valid. The zero value has no end.
type LoginTerm struct{ Renew, Ends time.Time }

const (
	// A login is renewed at a random 85 to 95 % of its time, as Java's client
	// does: clocks differ, requests take time, and connections that were made
	// together should not all log in at once.
	renewFirst  = 0.85
	renewSpread = 0.10
	// RenewPause is between attempts to get a mechanism's first message.
	RenewPause = time.Second
)

// NewLoginTerm returns the term of a login that was done now; a lifetime of 0 has no end.
func NewLoginTerm(lifetime time.Duration) LoginTerm {
	if lifetime <= 0 {
		return LoginTerm{}
	}
	now := time.Now()
	return LoginTerm{now.Add(time.Duration(float64(lifetime) * (renewFirst + renewSpread*rand.Float64()))), now.Add(lifetime)}
}

// Due reports whether it is time to log in again.
func (t LoginTerm) Due() bool { return !t.Renew.IsZero() && time.Now().After(t.Renew) }

// EndsSoon reports whether a login that is due ends before another attempt to
// renew it could be made.
func (t LoginTerm) EndsSoon() bool { return !time.Now().Add(RenewPause).Before(t.Ends) }

// Over reports whether the login has ended at a time of a clock that began at began.
func (t LoginTerm) Over(began time.Time, now time.Duration) bool {
	return !t.Ends.IsZero() && now >= t.Ends.Sub(began)
}
