package profile

import (
	"fmt"

	traffic "carronade/internal/profile"
	"carronade/units"
)

// A sample is what was read, and how a workload is made of it.
type sample interface {
	from() *source
	make() (*plan, error)
	summary() []row
	// parameters are what was fitted, for JSON.
	parameters() any
}

// A source says where a sample came from.
type source struct {
	Kind  string `json:"kind"` // "kafka topic", or the format of a file
	Name  string `json:"name"`
	Event string `json:"event"` // what it counts: "record", "request", "message"
	Read  uint64 `json:"read"`  // events
	// Whole is set if everything that the source has was read.
	Whole bool `json:"whole"`
	// Available is the number of offsets in the range that was to be read, 0 if that is not known.
	Available   uint64 `json:"available,omitempty"`
	Interrupted bool   `json:"interrupted"`
	// Broken is the number of records that were whole and could not be read, when reading was cut after one; else 0.
	Broken   uint64   `json:"broken,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// title is the first line of the summary.
func (s *source) title() string {
	text := fmt.Sprintf("%s: %s", s.Name, units.Plural(s.Read, s.Event))
	switch {
	case s.Whole:
		return text + ", all that it has"
	case s.Available > s.Read:
		return text + fmt.Sprintf(" of %s, a sample", units.FormatCount(s.Available))
	}
	return text + ", a sample"
}

// A profileDocument is the result as JSON.
type profileDocument struct {
	Schema     string    `json:"schema"`
	Source     *source   `json:"source"`
	Parameters any       `json:"parameters"`
	Workload   string    `json:"workload"` // the workload file
	Check      *checking `json:"check,omitempty"`
}

// profileSchema is the name and the version of the document.
const profileSchema = "carronade.profile/1"

func newDocument(t sample, workload string) *profileDocument {
	return &profileDocument{Schema: profileSchema, Source: t.from(), Parameters: t.parameters(), Workload: workload}
}

// A recordTraffic are records, as those of a topic.
type recordTraffic struct {
	recordPlan
	sampler *traffic.Sampler
}

func (r *recordTraffic) from() *source   { return &r.source }
func (r *recordTraffic) parameters() any { return r.Profile }
