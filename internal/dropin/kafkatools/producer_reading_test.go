package kafkatools

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// Flags that fit several generations select the lines of the oldest and today's
// client; a note names the generations.
func TestProducerReadArgs(t *testing.T) {
	const props = "--producer-props bootstrap.servers=a:1"
	for _, tt := range []struct {
		name, generation, args string
		profile, lines         string
		note                   string
	}{
		{"of all", "", props + " acks=1", "java", "2018", noteAll},
		{"of all, by a file", "", "--producer.config testdata/client.properties", "java", "2018", noteAll},
		{"of all, with a codec", "", props + " compression.type=lz4 enable.idempotence=true", "java", "2018", noteAll},
		{"of all, in transactions", "", props + " --transactional-id x --transaction-duration-ms 100", "java", "2018", noteAll},
		{"2018", "2018", props, "java1", "2018", ""},
		{"4.1", "4.1", props, "java", "4.1", ""},
		{"4.3", "4.3", props, "java", "4.3", ""},
		{"4.2", "4.2", props, "java", "4.3", ""},
		{"a property that came later", "", props + " delivery.timeout.ms=1000", "java", "4.1", noteTwo},
		{"a codec that came later", "", props + " compression.type=zstd", "java", "4.1", noteTwo},
		{"a codec's level", "", props + " compression.gzip.level=9", "java", "4.1", noteTwo},
		{"an id alone", "", props + " --transactional-id x", "java", "4.1", noteTwo},
		{"a fractional rate", "", props + " --throughput 33.5", "java", "4.1", noteTwo},
		{"a flag of 4.3", "", props + " --warmup-records 5", "java", "4.3", ""},
		{"4.3 alone", "", "--bootstrap-server a:1", "java", "4.3", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := runProducerTool(t, dropin.Program{Args: strings.Fields(producerArgs + "--throughput -1 " + tt.args), Generation: tt.generation})
			assert.Equal(t, s.Last()["profile"], tt.profile, "the profile")
			assert.True(t, grammar[tt.lines].MatchString(s.Out), "lines are not those of %s:\n%s", tt.lines, s.Out)
			if note, _, _ := strings.Cut(s.Errs, "\n"); tt.note != "" && note != tt.note || strings.Contains(s.Errs, "note: these") != (tt.note != "") {
				t.Errorf("stderr %q, want %q", s.Errs, tt.note)
			}
		})
	}
}

// Above the cluster's rate, the tool's clock starts when its buffer has room: 32 MiB of batches of 16 KiB. The
// times since records were due are on stderr.
func TestProducerLatencyOfSendCall(t *testing.T) {
	var out, errs bytes.Buffer
	o := &producerOptions{topic: "t", records: 1_000_000, throughput: 1_000_000, interval: 5000, generation: of41, clientGeneration: of41, client: &properties{}}
	l := newProducerLines(o, &dropin.Program{Out: &out, Err: &errs})
	for i := range 2 { // 149 records of 100 bytes fit a batch, so 305,152 fit the buffer: at 250,000 a second 1.22 s
		r := measure.NewHistogram()
		r.RecordN(time.Duration(1+3*i)*time.Second, 1_250_000)
		iv := measure.Interval{Start: time.Duration(i) * 5 * time.Second, End: time.Duration(i+1) * 5 * time.Second, Phase: measure.Measurement}
		iv.Response, iv.Service = r, measure.NewHistogram()
		sent := uint64(1_500_000 - 250_000*i) // more than was answered
		iv.Counts = measure.Counts{Sent: sent, Acked: 1_250_000, Bytes: 100 * sent, AckedBytes: 125_000_000}
		l.interval(load.Snapshot{Interval: iv})
	}
	lines := strings.Split(out.String(), "\n")
	assert.True(t, strings.HasSuffix(lines[0], " 1000.0 ms avg latency, 1000.0 ms max latency."), "before the buffer is full: %s", lines[0])
	assert.True(t, strings.HasSuffix(lines[1], " 1220.6 ms avg latency, 1220.6 ms max latency."), "when it is full: %s", lines[1])
	d := &report.Document{}
	d.Totals.EventsPerS, d.Totals.ElapsedS = 250_000, 10
	l.complain(d)
	assert.Has(t, errs.String(), "from when records were due, as in the report, they were 2500.00 ms avg, 4000.00 ms max")
}

func TestBufferRecords(t *testing.T) {
	o := &producerOptions{client: &properties{}}
	assert.Equal(t, bufferRecords(o, 100), 2048*149., "many in a batch")
	assert.Equal(t, bufferRecords(o, 20_000), float64(32<<20)/20_070, "one in a batch")
}

// The first window after a warm-up that ended within an interval lasts for the rest of the interval. The windows of
// the drain last as long as they took.
func TestProducerWindowAfterWarmup(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := &producerOptions{interval: 1000, warmup: 904, throughput: 1000, client: &properties{}}
	l := newProducerLines(o, &dropin.Program{Out: &out})
	h := func(n uint64) measure.Set {
		h := measure.NewHistogram()
		h.RecordN(time.Millisecond, n)
		return measure.Set{Service: h, Response: h}
	}
	row := func(phase string, at, within time.Duration, n uint64) measure.Interval {
		return measure.Interval{Phase: phase, Start: at, End: at + time.Second, Within: within, Arrived: n, Counts: measure.Counts{Sent: n, Acked: n}, Set: h(n)}
	}
	show := func(rows ...measure.Interval) { l.interval(load.Snapshot{Interval: rows[0], Rows: rows}) }
	show(row(measure.WarmUp, 0, 904*time.Millisecond, 904), row(measure.Measurement, 0, 96*time.Millisecond, 96))
	show(row(measure.Measurement, time.Second, time.Second, 1000))
	show(row(measure.Measurement, 2*time.Second, 0, 10))
	var got []string
	for line := range strings.Lines(out.String()) {
		if n, rest, ok := strings.Cut(line, " records sent, "); ok {
			rate, _, _ := strings.Cut(rest, " ")
			got = append(got, n+" at "+rate)
		}
	}
	assert.Same(t, strings.Join(got, ", "), "96 at 1000.0, 1000 at 1000.0, 10 at 10.0")
}
