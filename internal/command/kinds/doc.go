// Package kinds has the commands that know kinds of target. Topics, of Kafka, creates, lists,
// describes, deletes and reads topics as counted and timed operations; Query, of Riemann, queries a
// server's index in the server's own query language; Profile fits a workload to a sample of real
// traffic. It turns arguments into work for the target and the result into text or JSON, and does
// not know the protocols.
package kinds
