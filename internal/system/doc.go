// Package system answers for the machine a run happens on: what this host is,
// what the running process consumes, and whether the host's clocks and
// processors can be relied upon while something is measured. It starts other
// programs, so that they end with this one, and looks at what they consume.
//
// It refuses to know what is measured, and it judges nothing: it reports.
//
// Its invariant: a number it cannot learn is absent or zero, never guessed.
package system
