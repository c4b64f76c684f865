// Package recordlist reads and writes lists of the records of a topic: text files that say where each
// record is. It does not know brokers, or what is read by a list.
//
// Its invariant: every line of a list ends in a line feed, also after an error of writing, so that a
// list which was cut off is recognized.
package recordlist
