// Package elastictest gives tests a real OpenSearch, which answers as
// Elasticsearch does where both are asked for documents and counts: one node,
// started once for a test binary, on this machine's loopback alone. Other
// releases, also of Elasticsearch, are started where one is asked for.
//
// It answers for the jars (fetched once with Maven and the user's own settings,
// and kept in the user's cache) and for the life of the process. It refuses to
// know who indexes what.
//
// Its invariant: no node outlives the process that started it, and no test
// finds the documents of another: indices are named by Index.
package elastictest
