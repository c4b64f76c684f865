package topics

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/kafka"
	"carronade/internal/kafka/cluster"
	standinkafka "carronade/internal/kafka/standin"
	"carronade/internal/layout"
	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// The hash of a file with names is that of what was read: a pipe can be read only once.
func TestTopicsFileIsReadOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names")
	text := []byte("# names\na\n\n b \n")
	assert.OK(t, os.WriteFile(path, text, 0o600))
	var doc workload.Document
	doc.Add("target", "target", "kafka://127.0.0.1:9092")
	w := assert.Value(workload.Resolve([]protocol.Kind{kafka.Kind{}}, &doc, nil))(t)
	f := &topicFlags{op: cluster.OpDeleteTopics, file: path}
	names, err := f.names([]string{"kafka://127.0.0.1:9092"}, w, &protocol.Room{})
	assert.Must(t, err == nil && slices.Equal(names, []string{"a", "b"}), "got %v and %v", names, err)
	assert.OK(t, os.WriteFile(path, nil, 0o600)) // a pipe has nothing more
	job := f.job([]string{"kafka://127.0.0.1:9092"}, &cluster.TopicLoad{Op: f.op, Names: names}, w)
	i := slices.IndexFunc(job.Settings, func(s run.TopicsSetting) bool { return s.Name == report.TopicsFileHash })
	assert.True(t, i >= 0 && job.Settings[i].Values[0] == run.TopicsHash(text), "got %+v, want the hash of what was read", job.Settings)
}

// A load on topics is a run whose events are operations and whose batches are requests; Each gets the result of every operation.
func TestLoad(t *testing.T) {
	srv := assert.Value(standinkafka.Start(standinkafka.Options{Listen: "127.0.0.1:0"}))(t)
	t.Cleanup(func() { srv.Close() })
	c := cmdutil.Console{Note: t.Logf, Warn: func(text string) { t.Log(text) }}
	run := func(w cluster.TopicLoad) (*cluster.TopicResult, *load.Result, []cluster.TopicDone) {
		t.Helper()
		var seen []cluster.TopicDone
		w.Each = func(d cluster.TopicDone) { seen = append(seen, d) }
		var doc workload.Document
		doc.Add("target", "test", "kafka://"+srv.Addr())
		where, r, of, err := LoadTopics(t.Context(), c, kafka.Kind{}, &doc, w)
		assert.Must(t, err == nil && where == "kafka://"+srv.Addr(), "at %q: %v", where, err)
		h := &of.Measurement
		var sum measure.Counts
		service, failing := uint64(0), uint64(0)
		for i := range of.Intervals {
			sum.Add(of.Intervals[i].Counts)
			service += of.Intervals[i].Service.Count()
			failing += of.Intervals[i].FailedService.Count()
		}
		assert.True(t, sum == h.Counts && service == h.Service.Count() && failing == h.FailedService.Count() && h.Batches == service+failing && h.Answers == h.Batches,
			"the intervals have %+v, %d times and %d of failed ones, the measurement %+v, %d answers, %d and %d",
			sum, service, failing, h.Counts, h.Answers, h.Service.Count(), h.FailedService.Count())
		if h.Offered != h.Sent+h.Unsent || h.Sent != h.Acked+h.Failed+h.Unknown || h.Unknown != r.Unknown || h.Acked != r.Done || h.Failed != r.Failed || h.Unsent != r.Unsent || uint64(len(seen)) != h.Sent || h.End != r.Elapsed {
			t.Errorf("%+v of %+v, %d seen", h.Counts, r, len(seen))
		}
		return r, of, seen
	}
	create := cluster.TopicLoad{Op: cluster.OpCreateTopics, Names: cluster.NumberedNames("t", 30), Spec: cluster.TopicSpec{Partitions: 1, Replicas: 1}, PerRequest: 10}
	r, of, seen := run(create)
	assert.True(t, r.Done == 30 && of.Measurement.Batches == 3 && of.Stopped == load.ByEvents &&
		of.Mode == load.ClosedLoop && seen[29].Name == "t29", "got %+v, %+v", r, seen)
	create.PerRequest, create.Failures = 1, 4
	r, of, seen = run(create)
	if r.Failed != 5 || r.Unsent != 25 || of.Stopped != load.ByFailures || !slices.ContainsFunc(seen, func(d cluster.TopicDone) bool { return d.Class == "rejected" && d.Err != nil }) {
		t.Errorf("again, with four failures allowed: got %+v, %+v", r, seen)
	}
	for _, times := range []int{-1, 1e9} { // without an end, and a limit that is not reached
		r, of, _ = run(cluster.TopicLoad{Op: cluster.OpListTopics, Times: times, For: 50 * time.Millisecond})
		assert.True(t, r.Done > 0 && r.Unsent == 0 && of.Stopped == load.ByTime,
			"%d times for 50 ms: got %+v, ended by %v", times, r, of.Stopped)
	}
	started := time.Time{}
	_, of, _ = run(cluster.TopicLoad{Op: cluster.OpListTopics, Started: func(at time.Time) { started = at }})
	assert.True(t, !started.IsZero() && started.Equal(of.Started), "it began at %v, the report says %v", started, of.Started)
	r, of, _ = run(cluster.TopicLoad{Op: cluster.OpListTopics, Times: 4, Rate: 1000})
	if r.Done != 4 || of.Mode != load.OpenLoop || of.Measurement.Response.Count() != 4 || of.Measurement.SendDelay.Count() != 4 || of.Measurement.Queueing.Count() != 4 || of.Measurement.Batching.Count() != 4 {
		t.Errorf("list: got %+v", r)
	}
}

func sums(rows []measure.Interval) (c measure.Counts, service, failing, censored uint64) {
	for i := range rows {
		c.Add(rows[i].Counts)
		service += rows[i].Service.Count()
		failing += rows[i].FailedService.Count()
		censored += rows[i].Censored.Count()
	}
	return c, service, failing, censored
}

// However long a load lasts, it has no more rows than one of an hour, no counts are lost, and two rows are open.
func TestSecondsAreBounded(t *testing.T) {
	const most = 3 * measure.DefaultSeries
	s := newSeconds(&cluster.TopicLoad{PerRequest: 2})
	for i := range most {
		at := time.Duration(i) * time.Second
		if i%5 == 1 {
			at -= 3 * time.Second // reported late
		}
		d := cluster.TopicDone{Sent: max(0, at-time.Millisecond), At: max(0, at), InFlight: 1}
		s.done(d)
		d.Last = true
		s.done(d)
		n := s.series.Rows()
		assert.Must(t, n <= measure.DefaultSeries, "%d rows after %d seconds", n, i)
	}
	r := &cluster.TopicResult{Operations: 2 * most, Elapsed: most * time.Second}
	rows := s.intervals(&cluster.TopicLoad{}, r)
	sum, service, _, _ := sums(rows)
	assert.True(t, sum.Sent == 2*most && sum.Acked == 2*most && sum.Offered == 2*most && sum.Batches == most && service == most && s.total.Service.Count() == most,
		"got %+v, %d service times, of %d requests of two", sum, service, most)
	end := time.Duration(0)
	for i := range rows {
		assert.Must(t, rows[i].Start == end && rows[i].End > end,
			"row %d is from %s to %s, behind one that ends at %s", i, rows[i].Start, rows[i].End, end)
		end = rows[i].End
	}
	assert.True(t, len(rows) <= measure.DefaultSeries+2 && end == r.Elapsed, "%d rows to %s, want %s", len(rows), end, r.Elapsed)
}

// Operations are offered in the second in which they were due, also those that
// were never begun, until the last beginning of operations.
func TestSecondsOffered(t *testing.T) {
	w := &cluster.TopicLoad{Op: cluster.OpListTopics, Times: -1, Rate: 10}
	s := newSeconds(&cluster.TopicLoad{Rate: w.Rate})
	// The second request lasts until the load is canceled; the third waits behind it.
	s.done(cluster.TopicDone{Sent: 0, At: time.Millisecond, InFlight: 1, Last: true})
	s.done(cluster.TopicDone{
		Due: 100 * time.Millisecond, Sent: 101 * time.Millisecond, At: 5 * time.Second, InFlight: 1, Last: true,
		Class: "canceled", Err: errors.New("cut off"),
	})
	r := &cluster.TopicResult{Operations: 2, Done: 1, Unknown: 1, Begun: 2500 * time.Millisecond, Unsent: 23, Elapsed: 5500 * time.Millisecond}
	rows := s.intervals(w, r)
	var got []uint64
	for i := range rows {
		got = append(got, rows[i].Offered)
	}
	want := []uint64{10, 10, 5, 0, 0, 0}
	assert.True(t, len(got) == len(want) && got[0] == want[0] && got[1] == want[1] && got[2] == want[2] && got[5] == 0, "offered %v a second, want %v", got, want)
	sum, service, failing, censored := sums(rows)
	assert.True(t, sum.Offered == 25 && sum.Unsent == 23 && sum.Unknown == 1 && sum.Answered == 1 && service == 1 && failing == 0 && censored == 24,
		"got %+v, %d service times, %d of failed ones, %d ages", sum, service, failing, censored)
	last := rows[len(rows)-1]
	assert.True(t, last.Unknown == 1 && len(last.Classes) == 1 && last.Unsent == 23 && last.End == r.Elapsed, "the last row is %+v", last)
	if c := s.total.Censored; c.Count() != 24 || c.Min() != 100*time.Millisecond || c.Max() != 4900*time.Millisecond || c.Percentile(50) < time.Second {
		t.Errorf("%d ages from %s to %s", c.Count(), c.Min(), c.Max())
	}
	assert.True(t, s.total.Response.Count() == 1 && s.total.SendDelay.Max() == time.Millisecond && s.total.Queueing.Max() == 0,
		"%d response times, send delay up to %s, queueing up to %s",
		s.total.Response.Count(), s.total.SendDelay.Max(), s.total.Queueing.Max())
}

// A request has a service time if a part of it was done, a failed service time
// if all of it failed, and none if its result is unknown.
func TestSecondsFates(t *testing.T) {
	var seen []cluster.TopicDone
	s := newSeconds(&cluster.TopicLoad{PerRequest: 2, Each: func(d cluster.TopicDone) { seen = append(seen, d) }})
	for _, fates := range [][2]string{{"", "rejected"}, {"rejected", "rejected"}, {"timeout", "timeout"}} {
		for i, class := range fates {
			s.done(cluster.TopicDone{At: 5 * time.Millisecond, Class: class, Certain: class == "rejected", InFlight: 1, Last: i == 1})
		}
	}
	rows := s.intervals(&cluster.TopicLoad{}, &cluster.TopicResult{Operations: 6, Elapsed: time.Second})
	sum, service, failing, _ := sums(rows)
	assert.True(t, sum.Acked == 1 && sum.Failed == 3 && sum.Unknown == 2 && sum.Batches == 3 && sum.Answered == 2 &&
		service == 1 && failing == 1, "got %+v, %d service times, %d of failed ones", sum, service, failing)
	want := measure.Classes{{Class: "rejected", Events: 3, Batches: 2}, {Class: "timeout", Events: 2, Batches: 1}}
	got := rows[0].Classes
	assert.True(t, len(got) == 2 && got[0] == want[0] && got[1] == want[1], "classes are %+v, want %+v", got, want)
	assert.True(t, len(seen) == 6 && seen[1].Certain && !seen[4].Certain, "saw %+v", seen)
}

// The send delay of a request counts for each of its operations, and is not in the lower values.
func TestSecondsLate(t *testing.T) {
	ms := time.Millisecond
	s := newSeconds(&cluster.TopicLoad{Rate: 10, PerRequest: 3})
	record := func(due, free, sent, at time.Duration) {
		for i := range 3 {
			s.done(cluster.TopicDone{Due: due, Free: free, Sent: sent, At: at, InFlight: 1, Last: i == 2})
		}
	}
	record(100*ms, 90*ms, 130*ms, 150*ms)
	record(100*ms, 140*ms, 150*ms, 170*ms) // no caller was free earlier
	for _, c := range []struct {
		name           string
		got            *measure.Histogram
		n              uint64
		least, longest time.Duration
	}{
		{"send delay", s.total.SendDelay, 6, 10 * ms, 30 * ms},
		{"response", s.total.Response, 6, 50 * ms, 70 * ms},
		{"response, lower", s.response.Bound(), 6, 20 * ms, 60 * ms},
		{"service, lower", s.service.Bound(), 2, 20 * ms, 20 * ms},
	} {
		assert.True(t, c.got.Count() == c.n && c.got.Min() == c.least && c.got.Max() == c.longest,
			"%s: got %d from %s to %s, want %d from %s to %s",
			c.name, c.got.Count(), c.got.Min(), c.got.Max(), c.n, c.least, c.longest)
	}
}

// If very many operations were never begun, their ages are still recorded, and quickly.
func TestSecondsNeverBegun(t *testing.T) {
	w := &cluster.TopicLoad{Op: cluster.OpCreateTopics, Next: func() string { return "" }, Times: -1, Rate: 1e6, PerRequest: 10}
	s := newSeconds(&cluster.TopicLoad{Rate: w.Rate, PerRequest: 10})
	r := &cluster.TopicResult{Begun: time.Hour, Elapsed: time.Hour}
	r.Unsent = w.DueBefore(r.Begun)
	rows := s.intervals(w, r)
	sum, _, _, censored := sums(rows)
	assert.True(t, sum.Offered == 36e9 && sum.Unsent == 36e9 && censored == 36e9,
		"offered %d, unsent %d, %d ages", sum.Offered, sum.Unsent, censored)
	half := s.total.Censored.Percentile(50)
	assert.True(t, half >= 29*time.Minute && half <= 31*time.Minute, "half of what was due in an hour is %s old", half)
}

// Operations with an unknown result are distinguished from those that failed.
func TestTextHasUnknown(t *testing.T) {
	answered, waited := measure.NewHistogram(), measure.NewHistogram()
	answered.RecordN(time.Millisecond, 2)
	waited.Record(time.Second)
	d := topicsDocument(&cluster.TopicResult{
		Op: cluster.OpCreateTopics, Operations: 5, Done: 2, Failed: 1, Unknown: 2, Requests: 5, Elapsed: time.Second, PerRequest: 1,
		Response: answered, Censored: waited, Service: measure.NewHistogram(), FailedService: measure.NewHistogram(),
		Failures: []measure.Failure{{Class: "timeout", Text: "late", Events: 2, Batches: 2}, {Class: "rejected", Text: "there", Events: 1, Batches: 1}},
	})
	var text strings.Builder
	d.text(&text, layout.Style{})
	assert.Has(t, text.String(), "FAIL  made 2 of 5 topics in 1 s", "  response  p50 1 ms, p99 >= ", "\n  failed    1\n", "\n  unknown   2, without a certain answer\n", "     2  timeout: late\n", "     1  rejected: there\n")
	data, err := json.Marshal(d)
	assert.True(t, err == nil && strings.Contains(string(data), `"failed":1,"unknown":2,`) &&
		strings.Contains(string(data), `"failed_service":{`), "%v: %s", err, data)
}
