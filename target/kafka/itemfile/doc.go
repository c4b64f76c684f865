// Package itemfile reads and writes lists of records: text files that say where in a topic each
// record is. A list has a line PARTITION,OFFSET for a record, or PARTITION,OFFSET,COUNT for records
// with consecutive offsets. Lines that begin with # and empty lines are comments; the comment
// "# topic: NAME" names the topic. It reaches no broker.
//
// Its invariant: every line ends in a line feed, so that a list that was cut off is recognized.
package itemfile
