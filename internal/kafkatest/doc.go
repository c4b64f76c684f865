// Package kafkatest runs real Apache Kafka for tests: it fetches the jars into
// the user's cache, starts one node or three on the loopback interface, breaks
// them on request (kill -9, freeze, wipe), and runs Kafka's own tools beside
// them. It knows nothing of this project's packages, so that what it says about
// a broker is independent of the code under test.
//
// Its invariants: it never skips (a missing Java or Maven fails the test and
// says what to install), it listens on 127.0.0.1 only, and no process of it
// outlives the test binary.
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
// Tests that break a broker start one of their own with [Start].
package kafkatest
