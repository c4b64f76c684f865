package report

import (
	"bytes"
	"strings"
	"testing"

	"carronade/internal/layout"
	"carronade/internal/verdict/fault"
	"carronade/internal/workload"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

func secondsOf(s float64) *fault.Time { return &fault.Time{S: s} }

// faulty is the document of a run with a fault and its heal.
func faulty() *Document {
	d := withOutage()
	d.Trust = measure.Trust{Level: measure.Trusted, OK: true}
	whole := fault.Numbers{
		Noticed: secondsOf(0.1), Blackout: secondsOf(2), FirstAck: secondsOf(2), Back: secondsOf(9.5), Drained: secondsOf(10.3),
		LostEventS: new(float64(10_000)), NotAcked: new(float64(0)), Floor: new(float64(0)),
		Predicted: &fault.Prediction{PerS: 1250, Headroom: 1.25, CatchUpS: 8, BackS: 9.5, DrainedS: 10, LostEventS: 10_000, Over: 9500},
	}
	lane := whole
	lane.Name, lane.Blackout, lane.Predicted = "partition 3", secondsOf(6.1), nil
	other := lane
	other.Name, other.Blackout = "partition 4", secondsOf(0.2)
	mark := fault.Mark{Kind: fault.MarkFault, Name: "kill broker 2", AtS: 60, BoundS: 0.012, By: "mark"}
	d.Faults = &Faults{
		LimitS: 0.1, Budget: 0.01, Per: "partition", Marks: []fault.Mark{mark, {Kind: fault.MarkNote, Name: "the night shift", AtS: 61, By: "mark"}},
		Scores:    []fault.Score{{Mark: mark, ObservedS: 30, Whole: whole, Lanes: []fault.Numbers{other, lane}, Worst: 1, Errors: map[string]uint64{"timeout": 12, "refused": 40}, Delivery: &fault.Delivery{Lost: 1234, Duplicated: 2}}},
		Elsewhere: &fault.Delivery{Reordered: 77},
	}
	return d
}

// TestOtherVersion: a report is readable whose end and whose fault this version cannot make.
func TestOtherVersion(t *testing.T) {
	d := faulty()
	d.Schema, d.Stopped, d.Partial = Schema, "relay ended", true
	d.Settings = append(d.Settings, Setting{Name: "fault", Value: "60s:net-delay=200ms,10s"})
	d.Faults.Scores[0].Name = "net-delay 200 ms"
	read := assert.Value(Read(strings.NewReader(jsonOf(t, d))))(t)
	var b bytes.Buffer
	assert.OK(t, read.Text(&b, layout.Style{}))
	for _, want := range []string{"of the measurement (relay ended); these are", "fault net-delay 200 ms at 1m00s", "60s:net-delay=200ms,10s"} {
		assert.True(t, strings.Contains(strings.Join(strings.Fields(b.String()), " "), want), "the report lacks %q:\n%s", want, b.String())
	}
}

func TestFaultsText(t *testing.T) {
	d := faulty()
	text := func(brief bool) string {
		p := &layout.Page{}
		d.faults(p, brief, false)
		var b bytes.Buffer
		assert.OK(t, p.To(&b))
		for line := range strings.Lines(b.String()) {
			n := layout.Width(strings.TrimRight(line, "\n"))
			assert.True(t, n <= layout.Columns, "%d columns: %s", n, line)
		}
		return b.String()
	}
	brief := text(true)
	for _, want := range []string{
		"fault kill broker 2 at 1m00s", "partition 3, worst", "6.1 s", "9.5 s", "10 k", "refused 40, timeout 12", "timeout cut 12 events short", "at most 100 ms for 99%",
		"in limit caught lost after for back after after up after time, s",
		"delivery of what was due from 5 s before it on: 1,234 lost, 2 duplicated, 0 reordered",
	} {
		assert.True(t, strings.Contains(strings.Join(strings.Fields(brief), " "), strings.Join(strings.Fields(want), " ")),
			"the brief report lacks %q:\n%s", want, brief)
	}
	assert.True(t, !strings.Contains(brief, "partition 4") && !strings.Contains(brief, "± 12 ms"),
		"the brief report has too much:\n%s", brief)
	full := text(false)
	assert.Has(t, strings.Join(strings.Fields(full), " "), "note the night shift", "predicted", "headroom 1.25", "predicted to catch up in 8 s, seen 8.3 s",
		"lost time: how much longer all events together waited than before: ten events that waited 1 s longer each are 10 s",
		"due at another time, or not known when: 0 lost, 0 duplicated, 77 reordered")
	assert.True(t, strings.Contains(full, "partition 4") && strings.Contains(full, "1m00s ± 12 ms: fault kill broker 2"),
		"the full report lacks lanes or bounds:\n%s", full)
}

// TestFirstAckOfNoBlackout: the first ack is a time only if acks had stopped. After a heal they had if they
// stopped in the score of its fault.
func TestFirstAckOfNoBlackout(t *testing.T) {
	score := func(kind string, blackout *fault.Time) fault.Score {
		return fault.Score{
			Mark: fault.Mark{Kind: kind, Name: "a"}, Worst: -1,
			Whole: fault.Numbers{Blackout: blackout, FirstAck: secondsOf(0.003)},
		}
	}
	for _, tt := range []struct {
		name   string
		scores []fault.Score // the last one is tested
		want   string
	}{
		{"acks stopped", []fault.Score{score("fault", secondsOf(2))}, "3 ms"},
		{"acks never came again", []fault.Score{score("fault", &fault.Time{S: 0.01, More: true})}, "3 ms"},
		{"acks never stopped", []fault.Score{score("fault", secondsOf(0.02))}, ""},
		{"it is not known", []fault.Score{score("fault", nil)}, "3 ms"},
		{"a heal", []fault.Score{score("fault", secondsOf(2)), score("heal", secondsOf(0.003))}, "3 ms"},
		{"a heal of nothing", []fault.Score{score("fault", secondsOf(0.02)), score("heal", secondsOf(0.003))}, ""},
	} {
		d := &Document{Faults: &Faults{LimitS: 0.1, Scores: tt.scores}}
		rows := d.FaultRows(true)
		assert.Equal(t, rows[len(rows)-1][3], tt.want, "%s: the first ack", tt.name)
	}
}

// TestReadingFaults: a run that only reads has blackouts, and no limit on a time.
func TestReadingFaults(t *testing.T) {
	d := faulty()
	d.Totals.RateOf = RateConsumed
	d.Faults.LimitS, d.Faults.Budget = 0, 0
	s := &d.Faults.Scores[0]
	s.Delivery, s.Errors, d.Faults.Elsewhere = nil, nil, nil
	s.Baseline.Why = "cannot say how low the rate fell: it was not stable before"
	strip := func(n *fault.Numbers) { *n = fault.Numbers{Name: n.Name, Blackout: n.Blackout, FirstAck: n.FirstAck} }
	strip(&s.Whole)
	for i := range s.Lanes {
		strip(&s.Lanes[i])
	}
	p := &layout.Page{}
	d.faults(p, true, false)
	var b bytes.Buffer
	assert.OK(t, p.To(&b))
	text := strings.Join(strings.Fields(b.String()), " ")
	assert.Has(t, text, "no events events in limit caught", "whole run - 2 s 2 s - - -", "partition 3, worst - 6.1 s 2 s - - -", "no events for (a blackout): no event, although there were some")
	assert.True(t, !strings.Contains(text, "at most") && !strings.Contains(text, "lost time:"), "the report has a limit:\n%s", b.String())
	head := d.FaultTable()[0]
	assert.True(t, head[3] == "events back after", "the headings are %q", head)
	// A blackout is compared with nothing, so it is known without a baseline.
	w := d.WorstOutage()
	assert.True(t, w.Known() != nil && w.Known().S == 6.1, "the worst outage is %+v", w)
	w = d.WorstRecovery()
	assert.True(t, w.Known() == nil && w.Why == "there was nothing to read after the faults", "the worst recovery is %+v", w)
}

// TestOrphanedHeal: a heal whose fault was not marked says so.
func TestOrphanedHeal(t *testing.T) {
	at := func(kind, name string, at float64) fault.Mark { return fault.Mark{Kind: kind, Name: name, AtS: at} }
	for _, tt := range []struct {
		name  string
		marks []fault.Mark // the last one is scored
		want  string
	}{
		{"with its fault", []fault.Mark{at("fault", "a", 1), at("heal", "a", 2)}, ""},
		{"with its fault, and another since", []fault.Mark{at("fault", "a", 1), at("fault", "b", 2), at("heal", "a", 3)}, ""},
		{"without any", []fault.Mark{at("heal", "a", 2)}, "no fault was marked before it"},
		{"with a later one", []fault.Mark{at("fault", "a", 3), at("heal", "a", 2)}, "no fault was marked before it"},
		{"of another name", []fault.Mark{at("fault", "a", 1), at("heal", "A", 2)}, "no fault of its name was marked before it: it counts as the end of the last one"},
		{"a fault", []fault.Mark{at("fault", "a", 1)}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &Faults{LimitS: 0.1, Marks: tt.marks, Scores: []fault.Score{{Mark: tt.marks[len(tt.marks)-1], Worst: -1}}}
			got := f.Remarks(&f.Scores[0])
			assert.True(t, !(tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || got[0] != tt.want)),
				"got %q, want %q", got, tt.want)
		})
	}
}

// scoreOf is the score of another fault, with a time until the limit holds again.
func scoreOf(back *fault.Time) fault.Score {
	mark := fault.Mark{Kind: fault.MarkFault, Name: "another", AtS: 80}
	return fault.Score{Mark: mark, Worst: -1, Whole: fault.Numbers{Blackout: secondsOf(1), Back: back}}
}

// TestUnansweredFaults: without acks there is nothing to score, which is not the fault of the marks.
func TestUnansweredFaults(t *testing.T) {
	d := faulty()
	d.Totals.RateOf, d.Faults.Scores = RateSent, nil
	l := assert.Value(workload.ParseLimit("outage<1s"))(t)
	c := d.CheckLimits([]workload.Limit{l})[0]
	assert.True(t, c.CannotTell && strings.Contains(c.Text, "nothing is acknowledged"), "got %+v", c)
	p := &layout.Page{}
	d.faults(p, false, false)
	var b bytes.Buffer
	assert.OK(t, p.To(&b))
	assert.True(t, !strings.Contains(b.String(), "after the measurement"), "got\n%s", b.String())
}

func TestFaultLimits(t *testing.T) {
	more := func(s float64) *fault.Time { return &fault.Time{S: s, More: true} }
	for _, tt := range []struct {
		name, limit string
		change      func(f *Faults)
		ok, open    bool
		text        string
	}{
		{"worst partition", "outage<5s", nil, false, false, "6.1 s"},
		{"holds", "outage<7s", nil, true, false, "6.1 s"},
		{"recover", "recover<9s", nil, false, false, "9.5 s"},
		{"not over, may hold", "recover<60s", func(f *Faults) { f.Scores[0].Whole.Back = more(30) }, false, true, "> 30 s, since it was not over at the end"},
		{"not over, broken", "recover<20s", func(f *Faults) { f.Scores[0].Whole.Back = more(30) }, false, false, "> 30 s"},
		{"no baseline", "recover<20s", func(f *Faults) { f.Scores[0].Baseline.Why = "cannot say: too short" }, false, true, "cannot tell: fault kill broker 2: too short"},
		{"one not over, another longer", "recover<20s", func(f *Faults) { f.Scores = append(f.Scores, scoreOf(more(8))) }, false, true, "> 8 s, since it was not over at the end"},
		{"one broken, another not over", "recover<9s", func(f *Faults) { f.Scores = append(f.Scores, scoreOf(more(8))) }, false, false, "9.5 s"},
		{"one broken, another without a baseline", "recover<9s", func(f *Faults) {
			early := scoreOf(nil)
			early.Baseline.Why = "cannot say: too short"
			f.Scores = append([]fault.Score{early}, f.Scores...)
		}, false, false, "9.5 s"},
		{"one holds, another without a baseline", "recover<20s", func(f *Faults) {
			early := scoreOf(nil)
			early.Baseline.Why = "cannot say: too short"
			f.Scores = append(f.Scores, early)
		}, false, true, "cannot tell: fault another: too short"},
		{"another partition is not over", "outage<7s", func(f *Faults) { f.Scores[0].Lanes[0].Blackout = more(4) }, false, true, "> 4 s, since it was not over at the end"},
		{"no such lane", "outage<7s", func(f *Faults) { f.Scores[0].Worst, f.Scores[0].Lanes = 3, nil }, true, false, "2 s"},
		{"a later blackout", "outage<7s", func(f *Faults) { f.Scores[0].Later = secondsOf(45) }, false, true, "cannot tell: a blackout of 45 s began later, and may be of a fault"},
		{"a later blackout, recover", "recover<30s", func(f *Faults) { f.Scores[0].Later = more(31) }, false, true, "cannot tell: a blackout of > 31 s began later"},
		{"a shorter later blackout", "outage<7s", func(f *Faults) { f.Scores[0].Later = secondsOf(6.5) }, true, false, "6.1 s"},
		{"broken, and a later blackout", "outage<5s", func(f *Faults) { f.Scores[0].Later = secondsOf(45) }, false, false, "6.1 s"},
		{"no fault", "outage<1s", func(f *Faults) { f.Scores = nil }, false, true, "cannot tell: no fault was marked"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := faulty()
			if tt.change != nil {
				tt.change(d.Faults)
			}
			l := assert.Value(workload.ParseLimit(tt.limit))(t)
			c := d.CheckLimits([]workload.Limit{l})[0]
			assert.True(t, c.OK == tt.ok && c.CannotTell == tt.open && strings.Contains(c.Text, tt.text),
				"got %+v, want ok %v, cannot tell %v, %q", c, tt.ok, tt.open, tt.text)
		})
	}
}

// TestFaultSummary: of several runs with the same fault, each is listed, and the median and the
// worst; a time that was not over is the worst.
func TestFaultSummary(t *testing.T) {
	var runs []*Document
	for i, back := range []*fault.Time{secondsOf(4), {S: 3, More: true}, secondsOf(2), nil, secondsOf(9)} {
		d := faulty()
		s := &d.Faults.Scores[0]
		s.Whole.Back = back
		s.Lanes[1].Blackout = secondsOf(float64(i))
		runs = append(runs, d)
	}
	var b bytes.Buffer
	assert.OK(t, FaultSummary(&b, layout.Style{}, runs))
	words := func(label string) []string {
		for line := range strings.Lines(b.String()) {
			if f := strings.Fields(line); len(f) > 0 && f[0] == label {
				return f[1:]
			}
		}
		return nil
	}
	got := strings.Join(words("median"), " ")
	assert.True(t, got == "2 s 2 s 9 s 10.3 s", "median %q:\n%s", got, b.String())
	got = strings.Join(words("worst"), " ")
	assert.True(t, got == "2 s 4 s > 3 s 10.3 s", "worst %q:\n%s", got, b.String())
	b.Reset()
	err := FaultSummary(&b, layout.Style{}, runs[:1])
	assert.True(t, err == nil && b.Len() <= 0, "of one run: %v, %s", err, b.String())
}
