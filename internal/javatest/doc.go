// Package javatest provides what tests with Java servers need: jars, which Maven
// with the user's settings fetches once on a machine, and processes that end with
// the test binary.
//
// It is independent of the servers, and never skips a test: a missing Maven is an
// error that says what to install.
//
// Its invariants: a directory of jars is complete or absent, and no process that
// Launch started outlives the process that called it, where the system supports
// that.
package javatest
