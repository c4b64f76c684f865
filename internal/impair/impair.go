// Package impair lets tests delay threads of the generator at named places. In an
// ordinary build its calls do nothing and cost nothing; a program that is built with
// the tag impair reads what to do from the environment variable CARRONADE_IMPAIR.
//
// Its invariant: without the tag nothing can be impaired.
package impair

// The places.
const (
	Send    = iota // a sending thread is about to look at its schedule
	Receive        // a thread was woken for answers, and is about to read them
)
