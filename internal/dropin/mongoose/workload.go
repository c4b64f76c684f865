package mongoose

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/workload"
)

// perRecord is the maximum overhead in bytes of a record besides its value, key and
// headers; perRequest is that of a request.
const perRecord, perRequest = 32, 512

// workload translates a step on records to a workload. rows says that the rows of single
// records are needed.
func (s *step) workload(rows bool) *workload.Document {
	if s.single() {
		return s.operations()
	}
	var d dropin.Draft
	s.common(&d)
	switch s.work {
	case readRecords:
		s.reads(&d)
	default:
		s.writes(&d, rows)
	}
	if s.work == noop {
		return &d.Document
	}
	s.connections(&d)
	return &d.Document
}

// common sets what all steps on records have.
func (s *step) common(d *dropin.Draft) {
	v := s.v
	if s.work == noop {
		d.Set("target", "--load-op-type", "null://mongoose")
	} else {
		d.Setf("target", "--storage-net-node-addrs", "kafka://%s/%s", strings.Join(s.brokers, ","), s.topic)
	}
	d.Set("interval", "--output-metrics-average-period", "1s")
	if s.timeLimit > 0 {
		d.Set("for", "--load-step-limit-time", millis(s.timeLimit))
	}
	if s.byteLimit > 0 {
		d.Set("bytes", "--load-step-limit-size", strconv.FormatInt(s.byteLimit, 10))
	}
	if n := v.number("storage-driver-threads"); n > 0 {
		d.Set("clients", "--storage-driver-threads", strconv.FormatInt(n*int64(s.nodeCount()), 10)) // of each node
	}
	if ps := s.percentiles(); ps != "" {
		d.Set("percentiles", "--output-metrics-quantiles", ps)
	}
	s.labels(d)
}

// labels sets the labels and the note of the report.
func (s *step) labels(d *dropin.Draft) {
	d.Set("label", "--load-step-id", "mongoose.step="+s.id)
	if s.v.has("run-id") {
		d.Set("label", "--run-id", "mongoose.run="+s.v.text("run-id"))
	}
	if c := s.v.text("run-comment"); c != "" {
		d.Set("note", "--run-comment", c)
	}
}

// millis formats a duration for a setting.
func millis(d time.Duration) string { return strconv.FormatInt(int64(d/time.Millisecond), 10) + "ms" }

// connections sets how to connect: with TLS or not, and buffers; -1 leaves them to the system.
func (s *step) connections(d *dropin.Draft) {
	if s.v.flag("storage-net-ssl") {
		d.Set("tls", "--storage-net-ssl", "true")
	}
	for _, b := range [][2]string{{"send-buffer", "storage-net-sndBuf"}, {"recv-buffer", "storage-net-rcvBuf"}} {
		if n := s.v.number(b[1]); n > 0 {
			d.Set(b[0], "--"+b[1], strconv.FormatInt(n, 10))
		}
	}
}

// percentiles are those quantiles that a report can contain.
func (s *step) percentiles() string {
	var out []string
	for _, q := range s.quantiles {
		if q > 0 && q < 1 {
			out = append(out, strconv.FormatFloat(math.Round(q*1e6)/1e4, 'f', -1, 64))
		}
	}
	return strings.Join(out, ",")
}

// reads sets up a step that reads records.
func (s *step) reads(d *dropin.Draft) {
	d.Set("op", "--load-op-type", workload.Consume)
	d.Set("from", "--load-op-type", "earliest")
	count := s.count
	if !s.recycle {
		switch n := uint64(len(s.items)); {
		case n > 0 && (count == 0 || n < count):
			count = n // the length of the list
		case n == 0 && s.strict:
			count = 1 // mongoose's listing of a topic has one item
		case n == 0:
			d.Set("until-end", "--item-input-path", "true")
		}
	}
	if count > 0 { // another limit may end the step first
		d.AtMost("--load-op-limit-count", strconv.FormatUint(count, 10))
	}
	s.readCount = count
	if s.v.flag("item-data-verify") {
		d.Set("decode", "--item-data-verify", "true")
	}
	wait := s.v.number("storage-driver-record-timeoutMillis")
	if s.v.has("storage-driver-read-timeoutMillis") {
		wait = s.v.number("storage-driver-read-timeoutMillis")
	}
	if wait > 0 {
		d.Setf("idle-timeout", "--storage-driver-record-timeoutMillis", "%dms", wait)
	}
}

// writes sets up a step that writes records, or sends nothing.
func (s *step) writes(d *dropin.Draft, rows bool) {
	v := s.v
	if s.count > 0 { // another limit may end the step first
		d.AtMost("--load-op-limit-count", strconv.FormatUint(s.count, 10))
	} else if s.work == noop && !s.recycle { // an operation for each item
		switch {
		case len(s.items) > 0:
			d.AtMost("--item-input-file", strconv.Itoa(len(s.items)))
		case v.has("item-input-path"): // mongoose's listing of a topic has one item
			d.AtMost("--item-input-path", "1")
		}
	}
	d.Set("size", "--item-data-size", s.sizeText())
	if s.high > s.low { // their sizes are also in the list of items
		d.Set("seed", "--item-data-size", strconv.FormatUint(s.dataSeed(), 10))
	}
	if s.work == writeRecords {
		d.Set("payload", s.dataOption(), s.ring(s.numberText()))
	}
	s.course(d)
	if s.work == noop {
		return
	}
	d.Set("create-topic", "--item-output-path", "partitions=1,replicas=1")
	d.Set("acks", "mongoose", "1") // the default of mongoose's client
	d.Set("compression", "--storage-driver-compression-type", v.text("storage-driver-compression-type"))
	d.Set("fresh", s.dataOption(), "true") // each record has the bytes of its own item
	d.Set("max-request", "--storage-driver-request-size", strconv.FormatInt(s.requestSize, 10))
	if v.has("storage-driver-buffer-memory") {
		d.Set("buffer-memory", "--storage-driver-buffer-memory", v.text("storage-driver-buffer-memory"))
	}
	s.timeout(d)
	if s.keyed {
		d.Set("key", "--storage-driver-record-key-enabled", s.key())
		if rows && !s.lingers() {
			d.Set("engine", "--storage-driver-record-key-enabled", "client") // this engine records the keys
		}
	}
	for _, h := range s.headers {
		d.Set("header", "--"+h.option, h.name+"="+h.value)
	}
}

// course sets the pacing of single operations, and what ends the step because of them.
func (s *step) course(d *dropin.Draft) {
	s.pace(d)
	if s.maxFailed > 0 {
		d.Set("failures", "--load-op-limit-fail-count", strconv.FormatUint(s.maxFailed, 10))
	}
	if s.v.flag("load-op-limit-fail-rate") {
		d.Set("failure-rate", "--load-op-limit-fail-rate", "50%") // more failures than successes
	}
	if s.v.flag("load-op-retry") {
		d.Set("retry", "--load-op-retry", "1000")
	}
	if s.drainTime > 0 {
		d.Set("drain", "--load-op-wait-limit", millis(s.drainTime))
	}
}

// timeout sets how long a record may take, if that is given. The driver documents its
// option for creating, too, but applies it to reading only.
func (s *step) timeout(d *dropin.Draft) {
	from, wait := "", int64(0)
	for _, name := range []string{"load-op-timeoutMillis", "storage-driver-record-timeoutMillis"} {
		if n := s.v.number(name); s.v.has(name) && (wait == 0 || n < wait) && !(s.strict && name != "load-op-timeoutMillis") {
			from, wait = name, n
		}
	}
	if from == "" {
		return
	}
	d.Setf("delivery-timeout", "--"+from, "%dms", wait)
	if from != "load-op-timeoutMillis" { // the other also bounds retries of a record that was answered
		d.Setf("request-timeout", "--"+from, "%dms", wait)
	}
}

// lingers reports whether records wait for others although no rate is set. As the
// number in flight is limited, they wait for the whole linger.
func (s *step) lingers() bool {
	return s.work == writeRecords && s.rate == 0 && s.concurrency > 0 && s.v.number("storage-net-linger") > 0
}

// key is the setting for keys: items' names.
func (s *step) key() string {
	return fmt.Sprintf("number(%d,%s,%s)", s.v.number("item-naming-radix"), s.numberText(), s.prefixText())
}

// keyBytes is the maximum length of a key.
func (s *step) keyBytes() int64 {
	if !s.keyed {
		return 0
	}
	radix, length := s.v.number("item-naming-radix"), s.v.number("item-naming-length")
	digits := len(strconv.FormatInt(wrapOf(radix, length)-1, int(radix)))
	return int64(mustParse(s.prefixText()).MaxLen() + digits)
}

// javaSize is the most bytes that Java's client counts for a record before it sends it alone in a batch:
// DefaultRecordBatch.estimateBatchSizeUpperBound.
func (s *step) javaSize() int64 {
	const overhead = 61 + 21 // of a batch and of a record
	length := func(n int64) int64 { return int64(len(binary.AppendVarint(nil, n))) + n }
	size := overhead + length(s.high) + length(s.keyBytes())
	if size++; s.varies { // the number of headers
		return size
	}
	for _, h := range s.headers {
		size += length(int64(len(h.name))) + length(int64(len(h.value)))
	}
	return size
}

// overhead is the number of a record's bytes outside its value, at most.
func (s *step) overhead() int64 {
	n := s.keyBytes()
	if s.varies {
		return n
	}
	for _, h := range s.headers {
		n += int64(len(h.name) + len(h.value))
	}
	return n
}

// pace sets the pacing of records: by a rate, by the number in flight, or as fast
// as possible.
func (s *step) pace(d *dropin.Draft) {
	const limit = "--storage-driver-limit-concurrency"
	clients := max(int(s.v.number("storage-driver-threads")), 1)
	if s.rate > 0 {
		d.SetRate("--load-op-limit-rate", s.rate)
		d.Setf("linger", "--storage-net-linger", "%dms", s.v.number("storage-net-linger"))
	}
	if s.concurrency > 0 {
		d.Set("batch-events", limit, "1")
		if s.rate > 0 {
			d.Set("max-in-flight", limit, strconv.Itoa((s.concurrency+clients-1)/clients))
		} else {
			d.Set("concurrency", limit, strconv.Itoa(s.concurrency*s.nodeCount())) // of each node
		}
		if s.lingers() { // this engine sends the records that wait together in one batch
			d.Set("engine", "--storage-net-linger", "client")
			d.Setf("linger", "--storage-net-linger", "%dms", s.v.number("storage-net-linger"))
			s.batchSize(d)
		}
		return
	}
	if s.work != writeRecords {
		return
	}
	if s.batchSize(d) && s.rate == 0 {
		fit := max(1, (s.requestSize-perRequest)/(s.high+s.overhead()+perRecord))
		d.Set("batch-events", "--load-batch-size", strconv.FormatInt(min(s.batch, fit), 10))
	}
}

// batchSize sets the size of batches in bytes. It reports whether only the size of a
// request limits it.
func (s *step) batchSize(d *dropin.Draft) bool {
	switch n := s.v.number("storage-driver-batch-size"); {
	case n > 0:
		d.Set("batch-size", "--storage-driver-batch-size", strconv.FormatInt(n, 10))
	case s.strict: // mongoose takes the number of operations as bytes
		d.Set("batch-size", "--load-batch-size", strconv.FormatInt(s.batch, 10))
	default:
		d.Set("batch-size", "--storage-driver-request-size", strconv.FormatInt(s.requestSize, 10))
		return true
	}
	return false
}
