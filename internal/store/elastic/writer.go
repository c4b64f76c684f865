package elastic

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/system"
)

// Begin implements store.Store.
func (s *Store) Begin(ctx context.Context, head *report.Document) (store.Writer, error) {
	w, err := s.begin(ctx, head)
	if err != nil {
		return nil, s.fail("begin report "+head.ID, err)
	}
	return w, nil
}

func (s *Store) begin(ctx context.Context, head *report.Document) (*writer, error) {
	owner, err := json.Marshal(system.Self())
	if err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	doc, err := reportDocOf(head)
	if err != nil {
		return nil, err
	}
	doc.Hash, doc.Owner, doc.BeatMS = "", string(owner), time.Now().UnixMilli()
	err = s.bulk(ctx, true, action{verb: "create", index: s.reports(), id: head.ID, doc: doc})
	if status(err) == http.StatusConflict {
		err = store.ErrExists
	}
	if err != nil {
		return nil, err
	}
	w := &writer{
		store: s, id: head.ID, owner: string(owner), started: head.StartedAt, keptNS: doc.KeptNS,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	go w.write()
	return w, nil
}

// A writer keeps a report while its run goes on. A goroutine of its own waits
// for the cluster, so that the run does not.
type writer struct {
	store     *Store
	id, owner string
	started   time.Time
	keptNS    int64

	mu      sync.Mutex
	pending []report.Encoded
	waiting int // bytes of them
	closed  bool
	broken  bool // a part of the series was not kept: Finish writes it anew

	wake chan struct{}
	done chan struct{}

	rows []place // by the goroutine alone, until done
	next int
}

// A place is an interval that the cluster has.
type place struct {
	n            int
	phase        string
	startS, endS float64
	sum          report.Sum
}

// mostWaiting bounds what waits for a cluster that is slow, in bytes. Beyond it
// intervals wait for the run's end, where there is the whole report.
const mostWaiting = 32 << 20

// Interval implements store.Writer. It does not wait for the cluster.
func (w *writer) Interval(e report.Encoded) {
	w.mu.Lock()
	switch {
	case w.closed || w.broken:
	case w.waiting+len(e.JSON) > mostWaiting:
		w.broken = true
		w.pending, w.waiting = nil, 0
	default:
		w.pending = append(w.pending, e)
		w.waiting += len(e.JSON)
	}
	w.mu.Unlock()
	w.nudge()
}

func (w *writer) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// write keeps what is pending, and says now and then that the process is still
// there. What the cluster does not take is left for Finish.
func (w *writer) write() {
	defer close(w.done)
	beat := time.NewTicker(store.Pulse)
	defer beat.Stop()
	for {
		tell := false
		select {
		case <-w.wake:
		case <-beat.C:
			tell = true
		}
		w.mu.Lock()
		batch, closed, broken := w.pending, w.closed, w.broken
		w.pending, w.waiting = nil, 0
		w.mu.Unlock()
		if len(batch) > 0 && !broken {
			if err := w.keep(batch); err != nil {
				w.mu.Lock()
				w.broken = true
				w.mu.Unlock()
			}
		}
		if tell && !closed {
			_ = w.beat() // the next one may arrive
		}
		if closed {
			return
		}
	}
}

// beat says that the process is still there.
func (w *writer) beat() error {
	body, err := json.Marshal(object{"doc": object{"beat_ms": time.Now().UnixMilli()}})
	if err != nil {
		return err
	}
	return w.store.do(context.Background(), http.MethodPost, "/"+w.store.reports()+"/_update/"+w.id, body, jsonType, nil)
}

// keep writes intervals, and takes out those that one of them stands for.
func (w *writer) keep(batch []report.Encoded) error {
	var actions []action
	for i := range batch {
		e := &batch[i]
		left := w.rows[:0]
		for _, old := range w.rows {
			if old.phase != e.Phase || old.startS < e.StartS || old.endS > e.EndS {
				left = append(left, old)
				continue
			}
			actions = append(actions, action{verb: "delete", index: w.store.intervals(), id: intervalID(w.id, old.n)})
		}
		doc, err := intervalDocOf(w.id, w.started, w.next, e)
		if err != nil {
			return err
		}
		actions = append(actions, action{verb: "index", index: w.store.intervals(), id: intervalID(w.id, w.next), doc: doc})
		w.rows = append(left, place{w.next, e.Phase, e.StartS, e.EndS, e.Sum})
		w.next++
	}
	return w.store.bulk(context.Background(), false, actions...)
}

// end stops the goroutine once what is pending is kept.
func (w *writer) end() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.nudge()
	<-w.done
}

// Finish implements store.Writer.
func (w *writer) Finish(ctx context.Context, d *report.Document) error {
	w.end()
	return w.store.fail("keep report "+d.ID, w.finish(ctx, d))
}

func (w *writer) finish(ctx context.Context, d *report.Document) error {
	if d.ID != w.id {
		return errors.New("it was begun as report " + w.id)
	}
	switch there, err := w.store.head(ctx, w.id); {
	case errors.Is(err, store.ErrMissing):
		w.broken = true
	case err != nil:
		return err
	case there.Owner != w.owner:
		w.broken = true // it was taken for one of a killed run: its intervals may be others
	}
	if err := w.series(ctx, d); err != nil {
		return err
	}
	doc, err := reportDocOf(d)
	if err != nil {
		return err
	}
	doc.KeptNS = w.keptNS
	// In place of whatever is there: this run is the one that knows.
	return w.store.bulk(ctx, true, action{verb: "index", index: w.store.reports(), id: d.ID, doc: doc})
}

// series makes the kept intervals those of the document.
func (w *writer) series(ctx context.Context, d *report.Document) error {
	ordered := true
	for i := 1; i < len(d.Intervals); i++ {
		ordered = ordered && d.Intervals[i].StartS > d.Intervals[i-1].StartS
	}
	if w.broken || !ordered {
		if err := w.store.dropIntervals(ctx, w.id, nil); err != nil {
			return err
		}
		return w.store.putIntervals(ctx, d)
	}
	there := make(map[report.Sum]place, len(w.rows))
	for _, p := range w.rows {
		there[p.sum] = p
	}
	keep := make(map[string]bool)
	var actions []action
	for i := range d.Intervals {
		iv := &d.Intervals[i]
		sum, err := iv.Sum()
		if err != nil {
			return err
		}
		if p, ok := there[sum]; ok {
			keep[intervalID(w.id, p.n)] = true
			continue
		}
		e, err := iv.Encode()
		if err != nil {
			return err
		}
		doc, err := intervalDocOf(w.id, d.StartedAt, w.next, &e)
		if err != nil {
			return err
		}
		id := intervalID(w.id, w.next)
		w.next++
		keep[id] = true
		actions = append(actions, action{verb: "index", index: w.store.intervals(), id: id, doc: doc})
	}
	if err := w.store.bulk(ctx, true, actions...); err != nil {
		return err
	}
	return w.store.dropIntervals(ctx, w.id, keep)
}

// Abandon implements store.Writer.
func (w *writer) Abandon(ctx context.Context) error {
	w.end()
	err := w.store.bulk(ctx, true, action{verb: "delete", index: w.store.reports(), id: w.id})
	if err == nil {
		err = w.store.dropIntervals(ctx, w.id, nil)
	}
	return w.store.fail("forget report "+w.id, err)
}

var _ store.Writer = (*writer)(nil)
