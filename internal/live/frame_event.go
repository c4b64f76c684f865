package live

import "carronade/internal/report"

// An Event is one of the things that happen to a run: it begins, it has another frame,
// it ends. Exactly one of the pointers is set. As JSON lines, events are how a run in
// another process reports its progress.
type Event struct {
	ID    string `json:"id"` // of the run's report; several runs may go on at once
	Run   *Run   `json:"run,omitempty"`
	Frame *Frame `json:"frame,omitempty"`
	Done  *Done  `json:"done,omitempty"`
}

// A Run describes a run that begins.
type Run struct {
	Target     string             `json:"target"` // without secrets
	Op         string             `json:"op"`
	Title      string             `json:"title,omitempty"` // which of several runs it is
	Labels     map[string]string  `json:"labels,omitempty"`
	Version    string             `json:"version"`
	StartedAt  string             `json:"started_at"`       // RFC 3339
	Interval   Seconds            `json:"interval"`         // of a frame; at least a second
	Unanswered bool               `json:"unanswered"`       // nothing is acknowledged
	Schedule   bool               `json:"schedule"`         // events are due by a schedule
	Reading    bool               `json:"reading"`          // it only reads
	Processors int                `json:"processors"`       // that the generator may use
	Limits     []report.LimitLine `json:"limits,omitempty"` // of the workload
	Search     *Search            `json:"search,omitempty"` // which this run is a trial of
}

// A Search is what a search for a ceiling knows when a trial of it begins.
type Search struct {
	Trial int     `json:"trial"`           // its number, from 1
	Role  string  `json:"role"`            // why it is run, such as "search" or "confirm"
	Load  string  `json:"load"`            // what it offers, such as "948/s"
	Holds float64 `json:"holds,omitempty"` // the highest rate at which the limits hold, in events/s; 0: none is known
	Fails float64 `json:"fails,omitempty"` // the lowest rate at which they failed; 0: none is known
}

// A Done is the end of a run.
type Done struct {
	Report   string      `json:"report,omitempty"` // its id; "": there is none
	Error    string      `json:"error,omitempty"`  // why the report is missing
	Headline string      `json:"headline,omitempty"`
	Band     report.Band `json:"band"` // what the page of the report says first; empty without a report
	Trust    string      `json:"trust,omitempty"`
	Exit     int         `json:"exit"` // the exit code of a program that only runs this
	// Verdicts are the sentences on the result, each with a mark: "good", "bad", ...
	Verdicts []Verdict `json:"verdicts,omitempty"`

	Totals Counts  `json:"totals"`           // of the measurement
	Warmup *Counts `json:"warmup,omitempty"` // of the warm-up, if there was one
}

// A Verdict is one verdict on a run.
type Verdict struct {
	Mark  string `json:"mark"` // "good", "bad", "caution", "open" or "remark"
	Label string `json:"label"`
	Text  string `json:"text"`
}
