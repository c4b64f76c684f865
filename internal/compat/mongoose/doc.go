// Package mongoose is the command line of mongoose with its driver for Kafka:
// records written and read, topics created, read, listed and deleted; the table on
// the console, the document of results, and the CSV files of a step. It is
// responsible for options, units, lines and files, and for the steps of scenarios: package
// classic is their language. Its runs are ordinary workloads, of this machine or of it and nodes;
// how nodes are reached it does not know. It answers mongoose's remote API.
//
// Options, defaults and formats are those of mongoose-base 4.2 and 4.3 and of
// mongoose-storage-driver-kafka 4.2 (config-schema.yaml, defaults.yaml).
// Its invariant: a given option has its effect, causes a warning on stderr, or ends
// the program before anything is sent.
package mongoose
