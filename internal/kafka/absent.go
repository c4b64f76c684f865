package kafka

import (
	"context"
	"fmt"
	"time"

	"carronade/internal/kafka/cluster"
	"carronade/load"
)

// An absentSource is the consuming side of a run whose topics did not appear
// within the time of the option wait-topic. It has no logs, and ends at once.
type absentSource struct{ c *cluster.Config }

var _ consumerEngine = absentSource{}

// Logs implements load.Source.
func (absentSource) Logs() []string { return nil }

// Lanes implements load.Source.
func (a absentSource) Lanes() int { return a.c.Clients }

// Lag implements load.Source.
func (absentSource) Lag() []int64 { return nil }

// Rebalancing implements load.Source.
func (absentSource) Rebalancing() time.Duration { return 0 }

// Wire implements load.Source.
func (absentSource) Wire() (written, read uint64) { return 0, 0 }

// Receive implements load.Source.
func (absentSource) Receive(context.Context, func() time.Duration, func(lane int, a []load.Arrival)) error {
	return nil
}

// Starts implements load.Seeker.
func (absentSource) Starts() []int64 { return nil }

// Positions implements load.Seeker.
func (absentSource) Positions() []int64 { return nil }

// Ends implements load.Seeker.
func (absentSource) Ends(context.Context) ([]int64, error) { return nil, nil }

// Heads implements load.Seeker.
func (absentSource) Heads(context.Context) ([]int64, error) { return nil, nil }

func (absentSource) Metrics() []cluster.BrokerMetrics { return nil }

func (a absentSource) Facts() map[string]any { return map[string]any{"absent": true} }

func (a absentSource) Warnings() []string {
	return []string{fmt.Sprintf("%s did not appear within %v: nothing was consumed", a.what(), a.c.WaitTopic)}
}

// what is what did not appear.
func (a absentSource) what() string {
	if a.c.Topics != nil {
		return "a topic whose name matches " + a.c.Topics.String()
	}
	return "the topic " + a.c.Topic
}

// Capabilities implements load.Source.
func (a absentSource) Capabilities() load.SourceCapabilities {
	return load.SourceCapabilities{Seeker: a}
}

func (absentSource) Close() error { return nil }
