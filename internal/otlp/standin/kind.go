package standin

import (
	"io"

	"carronade/internal/standin"
)

// Kind is this stand-in as a command.
var Kind = standin.Kind{
	Name:  "otlp",
	Short: "an OTLP receiver that decodes requests, or with --discard a sink that only answers",
	Long: `An OTLP receiver in this process, for traces, metrics and logs: over HTTP with
protobuf or JSON, over gRPC, and compressed with gzip or zstd. It decodes
requests and answers as the OpenTelemetry Collector does, counts their events,
and passes them on to nothing. At /metrics it has its counters under the
Collector's names. Both addresses accept HTTP/1.1 and HTTP/2. With --discard it
reads nothing and only answers.`,
	Example: `  carronade standin otlp
  carronade standin otlp --discard --listen 127.0.0.1:0
  carronade standin otlp --error queue-full@1% --retry-after 2s
  carronade standin otlp --server rate=1000/s --credits 60s@2000/s`,
	New: standin.NewServer((*Options).Bind, func(o *Options) *io.Writer { return &o.Log }, Start, (*Server).Listening, nil),
}
