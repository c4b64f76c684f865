package system

import (
	"bytes"
	"strconv"
	"time"
)

// A stamp is the time in the decorations of a line: by the wall clock, or the time since an
// unknown moment, usually the start of the JVM.
type stamp struct {
	wall  time.Time     // zero: only since is known
	since time.Duration // since a moment that is the same in all lines of the log
}

// A timed is a pause whose line, written when the pause ended, has a stamp.
type timed struct {
	at     stamp
	length time.Duration
}

// A clock finds the moment that the stamps of a log count from. The newest line was written no
// later than the file was changed, so that moment is at most the time of the change minus the
// line's stamp; the earliest of these is the closest.
type clock struct {
	newest stamp
	origin time.Time // zero: not known yet
}

// see takes in that the file, of which all lines were read, was changed at a time.
func (c *clock) see(changed time.Time) {
	if c.newest == (stamp{}) || !c.newest.wall.IsZero() {
		return
	}
	if origin := changed.Add(-c.newest.since); c.origin.IsZero() || origin.Before(c.origin) {
		c.origin = origin
	}
}

// passOn calls OnPause with the pauses that were read.
func (g *gcLog) passOn(w *follower) {
	if at, err := w.f.Stat(); err == nil && at.Size() == w.at && len(w.part) == 0 {
		w.clock.see(at.ModTime())
	}
	kept := w.read[:0]
	for _, p := range w.read {
		ended := p.at.wall
		if ended.IsZero() {
			if w.clock.origin.IsZero() {
				kept = append(kept, p)
				continue
			}
			ended = w.clock.origin.Add(p.at.since)
		}
		g.OnPause(ended.Add(-p.length), p.length)
	}
	w.read = kept[max(0, len(kept)-mostUntimed):]
}

// mostUntimed bounds the pauses that wait until the time of their log is known.
const mostUntimed = 1000

// wallMillis is the least number of milliseconds that is a date and no time since the start of a
// JVM: 2001-09-09.
const wallMillis = 1e12

// stampOf reads the decorations at the beginning of a line, such as
// [2026-11-21T12:00:00.123+0000][0.512s][info][gc]. It prefers the wall clock. Decorations:
// time, utctime, uptime, timemillis, uptimemillis, timenanos and uptimenanos (JEP 158).
func stampOf(line []byte) (s stamp, ok bool) {
	for len(line) > 0 && line[0] == '[' {
		i := bytes.IndexByte(line, ']')
		if i < 0 {
			break
		}
		text := string(bytes.TrimSpace(line[1:i]))
		line = line[i+1:]
		if t, err := time.Parse("2006-01-02T15:04:05.000-0700", text); err == nil {
			return stamp{wall: t}, true
		}
		since, known := sinceOf(text)
		switch {
		case !known:
		case since >= wallMillis*time.Millisecond && bytes.HasSuffix([]byte(text), []byte("ms")):
			return stamp{wall: time.Unix(0, int64(since))}, true
		case !ok:
			s, ok = stamp{since: since}, true
		}
	}
	return s, ok
}

// sinceOf reads "0.512s", "512ms" or "512000000ns".
func sinceOf(text string) (time.Duration, bool) {
	digits := 0
	for digits < len(text) && (text[digits] >= '0' && text[digits] <= '9' || text[digits] == '.' || text[digits] == ',') {
		digits++
	}
	unit, ok := map[string]time.Duration{"s": time.Second, "ms": time.Millisecond, "ns": time.Nanosecond}[text[digits:]]
	if !ok || digits == 0 {
		return 0, false
	}
	if n, err := strconv.ParseInt(text[:digits], 10, 64); err == nil && n <= int64(9e18/unit) {
		return time.Duration(n) * unit, true // exactly
	}
	x, err := strconv.ParseFloat(string(bytes.Replace([]byte(text[:digits]), []byte(","), []byte("."), 1)), 64)
	if err != nil || x*float64(unit) > 9e18 {
		return 0, false
	}
	return time.Duration(x * float64(unit)), true
}
