// Package itemlist reads and writes lists of records: text files that say where each record
// is.
//
// A list has a line PARTITION,OFFSET for a record, or PARTITION,OFFSET,COUNT for records
// with consecutive offsets. Lines that begin with # and empty lines are comments; the
// comment "# topic: NAME" names the topic. Every line ends in a line feed, so that a list
// that was cut off can be recognized.
//
// The package knows the format, and neither brokers nor what lists are for.
package itemlist
