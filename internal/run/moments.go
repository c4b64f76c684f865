package run

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// mostMoments limits how many moments of one name are kept: the longest, and of equally long
// ones the first.
const mostMoments = 1000

// moments collects what happened during a run, from any goroutine.
type moments struct {
	mu   sync.Mutex
	kept map[momentKey][]moment
	left map[momentKey]int // how many were not kept
}

type momentKey struct{ from, name string }

type moment struct {
	began  time.Time
	length time.Duration
}

// add keeps a moment. It allocates little: a sending thread may call it when a connection is
// lost.
func (m *moments) add(from, name string, began time.Time, length time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = make(map[momentKey][]moment)
	}
	key := momentKey{from, name}
	all := append(m.kept[key], moment{began, length})
	if len(all) > mostMoments {
		least := len(all) - 1
		for i := range all {
			if all[i].length < all[least].length {
				least = i
			}
		}
		all = slices.Delete(all, least, least+1)
		if m.left == nil {
			m.left = make(map[momentKey]int)
		}
		m.left[key]++
	}
	m.kept[key] = all
}

// remarks says how many moments were not kept, a sentence for each name.
func (m *moments) remarks() (out []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, n := range m.left {
		out = append(out, fmt.Sprintf("%q of the %s happened %s times: the report has the %s longest", key.name, key.from, units.FormatCount(uint64(n+mostMoments)), units.FormatCount(mostMoments)))
	}
	slices.Sort(out)
	return out
}

// reported returns the moments of a run on its own time axis, in any order. What ended before the
// run began is left out.
func (m *moments) reported(r *load.Result) []measure.Moment {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []measure.Moment
	for key, all := range m.kept {
		for _, x := range all {
			at := x.began.Sub(r.Started)
			if at+x.length < 0 || x.began.After(r.Ended) {
				continue
			}
			out = append(out, measure.Moment{From: key.from, Name: key.name, At: at, Length: x.length})
		}
	}
	return out
}

// of returns the moments of a run in order of time: reported, those of others, and the freezes of
// its generator.
func (m *moments) of(r *load.Result, others []measure.Moment) []measure.Moment {
	out := append(m.reported(r), others...)
	process := r.Freezes.Process
	for _, f := range process[max(0, len(process)-mostMoments):] {
		out = append(out, measure.Moment{From: "generator", Name: "freeze", At: f.At, Length: f.Length})
	}
	slices.SortFunc(out, func(a, b measure.Moment) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Length, b.Length))
	})
	return out
}
