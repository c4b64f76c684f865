// Package mongoose is the command line of mongoose with its driver for Kafka:
// records written and read, topics created, read, listed and deleted; the table on
// the console, the document of results, and the CSV files of a step. It is
// responsible for options, units, lines and files, and for scenarios: their language, which is
// JavaScript in sloppy mode with mongoose's types of steps as globals and the few Java classes
// that its examples use (script_*.go, in a process of its own), and their steps. Its runs are ordinary workloads, of this machine or of it and nodes.
// It does not know how nodes are reached. It answers mongoose's remote API.
//
// Options, defaults and formats are those of mongoose-base 4.2 and 4.3 and of
// mongoose-storage-driver-kafka 4.2 (config-schema.yaml, defaults.yaml).
// Its invariants: a given option has its effect, causes a warning on stderr, or ends
// the program before anything is sent. In a script nothing is guessed but what parseScript
// documents, and a guess is a warning with its line.
package mongoose
