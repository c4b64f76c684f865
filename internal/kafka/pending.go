package kafka

import (
	"fmt"
	"time"

	"carronade/units"
)

// Pending says what each connection waits for.
func (p *producer) Pending() []string {
	var all []string
	for _, s := range p.senders {
		all = append(all, s.pending(p.sink.Now())...)
	}
	return all
}

func (s *sender) pending(now time.Duration) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := func(at time.Duration) string { return units.FormatDuration(max(0, now-at)) }
	add := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if len(s.p.senders) > 1 {
			text = fmt.Sprintf("client %d: ", s.id) + text
		}
		all = append(all, text)
	}
	if s.leaderless > 0 {
		add("%s without a leader", units.Plural(s.leaderless, "partition"))
	}
	if n := len(s.later); n > 0 {
		add("%s to be sent again", units.Plural(n, "batch"))
	}
	if n := len(s.recovering); n > 0 {
		add("%s that wait until all their batches are answered", units.Plural(n, "partition"))
	}
	for _, l := range s.lanes {
		to := fmt.Sprintf("broker %d at %s", l.broker, l.addr)
		k := l.link
		switch {
		case k == nil && l.outage.Err != nil:
			add("%s, without a connection for %s: %v", to, since(l.outage.Since), l.outage.Err)
		case k == nil:
			add("%s, not connected yet", to)
		case k.Dead():
			add("%s, whose connection ends: %v", to, k.Cause())
		case k.Head < k.Tail:
			text := fmt.Sprintf("%s, %s without an answer", to, units.Plural(int(k.Tail-k.Head), "request"))
			if r := k.oldest(); r.sent >= 0 {
				text += ", the oldest sent " + since(r.sent) + " ago"
			}
			if k.unsent > 0 {
				text += ", " + units.FormatSize(int64(k.unsent)) + " not written"
				if k.Flushing() {
					text += " because the socket is full"
				}
			}
			add("%s", text)
		default:
			text := to + ", nothing in flight"
			if k.paused || k.term.Over(s.p.startTime, now) {
				text += ", logging in again"
			}
			if now < l.throttledUntil {
				text += ", throttled by the broker for " + units.FormatDuration(l.throttledUntil-now)
			}
			if l.owesReady {
				text += ", and it refused events"
			}
			add("%s", text)
		}
	}
	return all
}
