package standin

import (
	"io"

	"carronade/internal/standin"
)

// Kind is this stand-in as a command.
var Kind = standin.Kind{
	Name:  "apm",
	Short: "an APM Server that validates events, or with --discard a sink that only answers",
	Long: `An Elastic APM Server in this process: it takes intake v2, RUM v2 and v3, and
with --v1 the documents of v1, validates each event by Elastic's published
schemas, answers and counts like the real server, and with --index writes
documents to Elasticsearch or OpenSearch. With --discard it reads nothing and
only answers, as fast as possible, so that the limits of clients can be measured
against the same server.`,
	Example: `  carronade standin apm
  carronade standin apm --discard --listen 127.0.0.1:0
  carronade standin apm --index http://127.0.0.1:9200 --index-auth env:ES_LOGIN
  carronade standin apm --queue 10000 --drain 2k/s --error event@1%
  carronade standin apm --server rate=1000/s --credits 60s@2000/s`,
	New: standin.NewServer((*Options).Bind, func(o *Options) *io.Writer { return &o.Log }, Start, (*Server).Addr, nil),
}
