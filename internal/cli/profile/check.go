package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	traffic "carronade/internal/profile"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/units"
)

// limit is the largest distance at which a fit holds.
const limit = 0.05

// A checking is the result of --check-fit: the distances between the source and what the
// workload sent to a stand-in.
type checking struct {
	Holds     bool       `json:"holds"`
	Limit     float64    `json:"limit"`
	Sent      uint64     `json:"sent"` // events that were compared
	Distances []distance `json:"distances"`
}

// A distance compares one property.
type distance struct {
	Name  string  `json:"name"` // sizes, keys, content, rate
	Kind  string  `json:"kind"` // kolmogorov-smirnov, or ratio: the relative difference
	Value float64 `json:"value"`
	Holds bool    `json:"holds"`
	words string
}

func (c *checking) add(name, kind string, value float64, words string) {
	holds := value <= limit
	c.Distances = append(c.Distances, distance{name, kind, value, holds, words})
	c.Holds = c.Holds && holds
}

// content compares how well contents compress, unless the source has none to measure.
func (c *checking) content(got, want traffic.Content) {
	if want.Codec == "" {
		return
	}
	words := fmt.Sprintf("compresses to %s for %s", units.FormatPercent(got.Ratio), units.FormatPercent(want.Ratio))
	if got.Codec != want.Codec {
		words += fmt.Sprintf(", by %s and not by %s", cmp.Or(got.Codec, "none"), want.Codec)
	}
	c.add("content", "ratio", relative(got.Ratio, want.Ratio), words)
}

// rows are the lines of the summary.
func (c *checking) rows() []row {
	rows := []row{{"check", fmt.Sprintf("%s of the workload, sent to a stand-in:", units.Plural(c.Sent, "event"))}}
	for _, d := range c.Distances {
		verdict := "holds"
		if !d.Holds {
			verdict = "BROKEN"
		}
		rows = append(rows, row{"", fmt.Sprintf("%s %s %s off, %s", verdict, d.Name, units.FormatPercent(d.Value), d.words)})
	}
	return rows
}

const (
	// mostChecked and mostCheckedBytes limit the events that are sent to compare their sizes, keys
	// and content.
	mostChecked      = 2_000_000
	mostCheckedBytes = 512 << 20
	// longestCheck is for how long events are sent by the schedule, to compare the rate.
	longestCheck = 10 * time.Second
)

// check sends the workload to a stand-in of Kafka: as many events as were read, as fast as
// possible, and then the first seconds by the schedule.
func (t *Tools) check(ctx context.Context, found sample, p *plan) (*checking, error) {
	r, ok := found.(*recordTraffic)
	if !ok {
		return nil, &protocol.Error{Err: errors.New("--check-fit: the workload is not one for Kafka, and only those are compared"), Hint: "leave it out, and look at the errors in the workload's comments"}
	}
	addr, stop, err := t.Broker(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stop() }()
	c := &checking{Holds: true, Limit: limit}
	content := p.without("target", "rate", "shape", "for", "count", "linger")
	n := min(r.Records, mostChecked, max(1000, uint64(mostCheckedBytes/max(1, r.Bytes/float64(r.Records)))))
	content.set("count", strconv.FormatUint(n, 10))
	again, err := t.resend(ctx, content, addr, "content")
	if err != nil {
		return nil, err
	}
	c.Sent = again.sampler.Records()
	sizes := fmt.Sprintf("mean %.0f B for %.0f B", again.Sizes.Mean, r.Sizes.Mean)
	if r.Nulls > 0 {
		share := func(p *traffic.Profile) string { return units.FormatPercent(float64(p.Nulls) / float64(p.Records)) }
		sizes += fmt.Sprintf(", %s of the values are null for %s", share(again.Profile), share(r.Profile))
	}
	c.add("sizes", "kolmogorov-smirnov", r.sampler.SizeDistance(again.sampler), sizes)
	if r.Keys.Records > 0 {
		words := fmt.Sprintf("%s distinct for %s", units.FormatCount(again.Keys.Distinct), units.FormatCount(r.Keys.Distinct))
		if n < r.Records {
			words += fmt.Sprintf(", in %s records for %s", units.FormatCount(n), units.FormatCount(r.Records))
		}
		c.add("keys", "kolmogorov-smirnov", r.sampler.KeyDistance(again.sampler), words)
	}
	c.content(again.Content, r.Content)
	if r.Pace.Family == traffic.NoPace {
		return c, nil
	}
	length := min(r.Pace.Span, longestCheck, units.Seconds(mostChecked/r.Pace.Rate))
	paced := p.without("target", "for", "count")
	paced.set("for", units.FlagDuration(max(length.Round(time.Millisecond), time.Millisecond)))
	if again, err = t.resend(ctx, paced, addr, "rate"); err != nil {
		return nil, err
	}
	got, want := again.Pace.Rate, r.sampler.RateWithin(length)
	c.add("rate", "ratio", relative(got, want), fmt.Sprintf("%s for %s, in the first %s", units.FormatRate(got), units.FormatRate(want), units.FormatDuration(length)))
	return c, nil
}

func relative(got, want float64) float64 {
	if want == 0 {
		return 1
	}
	return math.Abs(got/want - 1)
}

// resend sends a workload to a topic of the stand-in, and reads the topic.
func (t *Tools) resend(ctx context.Context, p *plan, addr, topic string) (*recordTraffic, error) {
	to := "kafka://" + addr + "/" + topic
	p = p.without()
	p.set("target", to)
	docs, err := workload.Read("the fitted workload", strings.NewReader(p.text()))
	if err != nil {
		return nil, err
	}
	w, err := workload.Resolve([]protocol.Kind{t.Topics}, nil, docs[0])
	if err != nil {
		return nil, err
	}
	if _, err := t.Fire(ctx, w); err != nil {
		return nil, fmt.Errorf("--check-fit: %w", err)
	}
	work, name, err := t.sampleWork(&profileFlags{}, to)
	if err != nil {
		return nil, err
	}
	work.Logf = func(string, ...any) {}
	return t.sample(ctx, &profileFlags{}, work, name)
}
