package command

import (
	"slices"
	"testing"
	"time"

	"carronade/internal/kafka"
	"carronade/internal/kafka/cluster"
	standinkafka "carronade/internal/kafka/standin"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// A load on topics is a run whose events are operations and whose batches are
// requests; Each gets the result of every operation.
func TestLoad(t *testing.T) {
	srv := assert.Value(standinkafka.Start(standinkafka.Options{Listen: "127.0.0.1:0"}))(t)
	t.Cleanup(func() { srv.Close() })
	c := Console{Note: t.Logf, Warn: func(text string) { t.Log(text) }}
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
	if r.Done != 30 || of.Measurement.Batches != 3 || of.Stopped != load.ByEvents || of.Mode != load.ClosedLoop || seen[29].Name != "t29" {
		t.Errorf("got %+v, %+v", r, seen)
	}
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
