package store

import (
	"slices"
	"testing"

	"carronade/internal/apm"
	"carronade/internal/kafka"
	"carronade/internal/null"
	"carronade/internal/otlp"
	"carronade/internal/riemann"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// programKinds are the kinds of target that the program has. Tests of this package do not link the
// command line, which has the list; its own tests find a kind that is missing here.
var programKinds = []protocol.Kind{kafka.Kind{}, riemann.Kind{}, apm.Kind{}, otlp.Kind{}, null.Kind{}}

// storedSettings is how stored reports are grouped and found again: the independent settings of each kind
// with their defaults, since a default is as much a part of the key as a given value.
//
// It is maintained by hand, and no flag of the test writes it: a setting that is added with a default,
// changed, renamed or removed separates every later report from all stored ones, even for users who never set
// the flag. A new setting whose default is empty is harmless.
var storedSettings = map[string][]string{
	"": {
		"at=", "backlog-after=", "backlog-drained=", "backlog=", "batch-events=", "bytes=", "concurrency=", "count=", "drain-timeout=",
		"exec=", "fault=", "for=", "groups=", "linger=5ms", "max-in-flight=5", "members=", "op=", "overload=queue", "rate=", "retry=0",
		"shape=", "system-checkout=", "system-cmd=", "system-cpus=", "system-flag=", "system-image=", "system-mem=", "threads=", "verify=",
		"warmup=",
	},
	"kafka": {
		"acks=1", "batch-size=256KiB", "buffer-memory=", "clients-per-topic=", "clients=1", "compression=none", "create-topic=",
		"decode=false", "delivery-timeout=2m", "engine=wire", "fetch-max=4MiB", "fetch-min=1", "fetch-partition-max=1MiB",
		"fetch-wait=500ms", "fresh=false", "from=earliest", "group-protocol=classic", "group=", "header=", "idempotent=false",
		"isolation=uncommitted", "key=none", "max-request=1MiB", "partitioner=roundrobin", "partitions=", "payload=random", "pool=1MiB",
		"profile=", "rack=", "read-delay=0s", "read-from=", "read-in-flight=100", "read-queue=1M", "recv-buffer=", "recycle=",
		"request-timeout=30s", "sasl-mechanism=", "send-buffer=", "share-group=", "size=100", "tls=false", "topic-weights=equal", "topics=",
		"transaction-abort=0%", "transaction-interval=100ms", "transactions=false", "until-end=false", "wait-topic=0s",
	},
	"riemann": {
		"attribute=", "clients=1", "connect-timeout=5s", "description=sampled by carronade", "host=web-{uniform(20)}", "max-datagram=16KiB",
		"metric-type=double", "metric=walk(50,1)", "pool=256KiB", "reconnect-backoff=50ms", "recv-buffer=", "request-timeout=30s",
		"send-buffer=", "service={service}", "state={weighted(ok:97,warning:2,critical:1)}", "sticky=", "tag=carronade,{pick(eu,us)}",
		"time=s", "ttl=60s",
	},
	"apm": {
		"agents=", "clients=", "corpus=", "durations=lognormal(5ms,250ms)", "event-label=", "event-size=", "events=10", "frame-size=",
		"frames=3", "gzip=none", "hosts=4", "http-version=1.1", "intake=v2", "keep-alive=true", "mix=", "outcomes=success=97,failure=3",
		"pool=2MiB", "proxy=", "recv-buffer=", "repeat-body=false", "request-timeout=30s", "retry-after=false", "send-buffer=",
		"services=4", "spans=3", "sticky=", "trace-hops=1", "verbose=false",
	},
	"otlp": {
		"attribute-size=16", "attributes=5", "body-size=200", "clients=", "compression=none", "connect-timeout=10s", "corpus=",
		"events=100", "metric=gauge", "pool=512KiB", "recv-buffer=", "request-timeout=30s", "resource-attributes=4", "retry-after=false",
		"scope-attributes=0", "send-buffer=", "series-per-second=0", "series=1k", "services=4", "severities=info=90,warn=7,error=3",
		"signal=traces", "span-events=0", "span-links=0", "statuses=unset=97,error=3", "sticky=", "trace-spans=10",
	},
	"null": {
		"batch-size=256KiB", "clients=1", "fresh=false", "header=", "key=none", "payload=random", "pool=1MiB", "read-delay=0s",
		"read-in-flight=100", "read-queue=1M", "size=100",
	},
	"facts": {
		"branch", "host.cores", "host.cpu", "host.cpu_limit", "op", "revision", "system.host.cores", "system.host.cpu",
		"system.host.cpu_limit", "system.image_id", "target", "target.brokers", "target.brokers.version", "target.index.address",
		"target.index.nodes", "target.index.store", "target.servers", "target.servers.version", "target.topic.partitions",
		"target.topic.replicas", "target.version", "unstaged_changes",
	},
}

// TestIndependentSettings fails if a change breaks compatibility with stored reports.
func TestIndependentSettings(t *testing.T) {
	settings := func(table []workload.Setting, kind string) []string {
		var out []string
		for _, s := range table {
			if s.Kind == kind && s.Independent {
				out = append(out, s.Name+"="+s.Default)
			}
		}
		slices.Sort(out)
		return out
	}
	got := map[string][]string{"": settings(workload.Table(nil), "")}
	for _, k := range programKinds {
		got[k.Name()] = settings(workload.Table(k), k.Name())
	}
	for name := range independent {
		got["facts"] = append(got["facts"], name)
	}
	slices.Sort(got["facts"])
	assert.Same(t, got, storedSettings, "independent settings, and those of stored reports")
}
