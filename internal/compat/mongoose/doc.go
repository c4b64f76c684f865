// Package mongoose is the command line of mongoose with its driver for Kafka:
// records made and read, topics made, read, listed and deleted; the table on the
// console, the document of results, and the CSV files of a step. It answers for
// options, units, lines and files; runs and numbers are those of a workload like
// any other. It refuses to run scenarios, and to know of several machines.
//
// Options, defaults and forms are those of mongoose-base 4.2 and 4.3 and of
// mongoose-storage-driver-kafka 4.2 (config-schema.yaml, defaults.yaml).
//
// Its invariant: an option that is given does what it says, or is spoken of on
// stderr, or ends the program before anything is fired.
package mongoose
