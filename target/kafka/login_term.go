package kafka

import (
	"math/rand/v2"
	"time"
)

// With connections.max.reauth.ms, or with a token that expires, a login is valid
// for a limited time. Afterwards the broker closes the connection at the next
// request (KIP-368). So a connection that stays open logs in again before that
// time, in order with its other requests: earlier requests are answered first, and
// nothing is sent until the new login is done.

// A loginTerm is how long a login is valid. The zero value has no end.
type loginTerm struct{ renew, ends time.Time }

const (
	// A login is renewed at a random 85 to 95 % of its time, as Java's client
	// does: clocks differ, requests take time, and connections that were made
	// together should not all log in at once.
	renewFirst  = 0.85
	renewSpread = 0.10
	// renewPause is between attempts to get a mechanism's first message.
	renewPause = time.Second
)

func newLoginTerm(lifetime time.Duration) loginTerm {
	if lifetime <= 0 {
		return loginTerm{}
	}
	now := time.Now()
	return loginTerm{now.Add(time.Duration(float64(lifetime) * (renewFirst + renewSpread*rand.Float64()))), now.Add(lifetime)}
}

// due reports whether it is time to log in again.
func (t loginTerm) due() bool { return !t.renew.IsZero() && time.Now().After(t.renew) }

// endsSoon reports whether a login that is due ends before another attempt to
// renew it could be made.
func (t loginTerm) endsSoon() bool { return !time.Now().Add(renewPause).Before(t.ends) }

// over reports whether the login has ended at a time of a clock that began at began.
func (t loginTerm) over(began time.Time, now time.Duration) bool {
	return !t.ends.IsZero() && now >= t.ends.Sub(began)
}
