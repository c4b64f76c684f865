package bench

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A metric names one number of a run.
type metric string

const (
	eventsPerS    metric = "events/s"
	events        metric = "events" // acked in a run
	bytesPerS     metric = "bytes/s"
	requestsPerS  metric = "requests/s"
	cpuPerRequest metric = "CPU us/request"
	cpuPerEvent   metric = "CPU us/event"
	cpuShare      metric = "CPU, share of a core"
	deviation     metric = "sent, off by"
	trusted       metric = "trusted or noisy (1), or not trusted (0)"
	sendDelayP50  metric = "send delay p50 us"
	sendDelayP99  metric = "send delay p99 us"
	maxRSS        metric = "max RSS bytes"
	growth        metric = "RSS growth bytes"
	wholeRate     metric = "events/s in total" // of a consumer, including its start and joining
)

// A sample is the numbers of one run.
type sample map[metric]float64

// cpu adds the CPU per event.
func (s sample) cpu(e *processResult, events uint64) sample {
	s[cpuPerEvent] = float64(e.cpu.Microseconds()) / float64(events)
	return s
}

// trust adds whether the report trusts the run, or calls it noisy.
func (s sample) trust(d *document) sample {
	s[trusted] = 0
	if d.Trust.OK {
		s[trusted] = 1
	}
	return s
}

// A document is the part of the program's report that is read here
// (docs/report.md).
type document struct {
	Totals struct {
		Offered   uint64  `json:"offered"`
		Sent      uint64  `json:"sent"`
		Batches   uint64  `json:"batches"`
		Acked     uint64  `json:"acked"`
		Failed    uint64  `json:"failed"`
		Unknown   uint64  `json:"unknown"`
		Consumed  uint64  `json:"consumed"`
		ElapsedS  float64 `json:"elapsed_s"`
		EventsPS  float64 `json:"events_per_s"`
		BytesPS   float64 `json:"bytes_per_s"`
		FetchS    float64 `json:"fetch_s"`
		WireBytes uint64  `json:"wire_bytes"`
	} `json:"totals"`
	SendDelay *struct {
		P50 float64 `json:"p50_us"`
		P99 float64 `json:"p99_us"`
	} `json:"send_delay"`
	Generator struct {
		CPUS   float64 `json:"cpu_s"`
		MaxRSS uint64  `json:"max_rss_bytes"`
	} `json:"generator"`
	Trace *struct {
		Rows    uint64 `json:"rows"`
		Dropped uint64 `json:"dropped"`
	} `json:"trace"`
	Trust struct {
		OK      bool     `json:"ok"`
		Reasons []string `json:"reasons"`
	} `json:"trust"`
}

// readDocument parses a report, and returns an error for a run with failures, whose
// rate would be meaningless.
func readDocument(e *processResult) (*document, error) {
	if e.code != 0 && e.code != 3 {
		return nil, fmt.Errorf("the program ended with exit code %d: %s", e.code, e.stderr)
	}
	d := &document{}
	if err := json.Unmarshal(e.out, d); err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	switch t := &d.Totals; {
	case t.Failed > 0 || t.Unknown > 0:
		return nil, fmt.Errorf("the run had %d failed and %d unknown events", t.Failed, t.Unknown)
	case t.Acked == 0 && t.Consumed == 0:
		return nil, fmt.Errorf("the run moved no events: %s", e.stderr)
	}
	return d, nil
}

func readLoop(e *processResult) (loopResult, error) {
	var r loopResult
	if err := json.Unmarshal(e.out, &r); err != nil {
		return r, fmt.Errorf("read the loop's result: %w", err)
	}
	if r.Nanos <= 0 || r.Bytes == 0 && r.Events == 0 {
		return r, fmt.Errorf("the loop did nothing: %s", e.out)
	}
	return r, nil
}

func (r loopResult) seconds() float64 { return time.Duration(r.Nanos).Seconds() }

// steadyLine is the line of kafka-producer-perf-test 4.3 about the records after
// --warmup-records (ProducerPerformance.java, Stats.printTotal).
var steadyLine = regexp.MustCompile(`(?m)^(\d+) steady state records sent, ([0-9.]+) records/sec`)

// readProducerPerf reads the rate at the tool's steady state.
func readProducerPerf(out string) (perS float64, err error) {
	m := steadyLine.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("kafka-producer-perf-test did not print its steady state: %s", lastLines(out))
	}
	return strconv.ParseFloat(m[2], 64)
}

// readConsumerPerf reads the last line of kafka-consumer-perf-test: start.time,
// end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec,
// rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec.
func readConsumerPerf(out string) (events uint64, perS, fetchPerS float64, err error) {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	fields := strings.Split(lines[len(lines)-1], ", ")
	if len(fields) != 10 {
		return 0, 0, 0, fmt.Errorf("kafka-consumer-perf-test printed no line of ten fields: %s", lastLines(out))
	}
	if events, err = strconv.ParseUint(fields[4], 10, 64); err == nil {
		if perS, err = strconv.ParseFloat(fields[5], 64); err == nil {
			fetchPerS, err = strconv.ParseFloat(fields[9], 64)
		}
	}
	if err != nil {
		return 0, 0, 0, fmt.Errorf("read kafka-consumer-perf-test's line %q: %w", lines[len(lines)-1], err)
	}
	return events, perS, fetchPerS, nil
}

// lastLines is the end of a tool's output, for an error.
func lastLines(out string) string {
	out = strings.TrimSpace(out)
	if len(out) > 500 {
		out = "..." + out[len(out)-500:]
	}
	return strings.ReplaceAll(out, "\n", "; ")
}
