package kafka

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A run waits for a topic that does not appear, and then reads nothing.
func TestWaitTopicInVain(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"), kfake.AllowAutoTopicCreation())
	for _, tt := range []struct {
		name, topic string
		given       map[string][]string
		want        string
	}{
		{"a name", "late", map[string][]string{}, "the topic late did not appear within 300ms"},
		{"an expression", "t", map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}, "topics": {"late.*"}}, "a topic whose name matches ^(?:late.*)$ did not appear within 300ms"},
		{"a share group", "late", map[string][]string{"engine": {cluster.EngineClient}, "share-group": {"g"}}, "the topic late did not appear within 300ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.given["wait-topic"] = []string{"300ms"}
			s := spec(t, urlOf(c, tt.topic), tt.given)
			s.Op = cluster.OpConsume
			began := time.Now()
			session := assert.Value(open(t, s))(t)
			took := time.Since(began)
			assert.True(t, took >= 300*time.Millisecond, "waited for %v, want 300ms or more", took)
			w := strings.Join(session.Warnings(), "\n")
			assert.True(t, strings.Contains(w, tt.want), "warnings %q, want %q", w, tt.want)
			n := session.Capabilities().Notice()
			assert.True(t, n != "" && strings.HasPrefix(tt.want, n), "the notice is %q", n)
			assert.True(t, !exists(t, c, "late"), "the topic was created")
			src := session.Source()
			assert.Equal(t, len(src.Logs()), 0, "logs")
			assert.OK(t, src.Receive(t.Context(), func() time.Duration { return 0 }, nil))
			assert.True(t, session.Facts()["absent"] == true, "facts %v", session.Facts())
			assert.OK(t, session.Capabilities().Survey(t.Context()))
		})
	}
}

// A topic that appears in time is read.
func TestWaitTopic(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	for _, tt := range []struct {
		name, topic, created string
		given                map[string][]string
	}{
		{"a name", "one", "one", map[string][]string{}},
		{"an expression", "t", "two", map[string][]string{"engine": {cluster.EngineClient}, "group": {"g"}, "topics": {"two.*"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.given["wait-topic"] = []string{"5m"}
			s := spec(t, urlOf(c, tt.topic), tt.given)
			s.Op = cluster.OpConsume
			created := make(chan error, 1)
			time.AfterFunc(200*time.Millisecond, func() {
				cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
				if err == nil {
					defer cl.Close()
					_, err = kadm.NewClient(cl).CreateTopic(t.Context(), 3, 1, nil, tt.created)
				}
				created <- err
			})
			session, err := open(t, s)
			e := <-created
			assert.Must(t, e == nil && err == nil, "%v %v", e, err)
			got := session.Source().Logs()
			assert.True(t, len(got) == 3 && got[0] == tt.created+"-0", "logs %q", got)
			_, absent := session.Facts()["absent"]
			assert.True(t, !absent, "the facts say that the topic is absent")
		})
	}
}

// A run that read nothing says why.
func TestWhyNothing(t *testing.T) {
	t.Parallel()
	client := map[string][]string{"engine": {cluster.EngineClient}}
	with := func(name, value string) map[string][]string {
		return map[string][]string{"engine": {cluster.EngineClient}, name: {value}}
	}
	for _, tt := range []struct {
		name   string
		given  map[string][]string
		events int
		refuse int16 // error of the coordinator; 0: none
		want   string
	}{
		{"empty", nil, 0, 0, "nothing was ever written to t"},
		{"empty, client engine", client, 0, 0, "nothing was ever written to t"},
		{"at the end", map[string][]string{"from": {"latest"}}, 10, 0, "it began at the end of the logs (latest), and nothing was written since"},
		{"at the end, client engine", map[string][]string{"engine": {cluster.EngineClient}, "from": {"latest"}}, 10, 0, "it began at the end of the logs (latest), and nothing was written since"},
		{"a refused group", with("group", "g"), 10, kerr.GroupAuthorizationFailed.Code, "no partition was assigned to a member of the group g: "},
		{"a share group", with("share-group", "s"), 10, 0, "a new share group begins where the logs end, unless its setting share.auto.offset.reset is earliest"},
		{"a refused share group", with("share-group", "s"), 10, kerr.GroupAuthorizationFailed.Code, "the share group s: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := fakeCluster(t, kfake.SeedTopics(1, "t"))
			if tt.events > 0 {
				put(t, c, records(tt.events, 1, sized(20)))
			}
			asked := make(chan struct{}, 1)
			for _, key := range []kmsg.Key{kmsg.JoinGroup, kmsg.ConsumerGroupHeartbeat, kmsg.ShareGroupHeartbeat} {
				if tt.refuse == 0 {
					continue
				}
				c.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
					c.KeepControl()
					resp := req.ResponseKind()
					switch r := resp.(type) {
					case *kmsg.JoinGroupResponse:
						r.ErrorCode = tt.refuse
					case *kmsg.ConsumerGroupHeartbeatResponse:
						r.ErrorCode = tt.refuse
					case *kmsg.ShareGroupHeartbeatResponse:
						r.ErrorCode = tt.refuse
					}
					select {
					case asked <- struct{}{}:
					default:
					}
					return resp, nil, true
				})
			}
			src := source(t, c, tt.given)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			start := time.Now()
			go func() {
				ended <- src.Receive(ctx, func() time.Duration { return time.Since(start) }, func(int, []load.Arrival) { t.Error("something was read") })
			}()
			if tt.refuse != 0 {
				<-asked
				select { // an error that is permanent ends it
				case <-ended:
					ended <- nil
				case <-time.After(time.Minute):
				}
			}
			cancel()
			<-ended
			why := src.Capabilities().WhyNothing(t.Context())
			assert.True(t, strings.HasPrefix(why, tt.want), "got %q, want it to begin with %q", why, tt.want)
		})
	}
}

// Only the wire engine counts records without decoding them.
func TestUndecoded(t *testing.T) {
	t.Parallel()
	c := fakeCluster(t, kfake.SeedTopics(1, "t"))
	for _, tt := range []struct {
		given     map[string][]string
		undecoded bool
	}{
		{nil, true},
		{map[string][]string{"decode": {"true"}}, false},
		{map[string][]string{"engine": {cluster.EngineClient}}, false},
	} {
		undecoded := source(t, c, tt.given).Capabilities().Undecoded
		assert.Equal(t, undecoded != nil && undecoded() != "", tt.undecoded, "%v: undecoded", tt.given)
	}
}

// After a broker or a leader disappears permanently, a run of a number of events ends
// soon after the timeout of one batch: the timeouts do not add up.
func TestGonePermanently(t *testing.T) {
	t.Parallel()
	const (
		timeout = 1500 * time.Millisecond
		events  = 10_000 // 500 batches a partition, 5 at a time: added up, the timeouts take longer than a rig waits
	)
	for _, tt := range []struct {
		name       string
		idempotent bool
		leader     bool // only the leader is gone
	}{
		{"a broker", false, false},
		{"a broker, idempotent", true, false},
		{"a leader", false, true},
		{"a leader, idempotent", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := eventsCluster(t, 2)
			p := openProducer(t, c.ListenAddrs(), func(cfg *cluster.Config) {
				cfg.RequestTimeout, cfg.DeliveryTimeout = timeout, timeout
				if tt.idempotent {
					cfg.RequestTimeout = time.Minute // the other limit decides
				}
			}, fmt.Sprintf("idempotent=%v", tt.idempotent))
			r := newRig(t, p)
			r.events = 10
			gone := false
			out := r.sendAnd(events, func(fired int) {
				if gone || fired < events/10 {
					return
				}
				gone = true
				if !tt.leader {
					c.Close()
					return
				}
				v := *p.metadata.view.Load()
				v.leaders = []int32{noLeader, v.leaders[1]}
				p.senders[0].update(&v)
			})
			if got := strings.Join(p.absent.Warnings(), "\n"); tt.leader == strings.Contains(got, "connecting to ") {
				t.Errorf("warnings in the report: %q", got)
			}
			got := tally(out)
			assert.True(t, got.failed >= events*4/10 && got.acked != 0, "%+v of %d events", got, events)
			for _, o := range out {
				assert.Must(t, (o.Failed <= 0 || o.Class != load.OK) && (o.Failed <= 0 || o.Text != ""), "failed without a reason: %+v", o)
			}
		})
	}
}

// When a leader comes back after batches failed, its lane serves the partition again.
func TestLeaderComesBack(t *testing.T) {
	t.Parallel()
	c := eventsCluster(t, 2)
	p := openProducer(t, c.ListenAddrs(), func(cfg *cluster.Config) { cfg.RequestTimeout = time.Second })
	q := &readySink{countSink: countSink{start: time.Now(), completed: make(chan int, 10)}, ready: make(chan int, 10)}
	p.Start(q)
	before := p.Route(0)
	v := *p.metadata.view.Load()
	with := v.leaders
	v.leaders = []int32{noLeader, with[1]}
	p.senders[0].update(&v)
	assert.Equal(t, <-q.ready, -1, "Ready()")
	l := p.Route(0)
	assert.True(t, l != nil && l != before, "lane %v serves a partition that had no leader for a long time", l)
	v.leaders = with
	p.senders[0].update(&v)
	assert.Equal(t, p.Route(0), before, "lane")
	for _, m := range p.Metrics() {
		assert.True(t, m.Broker >= 0, "metrics of a broker that does not exist: %+v", m)
	}
}

// The time for which a batch waits for a connection or a leader is the system's, not the generator's
// lateness: the batch is free when it can be written.
func TestWaitingIsTheSystems(t *testing.T) {
	t.Parallel()
	for _, given := range [][]string{nil, idempotent} {
		for _, leader := range []bool{false, true} {
			t.Run(name(given, leader), func(t *testing.T) {
				t.Parallel()
				n := &badNet{}
				c := eventsCluster(t, 1, n.listen())
				p := openProducer(t, c.ListenAddrs(), func(cfg *cluster.Config) { cfg.Logf = func(string, ...any) {} }, given...)
				r := newRig(t, p)
				s := p.senders[0]
				l := s.lanes[0]
				v := *p.metadata.view.Load()
				assert.Must(t, l.Fire([]load.Batch{{Events: 1, Free: time.Nanosecond, DueFirst: 0, DueLast: 0}}) == 1, "not taken")
				if leader {
					away := v
					away.leaders = []int32{noLeader}
					s.update(&away)
				} else {
					n.setRefusing(true)
					testkit.Until(t, "the connection is lost", func() bool {
						s.mu.Lock()
						defer s.mu.Unlock()
						return l.link == nil
					})
				}
				l.Flush()
				back := r.Now()
				if leader {
					s.update(&v)
				} else {
					n.setRefusing(false)
				}
				o := r.awaitCompleted(1)[0]
				assert.Equal(t, o.Acked, 1, "acked, with the error %q", o.Text)
				assert.True(t, o.Free >= back && o.Free <= o.Sent, "it could be written from %v on and was sent at %v, but counts as free at %v", back, o.Sent, o.Free)
			})
		}
	}
}

func name(given []string, leader bool) string {
	text := "no connection"
	if leader {
		text = "no leader"
	}
	if given != nil {
		text += ", idempotent"
	}
	return text
}

// The same for reads of records by their places.
func TestWaitingReadsAreTheSystems(t *testing.T) {
	t.Parallel()
	n := &badNet{}
	c := filled(t, 1, 10, 10, n.listen())
	s := spec(t, fakeURL(c.ListenAddrs()), nil)
	s.Op, s.Clients = cluster.OpRead, 1
	s.Logf = func(string, ...any) {}
	sess := assert.Value(open(t, s))(t)
	reader := sess.Target().(*itemReader)
	sink := &firstOutcome{start: time.Now(), came: make(chan load.Outcome, 1)}
	reader.Start(sink)
	client := reader.clients[0]
	n.setRefusing(true)
	assert.Must(t, client.Fire([]load.Batch{{Events: 1, Free: time.Nanosecond, DueFirst: 0, DueLast: 0}}) == 1, "not taken")
	client.Flush()
	testkit.Until(t, "no connection can be made", func() bool {
		client.mu.Lock()
		defer client.mu.Unlock()
		return client.live[0].err != nil
	})
	back := sink.Now()
	n.setRefusing(false)
	o := <-sink.came
	assert.Equal(t, o.Acked, 1, "read, with the error %q", o.Text)
	assert.True(t, o.Free >= back && o.Free <= o.Sent, "it could be written from %v on and was sent at %v, but counts as free at %v", back, o.Sent, o.Free)
}

// A firstOutcome is a sink for one outcome.
type firstOutcome struct {
	start time.Time
	came  chan load.Outcome
}

func (s *firstOutcome) Now() time.Duration          { return time.Since(s.start) }
func (s *firstOutcome) Complete(out []load.Outcome) { s.came <- out[0] }
func (*firstOutcome) Ready(int, time.Duration)      {}
