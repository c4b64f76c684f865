// Package javatest gives tests what servers in Java need: jars, fetched once on
// a machine with Maven and the user's own settings for it, and processes that
// end with the test binary.
//
// It refuses to know which servers, and skips nothing: a missing Maven is an
// error that says what to install.
//
// Its invariants: a folder of jars is whole or absent, and nothing that Launch
// started outlives the process that did, where the system allows that.
package javatest
