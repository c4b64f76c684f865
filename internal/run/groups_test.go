package run

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"carronade/load"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// A groupKind is a fakeKind with two consumer groups. The second reads nothing from an offset on, and from another on
// gets each event twice.
type groupKind struct {
	*fakeKind
	until, twice int64
	never        bool // the second never gets an assignment
}

func (k *groupKind) Capabilities() protocol.KindCapabilities {
	c := k.fakeKind.Capabilities()
	c.Groups = true
	return c
}

func (k *groupKind) Open(ctx context.Context, spec protocol.Spec) (protocol.Session, error) {
	if _, err := k.fakeKind.Open(ctx, spec); err != nil {
		return nil, err
	}
	of := fakeSource{k.session}
	second := &groupSource{fakeSource: of, k: k, in: make(chan load.Arrival, 10_000)}
	first := &groupSource{fakeSource: of, k: k, to: second}
	return &groupSession{k.session, []protocol.Group{{Name: "g-1", Source: first}, {Name: "g-2", Source: second}}}, nil
}

type groupSession struct {
	*fakeSession
	groups []protocol.Group
}

func (*groupSession) Source() load.Source { return nil }

func (s *groupSession) Capabilities() protocol.SessionCapabilities {
	c := s.fakeSession.Capabilities()
	c.Groups = s.groups
	return c
}

// A groupSource of the first group passes what it reads to that of the second.
type groupSource struct {
	fakeSource
	k  *groupKind
	to *groupSource
	in chan load.Arrival
	at atomic.Int64
}

func (s *groupSource) Positions() []int64 { return []int64{s.at.Load()} }

func (s *groupSource) Capabilities() load.SourceCapabilities {
	c := load.SourceCapabilities{Connected: s.Connected, Seeker: s}
	if s.to == nil && s.k.never {
		c.Ready = func(context.Context) error {
			return &protocol.Error{Doing: "wait for the assignment of g-2", Err: context.DeadlineExceeded}
		}
	}
	return c
}

func (s *groupSource) Receive(ctx context.Context, now func() time.Duration, sink func(int, []load.Arrival)) error {
	deliver := func(as ...load.Arrival) {
		for i := range as {
			s.at.Store(as[i].Base + int64(as[i].Events))
		}
		sink(0, as)
	}
	if s.to != nil {
		return s.fakeSource.Receive(ctx, now, func(_ int, as []load.Arrival) {
			deliver(as...)
			for _, a := range as {
				s.to.in <- a
			}
		})
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case a := <-s.in:
			if a.Base >= s.k.until {
				continue
			}
			if deliver(a); a.Base >= s.k.twice {
				deliver(a)
			}
		}
	}
}

// TestGroups: each of two groups reads every event, and has its own counts, times, backlog and ledger.
func TestGroups(t *testing.T) {
	const all = 1 << 40
	for _, tt := range []struct {
		name         string
		until, twice int64
		slo          string
		unread       uint64 // of the second
		says         string // the last check
		ok           bool
	}{
		{"both read everything", all, all, "end-to-end.p99<9s", 0, "3 ms", true},
		{"one falls behind", 600, all, "end-to-end.p90<100ms", 400, "group g-2: >= ", false},
		{"its backlog", 600, all, "backlog<100", 400, "400", false},
		{"the backlog of one grows", 600, all, "keeps-up", 400, "group g-2: ", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &groupKind{fakeKind: &fakeKind{perBatch: 1, consumeDelay: 2 * time.Millisecond}, until: tt.until, twice: tt.twice}
				doc := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: hold(t, k, "groups=2", "verify=true", "drain=1s", "slo="+tt.slo)}))(t)
				assert.Must(t, len(doc.Groups) == 2, "groups: %+v", doc.Groups)
				a, b := doc.Groups[0], doc.Groups[1]
				assert.True(t, a.Consumed == 1000 && a.Unread == 0 && a.EndToEnd.Count == 1000 && a.AckedToRead.Count == 1000, "first: %+v", a)
				assert.True(t, b.Consumed == 1000-tt.unread && b.Unread == tt.unread && b.EndToEnd.Censored == tt.unread, "second: %+v", b)
				assert.True(t, doc.Totals.Consumed == a.Consumed+b.Consumed && doc.EndToEnd.Count == a.EndToEnd.Count+b.EndToEnd.Count, "all: %+v", doc.Totals)
				l := doc.Ledger
				assert.Must(t, len(l.Groups) == 2, "ledger: %+v", l)
				assert.True(t, l.Groups[0].Unread == 0 && l.Groups[1].Unread == tt.unread && l.Unread == tt.unread && l.Acked == 2000, "ledger: %+v", l)
				if tt.unread > 0 {
					assert.True(t, strings.Contains(doc.Checks[0].Text, "by group: g-2 400 unread"), "check: %q", doc.Checks[0].Text)
				}
				var consumed [2]uint64
				for i := range doc.Intervals {
					for g, of := range doc.Intervals[i].Groups {
						consumed[g] += of.Consumed
					}
				}
				assert.Equal(t, consumed, [2]uint64{a.Consumed, b.Consumed}, "events of the series")
				c := doc.Checks[len(doc.Checks)-1]
				assert.True(t, strings.Contains(c.Text, tt.says) && (c.OK == tt.ok), "%+v, want %v and %q", c, tt.ok, tt.says)
				<-k.session.ended
			})
		})
	}
}

// TestGroupTwice: what a group gets twice is counted, and is no failure without a limit.
func TestGroupTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &groupKind{fakeKind: &fakeKind{perBatch: 1, consumeDelay: 2 * time.Millisecond}, until: 1 << 40, twice: 900}
		doc := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: hold(t, k, "groups=2", "verify=true", "drain=1s")}))(t)
		assert.True(t, doc.Groups[1].Consumed == 1000, "each event counts once: %+v", doc.Groups[1])
		assert.Equal(t, doc.Ledger.Groups[1].Duplicated, 100, "twice: events from 900 on")
		assert.Equal(t, doc.Ledger.Groups[0].Duplicated, 0, "twice in the other group")
		assert.True(t, doc.Checks[0].OK, "check: %+v", doc.Checks[0])
		<-k.session.ended
	})
}

// TestGroupNeverAssigned: a group that never gets an assignment ends the run before it sends.
func TestGroupNeverAssigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &groupKind{fakeKind: &fakeKind{perBatch: 1}, never: true}
		_, err := Execute(t.Context(), Job{Portable: true, Workload: hold(t, k, "groups=2")})
		assert.True(t, err != nil && strings.Contains(err.Error(), "wait for the assignment of g-2"), "got %v", err)
		assert.Equal(t, k.session.end.Load(), 0, "events sent")
	})
}
