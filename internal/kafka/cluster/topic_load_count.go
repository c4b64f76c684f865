package cluster

import (
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"carronade/measure"
)

// An attempt is one request: its topics, and the result for each.
type attempt struct {
	names         []string
	errs          []error
	notRequested  bool   // the operations were never requested: errors are certain
	events, bytes uint64 // read

	due, free, sent time.Duration
}

// failAll sets the error of every topic of a request.
func (a *attempt) failAll(err error) {
	for i := range a.errs {
		a.errs[i] = err
	}
}

// set sets a topic's error. It ignores a topic that is not in the request.
func (a *attempt) set(name string, err error) {
	if i := slices.Index(a.names, name); i >= 0 {
		a.errs[i] = err
	}
}

// A failureRow counts the failures with one text.
type failureRow struct {
	measure.Failure
	request uint64 // the last one that had it, counted from 1
}

func (t *work) begin() {
	t.mu.Lock()
	t.inFlight++
	t.mu.Unlock()
}

// end notes since when no operation is begun, and whether For ended the load.
// Only the first call has an effect.
func (t *work) end(at time.Duration, byTime bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLocked(at, byTime)
}

func (t *work) endLocked(at time.Duration, byTime bool) {
	if t.ended < 0 {
		t.ended, t.byTime = at, byTime
	}
}

// record counts an answered request, and calls Each with its operations.
func (t *work) record(a *attempt, done time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.res
	r.Requests++
	t.busy += done - a.sent
	acked, failed := false, false
	for i, err := range a.errs {
		d := TopicDone{
			Name: a.names[i], Due: a.due, Free: a.free, Sent: a.sent, At: done, Err: err,
			InFlight: t.inFlight, Last: i == len(a.errs)-1,
		}
		r.Operations++
		if err == nil {
			r.Done++
			acked = true
			d.Events, d.Bytes = a.events, a.bytes
		} else {
			class, certain := Classify(err)
			if certain = certain || a.notRequested; !certain {
				class = class.OfUnknown()
			}
			d.Class, d.Certain = class.String(), certain
			failed = failed || certain
			t.failed(d.Class, certain, err)
		}
		if t.Each != nil {
			t.Each(d)
		}
	}
	t.inFlight--
	switch {
	case acked:
		r.Service.Record(done - a.sent)
		if r.Response != nil {
			r.Response.Record(done - a.due)
		}
	case failed:
		r.FailedService.Record(done - a.sent)
	case r.Censored != nil:
		r.Censored.Record(done - a.due)
	}
	if t.Failures > 0 && r.Failed+r.Unknown > t.Failures {
		t.endLocked(done, false)
		t.stop()
	}
}

// failed counts an operation that failed or is unknown.
func (t *work) failed(class string, certain bool, err error) {
	r := t.res
	if certain {
		r.Failed++
	} else {
		r.Unknown++
	}
	r.Classes[class]++
	key := [2]string{class, failureText(err)}
	row := t.rows[key]
	if row == nil {
		if len(t.rows) == maxFailureTexts {
			r.OtherFailure++
			return
		}
		row = &failureRow{Failure: measure.Failure{Class: key[0], Text: key[1]}}
		t.rows[key] = row
	}
	row.Events++
	if row.request != r.Requests {
		row.request = r.Requests
		row.Batches++
	}
}

// failureText returns the text that failures of one kind share: for an error of
// the protocol its name, because the broker's message contains the topic.
func failureText(err error) string {
	if ke, ok := errors.AsType[*kerr.Error](err); ok {
		return ke.Message + ": " + ke.Description
	}
	return err.Error()
}
