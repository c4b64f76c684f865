package kafka

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// discardID is the cluster id of our own discarding stand-in, which keeps
// nothing of what it is sent: that the generator is the limit is the point of
// firing at it.
const discardID = "carronade-discard"

// facts are what was found out about the cluster, for the report.
func (cl *cluster) facts() map[string]any {
	c := cl.cfg
	brokers := make([]map[string]any, 0, len(cl.brokers))
	for _, b := range cl.brokers {
		f := map[string]any{"id": b.id, "address": b.addr}
		if b.version != "" {
			f["version"] = b.version
		}
		if b.rack != "" {
			f["rack"] = b.rack
		}
		if n := count(cl.leaders, b.id); n > 0 {
			f["leads"] = n
		}
		brokers = append(brokers, f)
	}
	topic := map[string]any{
		"name":       c.topic,
		"partitions": cl.partitions(),
		"replicas":   slices.Max(append(cl.replicas, 0)),
		"leaders":    layout(cl.leaders),
	}
	if cl.left != nil {
		topic["leaders_after"] = layout(cl.left)
	}
	if cl.madeBy != "" {
		topic["created_by"] = cl.madeBy
	}
	if len(cl.settings) > 0 {
		topic["settings"] = maps.Clone(cl.settings)
	}
	f := map[string]any{
		"cluster_id": cl.id,
		"controller": cl.controller,
		"brokers":    brokers,
		"topic":      topic,
		"engine":     c.engine,
		"security":   c.security.String(),
	}
	if cl.id == discardID {
		f["discards"] = true
	}
	if c.op != opConsume {
		// As they are in the end, presets and what follows from them included.
		f["acks"] = map[int16]string{0: "0", 1: "1", acksAll: "all"}[c.acks]
		f["idempotent"] = c.idempotent
	}
	if c.security.skipVerify {
		f["tls_verified"] = false
	}
	if c.security.anyName {
		f["tls_name_verified"] = false
	}
	return f
}

// survey asks who leads the partitions now that the run is over. It is called
// by the goroutine that asks for facts.
func (cl *cluster) survey(ctx context.Context) error {
	if cl.absent {
		return nil
	}
	meta, err := cl.metadata(ctx, cl.cfg.topic, false)
	if err != nil {
		return fmt.Errorf("ask who leads the partitions after the run: %w", err)
	}
	t := &meta.Topics[0]
	if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
		return fmt.Errorf("ask who leads the partitions after the run: %w", err)
	}
	cl.left = make([]int32, len(t.Partitions)) // some may have been added meanwhile
	for _, p := range t.Partitions {
		if p.Partition >= 0 && int(p.Partition) < len(cl.left) {
			cl.left[p.Partition] = p.Leader
		}
	}
	return nil
}

func count(list []int32, x int32) int {
	n := 0
	for _, v := range list {
		if v == x {
			n++
		}
	}
	return n
}

// layout writes which broker leads which partitions, in bounded space:
// "1: 0 3 6, 2: 1 4 7, 3: 2 5 8".
func layout(leaders []int32) string {
	const shown = 64
	led := map[int32][]string{}
	for p, l := range leaders {
		if p == shown {
			break
		}
		led[l] = append(led[l], fmt.Sprint(p))
	}
	var parts []string
	for _, l := range slices.Sorted(maps.Keys(led)) {
		who := fmt.Sprint(l)
		if l < 0 {
			who = "none"
		}
		parts = append(parts, who+": "+strings.Join(led[l], " "))
	}
	text := strings.Join(parts, ", ")
	if n := len(leaders); n > shown {
		text += fmt.Sprintf(" (the first %d of %d)", shown, n)
	}
	return text
}
