// Package kafkatest runs real Apache Kafka for tests: it fetches the jars into
// the user's cache, starts one node or three on the loopback interface, makes them
// fail on request (kill -9, freeze, wipe), and runs Kafka's own tools. It uses none
// of this project's packages for Kafka, so that its results are independent of the
// code under test.
//
// Its invariants: it never skips a test (a missing Java or Maven is an error that
// says what to install), it listens on 127.0.0.1 only, unless a test names another
// address of this machine, and none of its processes outlives the test binary.
//
//	func TestMain(m *testing.M) { os.Exit(kafkatest.Main(m)) }
//
//	func TestProduce(t *testing.T) {
//		broker := kafkatest.Shared(t) // one node, plaintext, for all tests of the binary
//		topic := broker.CreateTopic(t, 3, 1)
//		...
//		got := broker.EndOffsets(t, topic)
//	}
//
// Tests that make a broker fail start their own with [Start].
package kafkatest
