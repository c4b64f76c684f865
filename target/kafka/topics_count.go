package kafka

import (
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"carronade/load"
	"carronade/measure"
)

// An attempt is one request: the topics in it, and what became of each.
type attempt struct {
	names         []string
	errs          []error
	unasked       bool   // what was to be done was never asked for: errors are certain
	events, bytes uint64 // read

	due, free, sent time.Duration
}

// failAll says of each topic of a request that it failed.
func (a *attempt) failAll(err error) {
	for i := range a.errs {
		a.errs[i] = err
	}
}

// set sets a topic's error; a topic that was not asked for is ignored.
func (a *attempt) set(name string, err error) {
	if i := slices.Index(a.names, name); i >= 0 {
		a.errs[i] = err
	}
}

// fate is what kind of failure an operation's error is, and whether the brokers
// certainly did not do it.
func (a *attempt) fate(err error) (class load.Class, certain bool) {
	class, certain = classify(err)
	return class, certain || a.unasked
}

// A failureRow is a distinct text of failures.
type failureRow struct {
	measure.Failure
	request uint64 // the last one that had it
}

func (t *topicLoad) begin() {
	t.mu.Lock()
	t.out++
	t.mu.Unlock()
}

// end says since when no operation is begun any more, and whether time ended
// it. The first word stands.
func (t *topicLoad) end(at time.Duration, timed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLocked(at, timed)
}

func (t *topicLoad) endLocked(at time.Duration, timed bool) {
	if t.ended < 0 {
		t.ended, t.timed = at, timed
	}
}

// took counts a request that is over, and shows its operations to whoever looks.
func (t *topicLoad) took(a *attempt, done time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.res
	r.Requests++
	t.busy += done - a.sent
	acked, failed := false, false
	for i, err := range a.errs {
		d := TopicDone{
			Name: a.names[i], Due: a.due, Free: a.free, Sent: a.sent, At: done, Err: err,
			InFlight: t.out, Last: i == len(a.errs)-1,
		}
		r.Operations++
		if err == nil {
			r.Done++
			acked = true
			d.Events, d.Bytes = a.events, a.bytes
		} else {
			class, certain := a.fate(err)
			d.Class, d.Certain = class.String(), certain
			failed = failed || certain
			t.failed(d.Class, certain, err)
		}
		if t.Each != nil {
			t.Each(d)
		}
	}
	t.out--
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

// failed counts an operation that failed, or whose fate is unknown.
func (t *topicLoad) failed(class string, certain bool, err error) {
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

// failureText is a text that failures of one kind share: the name of the
// protocol's error where there is one, since the broker's words name the topic.
func failureText(err error) string {
	var ke *kerr.Error
	if errors.As(err, &ke) {
		return ke.Message + ": " + ke.Description
	}
	return err.Error()
}
