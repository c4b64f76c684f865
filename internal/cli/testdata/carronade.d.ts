declare module "carronade" {
  /** A step in progress: a promise of its report. */
  export interface Step<R> extends Promise<R> {
    /** Ends the step as an interrupt does: it stops sending, waits for answers and reports. */
    stop(): this;
  }

  /** Starts a run, as carronade run does. */
  export function run(target: string, options?: Options): Step<Report>;
  /** Starts a search for the highest rate at which limits hold, as carronade find does. */
  export function find(target: string, options?: FindOptions): Step<SearchReport>;
  /** Starts a run that sends events and reads each after its ack: the operation pipeline. */
  export function pipeline(target: string, options?: Options): Step<Report>;
  /** Starts a run of several loads at once, each with a share of all events by its weight. */
  export function weighted(parts: Part[], options?: WholeOptions): Step<Report>;
  /** Awaits steps that run side by side. If one fails, the others are awaited first. */
  export function parallel<R extends unknown[]>(...steps: { [K in keyof R]: Promise<R[K]> | (() => Promise<R[K]>) }): Promise<R>;
  /** Waits for a time such as "5s". */
  export function sleep(time: string): Promise<void>;
  /** Checks limits, such as "p99<50ms", and returns whether all hold. The exit code counts them. */
  export function check(report: Report, ...limits: string[]): boolean;
  /** Adds a text with the time to the report of the scenario. */
  export function mark(text: string): void;
  /** Marks the runs in progress that take marks, as carronade mark does, and the report of the scenario. */
  export function mark(kind: "fault" | "heal" | "note", name: string): void;
  /** Reads a stored report: "last", an id, or another reference of carronade report show. */
  export function report(reference: string): Report;
  /** The arguments after the script on the command line. */
  export const args: string[];
  /** The variables of the environment whose names the script has in its text. */
  export const env: { readonly [name: string]: string | undefined };

  /** Options of a step: the settings of a workload file, by their names. */
  export interface Options {
    /** the name of the step, in its report and on the screen */
    name?: string;
    /** operation: carronade help targets lists them */
    op?: string | number;
    /** read back what was sent and account for every event */
    verify?: boolean;
    /** number of consumer groups, each of which reads every event while the run writes */
    groups?: string | number;
    /** members of each group for each topic (default: 1); consuming: readers that divide the partitions */
    members?: string | number;
    /** seed of payloads, keys and random schedules [1] */
    seed?: string | number;
    /** open loop: events due per second, such as 50k/s */
    rate?: string | number;
    /** open loop at a changing rate: carronade help shapes */
    shape?: string | number;
    /** closed loop: number of batches always in flight */
    concurrency?: string | number;
    /** stop after this time, not counting warm-up */
    for?: string;
    /** stop after this number of events, such as 10M */
    count?: string | number;
    /** with --count: fewer are fine if time or bytes end the run first */
    "count-at-most"?: boolean;
    /** stop after this many bytes of events */
    bytes?: string | number;
    /** warm-up first: a time, or a number of events */
    warmup?: string | number;
    /** how long to wait for the last answers [10s] */
    drain?: string;
    /** stop when nothing has arrived for this long [10s] */
    "idle-timeout"?: string;
    /** stop when more than N events failed */
    failures?: string | number;
    /** stop when more than this share failed, such as 1% */
    "failure-rate"?: string | number;
    /** a limit on a result, such as 'p99<20ms' (repeatable; see: carronade help slo) */
    slo?: string | number | boolean | (string | number | boolean)[] | { [name: string]: string | number | boolean };
    /** end the run when a limit of --slo breaks, but not in the first DELAY of the measurement */
    "abort-on-fail"?: string;
    /** events per batch (default: as many as are due) */
    "batch-events"?: string | number;
    /** how long events wait for their batch to fill [5ms] */
    linger?: string;
    /** batches in flight per connection (by default many clients share 1,000, with at least 5 each) [5] */
    "max-in-flight"?: string | number;
    /** what happens to due events while that limit is reached [queue] */
    overload?: "queue" | "drop";
    /** send failed events again, at most N times [0] */
    retry?: string | number;
    /** maximum of sending threads (default: one per client, at most the processors) */
    threads?: string | number;
    /** interval of the series and of the progress lines [1s] */
    interval?: string;
    /** more percentiles, such as 25,75,99.95 */
    percentiles?: string | number;
    /** report what each connection did, by broker */
    "client-metrics"?: boolean;
    /** write the histograms as an HdrHistogram log */
    hdr?: string | number;
    /** write a row for each batch, as Parquet */
    trace?: string | number;
    /** rows for single events instead, for this share of them, such as 1% */
    "trace-events"?: string | number;
    /** readers pause until this much waits for each group, then they read; the run ends when that is drained */
    backlog?: string | number;
    /** drained is a backlog of which each group has read this share (default 99%) */
    "backlog-drained"?: string | number;
    /** how long the run goes on after that (default 0s) */
    "backlog-after"?: string;
    /** end a run whose backlog is not drained after this time (default: 10 times that of building it) */
    "drain-timeout"?: string;
    /** a label for the report (repeatable) */
    label?: string | number | boolean | (string | number | boolean)[] | { [name: string]: string | number | boolean };
    /** start it: a program and its arguments, in quotes */
    "system-cmd"?: string | number;
    /** watch this process and its children */
    "system-pid"?: string | number;
    /** watch this container */
    "system-container"?: string | number;
    /** start a container of this image */
    "system-image"?: string | number;
    /** an argument for the image's command (repeatable) */
    "system-arg"?: string | number | boolean | (string | number | boolean)[] | { [name: string]: string | number | boolean };
    /** set in its environment; V may be env:NAME or file:PATH */
    "system-env"?: string | number | boolean | (string | number | boolean)[] | { [name: string]: string | number | boolean };
    /** its working folder */
    "system-dir"?: string | number;
    /** a flag of the system, distinguished in reports (repeatable) */
    "system-flag"?: string | number | boolean | (string | number | boolean)[] | { [name: string]: string | number | boolean };
    /** format of its flags (default: -E {name}={value}) */
    "system-flag-format"?: string | number;
    /** start when URL answers, port:N accepts, or log:TEXT is printed */
    "system-ready"?: string | number;
    /** timeout of that (default: 1m) */
    "system-ready-within"?: string;
    /** time between TERM and KILL (default: 10s) */
    "system-stop-within"?: string;
    /** memory limit */
    "system-mem"?: string | number;
    /** processor limit, such as 1.5 */
    "system-cpus"?: string | number;
    /** container engine (default: the one installed) */
    "system-engine"?: "docker" | "podman";
    /** a port of the image's container: 127.0.0.1:8200:8200 */
    "system-publish"?: string | number | boolean | (string | number | boolean)[] | { [name: string]: string | number | boolean };
    /** the repository it comes from: branch and revision are reported */
    "system-git"?: string | number;
    /** its revision, without a repository: a version, a build, a change of its settings */
    revision?: string | number;
    /** the branch of the revision (default: the branch that contains it) */
    "system-branch"?: string | number;
    /** build this revision, in a separate worktree */
    "system-checkout"?: string | number;
    /** fetch this remote first */
    "system-fetch"?: string | number;
    /** how to build it; {tree} is its folder, {image} a name for an image */
    "system-build"?: string | number;
    /** timeout of the build (default: 30m) */
    "system-build-within"?: string;
    /** show what its build and the system print, on stderr */
    "system-verbose"?: boolean;
    /** write what the system prints to FILE while it runs, the last 10 MiB */
    "system-log"?: string | number;
    /** read its expvar metrics, once per interval */
    "system-vars"?: string | number;
    /** read its metrics in Prometheus's text format, once per interval */
    "system-metrics"?: string | number;
    /** which of those metrics, with * as wildcard (repeatable; default: all) */
    "system-names"?: string | number | boolean | (string | number | boolean)[] | { [name: string]: string | number | boolean };
    /** a header for both; the value is env:NAME or file:PATH */
    "system-header"?: string | number | boolean | (string | number | boolean)[] | { [name: string]: string | number | boolean };
    /** read GC pauses from a JVM's unified log; %p and * are wildcards */
    "system-gc-log"?: string | number;
    /** make the JVM of --system-cmd write one */
    "system-jvm-gc"?: boolean;
    /** another machine's description, from carronade host --json */
    "system-host"?: string | number | boolean | (string | number | boolean)[] | { [name: string]: string | number | boolean };
    /** a fault that the run makes, such as 60s:stop=leader,10s (repeatable; see docs/faults.md) */
    fault?: string | number | boolean | (string | number | boolean)[] | { [name: string]: string | number | boolean };
    /** when to run the command of --exec: TIME, or TIME:heal for a command that heals a fault (repeatable) */
    at?: string | number | boolean | (string | number | boolean)[] | { [name: string]: string | number | boolean };
    /** a command for each --at, in the same order; it needs --allow-exec */
    exec?: string | number | boolean | (string | number | boolean)[] | { [name: string]: string | number | boolean };
    /** take marks while it runs (carronade mark), and score what follows each */
    marks?: boolean;
    /** what the system is known to take, for predictions (default: as seen while it catches up) */
    "fault-ceiling"?: string | number;
    /** kafka: wire: own connections, batches encoded ahead; client: franz-go, as an application uses it [wire] */
    engine?: "wire" | "client";
    /** kafka: independent clients, each with its own connections; group members or parallel fetchers when consuming [1] */
    clients?: string | number;
    /** kafka: clients of each topic, which send to it alone, instead of clients that each send to all topics */
    "clients-per-topic"?: string | number;
    /** kafka: another client's defaults: java is the Java producer 4.x, java1 that of 1.x */
    profile?: "java" | "java1";
    /** kafka: replicas that must have a batch before it is acknowledged: none, the leader, all in sync [1] */
    acks?: "0" | 0 | "1" | 1 | "all";
    /** kafka: codec of the record batches [none] */
    compression?: "none" | "gzip" | "snappy" | "lz4" | "zstd";
    /** kafka: maximum size of a record batch, before compression [256KiB] */
    "batch-size"?: string | number;
    /** kafka: maximum size of a produce request, which may carry batches of several partitions [1MiB] */
    "max-request"?: string | number;
    /** kafka: maximum size of all waiting events; reaching it counts as overload */
    "buffer-memory"?: string | number;
    /** kafka: number batches so that a retry cannot duplicate; requires acks=all [false] */
    idempotent?: boolean;
    /** kafka: roundrobin, sticky, murmur2 (of the key, as the Java client does), fixed(N) [roundrobin] */
    partitioner?: string | number;
    /** kafka: how events are spread over the target's topics: equal; zipf(S), the first gets the most; or a weight for each, such as 3,1,1 [equal] */
    "topic-weights"?: string | number;
    /** kafka: how long a batch is retried, where retrying is safe [2m] */
    "delivery-timeout"?: string;
    /** kafka: size of a value: 100, 100-2000, weighted(100:70,1KiB:30), lognormal(1KiB,0.5), quantiles(60,80,500) [100] */
    size?: string | number;
    /** kafka: content of values: random, text, compressible(0.25), letters, chars(a-z0-9), monotonic, file(PATH) [random] */
    payload?: string | number;
    /** kafka: none, seq, uniform(1000), zipf(1000,1.1), or text with expressions, such as user-${rnd.nextInt(1000)} [none] */
    key?: string | number;
    /** kafka: header of every record, k=v; both may have expressions: x=${rnd.nextInt(1000)}; repeatable */
    header?: string | number | boolean | (string | number | boolean)[] | { [name: string]: string | number | boolean };
    /** kafka: size of each client's pool of encoded events, off the heap; fastest when it fits the processor's cache [1MiB] */
    pool?: string | number;
    /** kafka: encode each event just before it is sent; on if a key or header has expressions that vary [false] */
    fresh?: boolean;
    /** kafka: produce in transactions; it chooses the client engine [false] */
    transactions?: boolean;
    /** kafka: time after which a transaction is committed [100ms] */
    "transaction-interval"?: string;
    /** kafka: share of transactions to abort [0%] */
    "transaction-abort"?: string | number;
    /** kafka: prefix of the transactional ids; each client adds its number */
    "transactional-id"?: string | number;
    /** kafka: consumer group to join; it chooses the client engine */
    group?: string | number;
    /** kafka: protocol of the consumer group: consumer is that of KIP-848, in which brokers assign partitions (Kafka 4.0) [classic] */
    "group-protocol"?: "classic" | "consumer";
    /** kafka: share group to join instead: brokers distribute its records one by one (client engine) */
    "share-group"?: string | number;
    /** kafka: use the first N topics of the target; or, consuming in a group, all whose whole names match an expression */
    topics?: string | number;
    /** kafka: how long to wait for missing topics before the run ends with nothing consumed; 0s: fail at once [0s] */
    "wait-topic"?: string;
    /** kafka: earliest, latest, an offset such as 1000, a time such as 2026-11-21T09:00:00Z [earliest] */
    from?: string | number;
    /** kafka: stop at the end offsets that the partitions had at the start [false] */
    "until-end"?: boolean;
    /** kafka: read the records of this list, in its order, instead of the whole topic */
    "items-in"?: string | number;
    /** kafka: check that values are pieces of the ring of --payload ring(...), as in ring(4MiB,SEED); others have failed */
    "check-values"?: string | number;
    /** kafka: write a list of the records that were acked, or read, for items-in; it replaces an older file */
    "items-out"?: string | number;
    /** kafka: read the records again from the first one, until a limit ends the run */
    recycle?: boolean;
    /** kafka: time from an event's ack to its read [0s] */
    "read-delay"?: string;
    /** kafka: batches being read at a time, over all connections [100] */
    "read-in-flight"?: string | number;
    /** kafka: events that may be acked and not yet read; then sending waits; 0: no limit [1M] */
    "read-queue"?: string | number;
    /** kafka: topic with the same records to read from, kafka://HOST/TOPIC, such as a mirror (default: the target) */
    "read-from"?: string | number;
    /** kafka: decode every record and check every checksum, instead of counting batches by their headers [false] */
    decode?: boolean;
    /** kafka: whether records of open and aborted transactions are read [uncommitted] */
    isolation?: "uncommitted" | "committed";
    /** kafka: minimum size of a fetch answer: the broker waits for it [1] */
    "fetch-min"?: string | number;
    /** kafka: how long the broker waits for fetch-min [500ms] */
    "fetch-wait"?: string;
    /** kafka: maximum size of a fetch answer [4MiB] */
    "fetch-max"?: string | number;
    /** kafka: maximum size of one partition in a fetch answer [1MiB] */
    "fetch-partition-max"?: string | number;
    /** kafka: create topics that are missing: partitions=12,replicas=3,min.insync.replicas=2; auto: the broker's defaults */
    "create-topic"?: string | number;
    /** kafka: create topics that are missing, with N partitions each: the same as in create-topic */
    partitions?: string | number;
    /** kafka: delete the topics that the run created, when it ends [false] */
    "delete-topics"?: boolean;
    /** kafka: how long an answer may take [30s] */
    "request-timeout"?: string;
    /** kafka: the connections' send buffer (SO_SNDBUF) */
    "send-buffer"?: string | number;
    /** kafka: the connections' receive buffer (SO_RCVBUF) */
    "recv-buffer"?: string | number;
    /** kafka: client id to connect with [carronade] */
    "client-id"?: string | number;
    /** kafka: the clients' rack, to read from the nearest replica (client engine) */
    rack?: string | number;
    /** kafka: properties file of a Java client */
    "client-config"?: string | number;
    /** kafka: one property as in that file, k=v; repeatable */
    "client-property"?: string | number | boolean | (string | number | boolean)[] | { [name: string]: string | number | boolean };
    /** kafka: use TLS; implied by the other tls options [false] */
    tls?: boolean;
    /** kafka: PEM file of the certificate authorities to trust; default: the system's */
    "tls-ca"?: string | number;
    /** kafka: PEM file of the client's certificate */
    "tls-cert"?: string | number;
    /** kafka: PEM file of its private key */
    "tls-key"?: string | number;
    /** kafka: name to expect in the broker's certificate, instead of its address */
    "tls-server-name"?: string | number;
    /** kafka: accept any certificate; the report says so [false] */
    "tls-insecure-skip-verify"?: boolean;
    /** kafka: SASL mechanism to log in with */
    "sasl-mechanism"?: "PLAIN" | "SCRAM-SHA-256" | "SCRAM-SHA-512" | "OAUTHBEARER" | "AWS_MSK_IAM";
    /** kafka: name to log in with (AWS_MSK_IAM: the access key) */
    user?: string | number;
    /** kafka: env:NAME or file:PATH of the password (OAUTHBEARER: the token; AWS_MSK_IAM: the secret key) */
    password?: string | number;
    /** kafka: env:NAME or file:PATH of the session token (AWS_MSK_IAM) */
    "session-token"?: string | number;
    /** riemann: each client sends only its own events, in their order; false: a due message goes to the first free client */
    sticky?: boolean;
    /** riemann: pause before reconnecting; doubled after each failure, up to 1s [50ms] */
    "reconnect-backoff"?: string;
    /** riemann: how long connecting may take, TLS included [5s] */
    "connect-timeout"?: string;
    /** riemann: maximum datagram size that the server accepts; it drops larger ones silently [16KiB] */
    "max-datagram"?: string | number;
    /** riemann: where the server answers queries, over TCP or riemann+tls://; default: the target's own address, or port 5555 of its host for riemann+ws and riemann+http */
    "query-address"?: string | number;
    /** riemann: service of an event: text with {service}, {uniform(1000)}, {zipf(1000,1.1)}, {pick(a,b)}, {weighted(a:9,b:1)}, {cycle(a,b)}, {seq}, {client}, and expressions: ${...} [{service}] */
    service?: string | number;
    /** riemann: host of an event: text as for --service [web-{uniform(20)}] */
    host?: string | number;
    /** riemann: state of an event: text as for --service [{weighted(ok:97,warning:2,critical:1)}] */
    state?: string | number;
    /** riemann: description of an event: text as for --service, or none [sampled by carronade] */
    description?: string | number;
    /** riemann: tags, text as for --service, separated by commas or repeated; or none [carronade,{pick(eu,us)}] */
    tag?: string | number | boolean | (string | number | boolean)[] | { [name: string]: string | number | boolean };
    /** riemann: custom field, text as for --service; repeatable */
    attribute?: string | number | boolean | (string | number | boolean)[] | { [name: string]: string | number | boolean };
    /** riemann: how long the index keeps an event: 60s, cycle(30s,1m), uniform(30s,2m), or none [60s] */
    ttl?: string | number;
    /** riemann: time of an event: in seconds, in microseconds, or set by the server [s] */
    time?: "s" | "us" | "none";
    /** riemann: metric of an event: 42, cycle(1,2,3), pick(1,2,3), uniform(0,100), zipf(1000,1.1), seq, walk(50,1) [walk(50,1)] */
    metric?: string | number;
    /** riemann: protocol field that holds the metric [double] */
    "metric-type"?: "sint64" | "double" | "float" | "none";
    /** apm: protocol: v2 for backend agents, rum-v2 and rum-v3 for browsers, v1 for servers before 7; auto: v1 for servers before 6.5, otherwise v2 [v2] */
    intake?: "v2" | "rum-v2" | "rum-v3" | "v1" | "auto";
    /** apm: events per request, without the spans of its transactions: 10, or 1-20 [10] */
    events?: string | number;
    /** apm: spans per transaction; with 0, events are errors [3] */
    spans?: string | number;
    /** apm: stack frames per span or error [3] */
    frames?: string | number;
    /** apm: size to which each stack frame is padded */
    "frame-size"?: string | number;
    /** apm: size to which each transaction and error is padded, without its spans and frames */
    "event-size"?: string | number;
    /** apm: weights of the event kinds: transaction=8,error=1,metricset=1,log=4; default: transactions, or errors with --spans 0 */
    mix?: string | number;
    /** apm: services that events come from [4] */
    services?: string | number;
    /** apm: hosts that each service runs on [4] */
    hosts?: string | number;
    /** apm: agents that services run, such as java,python; default: all */
    agents?: string | number;
    /** apm: weights of the transactions' outcomes: success, failure, unknown [success=97,failure=3] */
    outcomes?: string | number;
    /** apm: label of transactions, errors, metricsets and logs: text with expressions, such as order=${rnd.nextInt(1000)}; repeatable */
    "event-label"?: string | number | boolean | (string | number | boolean)[] | { [name: string]: string | number | boolean };
    /** apm: of transactions: constant(20ms), uniform(1ms,100ms), exponential(20ms), lognormal(MEDIAN,P99) [lognormal(5ms,250ms)] */
    durations?: string | number;
    /** apm: number of consecutive requests that share traces [1] */
    "trace-hops"?: string | number;
    /** apm: recorded requests to replay instead (NDJSON, each begins with its metadata line), with fresh ids and times */
    corpus?: string | number;
    /** apm: send the same body each time, without fresh ids and times [false] */
    "repeat-body"?: boolean;
    /** apm: compression of the bodies: its level, 1 is the fastest [none] */
    gzip?: "none" | "1" | 1 | "2" | 2 | "3" | 3 | "4" | 4 | "5" | 5 | "6" | 6 | "7" | 7 | "8" | 8 | "9" | 9;
    /** apm: request the number of accepted events with each answer, instead of relying on a 202 [false] */
    verbose?: boolean;
    /** apm: 2 needs apm+https [1.1] */
    "http-version"?: "1.1" | 1.1 | "2" | 2;
    /** apm: false: a connection for each request, which counts into its service time [true] */
    "keep-alive"?: boolean;
    /** apm: pause a connection for as long as a 429 or 503 asks, 1m at most [false] */
    "retry-after"?: boolean;
    /** apm: HTTP proxy to use */
    proxy?: string | number;
    /** apm: env:NAME or file:PATH of the server's secret token */
    "secret-token"?: string | number;
    /** apm: env:NAME or file:PATH of an API key (the encoded form) */
    "api-key"?: string | number;
    /** apm: Elasticsearch or OpenSearch behind the server: its documents are counted before and after */
    index?: string | number;
    /** apm: indices and data streams to count in [traces-apm*,logs-apm*,metrics-apm.app*,metrics-apm.internal*,apm-*] */
    "index-pattern"?: string | number;
    /** apm: user name for it */
    "index-user"?: string | number;
    /** apm: env:NAME or file:PATH of its password */
    "index-password"?: string | number;
    /** apm: env:NAME or file:PATH of an API key for it (the encoded form) */
    "index-api-key"?: string | number;
    /** apm: PEM file of the certificate authorities to trust for it */
    "index-tls-ca"?: string | number;
    /** apm: accept any certificate from it; the report says so [false] */
    "index-tls-insecure-skip-verify"?: boolean;
    /** apm: maximum wait after the last request until the count is stable [1m] */
    "index-wait"?: string;
    /** apm: how long the count must not change to be stable [5s] */
    "index-still"?: string;
    /** otlp: traces, metrics or logs; several by weights: traces=1,logs=3 [traces] */
    signal?: string | number;
    /** otlp: attributes of a request's resource, service.name included [4] */
    "resource-attributes"?: string | number;
    /** otlp: attributes of a request's scope [0] */
    "scope-attributes"?: string | number;
    /** otlp: attributes of each event [5] */
    attributes?: string | number;
    /** otlp: size of an attribute's value [16] */
    "attribute-size"?: string | number;
    /** otlp: spans of a trace, a tree in one request [10] */
    "trace-spans"?: string | number;
    /** otlp: events within each span [0] */
    "span-events"?: string | number;
    /** otlp: links of each span [0] */
    "span-links"?: string | number;
    /** otlp: weights of the spans' statuses: unset, ok, error [unset=97,error=3] */
    statuses?: string | number;
    /** otlp: different series at a time, by the attribute series [1k] */
    series?: string | number;
    /** otlp: series that end and are replaced by new ones each second [0] */
    "series-per-second"?: string | number;
    /** otlp: size of a log record's body [200] */
    "body-size"?: string | number;
    /** otlp: weights of the log records' severities: trace, debug, info, warn, error, fatal [info=90,warn=7,error=3] */
    severities?: string | number;
  }

  /** A part of weighted: the options of one load. What applies to all is in the options of the whole. */
  export interface Part extends WholeOptions {
    /** its share of all events, relative to the other parts; 0: none */
    weight?: string | number;
  }

  /** Options of weighted. */
  export interface WholeOptions extends Options {
    /** the target of all parts that have no other */
    target?: string;
  }

  /** Options of find: settings of trials, and how to search. */
  export interface FindOptions extends Options {
    /** TIME for the whole search, with --vary for each; the last trial may exceed it */
    budget?: string | number;
    /** wanted width of the answer, a SHARE; wider if the budget does not suffice */
    precision?: string | number;
    /** begin at this RATE; without it, a closed loop estimates the capacity */
    from?: string | number;
    /** never offer more than this RATE */
    to?: string | number;
    /** exit with 1 if this RATE does not hold */
    "at-least"?: string | number;
    /** after the answer, run its lower end for this TIME, beyond the budget */
    confirm?: string | number;
    /** search the smallest concurrency that reaches 95 % of the best throughput, not the rate: concurrency */
    over?: string | number;
  }

  /** A time of a report, in microseconds; null where nothing was measured. */
  export interface Times {
    count: number;
    mean_us: number | null;
    min_us: number | null;
    p50_us: number | null;
    p90_us: number | null;
    p95_us: number | null;
    p99_us: number | null;
    p999_us: number | null;
    p9999_us: number | null;
    max_us: number | null;
    below_range: number;
    above_range: number;
    censored: number;
    at_least_from_us: number | null;
    at_least_from_p: number | null;
    censored_mean_us: number | null;
    censored_max_us: number | null;
    [percentile: string]: number | null;
  }

  /** The report of a run: docs/report.md describes each field. */
  export interface Report {
    schema: string;
    id: string;
    hash: string;
    version: string;
    run_id: string;
    target: string;
    op: string;
    mode: string;
    labels?: { [name: string]: string };
    note?: string;
    repetition: number;
    repetitions: number;
    replaces?: string;
    started_at: string;
    ended_at: string;
    stopped: string;
    partial: boolean;
    trust: Trust;
    steady: Steady;
    checks: Check[];
    problems: string[];
    warnings: string[];
    notice?: string;
    workload: any;
    settings: Setting[];
    totals: Totals;
    response: Times | null;
    service: Times | null;
    send_delay: Times | null;
    batching: Times | null;
    queueing: Times | null;
    failed_service: Times | null;
    end_to_end: Times | null;
    acked_to_read?: Times | null;
    response_lower: Times | null;
    service_lower: Times | null;
    end_to_end_lower: Times | null;
    steps: Phase[];
    phases: Phase[];
    parts?: Part[];
    groups?: Group[];
    fairness?: number | null;
    intervals: Interval[];
    gauges: Gauge[];
    moments?: Moment[];
    stall: Stall;
    freezes: Freezes;
    faults?: Faults | null;
    backlog?: ReadBacklog | null;
    failures: Failure[];
    classes: { [name: string]: number };
    ledger: Ledger | null;
    indexed: Indexed | null;
    system: System | null;
    hosts: any[];
    logs: LogResult[];
    lag_events: { [name: string]: number };
    members?: MemberResult[];
    generator: Generator;
    calibration: Calibration | null;
    generates?: Generates | null;
    encoding?: Encoding | null;
    undecoded?: string;
    host: any;
    host_text: string;
    others?: Others | null;
    facts: { [name: string]: any };
    client_metrics?: Client[];
    attachments?: Attachment[];
    samples?: Samples | null;
    trace?: Trace | null;
    fleet?: Fleet | null;
  }

  /** The answer of a search: docs/report.md describes each field. */
  export interface SearchReport {
    id: string;
    target: string;
    op: string;
    mode: string;
    started_at: string;
    ended_at: string;
    stopped: string;
    partial: boolean;
    trust: Trust;
    limits: string[];
    time_limits: SearchLimit[];
    budget_ns: number;
    from?: number;
    at_least?: number;
    ending: string;
    holds: number;
    holds_confirmed: boolean;
    fails: number;
    fails_confirmed: boolean;
    precision: number;
    wanted_precision: number;
    why: string;
    inversions?: string[];
    after_overload?: Verdict | null;
    soak?: Soaked | null;
    deciding?: Deciding | null;
    knee?: Knee | null;
    bottleneck?: Bottleneck | null;
    trials: Tried[];
    elapsed_ns: number;
  }

  export interface Trust {
    ok: boolean;
    level: string;
    reasons: string[];
    doubts: string[];
    notes: string[];
    bounds: Bound[];
  }

  export interface Steady {
    ok: boolean;
    known: boolean;
    in_flight_slope: number;
    response_slope_us: number;
    in_flight_rise: number;
    response_rise: number;
    needed_s?: number;
    silent: number;
    outage?: string;
    outage_at_s?: number;
    outage_s?: number;
    text: string;
  }

  export interface Check {
    name: string;
    ok: boolean;
    cannot_tell: boolean;
    text: string;
    found?: number | null;
    bound?: number | null;
  }

  export interface Setting {
    name: string;
    type: string;
    value: string;
    default: boolean;
    preset: boolean;
    minor: boolean;
    independent: boolean;
  }

  export interface Totals {
    offered: number;
    sent: number;
    dropped: number;
    unsent: number;
    acked: number;
    failed: number;
    unknown: number;
    consumed: number;
    unread?: number;
    retries: number;
    batches: number;
    answered: number;
    bytes: number;
    acked_bytes: number;
    wire_bytes: number;
    statuses?: Status[];
    elapsed_s: number;
    events_per_s: number;
    bytes_per_s: number;
    answers_per_s?: number;
    sent_per_s?: number | null;
    sent_bytes_per_s?: number;
    wire_bytes_per_s?: number;
    rate_of: string;
    in_flight_mean: number;
    in_flight_max: number;
    in_flight_peak?: number;
    rebalance_s: number;
    fetch_s: number;
    missing: number;
  }

  export interface Phase {
    name: string;
    rate: number;
    start_s: number;
    end_s: number;
    holds?: boolean | null;
    cannot_tell?: boolean;
    totals: Totals;
    response: Times | null;
    service: Times | null;
    send_delay: Times | null;
    batching: Times | null;
    queueing: Times | null;
    failed_service: Times | null;
    end_to_end: Times | null;
    acked_to_read?: Times | null;
    response_lower: Times | null;
    service_lower: Times | null;
    end_to_end_lower: Times | null;
  }

  export interface Part {
    name: string;
    target: string;
    op: string;
    weight: number;
    share: number;
    got: number;
    settings: Setting[];
    classes: { [name: string]: number };
    totals: Totals;
    response: Times | null;
    service: Times | null;
    send_delay: Times | null;
    batching: Times | null;
    queueing: Times | null;
    failed_service: Times | null;
    end_to_end: Times | null;
    acked_to_read?: Times | null;
    response_lower: Times | null;
    service_lower: Times | null;
    end_to_end_lower: Times | null;
  }

  export interface Group {
    name: string;
    consumed: number;
    unread: number;
    events_per_s: number;
    bytes_per_s: number;
    backlog_events: number;
    backlog_most_events: number;
    unassigned_s: number;
    end_to_end: Times | null;
    end_to_end_lower: Times | null;
    acked_to_read: Times | null;
  }

  export interface Interval {
    phase: string;
    start_s: number;
    end_s: number;
    offered: number;
    sent: number;
    dropped: number;
    unsent: number;
    acked: number;
    failed: number;
    unknown: number;
    consumed: number;
    unread?: number;
    retries: number;
    batches: number;
    answered: number;
    bytes: number;
    acked_bytes: number;
    wire_bytes: number;
    statuses?: Status[];
    classes?: ClassCount[];
    within_s: number;
    arrived: number;
    events_per_s: number;
    in_flight: number;
    lag_events: number;
    lag_events_by_log?: number[];
    response: Times | null;
    service: Times | null;
    send_delay: Times | null;
    end_to_end: Times | null;
    groups?: GroupInterval[];
    generator: Usage;
    histograms?: { [name: string]: string };
  }

  export interface Gauge {
    from: string;
    name: string;
    unit: string;
    counts: boolean;
    total: boolean;
    stage?: boolean;
    before: number | null;
    mean: number | null;
    max: number | null;
    after: number | null;
    missed: number;
    points: Point[];
  }

  export interface Moment {
    from: string;
    name: string;
    at_s: number;
    length_s: number;
  }

  export interface Stall {
    longest_s: number;
    longest_at_s: number;
    share: number;
    count: number;
    spans: Span[];
  }

  export interface Freezes {
    count: number;
    total_s: number;
    share: number;
    longest: Freeze[];
  }

  export interface Faults {
    limit_s: number;
    budget: number;
    per?: string;
    marks: Mark[];
    scores: Score[];
    elsewhere?: Delivery | null;
    notes?: string[];
  }

  export interface ReadBacklog {
    state: string;
    wanted: string;
    drained_share: number;
    build_at_s: number | null;
    build_s: number | null;
    drain_at_s: number | null;
    drain_s: number | null;
    drain_timeout_s: number;
    sending_ended_at_s: number | null;
    most_at_s?: number;
    most_events: number;
    most_bytes: number;
    left_events: number;
    drained_events_per_s: number;
    drained_bytes_per_s: number;
    last_group?: string;
    acked_per_s?: number;
    missing_per_s?: number;
    groups: BacklogGroup[];
    stages: BacklogStage[];
  }

  export interface Failure {
    class: string;
    text: string;
    events: number;
    batches: number;
  }

  export interface Ledger {
    acked: number;
    read: number;
    lost: number;
    duplicated: number;
    reordered: number;
    corrupted: number;
    recovered: number;
    contradicted: number;
    unread: number;
    removed: number;
    compacted: number;
    committed: number;
    committed_read: number;
    aborted: number;
    phantom: number;
    inexact: number;
    foreign: number;
    complete: boolean;
    unchecked?: string[];
    blocked?: string;
    method: string;
    logs?: LedgerLog[];
    groups?: LedgerGroup[];
  }

  export interface Indexed {
    where: string;
    store: string;
    nodes?: number;
    pattern: string;
    before: number;
    after: number;
    documents: number;
    expected: number;
    share: number | null;
    documents_per_s: number;
    waited_s: number;
    still: boolean;
    queued: number | null;
    health_before: string;
    health_after: string;
    note: string;
  }

  export interface System {
    facts: { [name: string]: any };
    died: boolean;
    exit: string;
    last_lines: string[];
    output?: Output | null;
    build_output?: Output | null;
    peak_rss_bytes: number;
    cpu_s: number;
    events_per_cpu_s: number | null;
    memory_efficiency: number | null;
    gc_pauses: number;
    gc_pause_s: number;
    gc_pause_max_s: number;
  }

  export interface LogResult {
    log: string;
    consumed: number;
    bytes: number;
    lag_events: number;
  }

  export interface MemberResult {
    consumed: number;
    bytes: number;
    events_per_s: number;
    partitions: number;
    rebalances: number;
    unassigned_s: number;
  }

  export interface Generator {
    cpu_s: number;
    rss_bytes: number;
    gc_pauses: number;
    gc_pause_max_us: number;
    gc_cpu_s: number;
    max_rss_bytes: number;
    processors: number;
    cpu_share: number;
    cpu_us_per_event: number;
    busy: number;
    bound_full: number;
    bound_full_most: number;
    read_bytes: number;
  }

  export interface Calibration {
    at: string;
    null_events_per_s: number;
    discard_events_per_s: number;
    event_bytes: number;
    target?: string;
    clients?: number;
    server?: string;
    instead?: string;
    version: string;
  }

  export interface Generates {
    events_per_s: number;
    bytes_per_s: number;
    at: string;
    cached: boolean;
    workload_hash: string;
  }

  export interface Encoding {
    events: string;
    distinct?: number;
    except?: string;
    codec?: string;
    codec_measured?: number | null;
  }

  export interface Others {
    machine?: string;
    window_s: number;
    processors: number;
    programs: number;
    steal: number;
    disturb: boolean;
  }

  export interface Client {
    broker: string;
    requests: number;
    batches: number;
    events: number;
    events_per_batch: number;
    bytes: number;
    wire_bytes: number;
    compression_ratio: number;
    throttle_s: number;
    reconnects: number;
  }

  export interface Attachment {
    name: string;
    text: string;
    original?: string;
  }

  export interface Samples {
    of: number;
    every: number;
    end_to_end: Sample[];
  }

  export interface Trace {
    file: string;
    rows: number;
    dropped: number;
    every: number;
    bytes: number;
    error: string;
  }

  export interface Fleet {
    skew_us: number;
    end_to_end_bound_us?: number;
    agents: Agent[];
    limit?: string;
  }

  export interface SearchLimit {
    name: string;
    of: string;
    p: number;
    within_ns: number;
  }

  export interface Verdict {
    result: string;
    why: string;
    growing?: boolean;
    share: number;
    least: number;
    most: number;
    allowed: number;
  }

  export interface Soaked {
    result: string;
    for_ns: number;
    sustained_ns: number;
    why: string;
    thirds: Third[];
  }

  export interface Deciding {
    trials: number;
    noisy: number;
    not_trusted: number;
  }

  export interface Knee {
    enough: number;
    enough_throughput: number;
    below: number;
    below_throughput: number;
    best: number;
    best_throughput: number;
    share: number;
    scalability?: Scalability | null;
  }

  export interface Bottleneck {
    limits: AtLimit[];
    watched: Use[];
    why?: string;
  }

  export interface Tried {
    role: string;
    rate?: number;
    concurrency?: number;
    settle_ns?: number;
    measure_ns: number;
    slot_ns: number;
    relax_ns?: number;
    report?: string;
    achieved: number;
    elapsed_ns: number;
    times?: Quantile[];
    trust?: string;
    verdict?: Verdict | null;
  }

  export interface Bound {
    time: string;
    step: string;
    p: number;
    upper_us: number;
    lower_us: number;
    level: string;
  }

  export interface Status {
    code: number;
    batches: number;
    events: number;
  }

  export interface ClassCount {
    class: string;
    events: number;
    batches: number;
  }

  export interface GroupInterval {
    consumed: number;
    backlog_events: number;
    unassigned_s?: number;
  }

  export interface Usage {
    cpu_s: number;
    rss_bytes: number;
    gc_pauses: number;
    gc_pause_max_us: number;
    gc_cpu_s: number;
  }

  export interface Point {
    at_s: number;
    value: number;
  }

  export interface Span {
    at_s: number;
    length_s: number;
  }

  export interface Freeze {
    at_s: number;
    length_s: number;
    who: string;
    cause: string;
  }

  export interface Mark {
    kind: string;
    name: string;
    at_s: number;
    bound_s: number;
    by: string;
  }

  export interface Score {
    kind: string;
    name: string;
    at_s: number;
    bound_s: number;
    by: string;
    observed_s: number;
    baseline: Baseline;
    whole: Numbers;
    lanes?: Numbers[];
    worst: number;
    later?: Time | null;
    errors?: { [name: string]: number };
    delivery?: Delivery | null;
  }

  export interface Delivery {
    lost: number;
    duplicated: number;
    reordered: number;
  }

  export interface BacklogGroup {
    name: string;
    drain_s: number | null;
    most_events: number;
    most_bytes: number;
    left_events: number;
    drained_events_per_s: number;
    drained_bytes_per_s: number;
  }

  export interface BacklogStage {
    name: string;
    start_s: number;
    end_s: number;
    acked_per_s: number;
    response: Times | null;
    service: Times | null;
    send_delay: Times | null;
  }

  export interface LedgerLog {
    log: string;
    acked: number;
    read: number;
    lost: number;
    duplicated: number;
    reordered: number;
    corrupted: number;
    recovered: number;
    unread: number;
    compacted: number;
    phantom: number;
    inexact: number;
  }

  export interface LedgerGroup {
    group: string;
    complete: boolean;
    removed: number;
    foreign: number;
    blocked?: string;
    acked: number;
    read: number;
    lost: number;
    duplicated: number;
    reordered: number;
    corrupted: number;
    recovered: number;
    unread: number;
    compacted: number;
    phantom: number;
    inexact: number;
  }

  export interface Output {
    bytes: number;
    cut_bytes: number;
    gzip: string;
  }

  export interface Sample {
    item: string;
    start_us: number;
    end_to_end_us: number;
  }

  export interface Agent {
    name: string;
    version?: string;
    from: number;
    to: number;
    reads?: boolean;
    state: string;
    fault?: string;
    level: string;
    clock_offset_us: number;
    clock_bound_us: number;
    clock_bound_end_us: number;
    shortest_rtt_us: number;
    offered: number;
    sent: number;
    dropped: number;
    unsent: number;
    acked: number;
    failed: number;
    unknown: number;
    consumed: number;
    unread?: number;
    retries: number;
    batches: number;
    answered: number;
    bytes: number;
    acked_bytes: number;
    wire_bytes: number;
    elapsed_s: number;
    events_per_s: number;
    send_delay_p99_us: number;
    processors: number;
    cpu_share: number;
    busy: number;
  }

  export interface Third {
    share: number;
    waiting: number;
  }

  export interface Scalability {
    lambda: number;
    sigma: number;
    kappa: number;
    residual: number;
  }

  export interface AtLimit {
    resource: string;
    used: number;
    bound: number;
    unit: string;
    least: number;
    least_rate: number;
  }

  export interface Use {
    resource: string;
    used: number;
    bound: number;
    unit: string;
  }

  export interface Quantile {
    of: string;
    p: number;
    at_ns: number;
    least_ns: number;
    most_ns: number;
  }

  export interface Baseline {
    from_s: number;
    to_s: number;
    events_per_s: number;
    response_s: number;
    why?: string;
  }

  export interface Numbers {
    name?: string;
    noticed: Time | null;
    blackout: Time | null;
    first_ack: Time | null;
    back: Time | null;
    drained: Time | null;
    lost_event_s: number | null;
    not_acked: number | null;
    floor: number | null;
    over: number;
    predicted?: Prediction | null;
    not_predicted?: string;
  }

  export interface Time {
    s: number;
    more?: boolean;
  }

  export interface Prediction {
    capacity_events_per_s: number;
    given?: boolean;
    headroom: number;
    catch_up_s: number;
    back_s: number;
    drained_s: number;
    lost_event_s: number;
    over: number;
  }
}
