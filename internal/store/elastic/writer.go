package elastic

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/store"
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
	owner, err := json.Marshal(host.Self())
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
	w := &writer{store: s, id: head.ID, owner: string(owner), started: head.StartedAt, keptNS: doc.KeptNS}
	w.queue = store.NewQueue(w.keep, w.beat)
	return w, nil
}

// A writer stores a report during its run.
type writer struct {
	store     *Store
	id, owner string
	started   time.Time
	keptNS    int64
	queue     *store.Queue

	// Used only by the queue until it is closed.
	rows      []storedInterval
	next      int  // number of the next interval
	uncertain bool // a request failed
}

// A storedInterval is an interval that the cluster has.
type storedInterval struct {
	n            int
	phase        string
	startS, endS float64
	sum          report.Sum
}

// Interval implements store.Writer. It does not wait for the cluster.
func (w *writer) Interval(e report.Encoded) { w.queue.Add(e) }

// beat records that the process is still alive. If it fails, the next one
// follows.
func (w *writer) beat(ctx context.Context) {
	body, err := json.Marshal(object{"doc": object{"beat_ms": time.Now().UnixMilli()}})
	if err == nil {
		err = w.store.do(ctx, http.MethodPost, "/"+w.store.reports()+"/_update/"+w.id, body, jsonType, nil)
	}
	w.uncertain = w.uncertain || err != nil
}

// checkOwner checks whether the report still belongs to this run, after a time
// without contact in which others may have taken it for a killed run's.
func (w *writer) checkOwner(ctx context.Context) error {
	there, err := w.store.head(ctx, w.id)
	if errors.Is(err, store.ErrMissing) || err == nil && there.Owner != w.owner {
		return store.ErrGone
	}
	return err
}

// keep writes intervals, and removes those that one of them replaces. If a
// batch fails, a part of it may be stored; the same ids are used again.
func (w *writer) keep(ctx context.Context, batch []report.Encoded) (err error) {
	defer func() { w.uncertain = w.uncertain || err != nil }()
	if w.uncertain {
		if err := w.checkOwner(ctx); err != nil {
			return err
		}
		w.uncertain = false
	}
	var actions []action
	rows, next := slices.Clone(w.rows), w.next
	for i := range batch {
		e := &batch[i]
		rest := rows[:0]
		for _, old := range rows {
			if old.phase != e.Phase || old.startS < e.StartS || old.endS > e.EndS {
				rest = append(rest, old)
				continue
			}
			actions = append(actions, action{verb: "delete", index: w.store.intervals(), id: intervalID(w.id, old.n)})
		}
		doc, err := intervalDocOf(w.id, w.started, next, e)
		if err != nil {
			return err
		}
		actions = append(actions, action{verb: "index", index: w.store.intervals(), id: intervalID(w.id, next), doc: doc})
		rows = append(rest, storedInterval{next, e.Phase, e.StartS, e.EndS, e.Sum})
		next++
	}
	if err = w.store.bulk(ctx, false, actions...); err == nil {
		w.rows, w.next = rows, next
	}
	return err
}

// Finish implements store.Writer.
func (w *writer) Finish(ctx context.Context, d *report.Document) error {
	w.queue.Close()
	return w.store.fail("keep report "+d.ID, w.finish(ctx, d))
}

func (w *writer) finish(ctx context.Context, d *report.Document) error {
	if d.ID != w.id {
		return errors.New("it was begun as report " + w.id)
	}
	there, err := w.store.head(ctx, w.id)
	mine := err == nil && there.Owner == w.owner // otherwise it was taken for a killed run's, and its intervals may be different
	if err != nil && !errors.Is(err, store.ErrMissing) {
		return err
	}
	if err := w.series(ctx, d, mine); err != nil {
		return err
	}
	doc, err := reportDocOf(d)
	if err != nil {
		return err
	}
	doc.KeptNS = w.keptNS
	// It replaces any existing report: this run has the correct one.
	return w.store.bulk(ctx, true, action{verb: "index", index: w.store.reports(), id: d.ID, doc: doc})
}

// series changes the stored intervals, which belong to this run if mine, to
// those of the document.
func (w *writer) series(ctx context.Context, d *report.Document, mine bool) error {
	there := make(map[report.Sum]int, len(w.rows))
	for _, p := range w.rows {
		there[p.sum] = p.n
	}
	keep := make(map[string]bool)
	var actions []action
	ordered, last := true, -1 // by starts, and among equal ones by numbers
	for i := range d.Intervals {
		iv := &d.Intervals[i]
		sum, err := iv.Sum()
		if err != nil {
			return err
		}
		n, ok := there[sum]
		if !ok {
			e, err := iv.Encode()
			if err != nil {
				return err
			}
			n = w.next
			w.next++
			doc, err := intervalDocOf(w.id, d.StartedAt, n, &e)
			if err != nil {
				return err
			}
			actions = append(actions, action{verb: "index", index: w.store.intervals(), id: intervalID(w.id, n), doc: doc})
		}
		if i > 0 {
			before := d.Intervals[i-1].StartS
			ordered = ordered && (iv.StartS > before || iv.StartS == before && n > last)
		}
		last = n
		keep[intervalID(w.id, n)] = true
	}
	if !mine || !ordered {
		if err := w.store.dropIntervals(ctx, w.id, nil); err != nil {
			return err
		}
		return w.store.putIntervals(ctx, d)
	}
	if err := w.store.bulk(ctx, true, actions...); err != nil {
		return err
	}
	return w.store.dropIntervals(ctx, w.id, keep)
}

// Abandon implements store.Writer.
func (w *writer) Abandon(ctx context.Context) error {
	w.queue.Close()
	err := w.store.dropIntervals(ctx, w.id, nil) // first, as in Delete
	if err == nil {
		err = w.store.bulk(ctx, true, action{verb: "delete", index: w.store.reports(), id: w.id})
	}
	return w.store.fail("forget report "+w.id, err)
}

var _ store.Writer = (*writer)(nil)
