package mongoose

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/dropin/kafkatools"
	"carronade/internal/host"
	"carronade/payload"
)

// A work is the kind of a step's operations.
type work byte

const (
	writeRecords work = 'c' // records
	readRecords  work = 'r' // records
	onTopics     work = 't' // topics, or deleting the records of topics
	noop         work = 'n' // noop
)

// workNames describe the works in warnings about options without effect.
var workNames = map[work]string{
	writeRecords: "records are written", readRecords: "records are read", onTopics: "topics are worked on", noop: "nothing is sent",
}

// A step is a checked command line.
type step struct {
	v      *values
	strict bool
	is43   bool // the lines and files of 4.3, not of 4.2

	id      string
	work    work
	op      string // in lines: CREATE, READ, ...
	topicOp string // on topics: create, read, delete, delete-records, list

	brokers   []string
	topic     string // of records
	items     []string
	places    string // file with the places of the items; "": they are not known
	placeless string // why they are not known
	low, high int64  // bytes of a record
	keyed     bool

	namingSeed int64 // the item before the first one
	headers    []recordHeader
	varies     bool // headers have expressions

	count, maxFailed     uint64
	readCount            uint64 // records to read at most; 0: no limit
	byteLimit            int64
	timeLimit, drainTime time.Duration
	rate                 float64
	concurrency          int // storage-driver-limit-concurrency
	batch                int64
	requestSize          int64
	period               time.Duration
	headerEach           int
	quantiles            []float64
	threshold            float64 // share of concurrency
	recycle, trace       bool
	nodes                []string // HOST:PORT, that send besides this machine
}

// A recordHeader is a header of records, given by an option.
type recordHeader struct{ name, value, option string }

// stamp is the time format of mongoose's default names.
const stamp = "20060102.150405.000"

// newStep checks the given options. Warnings go to warn; an error ends the program.
func newStep(v *values, strict bool, generation string, now time.Time, warn func(string, ...any)) (*step, error) {
	s := &step{v: v, strict: strict, id: v.text("load-step-id")}
	switch generation {
	case "":
		s.is43 = v.has("output-metrics-quantiles") || v.has("output-metrics-timing-persist") || v.has("load-op-recycle-mode")
	case "4.2", "4.3":
		s.is43 = generation == "4.3"
	default:
		return nil, fmt.Errorf("--generation %s: mongoose has 4.2 and 4.3", generation)
	}
	if s.id == "" {
		s.id = "linear_" + now.UTC().Format(stamp)
	}
	if !plainName(s.id) { // "." would be the folder of all steps
		return nil, fmt.Errorf("--load-step-id: %q is not a valid folder name", s.id)
	}
	if err := s.checkRefused(); err != nil {
		return nil, err
	}
	if err := s.evaluate(now); err != nil {
		return nil, err
	}
	if err := v.confine(); err != nil { // what the names are, not what they were made of
		return nil, err
	}
	if err := s.setWork(); err != nil {
		return nil, err
	}
	if err := s.setNodes(); err != nil {
		return nil, err
	}
	if len(s.nodes) == 0 && v.has("load-step-node-port") && v.confined == "" {
		warn("--load-step-node-port does nothing: no nodes are given")
	}
	for _, check := range []func(*step, time.Time) error{(*step).setTarget, (*step).checkRanges, (*step).setLimits, (*step).setContent, (*step).setOutput} {
		if err := check(s, now); err != nil {
			return nil, err
		}
	}
	s.warn(warn)
	s.warnIneffective(warn)
	if s.placeless != "" {
		warn("--item-input-file: %s", s.placeless)
	}
	return s, nil
}

// checkRefused returns an error if an unsupported option is given.
func (s *step) checkRefused() error {
	for i := range options {
		o := &options[i]
		value := s.v.text(o.name)
		isDefault := value == o.def || o.kind == tBool && strings.EqualFold(value, "false") || o.kind == tList && value == "[]"
		if o.use == refused && s.v.has(o.name) && !isDefault {
			return fmt.Errorf("--%s: %s", o.name, o.why)
		}
	}
	return nil
}

// evaluate evaluates the expressions of given values once. In headers they are evaluated for each
// record.
func (s *step) evaluate(now time.Time) error {
	for name, text := range s.v.given {
		switch {
		case find(name).kind == tMap || !strings.ContainsAny(text, "{}"):
			continue
		case !payload.HasExpression(text):
			return fmt.Errorf("--%s: patterns in braces are not supported: %s", name, text)
		}
		t, err := s.v.compile(text, payload.TemplateOptions{Seed: uint64(now.UnixNano())})
		if err != nil {
			return fmt.Errorf("--%s: %w", name, err)
		}
		if !t.Constant() && name == "item-naming-prefix" {
			continue // of each name
		}
		if !t.Constant() && name == "item-output-path" {
			return fmt.Errorf("--%s: %s names another topic for each record, and a step sends to one: give one, or a %s with a context for each topic", name, text, weightedLoad)
		}
		if !t.Constant() {
			return fmt.Errorf("--%s: %s may differ between records, and only headers may", name, text)
		}
		value := string(t.Append(nil, 0))
		if name == "item-naming-prefix" { // it is compiled again
			value = literal.Replace(value)
		}
		s.v.given[name] = value
	}
	return nil
}

// literal makes an expression that is a text.
var literal = strings.NewReplacer("${", "$${", "%{", "%%{", "#{", "##{")

// setWork sets the work and the operation.
func (s *step) setWork() error {
	op, item := strings.ToLower(s.v.text("load-op-type")), strings.ToLower(s.v.text("item-type"))
	driver := s.v.text("storage-driver-type")
	switch {
	case driver == "dummy-mock" || driver == "preempt-mock":
		op = "noop"
	case driver != "kafka":
		return fmt.Errorf("--storage-driver-type: unknown driver %s: give kafka, or dummy-mock, which sends nothing", driver)
	}
	s.op = strings.ToUpper(op)
	switch {
	case item == "token":
		return errors.New("--item-type: Kafka has no tokens: data is a record, path a topic")
	case item != "data" && item != "path":
		return fmt.Errorf("--item-type: unknown type %q: data is a record, path a topic", item)
	case op == "noop":
		s.work = noop
	case op == "update":
		return errors.New("--load-op-type=update: object storage only: records and topics cannot be changed")
	case item == "path" && slices.Contains([]string{"create", "read", "delete", "list"}, op):
		s.work, s.topicOp = onTopics, op
	case item == "data" && op == "create":
		s.work = writeRecords
	case item == "data" && op == "read":
		s.work = readRecords
	case item == "data" && op == "delete":
		s.work, s.topicOp = onTopics, "delete-records"
	case op == "list":
		return errors.New("--load-op-type=list: records are not listed, topics are: --item-type=path")
	default:
		return fmt.Errorf("--load-op-type: unknown type %q: create, read, delete, list or noop", op)
	}
	return nil
}

// warn warns of given options that have no effect.
func (s *step) warn(warn func(string, ...any)) {
	for i := range options {
		o := &options[i]
		value, given := s.v.given[o.name]
		switch {
		case !given || o.use == refused:
		case o.use == ignored:
			if o.kind != tBool || !strings.EqualFold(value, "false") {
				warn("--%s does nothing: %s", o.name, o.why)
			}
		case o.only != "" && o.only != s.v.kind:
			warn("--%s does nothing: it belongs to a %s of a scenario", o.name, o.only)
		case s.v.kind == pipelineLoad && slices.Contains(ofReads, o.name):
		case !s.works(o):
			warn("--%s has no effect when %s", o.name, workNames[s.work])
		}
	}
}

// setTarget sets the brokers, the topic and the items.
func (s *step) setTarget(now time.Time) error {
	for _, addr := range s.v.addrs("storage-net-node") {
		if strings.ContainsAny(addr, "/?#@% \t") { // it becomes part of an address
			return fmt.Errorf("--storage-net-node-addrs: %q is not HOST or HOST:PORT", addr)
		}
		s.brokers = append(s.brokers, addr)
	}
	if len(s.brokers) == 0 && s.work != noop {
		return errors.New("--storage-net-node-addrs names no broker: HOST or HOST:PORT, separated by commas")
	}
	if file := s.v.text("item-input-file"); file != "" {
		var err error
		if s.items, err = readItems(file); err != nil {
			return fmt.Errorf("--item-input-file: cannot read %s: %w", file, err)
		}
		if len(s.items) == 0 {
			return fmt.Errorf("--item-input-file: %s is empty", file)
		}
	}
	plain := func(path string) string { return strings.ReplaceAll(path, "/", "") }
	switch path := s.v.text("item-input-path"); {
	case s.work == writeRecords:
		s.topic = plain(s.v.text("item-output-path"))
		if s.topic == "" {
			s.topic = now.UTC().Format(stamp)
		}
	case s.work == onTopics && s.topicOp != "create" && s.topicOp != "list":
		if s.topicOp == "delete-records" && len(s.items) > 0 { // of the listed records, the topics
			if of := topicsOf(s.items); len(of) > 0 {
				s.items = of
			}
		}
		if len(s.items) == 0 && path != "" {
			s.items = []string{path}
		}
		if len(s.items) == 0 {
			return fmt.Errorf("no topic to %s is given: give --item-input-file=FILE with a name per line, or --item-input-path=TOPIC", strings.ToLower(s.op))
		}
	case s.work == readRecords:
		topics := []string{path}
		if of := topicsOf(s.items); len(of) > 0 {
			topics = of
		}
		if len(topics) > 1 {
			return fmt.Errorf("--item-input-file has records of %d topics, but only one can be read at a time: %s", len(topics), strings.Join(topics[:2], ", "))
		}
		if len(topics) == 0 || topics[0] == "" {
			return errors.New("there is nothing to read: give --item-input-path=TOPIC, or a list of records with --item-input-file=FILE")
		}
		s.topic = plain(topics[0])
	}
	if s.work == writeRecords || s.work == readRecords { // the topic does, too
		from := "item-output-path"
		if s.work == readRecords {
			from = "item-input-path"
			if len(s.items) > 0 {
				from = "item-input-file"
			}
		}
		if err := kafkatools.CheckTopic(s.topic); err != nil {
			return fmt.Errorf("--%s: %w", from, err)
		}
	}
	for i := range s.items {
		if s.work == onTopics {
			s.items[i] = plain(s.items[i])
		}
	}
	s.findPlaces()
	return nil
}

// topicsOf are the topics of listed records, each once.
func topicsOf(items []string) (topics []string) {
	for _, item := range items {
		if i := strings.LastIndexByte(strings.TrimPrefix(item, "/"), '/'); i > 0 {
			topics = append(topics, strings.TrimPrefix(item, "/")[:i])
		}
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}

// readItems reads a list of items: the first field of each line is a path.
func readItems(file string) ([]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, host.Reason(err)
	}
	defer f.Close()
	var out []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, _, _ := strings.Cut(lines.Text(), ",")
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out, lines.Err()
}

// setLimits sets the limits that end the step or slow it down.
func (s *step) setLimits(time.Time) (err error) {
	nonNegative := func(name string) uint64 {
		n := s.v.number(name)
		if n < 0 && err == nil {
			err = fmt.Errorf("--%s: %d is below 0", name, n)
		}
		return uint64(max(n, 0))
	}
	s.count, s.maxFailed = nonNegative("load-op-limit-count"), nonNegative("load-op-limit-fail-count")
	s.concurrency = int(nonNegative("storage-driver-limit-concurrency"))
	s.batch = int64(nonNegative("load-batch-size"))
	s.requestSize = int64(nonNegative("storage-driver-request-size"))
	if err != nil {
		return err
	}
	if s.batch == 0 {
		return errors.New("--load-batch-size: must be at least 1")
	}
	if s.rate = s.v.float("load-op-limit-rate"); !(s.rate >= 0) || s.rate > 1e12 {
		return fmt.Errorf("--load-op-limit-rate: %s is not a rate", s.v.text("load-op-limit-rate"))
	}
	if s.byteLimit, err = s.v.size("load-step-limit-size"); err != nil {
		return err
	}
	if s.timeLimit, err = s.v.duration("load-step-limit-time"); err != nil {
		return err
	}
	if s.drainTime, err = s.v.duration("load-op-wait-limit"); err != nil {
		return err
	}
	if s.drainTime == 0 || !s.v.flag("load-op-wait-finish") {
		s.drainTime = time.Millisecond
	}
	s.recycle = s.v.flag("load-op-recycle") || s.v.flag("load-op-recycle-mode")
	if s.work == readRecords && s.rate > 0 && !s.single() {
		return errors.New("--load-op-limit-rate: records are read as they arrive, not at a rate; a list with places is read at a rate")
	}
	if s.work == onTopics && s.topicOp == "create" && s.count == 0 && s.timeLimit == 0 && len(s.items) == 0 {
		return errors.New("topics would be created without end: give --load-op-limit-count=N or --load-step-limit-time=30s")
	}
	return nil
}

// setContent sets the size, keys and headers of records, and checks names.
func (s *step) setContent(now time.Time) (err error) {
	if s.low, s.high, err = s.v.sizes("item-data-size"); err != nil {
		return err
	}
	s.keyed = s.v.flag("storage-driver-record-key-enabled") || s.v.flag("storage-driver-create-key-enabled")
	for _, name := range []string{"storage-driver-record-headers", "storage-driver-create-headers"} {
		h, err := s.v.pairs(name)
		if err != nil {
			return err
		}
		if !s.strict { // mongoose reads them and sends none
			for _, pair := range h {
				if _, _, has := payload.CutText(pair[0], '='); has {
					return fmt.Errorf("--%s: the name %s contains =", name, pair[0])
				}
				if err := s.v.checkHeader(pair); err != nil {
					return fmt.Errorf("--%s: %w", name, err)
				}
				s.varies = s.varies || payload.HasExpression(pair[0]) || payload.HasExpression(pair[1])
				s.headers = append(s.headers, recordHeader{pair[0], pair[1], name})
			}
		}
	}
	for _, name := range []string{"storage-driver-request-size", "storage-driver-buffer-memory"} {
		if n := s.v.number(name); s.work == writeRecords && s.v.has(name) && n < s.javaSize() {
			return fmt.Errorf("--%s: %d is less than the %d bytes that Java's client counts for a record, so it refuses each that long: give more, or a smaller --item-data-size", name, n, s.javaSize())
		}
	}
	if seed := s.v.text("item-data-input-seed"); seed != "" {
		if _, err := strconv.ParseUint(seed, 16, 64); err != nil {
			return fmt.Errorf("--item-data-input-seed: %q is not a hexadecimal number of at most 16 digits", seed)
		}
	}
	for _, name := range []string{"storage-driver-record-timeoutMillis", "storage-driver-read-timeoutMillis"} {
		if n := s.v.number(name); n < 1 {
			return fmt.Errorf("--%s: %d is not a time above 0", name, n)
		}
	}
	return s.setNaming(now)
}

// setOutput sets the options of the console and the files.
func (s *step) setOutput(time.Time) (err error) {
	if s.period, err = s.v.duration("output-metrics-average-period"); err != nil {
		return err
	}
	if s.headerEach = int(s.v.number("output-metrics-average-table-header-period")); s.strict {
		s.headerEach = 20 // a constant in mongoose
	}
	if s.threshold = s.v.float("output-metrics-threshold"); !(s.threshold >= 0) || s.threshold > 1 {
		return fmt.Errorf("--output-metrics-threshold: %s is not from 0 to 1", s.v.text("output-metrics-threshold"))
	}
	for _, text := range s.v.list("output-metrics-quantiles") {
		q, err := strconv.ParseFloat(text, 64)
		if err != nil || !(q >= 0) || q > 1 {
			return fmt.Errorf("--output-metrics-quantiles: %q is not from 0 to 1", text)
		}
		s.quantiles = append(s.quantiles, q)
	}
	slices.Sort(s.quantiles)
	s.quantiles = slices.Compact(s.quantiles)
	s.trace = s.v.flag("output-metrics-trace-persist") && (s.work == writeRecords || s.work == onTopics)
	return nil
}
