// Package testkit provides programs that are not part of this project for its tests: jars,
// which Maven with the user's settings fetches once on a machine, a NATS server, which is
// built once, and processes that end with the test binary; a real OpenSearch or Elasticsearch, one node for a test binary, only
// on this machine's loopback; other clients of Riemann; readers of Parquet and CSV; certificates.
//
// It knows nothing about the documents, events, pages and files of the tests. Five packages are
// separate: assert has comparisons, kafkatest runs Apache Kafka, browser a Chromium, parquettest reads traces, and
// reporttest, which imports packages of ours, is for tests with reports.
//
// Its invariants: a directory of jars or of Python packages, or a file of Make, is complete
// or absent; no process outlives the test binary, where the system supports that; no test
// finds the documents of another one, because SearchIndex gives each its own index names; a missing program fails the test and
// says what to install.
package testkit
