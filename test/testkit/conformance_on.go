//go:build conformance

package testkit

// Conformance says that the tests of make conformance run too.
const Conformance = true
