// Package standin starts embedded servers: something to fire at for the demo,
// for calibration and for tests, in a child process of its own.
//
// It answers for the list of stand-ins (All), for running one until it is told
// to end (Main), and for the life of a child (Spawn, Hook). What a stand-in is
// and which options it takes is its own package's.
//
// The package and those below it refuse to know who fires at them: they import
// nothing of the engine, and nothing of the engine's vocabulary of runs reaches
// them.
//
// Its invariant: a child never outlives the process that spawned it.
package standin
