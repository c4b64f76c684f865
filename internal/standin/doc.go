// Package standin starts embedded servers in child processes: targets for the
// demo, for calibration and for tests.
//
// It contains the list of stand-ins (All), runs one until it is stopped (Main),
// and manages child processes (Spawn, Hook). Each stand-in and its options are in
// a package below.
//
// These packages know nothing about their clients: they import no package of the
// engine and do not know what a run is.
//
// Its invariant: a child never outlives the process that spawned it.
package standin
