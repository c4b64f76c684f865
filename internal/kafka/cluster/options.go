package cluster

import (
	"fmt"
	"slices"
	"strconv"

	"carronade/internal/conn"
	"carronade/protocol"
	"carronade/units"
)

// Headings of the options in help.
const (
	groupEvents   = "events"
	groupProduce  = "producing"
	groupConsume  = "consuming"
	GroupConn     = "connections"
	groupTxn      = "transactions"
	GroupSecurity = "security"
	groupTopic    = "topic"
)

// Options is the kind's table of options. An empty default means the operating
// system's default, or off.
func Options() []protocol.Option {
	var (
		producing = []string{OpProduce, OpRoundTrip, OpPipeline}
		consuming = []string{OpConsume, OpRoundTrip}
		fetching  = []string{OpConsume, OpRoundTrip, OpRead, OpPipeline}
		retrying  = []string{OpProduce, OpRoundTrip, OpRead, OpPipeline}
	)
	return slices.Concat([]protocol.Option{
		{
			Name: "engine", Default: EngineWire, Choices: []string{EngineWire, EngineClient}, Group: groupProduce, Independent: true,
			Help: "wire: own connections, batches encoded ahead; client: franz-go, as an application uses it",
		},
		{
			Name: "clients", Type: protocol.Int, Default: "1", Group: GroupConn, Independent: true,
			Help: "independent clients, each with its own connections; group members or parallel fetchers when consuming",
		},
		{
			Name: "clients-per-topic", Type: protocol.Int, Ops: producing, Group: GroupConn, Independent: true,
			Help: "clients of each topic, which send to it alone, instead of clients that each send to all topics",
		},
		{
			Name: "profile", Choices: []string{"java", "java1"}, Group: groupProduce, Independent: true,
			Help: "another client's defaults: java is the Java producer 4.x, java1 that of 1.x",
		},

		{
			Name: "acks", Default: "1", Choices: []string{"0", "1", "all"}, Ops: producing, Group: groupProduce, Independent: true,
			Help: "replicas that must have a batch before it is acknowledged: none, the leader, all in sync",
		},
		{
			Name: "compression", Default: "none", Choices: []string{"none", "gzip", "snappy", "lz4", "zstd"}, Ops: producing, Group: groupProduce, Independent: true,
			Help: "codec of the record batches",
		},
		{
			Name: "batch-size", Type: protocol.Size, Default: "256KiB", Ops: producing, Group: groupProduce, Independent: true,
			Help: "maximum size of a record batch, before compression",
		},
		{
			Name: "max-request", Type: protocol.Size, Default: "1MiB", Ops: producing, Group: groupProduce, Independent: true,
			Help: "maximum size of a produce request, which may carry batches of several partitions",
		},
		{
			Name: "buffer-memory", Type: protocol.Size, Ops: producing, Group: groupProduce, Independent: true,
			Help: "maximum size of all waiting events; reaching it counts as overload",
		},
		{
			Name: "idempotent", Type: protocol.Bool, Default: "false", Ops: producing, Group: groupProduce, Independent: true,
			Help: "number batches so that a retry cannot duplicate; requires acks=all",
		},
		{
			Name: "partitioner", Word: "NAME", Default: "roundrobin", Ops: producing, Group: groupProduce, Independent: true,
			Help: partitionerForms,
		},
		{
			Name: "topic-weights", Word: "WEIGHTS", Default: "equal", Ops: producing, Group: groupProduce, Independent: true,
			Help: topicWeightForms,
		},
		{
			Name: "delivery-timeout", Type: protocol.Duration, Default: "2m", Ops: retrying, Group: groupProduce, Independent: true,
			Help: "how long a batch is retried, where retrying is safe",
		},

		{
			Name: "size", Word: "SIZE", Default: "100", Ops: producing, Group: groupEvents, Independent: true,
			Help: "size of a value: 100, 100-2000, weighted(100:70,1KiB:30), lognormal(1KiB,0.5), quantiles(60,80,500)",
		},
		{
			Name: "payload", Word: "KIND", Default: "random", Ops: producing, Group: groupEvents, Independent: true,
			Help: "content of values: random, text, compressible(0.25), letters, chars(a-z0-9), monotonic, file(PATH)",
		},
		{
			Name: "key", Word: "KEYS", Default: "none", Ops: producing, Group: groupEvents, Independent: true,
			Help: "none, seq, uniform(1000), zipf(1000,1.1), or text with expressions, such as user-${rnd.nextInt(1000)}",
		},
		{
			Name: "header", Word: "K=V", Type: protocol.List, Ops: producing, Group: groupEvents, Independent: true,
			Help: "header of every record, k=v; both may have expressions: x=${rnd.nextInt(1000)}; repeatable",
		},
		{
			Name: "pool", Type: protocol.Size, Default: "1MiB", Ops: producing, Group: groupEvents, Independent: true,
			Help: "size of each client's pool of encoded events, off the heap; fastest when it fits the processor's cache",
		},
		{
			Name: "fresh", Type: protocol.Bool, Default: "false", Ops: producing, Group: groupEvents, Independent: true,
			Help: "encode each event just before it is sent; on if a key or header has expressions that vary",
		},

		{
			Name: "transactions", Type: protocol.Bool, Default: "false", Ops: producing, Group: groupTxn, Independent: true,
			Help: "produce in transactions; it chooses the client engine",
		},
		{
			Name: "transaction-interval", Type: protocol.Duration, Default: "100ms", Ops: producing, Group: groupTxn, Independent: true,
			Help: "time after which a transaction is committed",
		},
		{
			Name: "transaction-abort", Type: protocol.Share, Default: "0%", Ops: producing, Group: groupTxn, Independent: true,
			Help: "share of transactions to abort",
		},
		{
			Name: "transactional-id", Word: "NAME", Ops: producing, Group: groupTxn,
			Help: "prefix of the transactional ids; each client adds its number",
		},

		{
			Name: "group", Word: "NAME", Ops: consuming, Group: groupConsume, Independent: true,
			Help: "consumer group to join; it chooses the client engine",
		},
		{
			Name: "group-protocol", Default: "classic", Choices: []string{"classic", "consumer"}, Ops: consuming, Group: groupConsume, Independent: true,
			Help: "protocol of the consumer group: consumer is that of KIP-848, in which brokers assign partitions (Kafka 4.0)",
		},
		{
			Name: "share-group", Word: "NAME", Ops: []string{OpConsume}, Group: groupConsume, Independent: true,
			Help: "share group to join instead: brokers distribute its records one by one (client engine)",
		},
		{
			Name: "topics", Word: "N, REGEXP", Ops: []string{OpProduce, OpConsume, OpRoundTrip}, Group: groupConsume, Independent: true,
			Help: "use the first N topics of the target; or, consuming in a group, all whose whole names match an expression",
		},
		{
			Name: "wait-topic", Type: protocol.Duration, Default: "0s", Ops: []string{OpConsume}, Group: groupConsume, Independent: true,
			Help: "how long to wait for missing topics before the run ends with nothing consumed; 0s: fail at once",
		},
		{
			Name: "from", Word: "WHERE", Default: "earliest", Ops: []string{OpConsume}, Group: groupConsume, Independent: true,
			Help: positionForms,
		},
		{
			Name: "until-end", Type: protocol.Bool, Default: "false", Ops: []string{OpConsume}, Group: groupConsume, Independent: true,
			Help: "stop at the end offsets that the partitions had at the start",
		},
		{
			Name: "items-in", Word: "FILE", Ops: []string{OpRead}, Group: groupConsume,
			Help: "read the records of this list, in its order, instead of the whole topic",
		},
		{
			Name: "check-values", Word: "RING", Ops: []string{OpRead, OpPipeline}, Group: groupConsume,
			Help: "check that values are pieces of the ring of --payload ring(...), as in ring(4MiB,SEED); others have failed",
		},
		{
			Name: "items-out", Word: "FILE", Ops: retrying, Group: groupEvents,
			Help: "write a list of the records that were acked, or read, for items-in; it replaces an older file",
		},
		{
			Name: "recycle", Type: protocol.Bool, Ops: []string{OpRead}, Group: groupConsume, Independent: true,
			Help: "read the records again from the first one, until a limit ends the run",
		},
	}, protocol.StageOptions(OpPipeline, groupConsume), []protocol.Option{
		{
			Name: "read-from", Word: "URL", Ops: []string{OpPipeline}, Group: groupConsume, Independent: true,
			Help: "topic with the same records to read from, kafka://HOST/TOPIC, such as a mirror (default: the target)",
		},
		{
			Name: "decode", Type: protocol.Bool, Default: "false", Ops: fetching, Group: groupConsume, Independent: true,
			Help: "decode every record and check every checksum, instead of counting batches by their headers",
		},
		{
			Name: "isolation", Default: "uncommitted", Choices: []string{"uncommitted", "committed"}, Ops: consuming, Group: groupConsume, Independent: true,
			Help: "whether records of open and aborted transactions are read",
		},
		{
			Name: "fetch-min", Type: protocol.Size, Default: "1", Ops: consuming, Group: groupConsume, Independent: true,
			Help: "minimum size of a fetch answer: the broker waits for it",
		},
		{
			Name: "fetch-wait", Type: protocol.Duration, Default: "500ms", Ops: fetching, Group: groupConsume, Independent: true,
			Help: "how long the broker waits for fetch-min",
		},
		{
			Name: "fetch-max", Type: protocol.Size, Default: "4MiB", Ops: fetching, Group: groupConsume, Independent: true,
			Help: "maximum size of a fetch answer",
		},
		{
			Name: "fetch-partition-max", Type: protocol.Size, Default: "1MiB", Ops: fetching, Group: groupConsume, Independent: true,
			Help: "maximum size of one partition in a fetch answer",
		},

		{
			Name: "create-topic", Word: "SPEC", Group: groupTopic, Independent: true,
			Help: "create topics that are missing: partitions=12,replicas=3,min.insync.replicas=2; auto: the broker's defaults",
		},
		{
			Name: "partitions", Type: protocol.Int, Group: groupTopic, Independent: true,
			Help: "create topics that are missing, with N partitions each: the same as in create-topic",
		},
		{
			Name: "delete-topics", Type: protocol.Bool, Default: "false", Group: groupTopic,
			Help: "delete the topics that the run created, when it ends",
		},
	}, conn.Options(GroupConn, conn.ConnectTimeout{}), []protocol.Option{
		{Name: "client-id", Word: "NAME", Default: "carronade", Group: GroupConn, Help: "client id to connect with"},
		{Name: "rack", Word: "NAME", Group: GroupConn, Independent: true, Help: "the clients' rack, to read from the nearest replica (client engine)"},
		{Name: "client-config", Word: "FILE", Group: GroupConn, Help: "properties file of a Java client"},
		{Name: "client-property", Word: "K=V", Type: protocol.List, Group: GroupConn, Show: showProperty, Visible: visibleProperty, Help: "one property as in that file, k=v; repeatable"},

		{Name: "tls", Type: protocol.Bool, Default: "false", Group: GroupSecurity, Independent: true, Help: "use TLS; implied by the other tls options"},
	}, conn.TLSOptions(GroupSecurity, "the broker's"), []protocol.Option{
		{
			Name: "sasl-mechanism", Group: GroupSecurity, Independent: true,
			Choices: []string{MechPlain, MechScram256, MechScram512, MechOAuth, MechAWS},
			Help:    "SASL mechanism to log in with",
		},
		{Name: "user", Word: "NAME", Group: GroupSecurity, Help: "name to log in with (AWS_MSK_IAM: the access key)"},
		{
			Name: "password", Word: "REF", Secret: true, Group: GroupSecurity,
			Help: "env:NAME or file:PATH of the password (OAUTHBEARER: the token; AWS_MSK_IAM: the secret key)",
		},
		{Name: "session-token", Word: "REF", Secret: true, Group: GroupSecurity, Help: "env:NAME or file:PATH of the session token (AWS_MSK_IAM)"},
	})
}

// checkType checks that a text can be parsed as a type.
func checkType(t protocol.Type, text string) error {
	var err error
	switch t {
	case protocol.Bool:
		if text != "true" && text != "false" {
			err = fmt.Errorf("want true or false")
		}
	case protocol.Int:
		_, err = units.ParseCount(text)
	case protocol.Duration:
		_, err = units.ParseDuration(text)
	case protocol.Size:
		_, err = units.ParseSize(text)
	case protocol.Float:
		_, err = strconv.ParseFloat(text, 64)
	case protocol.Rate:
		_, err = units.ParseRate(text)
	case protocol.Share:
		_, err = units.ParseShare(text)
	}
	return err
}
