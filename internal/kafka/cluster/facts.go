package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// discardID is the cluster id of our own discarding stand-in, which keeps no records:
// runs against it measure the limit of the generator.
const discardID = "carronade-discard"

// standinID is the cluster id of our other stand-in, which is a small broker.
const standinID = "carronade-standin"

// IsStandin reports whether a cluster is a stand-in of ours. Its version and rack mean
// nothing.
func IsStandin(id string) bool { return id == discardID || id == standinID }

// Facts describes the cluster for the report.
func (cl *Cluster) Facts() map[string]any {
	c := cl.Config
	brokers := make([]map[string]any, 0, len(cl.Brokers))
	for _, b := range cl.Brokers {
		f := map[string]any{"id": b.ID, "address": b.Addr}
		if b.Version != "" && !IsStandin(cl.ID) {
			f["version"] = b.Version
		}
		if b.rack != "" && !IsStandin(cl.ID) {
			f["rack"] = b.rack
		}
		if n := Led(cl.Leaders, b.ID); n > 0 {
			f["leads"] = n
		}
		brokers = append(brokers, f)
	}
	topic := map[string]any{
		"name":       c.Topic,
		"partitions": cl.Partitions(),
		"replicas":   slices.Max(append(cl.Replicas, 0)),
		"leaders":    Layout(cl.Leaders),
	}
	if cl.leadersAfter != nil {
		topic["leaders_after"] = Layout(cl.leadersAfter)
	}
	if cl.CreatedBy != "" {
		topic["created_by"] = cl.CreatedBy
	}
	if len(cl.Settings) > 0 {
		topic["settings"] = maps.Clone(cl.Settings)
	}
	f := map[string]any{
		"cluster_id": cl.ID,
		"controller": cl.controller,
		"brokers":    brokers,
		"topic":      topic,
		"engine":     c.Engine,
		"security":   c.Security.String(),
	}
	if len(cl.brokerSettings) > 0 {
		f["broker_settings"] = maps.Clone(cl.brokerSettings)
	}
	f["brokers_described"] = cl.brokersDescribed
	if cl.ID == discardID {
		f["discards"] = true
	}
	if !c.OnlyReads() {
		// The final values, including presets and what follows from them.
		f["acks"] = map[int16]string{0: "0", 1: "1", AcksAll: "all"}[c.Acks]
		f["idempotent"] = c.Idempotent
	}
	if c.Security.SkipVerify {
		f["tls_verified"] = false
	}
	if c.Security.anyName {
		f["tls_name_verified"] = false
	}
	return f
}

// Survey looks up the leaders of the partitions after the run. The goroutine that asks
// for facts calls it.
func (cl *Cluster) Survey(ctx context.Context) error {
	if cl.Absent {
		return nil
	}
	meta, err := cl.Metadata(ctx, cl.Config.Topic, false)
	if err != nil {
		return fmt.Errorf("look up the partitions' leaders after the run: %w", err)
	}
	t := &meta.Topics[0]
	if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
		return fmt.Errorf("look up the partitions' leaders after the run: %w", err)
	}
	cl.leadersAfter = make([]int32, len(t.Partitions)) // some may have been added since
	for _, p := range t.Partitions {
		if p.Partition >= 0 && int(p.Partition) < len(cl.leadersAfter) {
			cl.leadersAfter[p.Partition] = p.Leader
		}
	}
	return nil
}

// settingsWait bounds the wait for the brokers' settings. A run does not need them.
const settingsWait = 5 * time.Second

// identitySettings are the settings that identify a broker, and give its addresses and
// directories: they always differ between two clusters, or two brokers.
var identitySettings = []string{
	"broker.id", "node.id", "broker.rack", "advertised.listeners", "listeners", "advertised.host.name", "advertised.port", "host.name", "port",
	"log.dir", "log.dirs", "metadata.log.dir", "zookeeper.connect", "controller.quorum.voters", "controller.quorum.bootstrap.servers",
}

// readBrokerSettings asks every broker for its configuration, for the report: two
// clusters of the same version may differ in it. It ignores errors: the user may lack
// the permission.
func (cl *Cluster) readBrokerSettings(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settingsWait)
	defer cancel()
	var ids []int32
	for _, b := range cl.Brokers {
		ids = append(ids, b.ID)
	}
	if len(ids) == 0 {
		return
	}
	rs, _ := cl.Admin.DescribeBrokerConfigs(ctx, ids...) // the results of those that answered, even if others failed
	described := map[string]map[string]string{}
	for _, r := range rs {
		if r.Err == nil {
			described[r.Name] = configuredOf(r.Configs)
		}
	}
	cl.brokerSettings, cl.brokersDescribed = mergeSettings(described), len(described)
}

// configuredOf returns the settings of a broker that are not defaults, without secrets
// and without those that identify the broker.
func configuredOf(configs []kadm.Config) map[string]string {
	set := map[string]string{}
	for _, kv := range configs {
		switch kv.Source {
		case kmsg.ConfigSourceStaticBrokerConfig, kmsg.ConfigSourceDynamicBrokerConfig, kmsg.ConfigSourceDynamicDefaultBrokerConfig:
			if !kv.Sensitive && kv.Value != nil && !slices.Contains(identitySettings, kv.Key) {
				set[kv.Key] = *kv.Value
			}
		}
	}
	return set
}

// mergeSettings joins the settings of the brokers: a value that all of them have, or
// each value with the brokers that have it, "8: 1 2, 64: 3".
func mergeSettings(described map[string]map[string]string) map[string]string {
	names := map[string]bool{}
	for _, set := range described {
		for name := range set {
			names[name] = true
		}
	}
	out := map[string]string{}
	brokers := slices.SortedFunc(maps.Keys(described), func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	for name := range names {
		var values []string // in the order of the brokers that have them
		brokersWith := map[string][]string{}
		for _, b := range brokers {
			v, ok := described[b][name]
			if !ok {
				v = "its default"
			}
			if brokersWith[v] == nil {
				values = append(values, v)
			}
			brokersWith[v] = append(brokersWith[v], b)
		}
		for i, v := range values {
			if len(values) > 1 {
				values[i] = v + ": " + strings.Join(brokersWith[v], " ")
			}
		}
		out[name] = strings.Join(values, ", ")
	}
	return out
}
