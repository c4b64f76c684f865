package judge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// series has the same number of events produced and then consumed, in increasing numbers, here in another order.
func series() []store.Row {
	clock := func(text string) time.Time {
		t, err := time.Parse("2006-01-02 15:04:05.000", text)
		if err != nil {
			panic(err)
		}
		return t
	}
	none := fields{"throughput": nil, "response_p50": nil, "response_p99": nil, "response_p999": nil, "rate": nil, "acks": nil}
	named := map[string]fields{"p4": {"rate": "10k/s", "acks": "all"}, "p7": {"acks": "1"}}
	produced := func(id string, n, perS, avg, most, p50, p95, p99, p999 float64) store.Row {
		return row(id, start, none, fields{
			"op": "produce", "throughput": perS, "elapsed": n / perS, "sent": n, "acked": n, "bytes_moved": 2000 * n, "acked_bytes": 2000 * n,
			"response_mean": avg / 1e3, "response_max": most / 1e3, "response_p50": p50 / 1e3, "response_p95": p95 / 1e3, "response_p99": p99 / 1e3, "response_p999": p999 / 1e3,
		}, named[id])
	}
	consumed := func(id, from, to string, mbs, n float64) store.Row {
		a, b := clock(from), clock(to)
		return row(id, a, none, fields{
			"op": "consume", "throughput": n / b.Sub(a).Seconds(), "elapsed": b.Sub(a).Seconds(), "consumed": n, "bytes_moved": mbs * (1 << 20),
			"started": fromMS(a), "ended": fromMS(b),
		})
	}
	return []store.Row{
		produced("p7", 1e7, 117752.343272, 137.72, 2789, 92, 743, 878, 2773),
		consumed("c7", "2018-05-24 17:40:51.586", "2018-05-24 17:41:27.446", 17261.5051, 1e7),
		produced("p4", 1e4, 9680.542110, 27.31, 247, 2, 92, 108, 112),
		consumed("c4", "2018-05-24 18:39:30.930", "2018-05-24 18:39:31.061", 0.9537, 1e4),
		produced("p8", 1e8, 140619.880557, 116.07, 3480, 2, 210, 451, 1661),
		consumed("c8", "2018-05-24 18:27:52.075", "2018-05-24 18:35:19.864", 188922.8821, 1e8),
		row("cut", start, fields{"op": "produce", "sent": 5.0, "partial": true}),
	}
}

// fromMS is a time to the millisecond: row keeps only seconds.
func fromMS(t time.Time) store.Value {
	return store.Value{Kind: store.KindTime, Num: float64(t.UnixMilli()) / 1e3}
}

func tableText(t *testing.T, rows []store.Row, side string) string {
	t.Helper()
	table := assert.Value(TableOf(rows, side))(t)
	var b bytes.Buffer
	assert.OK(t, table.Text(&b, layout.Style{}))
	return b.String()
}

// TestTables compares both tables with known numbers.
func TestTables(t *testing.T) {
	for _, tt := range []struct {
		side string
		form func(*Table, *bytes.Buffer) error
		want string
	}{
		{Producing, func(t *Table, b *bytes.Buffer) error { return t.Markdown(b) }, `### produced

| count | MB/s | avg | max | p50 | p95 | p99 | p99.9 | rate | acks | id |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
| 10,000 | 18.46 | 27.31 ms | 247.00 ms | 2.00 ms | 92.00 ms | 108.00 ms | 112.00 ms | 10k/s | all | p4 |
| 10,000,000 | 224.59 | 137.72 ms | 2789.00 ms | 92.00 ms | 743.00 ms | 878.00 ms | 2773.00 ms | - | 1 | p7 |
| 100,000,000 | 268.21 | 116.07 ms | 3480.00 ms | 2.00 ms | 210.00 ms | 451.00 ms | 1661.00 ms | - | - | p8 |

MB: 1,048,576 bytes; times are response times

- left out: cut: cut short
`},
		{Consuming, func(t *Table, b *bytes.Buffer) error { return t.Markdown(b) }, `### consumed

| start | end | MB | MB/s | nMsg | nMsg/s | id |
| ---: | ---: | ---: | ---: | ---: | ---: | --- |
| 2018-05-24 18:39:30.930 | 2018-05-24 18:39:31.061 | 0.9537 | 7.2802 | 10,000 | 76335.8779 | c4 |
| 2018-05-24 17:40:51.586 | 2018-05-24 17:41:27.446 | 17261.5051 | 481.3582 | 10,000,000 | 278862.2421 | c7 |
| 2018-05-24 18:27:52.075 | 2018-05-24 18:35:19.864 | 188922.8821 | 421.9016 | 100,000,000 | 223319.4652 | c8 |

MB: 1,048,576 bytes; times are UTC
`},
		{Producing, func(t *Table, b *bytes.Buffer) error { return t.CSV(b) }, `count,MB/s,avg ms,max ms,p50 ms,p95 ms,p99 ms,p99.9 ms,report,untrusted,at_least,noisy,rate,acks,at_most
10000,18.4642,27.310,247.000,2.000,92.000,108.000,112.000,p4,false,,false,10k/s,all,
10000000,224.5948,137.720,2789.000,92.000,743.000,878.000,2773.000,p7,false,,false,,1,
100000000,268.2111,116.070,3480.000,2.000,210.000,451.000,1661.000,p8,false,,false,,,
`},
		{Consuming, func(t *Table, b *bytes.Buffer) error { return t.CSV(b) }, `start,end,MB,MB/s,nMsg,nMsg/s,report,untrusted,noisy
2018-05-24T18:39:30.93Z,2018-05-24T18:39:31.061Z,0.9537,7.2802,10000,76335.8779,c4,false,false
2018-05-24T17:40:51.586Z,2018-05-24T17:41:27.446Z,17261.5051,481.3582,10000000,278862.2421,c7,false,false
2018-05-24T18:27:52.075Z,2018-05-24T18:35:19.864Z,188922.8821,421.9016,100000000,223319.4652,c8,false,false
`},
	} {
		table := assert.Value(TableOf(series(), tt.side))(t)
		var b bytes.Buffer
		assert.OK(t, tt.form(table, &b))
		assert.Same(t, b.String(), tt.want, "%s", tt.side)
		want := map[string]int{Producing: 1}[tt.side]
		assert.True(t, len(table.LeftOut) == want, "%s: %v are left out", tt.side, table.LeftOut)
	}
}

func TestTableText(t *testing.T) {
	text := tableText(t, series(), Producing)
	assert.Has(t, text, "produced\n", "      count    MB/s", "     10,000   18.46", "times are response times", "left out")
}

// TestTableWithMissingTimes: runs without a schedule have service times, runs
// without answers have none, and a percentile may be a lower bound.
func TestTableWithMissingTimes(t *testing.T) {
	none := fields{"response_p50": nil, "response_p99": nil, "response_p999": nil, "op": "produce", "elapsed": 2.0, "bytes_moved": 4096.0}
	closed := row("closed", start, none, fields{"sent": 10.0, "acked": 8.0, "acked_bytes": 2048.0, "service_mean": 0.001, "service_p50": 0.001, "service_max": 0.004})
	unanswered := row("unanswered", start, none, fields{"sent": 4.0, "acked": 0.0})
	bound := row("bound", start, fields{"op": "produce", "elapsed": 2.0, "sent": 20.0, "acked": 20.0, "acked_bytes": 2048.0, "trusted": false})
	for i := range bound.Fields {
		if bound.Fields[i].Name == "response_p99" {
			bound.Fields[i].Value.Text = ">= 12 ms"
		}
	}
	text := tableText(t, []store.Row{closed, unanswered, bound}, Producing)
	assert.Has(t, text,
		"times of runs with a schedule are response times, of the", "!: the generator was the limit",
		"20!", ">= 12.00 ms", "    4  0.00", "    8  0.00", "4.00 ms")
}

// The other formats say what the text says by signs.
func TestTableFormatsMarkDoubtfulRuns(t *testing.T) {
	bound := row("bound", start, fields{"op": "produce", "elapsed": 2.0, "sent": 20.0, "acked": 20.0, "acked_bytes": 2048.0, "trusted": false})
	for i := range bound.Fields {
		if bound.Fields[i].Name == "response_p99" {
			bound.Fields[i].Value.Text = ">= 12 ms"
		}
	}
	table, err := TableOf([]store.Row{bound}, Producing)
	assert.OK(t, err)
	var b bytes.Buffer
	assert.OK(t, table.CSV(&b))
	assert.True(t, strings.HasSuffix(b.String(), ",bound,true,p99,false,50k/s,all,\n"), "got %s", b.String())
	text := assert.Value(json.Marshal(table))(t)
	var got struct {
		Runs []struct {
			AtLeast   []string `json:"at_least"`
			Untrusted bool     `json:"untrusted"`
		} `json:"runs"`
	}
	assert.OK(t, json.Unmarshal(text, &got))
	r := got.Runs[0]
	assert.True(t, r.Untrusted && slices.Equal(r.AtLeast, []string{"p99_ms"}), "got %+v", r)
	table, err = TableOf([]store.Row{row("shaky", start, fields{"op": "produce", "elapsed": 2.0, "sent": 20.0, "acked": 20.0, "acked_bytes": 2048.0, "trust_level": "noisy", "response_lower_p99": 0.005})}, Producing)
	assert.OK(t, err)
	b.Reset()
	assert.OK(t, table.Text(&b, layout.Style{}))
	for _, want := range []string{" 20~ ", "~: noisy, ", " <= 12.00 ms ", "<= is an upper bound"} {
		assert.True(t, strings.Contains(strings.Join(strings.Fields(" "+b.String()+" "), " "), strings.TrimSpace(want)),
			"got %s, want %q in it", b.String(), want)
	}
	b.Reset()
	assert.OK(t, table.CSV(&b))
	assert.True(t, strings.HasSuffix(b.String(), ",shaky,false,,true,50k/s,all,p99\n") && table.Runs[0].Noisy, "got %s", b.String())
}

func TestTableFaults(t *testing.T) {
	for _, tt := range []struct {
		name       string
		rows       []store.Row
		side, says string
	}{
		{"another side", series(), "both", "unknown side"},
		{"no report of the side", series()[:1], Consuming, "consume"},
		{"no reports", nil, Producing, "produce"},
		{"only one cut short", series()[6:], Producing, "produce"},
	} {
		_, err := TableOf(tt.rows, tt.side)
		assert.ErrorHas(t, err, tt.says, "%s", tt.name)
	}
}

// TestTableFields: TableOf reads only the fields that it requests from a store.
func TestTableFields(t *testing.T) {
	d := store.NewRowDecoder(TableFields())
	var few []store.Row
	for _, r := range series() {
		b := assert.Value(r.MarshalBinary())(t)
		r = assert.Value(d.Row(b))(t)
		few = append(few, r)
	}
	for _, side := range []string{Producing, Consuming} {
		assert.Same(t, tableText(t, few, side), tableText(t, series(), side), "%s, of all fields and of requested ones", side)
	}
}

// TestTableLikeRiemannLoad has the numbers of a published test of Riemann: 100k
// messages a second of 18 bytes and 4 of a frame, with 15k without an ack.
func TestTableLikeRiemannLoad(t *testing.T) {
	none := fields{"throughput": nil, "response_p50": nil, "response_p99": nil, "response_p999": nil, "rate": nil, "acks": nil}
	rows := []store.Row{
		row("r1", start, none, fields{
			"op": "send", "throughput": 99_900.0, "elapsed": 10.0, "sent": 1e6, "acked": 999_000.0, "acked_bytes": 18e6, "send_rate": 100e3, "wire": 2.2e6,
			"in_flight": 15000.4, "in_flight_max": 16000.0, "in_flight_peak": 21000.0, "service_mean": 0.2, "service_p50": 0.19,
			"service_p99": store.Value{Kind: store.KindDuration, Num: 0.9, Text: ">="},
		}),
		row("r2", start, none, fields{"op": "send", "throughput": 0.5, "elapsed": 10.0, "sent": 5.0, "send_rate": 0.5, "trusted": false}),
	}
	table := assert.Value(TableOf(rows, Producing))(t)
	before := tableText(t, rows, Producing)
	table = table.InColumnsOf(LikeRiemannLoad)
	var b bytes.Buffer
	assert.OK(t, table.Text(&b, layout.Style{}))
	const want = `produced
  count  send rate  ack rate  un-acked    most        RTT       RTT p99  Mbit/s  id
     5!      0.5/s         -         -       -          -             -       -  r2
999,000    100 k/s  99.9 k/s    15,000  21,000  200.00 ms  >= 900.00 ms   17.60  r1
  rates and un-acked count events: messages, if each holds one; un-acked: the
  mean and the most in flight; Mbit/s: 1,000,000 bits on the connections; times
  are service times; !: the generator was the limit
`
	assert.Same(t, b.String(), want)
	b.Reset()
	assert.OK(t, table.CSV(&b))
	const csv = `count,sent/s,acked/s,un-acked,un-acked most,RTT ms,RTT p99 ms,Mbit/s,report,untrusted,at_least,noisy,rate
5,0.5000,,,,,,,r2,true,,false,
999000,100000.0000,99900.0000,15000.40,21000,200.000,900.000,17.6000,r1,false,RTT p99,false,
`
	assert.Same(t, b.String(), csv, "CSV")
	assert.Equal(t, tableText(t, rows, Producing), before, "table in Kafka's columns")
}

// What came after the measurement is no part of a rate.
func TestTableRatesAreOfTheMeasurement(t *testing.T) {
	r := row("drained", start, fields{
		"op": "produce", "elapsed": 1.0, "sent": 50_000.0, "send_rate": 20_000.0, "acked": 50_000.0, "throughput": 14_000.0, "bytes_moved": 50e6, "acked_bytes": 50e6, "accepted": 14 * float64(mb),
	})
	table := assert.Value(TableOf([]store.Row{r}, Producing))(t)
	x := &table.Runs[0]
	assert.Equal(t, x.PerS, 14_000, "events/s")
	assert.Equal(t, x.MBPerS, 14, "MB/s")
	assert.Equal(t, *x.AckedPerS, 14_000, "ack rate")
	assert.Equal(t, *x.SentPerS, 20_000, "send rate")
}

// golden compares a text with a file.
func golden(t *testing.T, name string, text func(io.Writer, layout.Style) error) {
	t.Helper()
	var b bytes.Buffer
	assert.OK(t, text(&b, layout.Style{}))
	testkit.Golden(t, filepath.Join("testdata", name), b.String())
}

// Facts that a target reports about the run and its client differ from run to run, and do not make two servers differ.
func TestFactsOfARunAreNotOfServers(t *testing.T) {
	start := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	rows := func(with fields) []store.Row {
		f := fields{"op": "produce", "target": "kafka://a/t", "target.version": "4.3"}
		maps.Copy(f, with)
		return []store.Row{row("a", start, f)}
	}
	for _, tt := range []struct {
		name            string
		base, candidate fields
		found           bool
	}{
		{"counts of attempts", nil, fields{"target.batch_attempts": 5120.0, "target.batch_attempts_refused": 3.0}, false},
		{"renewed logins", fields{"target.logins_renewed": 2.0}, fields{"target.logins_renewed": 3.0}, false},
		{"transactions", fields{"target.transactions.end_mean_us": 900.0}, fields{"target.transactions.end_mean_us": 1100.0}, false},
		{"a ratio", fields{"target.compressed_to": 0.601}, fields{"target.compressed_to": 0.602}, false},
		{"partitions", fields{"target.topic.partitions": 3.0}, fields{"target.topic.partitions": 6.0}, true},
	} {
		got := findings(rows(tt.base), rows(tt.candidate))
		severe := false
		for _, f := range got {
			severe = severe || f.Severe
		}
		assert.Equal(t, severe, tt.found, "%s: %+v", tt.name, got)
	}
}

// An outage is worse than anything, and a level that was always 0 has not changed.
func TestWorseBy(t *testing.T) {
	for _, tt := range []struct {
		name        string
		before, now float64
		better      stats.Direction
		want        float64
	}{
		{"half of a rate", 100, 50, stats.More, 1},
		{"twice a time", 5, 10, stats.Less, 1},
		{"a better time", 10, 5, stats.Less, -0.5},
		{"an outage", 50_000, 0, stats.More, math.Inf(1)},
		{"after an outage", 0, 50_000, stats.More, -1},
		{"nothing, as before", 0, 0, stats.More, 0},
	} {
		assert.Equal(t, worseBy(tt.before, tt.now, tt.better), tt.want, tt.name)
	}
}

// A repetition in place of one that was not trusted belongs to the same repetitions, although its number is not the next.
func TestReplacedRepetitionsAreOneRevision(t *testing.T) {
	var rows []store.Row
	for i, n := range []float64{1, 2, 3, 2, 1, 2, 3} { // of two series
		f := fields{"repetition": n, "repetitions": 3.0}
		if i == 3 {
			f["replaces"] = "r1"
		}
		rows = append(rows, row(fmt.Sprint("r", i), start.Add(time.Duration(i)*time.Minute), f))
	}
	var got []int
	for _, r := range revisionsOf(rows) {
		got = append(got, len(r.rows))
	}
	want := []int{4, 3}
	assert.True(t, slices.Equal(got, want), "got series of %v runs, want %v", got, want)
}
