// Package host handles the machine that a run happens on: it describes this
// host, the resources that the running process uses, and whether the host's
// clocks and processors are reliable during a measurement. It starts other
// programs so that they end with this one, and measures the resources that they
// use. It also has the exit codes of this program.
//
// It does not know what is measured, and judges nothing: it only reports.
//
// Its invariant: an unknown number is absent or zero, never guessed.
package host
