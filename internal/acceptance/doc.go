// Package acceptance holds the built program to its contract: it runs
// carronade as a person would, against real Kafka, and asks Kafka's own tools
// what came of it. It knows the program by its flags, its exit codes and the
// names in its JSON alone, and refuses to know any package of it, so that the
// same mistake cannot stand on both sides.
//
// Where what is asked is not what a system counted but whether a time is right, it
// stops and slows generators and stand-ins, and finds out from the generator's trace
// and the stand-in's record what the times were (the impairment matrix).
//
// Its invariant: every number of a report that Kafka can be asked for is
// compared with Kafka's answer.
package acceptance
