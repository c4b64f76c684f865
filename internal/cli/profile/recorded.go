package profile

import (
	"cmp"
	"fmt"
	"strings"

	traffic "carronade/internal/profile"
	"carronade/protocol"
	"carronade/units"
)

// A recordedTraffic is recorded traffic of a kind that reads it itself.
type recordedTraffic struct {
	src      source
	of       *protocol.Recorded
	to       string
	corpus   *samples // requests that the workload replays; nil: made ones
	fit      []protocol.Fitted
	requests uint64
	bytes    traffic.Sizes
	arrivals traffic.Arrivals
}

// readRecorded reads a file of requests, one a line, and keeps some.
func readRecorded(of *protocol.Recorded) func(t *Tools, f *profileFlags, name string, in *input) (sample, error) {
	return func(_ *Tools, f *profileFlags, name string, in *input) (sample, error) {
		count, _, err := f.limits()
		if err != nil {
			return nil, err
		}
		a := &recordedTraffic{src: source{Kind: f.format, Name: name, Event: "event"}, of: of, to: cmp.Or(f.to, of.Target)}
		if of.Corpus != "" {
			a.corpus = newSamples(f.keep)
		}
		recording := of.New()
		err = traffic.Lines(in.Reader, func(line []byte) error {
			events, err := recording.Add(line, a.arrivals.Add)
			if err != nil {
				return err
			}
			a.requests++
			a.src.Read += uint64(events)
			a.bytes.Add(len(line), 1)
			if a.corpus != nil {
				a.corpus.add(line)
			}
			if a.src.Read >= count || in.stopped() {
				return traffic.ErrEnough
			}
			return nil
		})
		if err := in.finish(&a.src, err, a.src.Read, noEvents(name, "check that the requests are complete")); err != nil {
			return nil, err
		}
		a.fit = recording.Fit()
		return a, a.corpus.write()
	}
}

func (a *recordedTraffic) from() *source { return &a.src }

func (a *recordedTraffic) make() (*plan, error) {
	p := &plan{head: []string{
		fmt.Sprintf("Fitted by carronade profile to %s, in %s.", a.src.title(), units.Plural(a.requests, "request")),
		"Names, attributes and texts of events are made.",
	}}
	p.set("target", a.to, "Not the source: set it to the server that you want to load.")
	if a.corpus != nil && a.corpus.count() > 0 {
		p.set(a.of.Corpus, a.corpus.path, "Recorded requests, which are sent with fresh ids and times.")
	} else {
		for _, f := range a.fit {
			p.set(f.Name, f.Value, f.About)
		}
	}
	pace := a.arrivals.Fit(1)
	setPace(p, &pace, a.src.Read)
	return p, nil
}

func (a *recordedTraffic) summary() []row {
	rows := []row{{"requests", fmt.Sprintf("%s; %s each as JSON, in the mean", units.FormatCount(a.requests), units.FormatSize(int64(a.bytes.Mean())))}}
	var settings []string
	for _, f := range a.fit {
		settings = append(settings, f.Name+" "+f.Value)
	}
	pace := a.arrivals.Fit(1)
	return append(rows, row{"settings", strings.Join(settings, "; ")}, paceRow(&pace))
}

func (a *recordedTraffic) parameters() any {
	settings := map[string]string{}
	for _, f := range a.fit {
		settings[f.Name] = f.Value
	}
	return map[string]any{"requests": a.requests, "events": a.src.Read, "settings": settings, "bytes_per_request": a.bytes.Fit(), "pace": a.arrivals.Fit(1)}
}
