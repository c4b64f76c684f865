// Package impair lets tests delay threads of the generator at named places. In an
// ordinary build its functions do nothing and cost nothing. A program built with the
// tag impair reads the delays from the environment variable CARRONADE_IMPAIR.
//
// Its invariant: without the tag nothing can be impaired.
package impair

// The places.
const (
	Send    = iota // a sending thread is about to check its schedule
	Receive        // a thread woke up for answers, and is about to read them
)
