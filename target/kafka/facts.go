package kafka

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// discardID is the cluster id of our own discarding stand-in, which keeps
// nothing of what it is sent: that the generator is the limit is the point of
// firing at it.
const discardID = "carronade-discard"

// standinID is that of our other stand-in, which is a little broker.
const standinID = "carronade-standin"

// madeUp says that a cluster is a stand-in of ours, whose version and rack are made up.
func madeUp(id string) bool { return id == discardID || id == standinID }

// facts are what was found out about the cluster, for the report.
func (cl *cluster) facts() map[string]any {
	c := cl.cfg
	brokers := make([]map[string]any, 0, len(cl.brokers))
	for _, b := range cl.brokers {
		f := map[string]any{"id": b.id, "address": b.addr}
		if b.version != "" && !madeUp(cl.id) {
			f["version"] = b.version
		}
		if b.rack != "" && !madeUp(cl.id) {
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
	if len(cl.configured) > 0 {
		f["broker_settings"] = maps.Clone(cl.configured)
	}
	f["brokers_described"] = cl.described
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
		return fmt.Errorf("look up the partitions' leaders after the run: %w", err)
	}
	t := &meta.Topics[0]
	if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
		return fmt.Errorf("look up the partitions' leaders after the run: %w", err)
	}
	cl.left = make([]int32, len(t.Partitions)) // some may have been added meanwhile
	for _, p := range t.Partitions {
		if p.Partition >= 0 && int(p.Partition) < len(cl.left) {
			cl.left[p.Partition] = p.Leader
		}
	}
	return nil
}

// settingsWait is how long brokers may take to tell their settings. A run does
// without them.
const settingsWait = 5 * time.Second

// whoIsIt are settings that say which broker one is, and where it is to be
// found: those of two clusters, or of two brokers, differ always.
var whoIsIt = []string{
	"broker.id", "node.id", "broker.rack", "advertised.listeners", "listeners", "advertised.host.name", "advertised.port", "host.name", "port",
	"log.dir", "log.dirs", "metadata.log.dir", "zookeeper.connect", "controller.quorum.voters", "controller.quorum.bootstrap.servers",
}

// readBrokerSettings asks every broker for its configuration, for the report:
// two clusters of one version are two when it differs. It is no fault when the
// user may not.
func (cl *cluster) readBrokerSettings(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settingsWait)
	defer cancel()
	var who []int32
	for _, b := range cl.brokers {
		who = append(who, b.id)
	}
	if len(who) == 0 {
		return
	}
	rs, _ := cl.admin.DescribeBrokerConfigs(ctx, who...) // those that answered, whatever became of others
	described := map[string]map[string]string{}
	for _, r := range rs {
		if r.Err == nil {
			described[r.Name] = configuredOf(r.Configs)
		}
	}
	cl.configured, cl.described = together(described), len(described)
}

// configuredOf are the settings of a broker that somebody made, but for secrets
// and those that say who it is.
func configuredOf(configs []kadm.Config) map[string]string {
	set := map[string]string{}
	for _, kv := range configs {
		switch kv.Source {
		case kmsg.ConfigSourceStaticBrokerConfig, kmsg.ConfigSourceDynamicBrokerConfig, kmsg.ConfigSourceDynamicDefaultBrokerConfig:
			if !kv.Sensitive && kv.Value != nil && !slices.Contains(whoIsIt, kv.Key) {
				set[kv.Key] = *kv.Value
			}
		}
	}
	return set
}

// together joins what brokers told: a value that all have, or which of them
// have which, "8: 1 2, 64: 3".
func together(described map[string]map[string]string) map[string]string {
	names := map[string]bool{}
	for _, set := range described {
		for name := range set {
			names[name] = true
		}
	}
	out := map[string]string{}
	brokers := slices.SortedFunc(maps.Keys(described), func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	for name := range names {
		var values []string // in the order of who has them
		who := map[string][]string{}
		for _, b := range brokers {
			v, ok := described[b][name]
			if !ok {
				v = "its default"
			}
			if who[v] == nil {
				values = append(values, v)
			}
			who[v] = append(who[v], b)
		}
		for i, v := range values {
			if len(values) > 1 {
				values[i] = v + ": " + strings.Join(who[v], " ")
			}
		}
		out[name] = strings.Join(values, ", ")
	}
	return out
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
// "1: 0 3 6, 2: 1 4 7, 3: 2 5 8". Of many it shows the first, with a sum of all,
// so that two layouts are the same only if they are.
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
		sum := fnv.New64a()
		for _, l := range leaders {
			_ = binary.Write(sum, binary.BigEndian, l) // which cannot fail
		}
		text += fmt.Sprintf(" (the first %d of %d; #%012x of all)", shown, n, sum.Sum64()>>16)
	}
	return text
}
