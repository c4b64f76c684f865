package run

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/verdict/fault"
	"carronade/load"
)

// readingShards is how many parts the memory for scores of a run that reads has: the goroutines that
// deliver seldom meet in one.
const readingShards = 8

// newReadingMarks prepares the recording of a run that only reads, nil if the run takes no marks.
func (e *execution) newReadingMarks(plan *load.ReadPlan, src load.Source) *marking {
	if !e.Workload.TakesMarks() || e.Share != nil { // the program that commands the run takes them
		return nil
	}
	m := &marking{plan: &load.Plan{}, Marker: Marker{e: e}, limit: faultLimit, budget: faultBudget, looking: make(chan struct{})}
	m.answering = src.Capabilities().Answering
	m.findLogs(src.Logs())
	m.rec = fault.NewRecorder(m.limit, readingShards, max(1, len(m.lanes)), m.laneOf)
	before := plan.Observe
	plan.Observe = func(lane int, all []load.Arrival) {
		if before != nil {
			before(lane, all)
		}
		for i := range all {
			if a := &all[i]; a.Events > 0 {
				m.rec.Arrived(m.laneOf(a.Log), a.At, a.Events)
			}
		}
	}
	return m
}

// reads reports whether the run only reads.
func (m *marking) reads() bool { return m.looking != nil }

// findLogs decides which logs have a score of their own.
func (m *marking) findLogs(logs []string) {
	m.laneOf = func(int32) int { return 0 }
	switch n := len(logs); {
	case n < 2:
		return
	case n > fault.MostLanes:
		m.left = fmt.Sprintf("only the whole run is scored: %d partitions are more than %d", n, fault.MostLanes)
		return
	}
	m.per, m.lanes = "partition", slices.Clone(logs)
	m.laneOf = func(log int32) int { return int(log) }
	for i, log := range logs { // those of one topic are named as when it is written
		if topic, ok := strings.CutSuffix(log, "-"+strconv.Itoa(i)); !ok || topic != strings.TrimSuffix(logs[0], "-0") {
			return
		}
	}
	for i := range m.lanes {
		m.lanes[i] = fmt.Sprintf("%s %d", m.per, i)
	}
}

// beginReading takes marks from now on, and notes when logs are empty.
func (m *marking) beginReading(r *load.Reading) {
	if m == nil {
		return
	}
	m.began = r.Started()
	if m.answering != nil {
		m.looked.Go(func() {
			tick := time.NewTicker(fault.Bin)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					m.noteEmpty()
				case <-m.looking:
					m.noteEmpty()
					return
				}
			}
		})
	}
	if m.e.Marks != nil {
		m.e.Marks(&m.Marker)
	}
}

// noteEmpty notes which logs are empty.
func (m *marking) noteEmpty() {
	emptied := m.answering.Emptied()
	if len(m.lanes) == 0 { // all of them must be
		if len(emptied) > 0 && slices.Min(emptied) > 0 {
			m.rec.Empty(0, slices.Min(emptied))
		}
		return
	}
	for log, at := range emptied {
		if at > 0 {
			m.rec.Empty(m.laneOf(int32(log)), at)
		}
	}
}

// endReading ends what beginReading began.
func (m *marking) endReading() {
	if m.reads() {
		close(m.looking)
		m.looked.Wait()
	}
}

// newest is the moment of the newest mark, 0 without one.
func (m *marking) newest() time.Duration {
	if m == nil {
		return 0
	}
	marks := m.rec.Marks()
	if len(marks) == 0 {
		return 0
	}
	return marks[len(marks)-1].At()
}
