//go:build conformance

package acceptance

import (
	"context"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// backlogReport is what the tests read of a backlog.
type backlogReport struct {
	StartedAt time.Time `json:"started_at"`
	Stopped   string    `json:"stopped"`
	Backlog   struct {
		State        string  `json:"state"`
		BuildAt      float64 `json:"build_at_s"`
		DrainAt      float64 `json:"drain_at_s"`
		Build        float64 `json:"build_s"`
		Drain        float64 `json:"drain_s"`
		Most         float64 `json:"most_events"`
		MostBytes    float64 `json:"most_bytes"`
		EventsPerS   float64 `json:"drained_events_per_s"`
		MissingPerS  float64 `json:"missing_per_s"`
		DrainedShare float64 `json:"drained_share"`
		Groups       []struct {
			Name  string   `json:"name"`
			Drain *float64 `json:"drain_s"`
		} `json:"groups"`
		Stages []struct {
			Name string `json:"name"`
		} `json:"stages"`
	} `json:"backlog"`
	Intervals []struct {
		End float64 `json:"end_s"`
		Lag float64 `json:"lag_events"`
	} `json:"intervals"`
}

// A logSample is what the brokers say at a time: how many events the logs have, and how many of them the groups have
// not committed, at most; below 0: no group has committed anything.
type logSample struct {
	at       time.Time
	end, lag float64
}

// watchLogs samples the logs of a topic until the returned function is called.
func watchLogs(t *testing.T, broker *kafkatest.Cluster, topic string) func() []logSample {
	admin := broker.Admin(t)
	ctx, cancel := context.WithCancel(t.Context())
	var all []logSample
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			s := logSample{at: time.Now(), lag: -1}
			ends, err := admin.ListEndOffsets(ctx, topic)
			if err != nil {
				continue
			}
			ends.Each(func(o kadm.ListedOffset) { s.end += float64(o.Offset) })
			groups, err := admin.Lag(ctx)
			if err == nil {
				groups.Each(func(l kadm.DescribedGroupLag) {
					if parts := l.Lag[topic]; len(parts) > 0 {
						s.lag = max(s.lag, float64(l.Lag.Total()))
					}
				})
			}
			all = append(all, s)
			pause(t, 50*time.Millisecond)
		}
	}()
	return func() []logSample {
		cancel()
		<-done
		return all
	}
}

// TestBacklog: a backlog is built and drained, and what the report says of it agrees with the logs' own sizes and with
// the lag that the broker has for the groups, within one interval.
func TestBacklog(t *testing.T) {
	broker := kafkatest.Shared(t)
	const rate, interval = 2000, 1.0
	for _, engine := range engines {
		for _, groups := range []string{"", "2"} {
			t.Run(engine+" groups "+groups, func(t *testing.T) {
				topic := broker.CreateTopic(t, 4, 1)
				args := []string{
					"run", topicURL(broker, topic), "--op", "roundtrip", "--engine", engine, "--rate", "2k/s", "--size", "500",
					"--warmup", "8s", "--backlog", "10MB", "--backlog-after", "8s", "--slo", "drain<5m", "--json", "--quiet",
				}
				if groups != "" {
					args = append(args, "--groups", groups)
				}
				stop := watchLogs(t, broker, topic)
				e := run(t, args...).wantOneOf(t, 0, 3)
				samples := stop()
				var r backlogReport
				assert.OK(t, json.Unmarshal([]byte(e.stdout), &r), "%.2000s", e.stderr)
				b := &r.Backlog
				t.Logf("%+v", *b)
				assert.Equal(t, b.State, "drained", "state")
				assert.Equal(t, r.Stopped, "backlog drained", "stopped")
				assert.Equal(t, b.Stages[0].Name+" "+b.Stages[len(b.Stages)-1].Name, "before after", "the first and the last stage")
				assert.True(t, b.MostBytes >= 10e6 && math.Abs(b.MostBytes-500*b.Most) < 1, "%v bytes in %v events", b.MostBytes, b.Most)
				var begin, most, committed float64
				caughtUp := math.Inf(1)
				for _, s := range samples {
					at := s.at.Sub(r.StartedAt).Seconds()
					if at <= b.BuildAt {
						begin = s.end
					}
					if at <= b.DrainAt {
						most = s.end - begin
					}
					if at > b.BuildAt && at <= b.DrainAt { // later commits are seconds behind
						committed = max(committed, s.lag)
					}
					if at > b.DrainAt && s.lag >= 0 && s.lag <= (1-b.DrainedShare)*b.Most+rate*interval {
						caughtUp = min(caughtUp, at)
					}
				}
				t.Logf("the logs grew by %v, the lag of committed events was %v at most, caught up at %v s; %d samples", most, committed, caughtUp, len(samples))
				assert.True(t, math.Abs(most-b.Most) <= rate*interval, "the logs grew by %v events while %v waited at most", most, b.Most)
				if engine == "client" && groups != "" {
					assert.True(t, math.Abs(committed-b.Most) <= rate*interval, "the broker's lag was %v at most, the report's %v", committed, b.Most)
					const commits = 5 // seconds between two commits of a member
					assert.True(t, math.Abs(caughtUp-b.DrainAt-b.Drain) <= commits+interval, "by the broker, the groups caught up at %v s, by the report at %v s", caughtUp, b.DrainAt+b.Drain)
				}
				for _, iv := range r.Intervals {
					if iv.End >= b.BuildAt+1 && iv.End < b.DrainAt {
						assert.True(t, math.Abs(iv.Lag-rate*(iv.End-b.BuildAt)) <= rate*interval, "at %v s, %v events wait", iv.End, iv.Lag)
					}
				}
			})
		}
	}
}

// TestBacklogNotDrained: the broker throttles a reader to less than what is sent, so the run ends at its bound, and fails.
func TestBacklogNotDrained(t *testing.T) {
	broker := kafkatest.Shared(t)
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			topic, id := broker.CreateTopic(t, 1, 1), "slow-reader-"+engine
			results, err := broker.Admin(t).AlterClientQuotas(t.Context(), []kadm.AlterClientQuotaEntry{{
				Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: &id}},
				Ops:    []kadm.AlterClientQuotaOp{{Key: "consumer_byte_rate", Value: 50_000}},
			}})
			assert.Must(t, err == nil && len(results) == 1 && results[0].Err == nil, "set a quota: %v, %+v", err, results)
			e := run(t, "run", topicURL(broker, topic), "--op", "roundtrip", "--engine", engine, "--client-id", id, "--rate", "2k/s", "--size", "500", "--fetch-max", "100kB", "--fetch-partition-max", "100kB",
				"--backlog", "10k", "--drain-timeout", "5s", "--json", "--quiet").wantOneOf(t, 1)
			var r backlogReport
			assert.OK(t, json.Unmarshal([]byte(e.stdout), &r), "%.2000s", e.stderr)
			b := &r.Backlog
			t.Logf("%+v", *b)
			assert.Equal(t, b.State+", "+r.Stopped, "not drained, backlog not drained", "state, and what stopped the run")
			assert.True(t, b.MissingPerS > 0 && math.Abs(b.Drain-5) < 0.5, "%+v", *b)
			assert.Has(t, e.stdout, "not drained in 5")
		})
	}
}
