package kafkatest

import (
	"bufio"
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// A Batch is a record batch on a disk, as Kafka's DumpLogSegments prints it.
type Batch struct {
	Topic         string
	Partition     int32
	Base, Last    int64 // offsets
	Count         int
	BaseSequence  int   // -1 when not idempotent
	ProducerID    int64 // -1 when not idempotent
	Epoch         int
	Transactional bool
	Control       bool
	Size          int64  // on disk, header included
	Codec         string // "none", "gzip", ...
	CRC           uint32
	Valid         bool // the checksum matches
	Records       []BatchRecord
}

// A BatchRecord is a record in a batch, as the tool prints it.
type BatchRecord struct {
	Offset     int64
	KeySize    int // -1: no key
	ValueSize  int
	Sequence   int
	HeaderKeys string // joined by commas
}

// Dump runs DumpLogSegments with deep iteration over every segment of the topics
// on the node's disk and returns the batches, topic by topic and partition by partition
// in order. Kafka decompresses and parses all records; if it cannot, the test fails with
// the tool's output. A start of the tool takes seconds, so one call for several topics
// is quicker than several calls.
func (n *Node) Dump(t testing.TB, topics ...string) []Batch {
	t.Helper()
	var files []string
	for _, topic := range topics {
		found, err := filepath.Glob(filepath.Join(n.DataDir(), topic+"-*", "*.log"))
		assert.OK(t, err, "kafkatest: find the segments of %s", topic)
		found = slices.DeleteFunc(found, func(name string) bool {
			of, _, ok := partitionOf(filepath.Base(filepath.Dir(name)))
			return !ok || of != topic
		})
		if len(found) == 0 {
			t.Fatalf("kafkatest: node %d has no segments of %s", n.id, topic)
		}
		files = append(files, found...)
	}
	out := Tool(t, "DumpLogSegments", "--deep-iteration", "--files", strings.Join(files, ","))
	batches, err := parseDump(out)
	assert.OK(t, err, "kafkatest: read the output of DumpLogSegments for %v", topics)
	slices.SortStableFunc(batches, func(a, b Batch) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Base, b.Base))
	})
	return batches
}

// partitionOf reads the topic and the partition from a directory's name, "topic-12".
func partitionOf(dir string) (topic string, partition int32, ok bool) {
	i := strings.LastIndexByte(dir, '-')
	if i < 0 {
		return "", 0, false
	}
	p, err := strconv.ParseInt(dir[i+1:], 10, 32)
	return dir[:i], int32(p), err == nil
}

// parseDump reads the tool's output: for each file a line "Dumping FILE", then one
// line per batch, each followed by "| offset: ..." lines of its records. Fields are
// "name: value", separated by spaces.
func parseDump(text string) (batches []Batch, err error) {
	var topic string
	var partition int32
	known := false
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "Dumping "):
			dir := filepath.Base(filepath.Dir(strings.TrimPrefix(line, "Dumping ")))
			if topic, partition, known = partitionOf(dir); !known {
				return nil, fmt.Errorf("a file that is not of a partition: %q", line)
			}
		case strings.HasPrefix(line, "baseOffset: "):
			f := fieldsOf(line)
			b := Batch{
				Topic: topic, Partition: partition,
				Base: f.int("baseOffset"), Last: f.int("lastOffset"), Count: int(f.int("count")),
				BaseSequence: int(f.int("baseSequence")), ProducerID: f.int("producerId"), Epoch: int(f.int("producerEpoch")),
				Transactional: f.is("isTransactional"), Control: f.is("isControl"),
				Size: f.int("size"), Codec: f.m["compresscodec"], CRC: uint32(f.int("crc")), Valid: f.is("isvalid"),
			}
			if f.err != nil {
				return nil, fmt.Errorf("batch %q: %w", line, f.err)
			}
			if !known {
				return nil, fmt.Errorf("a batch before any file: %q", line)
			}
			batches = append(batches, b)
		case strings.HasPrefix(line, "| offset: "):
			if len(batches) == 0 {
				return nil, fmt.Errorf("a record before any batch: %q", line)
			}
			f := fieldsOf(strings.TrimPrefix(line, "| "))
			b := &batches[len(batches)-1]
			if b.Control {
				continue
			}
			b.Records = append(b.Records, BatchRecord{
				Offset: f.int("offset"), KeySize: int(f.int("keySize")), ValueSize: int(f.int("valueSize")),
				Sequence: int(f.int("sequence")), HeaderKeys: strings.Trim(f.m["headerKeys"], "[]"),
			})
			if f.err != nil {
				return nil, fmt.Errorf("record %q: %w", line, f.err)
			}
		}
	}
	return batches, lines.Err()
}

// fields are the values of one line by name; err is about the first that was
// missing or could not be parsed.
type fields struct {
	m   map[string]string
	err error
}

func fieldsOf(line string) *fields {
	f := &fields{m: make(map[string]string)}
	words := strings.Fields(line)
	for i := 0; i+1 < len(words); i++ {
		if name, ok := strings.CutSuffix(words[i], ":"); ok {
			if _, twice := f.m[name]; !twice { // a payload may look like a field; it comes last
				f.m[name] = words[i+1]
			}
		}
	}
	return f
}

func (f *fields) int(name string) int64 {
	v, err := strconv.ParseInt(f.m[name], 10, 64)
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("%s: %w", name, err)
	}
	return v
}

func (f *fields) is(name string) bool {
	v, err := strconv.ParseBool(f.m[name])
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("%s: %w", name, err)
	}
	return v
}

// A Record is one record as Kafka's console consumer printed it. A missing
// key or value is "null", missing headers are "NO_HEADERS".
type Record struct {
	Partition int32
	Offset    int64
	Headers   string // k:v joined by commas
	Key       string
	Value     string
}

// Consume reads n records of topics from their beginning with Kafka's own
// console consumer, which checks keys, headers and values independently. Keys
// and values must be text without tabs and line breaks. The consumer does not print
// which topic a record is from.
func (c *Cluster) Consume(t testing.TB, n int, topics ...string) []Record {
	t.Helper()
	names := make([]string, len(topics))
	for i, topic := range topics {
		names[i] = regexp.QuoteMeta(topic)
	}
	args := []string{"--include", strings.Join(names, "|"), "--from-beginning", "--max-messages", strconv.Itoa(n), "--timeout-ms", "60000"}
	for _, p := range []string{"partition", "offset", "headers", "key", "value"} {
		args = append(args, "--formatter-property", "print."+p+"=true")
	}
	var records []Record
	for line := range strings.Lines(c.Tool(t, "ConsoleConsumer", args...)) {
		r, err := parseRecord(strings.TrimSuffix(line, "\n"))
		assert.OK(t, err, "kafkatest: read the output of the console consumer")
		records = append(records, r)
	}
	return records
}

// parseRecord reads "Partition:0\tOffset:3\th:v\tkey\tvalue".
func parseRecord(line string) (r Record, err error) {
	parts := strings.SplitN(line, "\t", 5)
	if len(parts) != 5 {
		return r, fmt.Errorf("%d fields instead of 5: %q", len(parts), line)
	}
	p, err := strconv.ParseInt(strings.TrimPrefix(parts[0], "Partition:"), 10, 32)
	if err != nil {
		return r, fmt.Errorf("partition of %q: %w", line, err)
	}
	o, err := strconv.ParseInt(strings.TrimPrefix(parts[1], "Offset:"), 10, 64)
	if err != nil {
		return r, fmt.Errorf("offset of %q: %w", line, err)
	}
	return Record{int32(p), o, parts[2], parts[3], parts[4]}, nil
}
