// Package elastictest provides tests with a real OpenSearch, which answers requests
// about documents and counts as Elasticsearch does: one node, started once for a test
// binary, only on this machine's loopback. Other releases, also of Elasticsearch, are
// started on request.
//
// It fetches the jars (once, with Maven and the user's settings, into the user's
// cache) and manages the process. It knows nothing about the indexed documents.
//
// Its invariant: no node outlives the process that started it, and no test finds the
// documents of another one, because Index gives each its own index names.
package elastictest
