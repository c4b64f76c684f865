// Package acceptance holds the built program to its contract: it runs
// carronade as a person would, against real Kafka, and asks Kafka's own tools
// what came of it. It knows the program by its flags, its exit codes and the
// names in its JSON alone, and refuses to know any package of it, so that the
// same mistake cannot stand on both sides.
//
// Its invariant: every number of a report that Kafka can be asked for is
// compared with Kafka's answer.
package acceptance
