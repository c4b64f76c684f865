package kafka

import (
	"fmt"
	"slices"
	"strconv"

	"carronade/internal/dial"
	"carronade/target"
	"carronade/units"
)

// Headings of the options in help.
const (
	groupEvents   = "events"
	groupProduce  = "producing"
	groupConsume  = "consuming"
	groupConn     = "connections"
	groupTxn      = "transactions"
	groupSecurity = "security"
	groupTopic    = "topic"
)

// options is the kind's table. Defaults that are empty mean "as the system
// likes", or off.
func options() []target.Option {
	var (
		firing  = []string{opProduce, opRoundTrip}
		reading = []string{opConsume, opRoundTrip}
	)
	return slices.Concat([]target.Option{
		{
			Name: "engine", Default: engineWire, Choices: []string{engineWire, engineClient}, Group: groupProduce, Independent: true,
			Help: "wire: our own connections and batches encoded ahead; client: what an application with franz-go would see",
		},
		{
			Name: "clients", Type: target.Int, Default: "1", Group: groupConn, Independent: true,
			Help: "independent clients with connections of their own; group members or parallel fetchers when consuming",
		},
		{
			Name: "profile", Choices: []string{"java", "java1"}, Group: groupProduce, Independent: true,
			Help: "another client's defaults: java is the Java producer 4.x, java1 that of 1.x",
		},

		{
			Name: "acks", Default: "1", Choices: []string{"0", "1", "all"}, Ops: firing, Group: groupProduce, Independent: true,
			Help: "who must have a batch before it is answered: nobody, the leader, all replicas in sync",
		},
		{
			Name: "compression", Default: "none", Choices: []string{"none", "gzip", "snappy", "lz4", "zstd"}, Ops: firing, Group: groupProduce, Independent: true,
			Help: "codec of the record batches",
		},
		{
			Name: "batch-size", Type: target.Size, Default: "256KiB", Ops: firing, Group: groupProduce, Independent: true,
			Help: "most bytes of a record batch, before compression",
		},
		{
			Name: "max-request", Type: target.Size, Default: "1MiB", Ops: firing, Group: groupProduce, Independent: true,
			Help: "most bytes of a produce request, which may carry a batch for each of several partitions",
		},
		{
			Name: "buffer-memory", Type: target.Size, Ops: firing, Group: groupProduce, Independent: true,
			Help: "most bytes of events waiting; reaching it counts as overload",
		},
		{
			Name: "idempotent", Type: target.Bool, Default: "false", Ops: firing, Group: groupProduce, Independent: true,
			Help: "number batches so that a retry cannot duplicate; asks for acks=all",
		},
		{
			Name: "partitioner", Word: "NAME", Default: "roundrobin", Ops: firing, Group: groupProduce, Independent: true,
			Help: partitionerForms,
		},
		{
			Name: "delivery-timeout", Type: target.Duration, Default: "2m", Ops: firing, Group: groupProduce, Independent: true,
			Help: "how long a batch is retried, where retrying is safe",
		},

		{
			Name: "size", Word: "SIZE", Default: "100", Ops: firing, Group: groupEvents, Independent: true,
			Help: "bytes of a value: 100, 100-2000, weighted(100:70,1KiB:30), lognormal(1KiB,0.5)",
		},
		{
			Name: "payload", Word: "KIND", Default: "random", Ops: firing, Group: groupEvents, Independent: true,
			Help: "what values are made of: random, text, compressible(0.25), letters, chars(a-z0-9), monotonic, file(PATH)",
		},
		{
			Name: "key", Word: "KEYS", Default: "none", Ops: firing, Group: groupEvents, Independent: true,
			Help: "none, seq, uniform(1000), zipf(1000,1.1)",
		},
		{
			Name: "header", Word: "K=V", Type: target.List, Ops: firing, Group: groupEvents, Independent: true,
			Help: "k=v, on every record; repeatable",
		},
		{
			Name: "pool", Type: target.Size, Default: "1MiB", Ops: firing, Group: groupEvents, Independent: true,
			Help: "distinct payloads kept encoded by each client, off the heap; what fits the processor's cache is fastest",
		},
		{
			Name: "fresh", Type: target.Bool, Default: "false", Ops: firing, Group: groupEvents, Independent: true,
			Help: "bytes never sent before, encoded as they go",
		},

		{
			Name: "transactions", Type: target.Bool, Default: "false", Ops: firing, Group: groupTxn, Independent: true,
			Help: "produce in transactions (engine client)",
		},
		{
			Name: "transaction-interval", Type: target.Duration, Default: "100ms", Ops: firing, Group: groupTxn, Independent: true,
			Help: "how long a transaction is before it is committed",
		},
		{
			Name: "transaction-abort", Type: target.Share, Default: "0%", Ops: firing, Group: groupTxn, Independent: true,
			Help: "share of the transactions that are aborted",
		},
		{
			Name: "transactional-id", Word: "NAME", Ops: firing, Group: groupTxn,
			Help: "prefix of the transactional ids; each client adds its number",
		},

		{
			Name: "group", Word: "NAME", Ops: reading, Group: groupConsume, Independent: true,
			Help: "consumer group to join (engine client)",
		},
		{
			Name: "share-group", Word: "NAME", Ops: []string{opConsume}, Group: groupConsume, Independent: true,
			Help: "share group to join instead, whose records brokers deal out one by one (engine client)",
		},
		{
			Name: "topics", Word: "REGEXP", Ops: []string{opConsume}, Group: groupConsume, Independent: true,
			Help: "topics to consume, in place of the target's one: those whose whole name matches (in a group)",
		},
		{
			Name: "wait-topic", Type: target.Duration, Default: "0s", Ops: []string{opConsume}, Group: groupConsume, Independent: true,
			Help: "how long to wait for topics that are not there, and then to end with nothing; 0s: that is an error",
		},
		{
			Name: "from", Word: "WHERE", Default: "earliest", Ops: []string{opConsume}, Group: groupConsume, Independent: true,
			Help: positionForms,
		},
		{
			Name: "until-end", Type: target.Bool, Default: "false", Ops: []string{opConsume}, Group: groupConsume, Independent: true,
			Help: "stop at the ends that the partitions had at the start",
		},
		{
			Name: "decode", Type: target.Bool, Default: "false", Ops: reading, Group: groupConsume, Independent: true,
			Help: "decode every record and check every checksum, instead of counting batches by their headers",
		},
		{
			Name: "isolation", Default: "uncommitted", Choices: []string{"uncommitted", "committed"}, Ops: reading, Group: groupConsume, Independent: true,
			Help: "whether records of open and aborted transactions are read",
		},
		{
			Name: "fetch-min", Type: target.Size, Default: "1", Ops: reading, Group: groupConsume, Independent: true,
			Help: "bytes that the broker waits for before it answers a fetch",
		},
		{
			Name: "fetch-wait", Type: target.Duration, Default: "500ms", Ops: reading, Group: groupConsume, Independent: true,
			Help: "how long it waits for them",
		},
		{
			Name: "fetch-max", Type: target.Size, Default: "4MiB", Ops: reading, Group: groupConsume, Independent: true,
			Help: "most bytes of a fetch answer",
		},
		{
			Name: "fetch-partition-max", Type: target.Size, Default: "1MiB", Ops: reading, Group: groupConsume, Independent: true,
			Help: "most bytes of one partition in a fetch answer",
		},

		{
			Name: "create-topic", Word: "SPEC", Group: groupTopic, Independent: true,
			Help: "make the topic if it is missing: partitions=12,replicas=3,min.insync.replicas=2; auto: as the broker likes",
		},
	}, dial.ConnOptions(groupConn, dial.Connect{}), []target.Option{
		{Name: "client-id", Word: "NAME", Default: "carronade", Group: groupConn, Help: "name under which the clients connect"},
		{Name: "rack", Word: "NAME", Group: groupConn, Independent: true, Help: "the clients' rack, to read from the nearest replica (engine client)"},
		{Name: "client-config", Word: "FILE", Group: groupConn, Help: "a Java client's properties file"},
		{Name: "client-property", Word: "K=V", Type: target.List, Group: groupConn, Show: showProperty, Help: "one more line of that file: k=v; repeatable"},

		{Name: "tls", Type: target.Bool, Default: "false", Group: groupSecurity, Independent: true, Help: "speak TLS; implied by the other tls options"},
	}, dial.Options(groupSecurity, "the broker's"), []target.Option{
		{
			Name: "sasl-mechanism", Group: groupSecurity, Independent: true,
			Choices: []string{mechPlain, mechScram256, mechScram512, mechOAuth, mechAWS},
			Help:    "how to log in",
		},
		{Name: "user", Word: "NAME", Group: groupSecurity, Help: "name to log in with (AWS_MSK_IAM: the access key)"},
		{
			Name: "password", Word: "REF", Secret: true, Group: groupSecurity,
			Help: "env:NAME or file:PATH of the password (OAUTHBEARER: the token; AWS_MSK_IAM: the secret key)",
		},
		{Name: "session-token", Word: "REF", Secret: true, Group: groupSecurity, Help: "env:NAME or file:PATH of the session token (AWS_MSK_IAM)"},
	})
}

// checkType checks that a text is of a type.
func checkType(t target.Type, text string) error {
	var err error
	switch t {
	case target.Bool:
		if text != "true" && text != "false" {
			err = fmt.Errorf("want true or false")
		}
	case target.Int:
		_, err = units.ParseCount(text)
	case target.Duration:
		_, err = units.ParseDuration(text)
	case target.Size:
		_, err = units.ParseSize(text)
	case target.Float:
		_, err = strconv.ParseFloat(text, 64)
	case target.Rate:
		_, err = units.ParseRate(text)
	case target.Share:
		_, err = units.ParseShare(text)
	}
	return err
}
