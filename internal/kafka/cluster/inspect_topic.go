package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/protocol"
	"carronade/units"
)

// topicFacts is what the brokers say about a topic.
type topicFacts struct {
	name       string
	brokers    int
	leaders    []int32 // by partition; -1 none
	leaderless []int32
	partitions []partitionFacts
	settings   map[string]string // nil: they may not be read
}

// partitionFacts counts the replicas of a partition.
type partitionFacts struct {
	id     int32
	copies int // replicas
	inSync int // of them
}

// findings are those about the topic, for a run with this configuration.
func (t *topicFacts) findings(c *Config) []protocol.Finding {
	out := []protocol.Finding{t.exists(c), t.replication(c), t.leadership(c)}
	if t.settings == nil {
		return append(out, protocol.Finding{
			Check: "topic settings", Level: protocol.LevelUnknown, Found: "the user may not read the settings of the topic " + t.name,
			Fix: cmp.Or(c.Grant(ACLTopic(t.name), ACLDescribeConfigs), AskAdmin),
		})
	}
	out = append(out, t.minInSync(c), t.retention(c))
	for _, f := range []protocol.Finding{t.compression(c), t.largest(c), t.timestamps(c), t.cleanup(), t.flush(c)} {
		if f.Check != "" {
			out = append(out, f)
		}
	}
	return out
}

func (t *topicFacts) exists(c *Config) protocol.Finding {
	n := len(t.partitions)
	f := protocol.Finding{Check: "topic", Found: fmt.Sprintf("the topic %s has %s", t.name, units.Plural(n, "partition"))}
	switch {
	case len(t.leaderless) > 0:
		f.Level = protocol.LevelError
		f.Found = fmt.Sprintf("%d of the %s of %s have no leader, such as partition %d", len(t.leaderless), units.Plural(n, "partition"), t.name, t.leaderless[0])
		f.Effect = "their events fail"
		f.Fix = "start the brokers that have these partitions, or elect leaders (kafka-leader-election)"
	case n < t.brokers:
		f.Level = protocol.LevelNote
		f.Found += fmt.Sprintf(" on %s", units.Plural(t.brokers, "broker"))
		f.Effect = "only brokers that lead one take in events: the cluster can do more than is measured"
		f.Fix = fmt.Sprintf("measure a topic with at least %s: --create-topic partitions=%d with another name", units.Plural(t.brokers, "partition"), t.brokers)
	case c.Op == OpConsume && c.Group != "" && n < c.Clients:
		f.Level = protocol.LevelNote
		f.Found += fmt.Sprintf(", and the run has %s", units.Plural(c.Clients, "client"))
		f.Effect = "clients of a group without a partition read nothing"
		f.Fix = fmt.Sprintf("give --clients %d, or add partitions", n)
	}
	return f
}

// replication is the finding about replicas that are missing or behind.
func (t *topicFacts) replication(c *Config) protocol.Finding {
	behind, copies := 0, 0
	for _, p := range t.partitions {
		copies = max(copies, p.copies)
		if p.inSync < p.copies {
			behind++
		}
	}
	f := protocol.Finding{Check: "replication", Found: fmt.Sprintf("each partition has %s, all in sync", units.Plural(copies, "replica"))}
	switch {
	case behind > 0:
		f.Level = protocol.LevelWarning
		f.Found = fmt.Sprintf("%d of %s are under-replicated", behind, units.Plural(len(t.partitions), "partition"))
		f.Effect = "brokers copy the missing events during the run, which takes network and disk; acks=all waits for fewer replicas than later"
		f.Fix = tool(c, "kafka-topics", "--describe --under-replicated-partitions") + " lists none once they are in sync"
	case copies == 1 && t.brokers > 1 && !c.OnlyReads():
		f.Level = protocol.LevelNote
		f.Found = fmt.Sprintf("each partition has 1 replica, on %s", units.Plural(t.brokers, "broker"))
		f.Effect = "nothing is replicated: a topic with replicas is slower, most of all with acks=all"
		f.Fix = "measure a topic with the replicas of production"
	}
	return f
}

// leadership is the finding about how leaders are spread.
func (t *topicFacts) leadership(c *Config) protocol.Finding {
	led := map[int32]int{}
	for _, l := range t.leaders {
		if l >= 0 {
			led[l]++
		}
	}
	most, busiest := 0, int32(-1)
	for id, n := range led {
		if n > most || n == most && id < busiest {
			most, busiest = n, id
		}
	}
	even := 0
	if t.brokers > 0 {
		even = (len(t.leaders) + t.brokers - 1) / t.brokers
	}
	f := protocol.Finding{Check: "leaders", Found: fmt.Sprintf("no broker leads more than %s", units.Plural(most, "partition"))}
	if most > even+1 || most > even && most == len(t.leaders) && t.brokers > 1 && most > 1 {
		f.Level = protocol.LevelWarning
		f.Found = fmt.Sprintf("broker %d leads %d of %s; an even share is %d", busiest, most, units.Plural(len(t.leaders), "partition"), even)
		f.Effect = "that broker is the limit, not the cluster"
		f.Fix = tool(c, "kafka-leader-election", "--election-type preferred --all-topic-partitions")
	}
	return f
}

// number reads a setting, false if there is none.
func (t *topicFacts) number(name string) (int64, bool) {
	n, err := strconv.ParseInt(t.settings[name], 10, 64)
	return n, err == nil
}

func (t *topicFacts) minInSync(c *Config) protocol.Finding {
	least, known := t.number("min.insync.replicas")
	f := protocol.Finding{Check: "min.insync.replicas", Found: fmt.Sprintf("min.insync.replicas is %d", least)}
	if !known {
		f.Level, f.Found = protocol.LevelUnknown, "the brokers do not report min.insync.replicas"
		return f
	}
	if c.Acks != AcksAll || c.OnlyReads() {
		f.Found += ", which matters with acks=all only"
		return f
	}
	for _, p := range t.partitions {
		if int64(p.inSync) < least {
			if p.copies > 0 && p.inSync == p.copies {
				f.Level = protocol.LevelWarning
				f.Found = fmt.Sprintf("partition %d has %s, all in sync, and min.insync.replicas is %d", p.id, units.Plural(p.copies, "replica"), least)
				f.Effect = "with acks=all older brokers refuse its events (NOT_ENOUGH_REPLICAS), and newer ones wait for the replicas that there are (4.3 does)"
				f.Fix = fmt.Sprintf("set min.insync.replicas to %d, or add replicas", p.copies)
				continue
			}
			f.Level = protocol.LevelError
			f.Found = fmt.Sprintf("partition %d has %s in sync, and min.insync.replicas is %d", p.id, units.Plural(p.inSync, "replica"), least)
			f.Effect = "with acks=all its events fail (NOT_ENOUGH_REPLICAS)"
			f.Fix = "start the missing brokers, or lower min.insync.replicas"
			return f
		}
	}
	if f.Level == protocol.LevelWarning {
		return f
	}
	for _, p := range t.partitions {
		if int64(p.copies) == least && least > 1 {
			f.Level = protocol.LevelNote
			f.Found = fmt.Sprintf("min.insync.replicas is %d, as many as there are replicas", least)
			f.Effect = "with acks=all one broker that stops makes events fail"
			f.Fix = fmt.Sprintf("set min.insync.replicas to %d, unless that is what you measure", least-1)
			return f
		}
	}
	return f
}

// shortRetention is a retention that may delete events before they are read back.
const shortRetention = 10 * time.Minute

func (t *topicFacts) retention(c *Config) protocol.Finding {
	f := protocol.Finding{Check: "retention", Found: "the topic keeps events without a limit of time"}
	if ms, ok := t.number("retention.ms"); ok && ms >= 0 && ms < int64(1<<62/time.Millisecond) {
		kept := time.Duration(ms) * time.Millisecond
		f.Found = "the topic keeps events for " + units.FormatDuration(kept)
		if kept < shortRetention {
			f.Level = protocol.LevelNote
			f.Effect = "deleting old events takes disk time during the run, and --verify may find them deleted"
			f.Fix = tool(c, "kafka-configs", "--alter --topic "+t.name+" --add-config retention.ms=86400000")
		}
	}
	if size, ok := t.number("retention.bytes"); ok && size >= 0 {
		f.Found += fmt.Sprintf(", at most %s in a partition", units.FormatSize(size))
		if size < 1<<30 && f.Level == protocol.LevelOK {
			f.Level = protocol.LevelNote
			f.Effect = "deleting old events takes disk time during the run, and --verify may find them deleted"
			f.Fix = tool(c, "kafka-configs", "--alter --topic "+t.name+" --add-config retention.bytes=-1")
		}
	}
	if c.OnlyReads() && f.Level == protocol.LevelNote {
		f.Effect = "events may be deleted before they are read"
	}
	return f
}

// compression is the finding about a codec that brokers enforce; none for one that they
// take over.
func (t *topicFacts) compression(c *Config) protocol.Finding {
	f := protocol.Finding{Check: "compression.type"}
	switch codec := t.settings["compression.type"]; {
	case codec == "":
		return protocol.Finding{}
	case c.OnlyReads() || !c.Recompresses(codec):
		f.Found = "brokers store batches as they were sent (compression.type " + codec + ")"
	default:
		f.Level = protocol.LevelWarning
		f.Found = fmt.Sprintf("brokers compress each batch again: compression.type is %s, and the run sends %s", codec, c.Compression)
		f.Effect = "the brokers' processors become the limit sooner, and acks take longer"
		f.Fix = "give --compression " + codec + ", or set compression.type to producer"
		if codec == "uncompressed" {
			f.Fix = "leave out --compression, or set compression.type to producer"
		}
	}
	return f
}

// largest is the finding about batches that brokers refuse.
func (t *topicFacts) largest(c *Config) protocol.Finding {
	most, ok := t.number("max.message.bytes")
	if !ok || c.OnlyReads() {
		return protocol.Finding{}
	}
	f := protocol.Finding{Check: "max.message.bytes", Found: fmt.Sprintf("brokers accept batches of %s (max.message.bytes)", units.FormatSize(most))}
	if int64(c.BatchSize) > most {
		f.Level = protocol.LevelWarning
		f.Found = fmt.Sprintf("batches may have %s, and brokers accept %s (max.message.bytes)", units.FormatSize(int64(c.BatchSize)), units.FormatSize(most))
		f.Effect = "full batches fail (MESSAGE_TOO_LARGE), unless they are compressed to less"
		f.Fix = fmt.Sprintf("give --batch-size %d, or raise max.message.bytes", most)
	}
	return f
}

func (t *topicFacts) timestamps(c *Config) protocol.Finding {
	kind := t.settings["message.timestamp.type"]
	if kind == "" {
		return protocol.Finding{}
	}
	f := protocol.Finding{Check: "message.timestamp.type", Found: "message.timestamp.type is " + kind}
	if kind == "LogAppendTime" {
		f.Level = protocol.LevelNote
		f.Effect = "brokers replace the time and the checksum of each batch, which takes their processors a moment; other tools' end-to-end times begin at the broker"
		f.Fix = tool(c, "kafka-configs", "--alter --topic "+t.name+" --add-config message.timestamp.type=CreateTime")
	}
	return f
}

func (t *topicFacts) cleanup() protocol.Finding {
	policy := t.settings["cleanup.policy"]
	if policy == "" {
		return protocol.Finding{}
	}
	f := protocol.Finding{Check: "cleanup.policy", Found: "cleanup.policy is " + policy}
	if slices.Contains(strings.Split(policy, ","), "compact") {
		f.Level = protocol.LevelNote
		f.Effect = "events need keys, the brokers' cleaner takes disk and processors during the run, and only the last event of each key remains"
		f.Fix = "give --key 'uniform(1000)', or measure a topic with cleanup.policy delete"
	}
	return f
}

// flush is the finding about a topic that is written to disk after each few events.
func (t *topicFacts) flush(c *Config) protocol.Finding {
	n, ok := t.number("flush.messages")
	if !ok || n > 1000 {
		return protocol.Finding{}
	}
	return protocol.Finding{
		Check: "flush.messages", Level: protocol.LevelNote, Found: fmt.Sprintf("flush.messages is %d", n),
		Effect: "brokers write to disk after so few events that the disk decides all numbers; leave it if that is what you measure",
		Fix:    tool(c, "kafka-configs", "--alter --topic "+t.name+" --delete-config flush.messages"),
	}
}
