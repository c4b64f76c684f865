package scenario

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/grafana/sobek"
)

// A pending is a step in progress.
type pending struct {
	at              string
	resolve, reject func(any) error
}

// A sleeper is a sleep in progress.
type sleeper struct {
	until   time.Duration // of engine.waited
	resolve func(any) error
}

// loop settles promises until nothing is left to wait for, or the script fails.
func (e *engine) loop() error {
	for {
		switch e.main.State() {
		case sobek.PromiseStateRejected:
			return e.faultOf(e.main.Result())
		case sobek.PromiseStatePending:
			if len(e.pending)+len(e.sleeps) == 0 {
				return &Fault{At: e.script.Path, Text: "the script awaits a promise that nothing settles"}
			}
		}
		if len(e.pending)+len(e.sleeps) == 0 {
			break
		}
		if err := e.wait(); err != nil {
			return err
		}
	}
	for _, p := range e.rejected {
		if p != e.main {
			return e.faultOf(p.Result())
		}
	}
	return nil
}

// wait waits for the next step that ends, or sleep that is over.
func (e *engine) wait() error {
	limit := time.Duration(-1)
	var next *sleeper
	if len(e.sleeps) > 0 {
		next = slices.MinFunc(e.sleeps, func(a, b *sleeper) int { return cmp.Compare(a.until, b.until) })
		limit = max(0, next.until-e.waited)
	}
	began := time.Now()
	ended, err := e.host.Await(limit, slices.Sorted(maps.Keys(e.pending))...)
	if err != nil {
		return err
	}
	switch {
	case e.script.Dry && ended != nil:
		e.waited += ended.Elapsed
	case e.script.Dry:
		e.waited += max(0, limit)
	default:
		e.waited += time.Since(began)
	}
	if ended == nil {
		if next == nil {
			return nil
		}
		e.waited = max(e.waited, next.until)
		e.sleeps = slices.DeleteFunc(e.sleeps, func(s *sleeper) bool { return s == next })
		return e.settled(next.resolve(sobek.Undefined()))
	}
	p := e.pending[ended.Number]
	if p == nil {
		return nil
	}
	delete(e.pending, ended.Number)
	if ended.Report == nil {
		f := ended.Fault
		if f == nil {
			f = &Fault{Text: "the step has no report"}
		}
		of := *f
		of.At = cmp.Or(of.At, p.at)
		return e.settled(p.reject(e.vm.NewGoError(&of)))
	}
	v, err := e.report(ended.Report)
	if err != nil {
		return err
	}
	return e.settled(p.resolve(v))
}

// settled is the fault of the script's code that ran because a promise was settled, if the
// interpreter was stopped in it.
func (e *engine) settled(err error) error {
	if err != nil {
		return e.fault(err)
	}
	return nil
}

// trackRejection keeps the promises that were rejected and not handled.
func (e *engine) trackRejection(p *sobek.Promise, operation sobek.PromiseRejectionOperation) {
	if operation == sobek.PromiseRejectionReject {
		e.rejected = append(e.rejected, p)
		return
	}
	e.rejected = slices.DeleteFunc(e.rejected, func(r *sobek.Promise) bool { return r == p })
}

// report makes an object of the JSON of a report.
func (e *engine) report(text []byte) (sobek.Value, error) {
	v, err := e.parse(sobek.Undefined(), e.vm.ToValue(string(text)))
	if err != nil {
		return nil, e.fault(err)
	}
	return v, nil
}
