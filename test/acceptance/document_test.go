package acceptance

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// document is the output of --json, by the names in the contract.
type document struct {
	Schema    string    `json:"schema"`
	Workload  any       `json:"workload"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at"`
	Totals    totals    `json:"totals"`

	Response  *times `json:"response"`
	Service   *times `json:"service"`
	SendDelay *times `json:"send_delay"`
	Batching  *times `json:"batching"`
	Queueing  *times `json:"queueing"`
	EndToEnd  *times `json:"end_to_end"`

	Steps     []phase          `json:"steps"`
	Phases    []phase          `json:"phases"`
	Intervals []interval       `json:"intervals"`
	LagEvents map[string]int64 `json:"lag_events"`

	Backlog *struct {
		State     string `json:"state"`
		MostBytes uint64 `json:"most_bytes"`
	} `json:"backlog"`

	Faults *struct {
		Scores []faultScore `json:"scores"`
	} `json:"faults"`

	Ledger *struct {
		Acked, Read, Lost, Duplicated, Reordered, Corrupted, Recovered, Inexact uint64
		Unread, Removed, Compacted, Committed, Aborted, Phantom, Foreign        uint64
		CommittedRead                                                           uint64 `json:"committed_read"`
		Method                                                                  string
		Logs                                                                    []struct {
			Log                                                        string
			Acked, Read, Lost, Unread, Compacted, Recovered, Reordered uint64
		}
	} `json:"ledger"`
	Problems []string `json:"problems"`
	Checks   []struct {
		Name       string
		OK         bool
		CannotTell bool `json:"cannot_tell"`
		Text       string
	}
	Failures []struct {
		Class, Text string
		Events      uint64
	} `json:"failures"`
	Trust struct {
		OK      *bool
		Reasons []string
		Bounds  []struct {
			Time, Step string
			P          float64
			UpperUS    float64 `json:"upper_us"`
			LowerUS    float64 `json:"lower_us"`
		}
	} `json:"trust"`
	Encoding struct {
		Events, Codec string
		CodecMeasured *float64 `json:"codec_measured"`
	} `json:"encoding"`
	Stall struct {
		LongestS float64 `json:"longest_s"`
		Share    float64
	} `json:"stall"`
	Freezes struct {
		Count   uint64
		TotalS  float64 `json:"total_s"`
		Share   float64
		Longest []freeze
	}
	Steady struct {
		OK, Known bool
		Silent    float64
		Text      string
	}
	Stopped   string `json:"stopped"`
	System    *underTest
	Indexed   *indexed
	Warnings  []string
	Generator struct {
		CPUS         float64 `json:"cpu_s"`
		MaxRSSBytes  uint64  `json:"max_rss_bytes"`
		GCPauseMaxUS float64 `json:"gc_pause_max_us"`
	} `json:"generator"`
	Host  any            `json:"host"`
	Facts map[string]any `json:"facts"`
}

// A freeze is a time in which the generator did not run.
type freeze struct {
	AtS        float64 `json:"at_s"`
	LengthS    float64 `json:"length_s"`
	Who, Cause string
}

type counts struct {
	Offered, Sent, Dropped, Unsent, Acked, Failed, Unknown, Consumed, Unread, Retries, Batches, Bytes uint64
	WireBytes                                                                                         uint64 `json:"wire_bytes"`
	AckedBytes                                                                                        uint64 `json:"acked_bytes"`
	Statuses                                                                                          []status
}

// A status is the number of batches that were answered with a code.
type status struct {
	Code            int
	Batches, Events uint64
}

type totals struct {
	counts
	ElapsedS    float64 `json:"elapsed_s"`
	EventsPerS  float64 `json:"events_per_s"`
	BytesPerS   float64 `json:"bytes_per_s"`
	AnswersPerS float64 `json:"answers_per_s"`
}

type phase struct {
	Name              string
	StartS            float64 `json:"start_s"`
	EndS              float64 `json:"end_s"`
	Totals            totals
	Response, Service *times
}

type interval struct {
	Phase  string
	StartS float64 `json:"start_s"`
	EndS   float64 `json:"end_s"`
	counts
}

type times struct {
	Count uint64
	// Censored have no value, but an age.
	Censored uint64
	MeanUS   float64 `json:"mean_us"`
	MinUS    float64 `json:"min_us"`
	P50US    float64 `json:"p50_us"`
	P90US    float64 `json:"p90_us"`
	P99US    float64 `json:"p99_us"`
	P999US   float64 `json:"p999_us"`
	MaxUS    float64 `json:"max_us"`
}

// requiredNames are the names that every document of --json has.
var requiredNames = []string{
	"schema", "workload", "totals", "phases", "started_at", "ended_at", "response", "service", "send_delay", "batching", "queueing",
	"intervals", "steady", "failures", "trust", "generator", "host",
}

// document parses the report on stdout and makes the checks that apply to every report.
func (e ended) document(t testing.TB) *document {
	t.Helper()
	d := assert.Value(parseDocument(e.stdout))(t, "stderr:\n%.4000s\nstdout:\n%.2000s", e.stderr, e.stdout)
	return d
}

func parseDocument(text string) (*document, error) {
	var names map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &names); err != nil {
		return nil, fmt.Errorf("stdout is not a JSON document: %w", err)
	}
	for _, name := range requiredNames {
		if _, ok := names[name]; !ok {
			return nil, fmt.Errorf("the document has no %q", name)
		}
	}
	d := new(document)
	if err := json.Unmarshal([]byte(text), d); err != nil {
		return nil, fmt.Errorf("the document does not have the contract's form: %w", err)
	}
	switch {
	case d.Schema == "":
		return nil, fmt.Errorf("the document has no schema")
	case d.Trust.OK == nil:
		return nil, fmt.Errorf("the document has no trust.ok")
	case d.StartedAt.IsZero() || d.EndedAt.Before(d.StartedAt):
		return nil, fmt.Errorf("the run began at %v and ended at %v", d.StartedAt, d.EndedAt)
	}
	return d, d.checkIdentities()
}

// checkIdentities checks the two identities of counts in all parts of the document, and that the parts add up.
func (d *document) checkIdentities() error {
	check := func(where string, c counts) error {
		if c.Offered != c.Sent+c.Dropped+c.Unsent {
			return fmt.Errorf("%s: offered %d is not sent %d + dropped %d + unsent %d", where, c.Offered, c.Sent, c.Dropped, c.Unsent)
		}
		if c.Sent != c.Acked+c.Failed+c.Unknown {
			return fmt.Errorf("%s: sent %d is not acked %d + failed %d + unknown %d", where, c.Sent, c.Acked, c.Failed, c.Unknown)
		}
		return nil
	}
	if err := check("totals", d.Totals.counts); err != nil {
		return err
	}
	all := d.Totals.counts
	for _, p := range d.Phases {
		if err := check("phase "+p.Name, p.Totals.counts); err != nil {
			return err
		}
		if p.Name != "measurement" {
			all.add(p.Totals.counts)
		}
	}
	var sum, steps counts
	for _, i := range d.Intervals {
		sum.add(i.counts)
	}
	for _, s := range d.Steps {
		if err := check("step "+s.Name, s.Totals.counts); err != nil {
			return err
		}
		steps.add(s.Totals.counts)
	}
	if all.Sent != sum.Sent || all.Acked != sum.Acked || all.Failed != sum.Failed || all.Unknown != sum.Unknown {
		return fmt.Errorf("the intervals add up to sent %d, acked %d, failed %d, unknown %d; all phases to %d, %d, %d, %d",
			sum.Sent, sum.Acked, sum.Failed, sum.Unknown, all.Sent, all.Acked, all.Failed, all.Unknown)
	}
	if len(d.Steps) > 0 && steps.Offered != d.Totals.Offered {
		return fmt.Errorf("the steps offered %d, the measurement %d", steps.Offered, d.Totals.Offered)
	}
	return nil
}

func (c *counts) add(o counts) {
	c.Offered += o.Offered
	c.Sent += o.Sent
	c.Dropped += o.Dropped
	c.Unsent += o.Unsent
	c.Acked += o.Acked
	c.Failed += o.Failed
	c.Unknown += o.Unknown
	c.Consumed += o.Consumed
	c.Bytes += o.Bytes
	c.AckedBytes += o.AckedBytes
	c.Batches += o.Batches
}

func (d *document) wholeRun() counts {
	all := d.Totals.counts
	for _, p := range d.Phases {
		if p.Name != "measurement" {
			all.add(p.Totals.counts)
		}
	}
	return all
}

func (d *document) failed(class string) (n uint64) {
	for _, f := range d.Failures {
		if f.Class == class {
			n += f.Events
		}
	}
	return n
}

func (d *document) checkLedger(t testing.TB, acked uint64) {
	t.Helper()
	l := d.Ledger
	switch {
	case l == nil:
		t.Fatal("the report has no ledger")
	case l.Acked != acked:
		t.Errorf("the ledger has %d acked events, the totals %d", l.Acked, acked)
	case l.Lost+l.Unread+l.Duplicated+l.Reordered+l.Corrupted+l.Phantom+l.Inexact != 0:
		t.Errorf("the ledger found problems: %+v", *l)
	case l.Read < acked:
		t.Errorf("the ledger read %d of %d events", l.Read, acked)
	}
}

type faultScore struct {
	Kind     string  `json:"kind"`
	Name     string  `json:"name"`
	AtS      float64 `json:"at_s"`
	BoundS   float64 `json:"bound_s"`
	Baseline struct {
		Why string `json:"why"`
	} `json:"baseline"`
	Whole faultNumbers   `json:"whole"`
	Lanes []faultNumbers `json:"lanes"`
	Worst int            `json:"worst"`
}

// faultNumbers are the score of the whole run, or of a partition.
type faultNumbers struct {
	Name     string     `json:"name"`
	Noticed  *faultTime `json:"noticed"`
	Blackout *faultTime `json:"blackout"`
	FirstAck *faultTime `json:"first_ack"`
	Back     *faultTime `json:"back"`
	Drained  *faultTime `json:"drained"`
	Over     uint64     `json:"over"`
	// Predicted is the prediction, if there is one.
	Predicted *struct {
		Headroom float64 `json:"headroom"`
		DrainedS float64 `json:"drained_s"`
	} `json:"predicted"`
	NotPredicted string `json:"not_predicted"`
}

// A faultTime is a time of a score.
type faultTime struct {
	S    float64 `json:"s"`
	More bool    `json:"more"`
}

// underTest is the report's part about the system under test.
type underTest struct {
	Facts     map[string]any
	Died      bool
	Exit      string
	LastLines []string `json:"last_lines"`
	PeakRSS   uint64   `json:"peak_rss_bytes"`
	CPUS      float64  `json:"cpu_s"`
	PerCPU    *float64 `json:"events_per_cpu_s"`
	Memory    *float64 `json:"memory_efficiency"`
}

// indexed is the report's part about the store behind the system.
type indexed struct {
	Store, Pattern, Note string
	Documents            int64
	Expected             uint64
	Share                *float64
	Still                bool
	Queued               *float64
	HealthBefore         string `json:"health_before"`
	HealthAfter          string `json:"health_after"`
}
