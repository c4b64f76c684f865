// Package acceptance checks the built program against its contract: it runs
// carronade as a user would, against real Kafka, and checks the results with Kafka's
// tools. It uses only the program's flags, its exit codes and the names in its JSON,
// and none of its packages, so that one mistake cannot be on both sides.
//
// To check times instead of counts, it stops and slows down generators and
// stand-ins, and computes the true times from the generator's trace and the
// stand-in's record (the impairment matrix).
//
// Its invariant: every number of a report that Kafka knows too is compared with
// Kafka's.
package acceptance
