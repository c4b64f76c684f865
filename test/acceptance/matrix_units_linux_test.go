//go:build conformance

package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// This file tests the parts of the matrix that decide.

const ms = int64(time.Millisecond)

// row makes a batch of one event that was sent, arrived 0.05 ms later and was
// answered after 5 ms, all in milliseconds.
func row(k int64, due, sent, answered, done int64) (batch, served) {
	b := batch{sequence: k, partition: -1, offset: -1, events: 1, due: due * ms, dueLast: due * ms, sent: sent * ms, done: done * ms, consumed: noTime}
	return b, served{connection: "a", kind: "message", partition: -1, offset: -1, events: 1, arrived: sent*ms + 50_000, writing: answered*ms - 10_000, ended: answered * ms}
}

// TestTruth: the truth excludes delays by the generator and includes those by the
// system.
func TestTruth(t *testing.T) {
	for _, tt := range []struct {
		name                      string
		due, sent, answered, done int64 // of one of ten batches; the others take 5 ms
		what                      string
		stopped                   bool
		least, most               float64 // of its max, in us
	}{
		{"prompt", 100, 100, 105, 105, ofResponse, false, 4990, 5000},
		{"answers read late", 100, 100, 105, 605, ofResponse, false, 4990, 5000},
		{"sent late", 100, 600, 605, 605, ofResponse, false, 4990, 5000},
		{"sent late, and in a burst that took longer", 100, 600, 609, 609, ofResponse, false, 5000, 9000},
		{"answered late", 100, 100, 605, 605, ofResponse, false, 504_990, 505_000},
		{"a stopped system that read nothing", 100, 600, 605, 605, ofResponse, true, 504_990, 505_000},
		{"service, answers read late", 100, 100, 105, 605, ofService, false, 4990, 5000},
		{"service, answered late", 100, 100, 605, 605, ofService, true, 504_990, 505_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var batches []batch
			var record []served
			for k := range int64(10) {
				b, s := row(k, k, k, k+5, k+5)
				if k == 9 {
					b, s = row(k, tt.due, tt.sent, tt.answered, tt.done)
				}
				batches, record = append(batches, b), append(record, s)
			}
			pairs, err := join(batches, record)
			if err == nil {
				err = causal(pairs)
			}
			assert.OK(t, err)
			got := truthOf(tt.what, pairs, tt.stopped)
			if least, most := got.least.percentile(100), got.most.percentile(100); least != tt.least || most != tt.most {
				t.Errorf("the longest took %v to %v us, want %v to %v", least, most, tt.least, tt.most)
			}
		})
	}
}

// TestTruthEndToEnd: the delay of a late fetch is the generator's.
func TestTruthEndToEnd(t *testing.T) {
	for _, tt := range []struct {
		name        string
		asked       int64 // when the fetch arrived that returned the second event, in ms; it was answered 5 ms later
		least, most int64 // ms
	}{
		{"waiting", 15, 5, 16},  // it is answered when the event has arrived
		{"late", 515, 4, 2 * 6}, // delivered at once, or after the fetch in progress
	} {
		t.Run(tt.name, func(t *testing.T) {
			var record []served
			fetch := func(offset, asked, answered int64) {
				record = append(record, served{connection: "c", kind: "fetch", partition: 0, offset: offset, events: 1, arrived: asked * ms, writing: answered * ms, ended: answered * ms})
			}
			var batches []batch
			for k, sent := range []int64{0, 100} {
				b, s := row(int64(k), sent, sent, sent+5, sent+5)
				b.partition, b.offset, b.consumed = 0, int64(k), (sent+600)*ms
				s.kind, s.partition, s.offset = "produce", 0, int64(k)
				batches, record = append(batches, b), append(record, s)
			}
			fetch(0, 0, 14)
			fetch(1, tt.asked, max(tt.asked, 100)+5)
			pairs := assert.Value(join(batches, record))(t)
			got := truthOf(ofEndToEnd, pairs[1:], false)
			least, most := got.least.percentile(100)/1e3, got.most.percentile(100)/1e3
			assert.True(t, least >= float64(tt.least)-0.1 && most <= float64(tt.most)+0.1,
				"it took %v to %v ms, want %v to %v", least, most, tt.least, tt.most)
		})
	}
}

// TestJoin: rows that do not fit are not paired.
func TestJoin(t *testing.T) {
	b, s := row(0, 0, 0, 5, 5)
	for _, tt := range []struct {
		name   string
		record []served
		want   string
	}{
		{"nothing", nil, "no connection"},
		{"another clock", []served{{connection: "a", events: 1, arrived: s.arrived - ms, writing: s.writing, ended: s.ended}}, "no connection"},
		{"answered after it was done", []served{{connection: "a", events: 1, arrived: s.arrived, writing: 7 * ms, ended: 7 * ms}}, "no connection"},
		{"never answered", []served{{connection: "a", events: 1, arrived: s.arrived, writing: noTime, ended: noTime}}, "no connection"},
		{"one of two", []served{{connection: "b", events: 1, arrived: 50 * ms, writing: 55 * ms, ended: 55 * ms}, s}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pairs, err := join([]batch{b}, tt.record)
			if tt.want != "" {
				assert.ErrorHas(t, err, tt.want)
				return
			}
			assert.True(t, err == nil && pairs[0].by == s, "got %+v and %v", pairs, err)
		})
	}
	b.partition, b.offset = 0, 7
	_, err := join([]batch{b}, []served{s})
	assert.True(t, err != nil, "a batch whose offset is not in the record has a pair")
	assert.True(t, causal([]pair{{batch: b, by: served{arrived: b.sent - ms, writing: b.done, ended: b.done}}}) != nil,
		"got no error for a batch that arrives before it is sent")
}

// TestFindings: a matrix that was killed continues with the findings of the same
// build.
func TestFindings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "matrix.jsonl")
	fs := openFindings(t, path)
	fs.add(t, finding{Cell: "a / x / stopped", Level: trusted, Breaches: []string{"wrong"}})
	fs.add(t, finding{Cell: "b / x / stopped", Level: notTrusted})
	old := fmt.Sprintf("{\"cell\":\"c / x / stopped\",\"build\":\"another\",\"level\":%q}\n{\"cell\":\"d / x / sto", trusted)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(old)
		f.Close()
	}
	assert.OK(t, err)
	again := openFindings(t, path)
	assert.True(t, len(again.all) == 2 && len(again.all["a / x / stopped"].Breaches) == 1, "got %+v", again.all)
	var table strings.Builder
	again.table(&table)
	assert.True(t, strings.Contains(strings.Join(strings.Fields(table.String()), " "), "stopped 2 1 0 1 0 1 all 2 1 0 1 0 1"),
		"the table is\n%s", table.String())
	again.close(t)
	left := openFindings(t, path)
	assert.True(t, len(left.all) == 0, "a new matrix begins with %+v", left.all)
}

// TestCells: the matrix has all loads and enough cells.
func TestCells(t *testing.T) {
	all := cells()
	names := map[string]bool{}
	loads := map[string]int{}
	for i := range all {
		names[all[i].name()] = true
		loads[all[i].load]++
	}
	if len(all) < 300 || len(names) != len(all) || loads[closedLoop] == 0 || loads[fullSpeed] == 0 || loads[roundTrip] == 0 {
		t.Errorf("%d cells of %d names: %v", len(all), len(names), loads)
	}
	few := sampleCells(all, 10)
	assert.True(t, len(few) == 10, "the sample has %d cells, want 10", len(few))
}
