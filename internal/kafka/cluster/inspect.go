package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/advice"
	"carronade/internal/conn"
	"carronade/protocol"
	"carronade/units"
)

// inspected are the options that Inspect uses besides those of security and connections.
var inspected = []string{"acks", "batch-size", "compression", "create-topic", "idempotent"}

// Inspects reports whether Inspect uses an option.
func Inspects(o *protocol.Option) bool {
	switch o.Group {
	case GroupSecurity, GroupConn:
		return o.Name != "rack"
	}
	return slices.Contains(inspected, o.Name)
}

// Inspect looks at a cluster and a topic before a run, see protocol.Inspector. It makes the connections
// that a run makes first, and then asks about the topic, its settings, the brokers and the quotas. It
// creates no topic.
func Inspect(ctx context.Context, s protocol.Spec) (protocol.Inspection, error) {
	c, err := ParseConfig(s)
	if err != nil {
		return protocol.Inspection{}, err
	}
	in := protocol.Inspection{Addresses: c.Seeds}
	seeds, err := contactSeeds(ctx, c)
	if err != nil {
		return in, err
	}
	in.Findings = append(in.Findings, seeds.findings(time.Now())...)
	reached := *c
	reached.Seeds = seeds.answered // others would only delay what follows
	cl, err := reached.Client()
	if err != nil {
		return in, err
	}
	defer cl.Close()
	meta, err := cl.Metadata(ctx, false, c.Topic)
	if err != nil {
		return in, c.Explain("ask for the topic "+c.Topic, err)
	}
	leaderless := cl.ApplyMetadata(meta)
	in.Connections = c.Clients * len(cl.Brokers)

	var (
		wg     sync.WaitGroup
		quotas protocol.Finding
		topic  []protocol.Finding
	)
	wg.Go(func() { cl.ContactBrokers(ctx) })
	wg.Go(func() { quotas = quotasOf(ctx, cl) })
	wg.Go(func() { topic = inspectTopic(ctx, cl, &meta.Topics[0], leaderless) })
	wg.Wait()
	in.Findings = append(in.Findings, login(c.Security))
	in.Findings = append(in.Findings, brokerFindings(cl.Brokers, cl.Leaders, IsStandin(cl.ID))...)
	in.Findings = append(in.Findings, topic...)
	in.Findings = append(in.Findings, quotas, clockOf(cl.Brokers))
	return in, nil
}

// tool is a command line of one of Kafka's own tools for the run's cluster. With a login, it reads
// that from the run's --client-config, or from a file like it.
func tool(c *Config, name, args string) string {
	login := ""
	if c.Security.Protocol() != Plaintext {
		flag := "--command-config"
		if name == "kafka-leader-election" {
			flag = "--admin.config"
		}
		file := "FILE"
		if c.ClientConfig != "" {
			file = advice.Quote(c.ClientConfig)
		}
		login = " " + flag + " " + file
	}
	return name + " --bootstrap-server " + advice.Quote(strings.Join(c.Seeds, ",")) + login + " " + args
}

// seeds is what connecting to the bootstrap brokers found.
type seeds struct {
	contacts []conn.Contact
	errs     []error // of the protocol or the login, by seed
	hints    []string
	answered []string
}

// contactSeeds connects to all seeds at once. It is an error if none answers as a broker.
func contactSeeds(ctx context.Context, c *Config) (*seeds, error) {
	s := &seeds{contacts: make([]conn.Contact, len(c.Seeds)), errs: make([]error, len(c.Seeds))}
	d := conn.Dialer{TLS: c.Security.TLS}
	var wg sync.WaitGroup
	for i, addr := range c.Seeds {
		wg.Go(func() { s.contacts[i] = d.Contact(ctx, addr) })
		wg.Go(func() { s.errs[i] = c.ProbeOne(ctx, addr) })
	}
	wg.Wait()
	for i, err := range s.errs {
		if err == nil {
			s.answered = append(s.answered, c.Seeds[i])
			s.hints = append(s.hints, "")
		} else {
			s.hints = append(s.hints, c.Hint(err))
		}
	}
	if len(s.answered) == 0 {
		return nil, c.NoneAnswered(s.errs)
	}
	return s, nil
}

func (s *seeds) findings(now time.Time) []protocol.Finding {
	var out []protocol.Finding
	for i := range s.contacts {
		c := &s.contacts[i]
		if err := s.errs[i]; err != nil {
			out = append(out, protocol.Finding{
				Check: "address " + c.Addr, Level: protocol.LevelWarning,
				Found:  fmt.Sprintf("%s does not answer as a broker: %v", c.Addr, err),
				Effect: "a run starts with the other addresses, and may wait for this one first",
				Fix:    s.hints[i],
			})
			continue
		}
		out = append(out, c.Findings(now)...)
	}
	return out
}

// login is the finding about the listener's security, after it let us in.
func login(s *Security) protocol.Finding {
	f := protocol.Finding{Check: "login", Found: "the brokers accept " + s.String()}
	switch {
	case s.SkipVerify:
		f.Level, f.Effect = protocol.LevelNote, "another server could answer instead of the broker; times are not affected"
		f.Fix = "give --tls-ca FILE instead of --tls-insecure-skip-verify"
	case s.Mechanism == nil && s.TLS == nil:
		f.Found = "the brokers accept clients without TLS and without a login"
	}
	return f
}

// mostNamed limits the brokers with a finding of their own.
const mostNamed = 4

// brokerFindings are those about the brokers and their advertised addresses.
func brokerFindings(brokers []Broker, leaders []int32, standin bool) []protocol.Finding {
	var (
		out      []protocol.Finding
		versions = map[string]bool{}
		answer   int
	)
	for i := range brokers {
		b := &brokers[i]
		if b.Err == nil {
			answer++
			versions[b.Version] = true
			continue
		}
		if len(out) == mostNamed {
			continue
		}
		f := protocol.Finding{
			Check: fmt.Sprintf("advertised address %s", b.Addr), Level: protocol.LevelError,
			Found: fmt.Sprintf("broker %d advertises %s, which does not answer from here: %v", b.ID, b.Addr, b.Err),
			Fix:   "set advertised.listeners of the broker to an address that this machine can reach",
		}
		if n := Led(leaders, b.ID); n > 0 {
			f.Effect = fmt.Sprintf("it leads %d of the %d partitions of the topic, and their events cannot be sent", n, len(leaders))
		} else {
			f.Level, f.Effect = protocol.LevelWarning, "events fail when it becomes a leader of the topic"
		}
		if isTooOld(b.Err) {
			f.Found = fmt.Sprintf("broker %d at %s is too old: %v", b.ID, b.Addr, b.Err)
			f.Fix = tooOldHint(b.Err)
		}
		out = append(out, f)
	}
	f := protocol.Finding{Check: "brokers", Found: fmt.Sprintf("%d of %s answer at the addresses that they advertise", answer, units.Plural(len(brokers), "broker"))}
	if answer == len(brokers) {
		f.Found = units.Plural(len(brokers), "broker") + " answer at the addresses that they advertise"
		if answer == 1 {
			f.Found = "1 broker answers at the address that it advertises, " + brokers[0].Addr
		}
	}
	delete(versions, "")
	names := slices.Sorted(maps.Keys(versions))
	switch {
	case standin:
		f.Found += "; it is a stand-in of carronade"
	case len(names) == 1:
		f.Found += "; by their API versions Kafka " + strings.TrimPrefix(names[0], "v")
	case len(names) > 1:
		f.Level = protocol.LevelNote
		f.Found += "; by their API versions they differ: Kafka " + strings.ReplaceAll(strings.Join(names, ", "), "v", "")
		f.Effect = "partitions of different brokers may be fast in different ways"
		f.Fix = "finish the upgrade first"
	}
	return append(out, f)
}

// clockOf says what is known about the brokers' clocks: the protocol has no question for the
// time, and the stamp of a written record would cost a write.
func clockOf(brokers []Broker) protocol.Finding {
	f := protocol.Finding{Check: "clock of the brokers"}
	for i := range brokers {
		if !conn.IsLocal(brokers[i].Addr) {
			f.Level = protocol.LevelUnknown
			f.Found = "Kafka's protocol does not ask brokers for the time without writing"
			f.Effect = "times of events do not depend on it; retention by time, and other consumers' end-to-end times do"
			return f
		}
	}
	f.Found = "the brokers run on this machine, by its clock"
	return f
}

// inspectTopic looks at the topic. It does not create it.
func inspectTopic(ctx context.Context, cl *Cluster, t *kmsg.MetadataResponseTopic, leaderless []int32) []protocol.Finding {
	c := cl.Config
	err := kerr.ErrorForCode(t.ErrorCode)
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return []protocol.Finding{missing(ctx, cl)}
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return []protocol.Finding{{
			Check: "topic", Level: protocol.LevelError, Found: fmt.Sprintf("the user may not see the topic %s", c.Topic),
			Effect: "a run fails when it starts", Fix: cmp.Or(c.Grant(ACLTopic(c.Topic), c.SeeRights()...), AskAdmin),
		}}
	case err != nil:
		return []protocol.Finding{{
			Check: "topic", Level: protocol.LevelError, Found: fmt.Sprintf("the topic %s cannot be used: %v", c.Topic, err),
			Effect: "a run fails when it starts", Fix: c.Hint(err),
		}}
	}
	facts := topicFacts{name: c.Topic, brokers: len(cl.Brokers), leaders: cl.Leaders, leaderless: leaderless}
	for i := range t.Partitions {
		p := &t.Partitions[i]
		facts.partitions = append(facts.partitions, partitionFacts{p.Partition, len(p.Replicas), len(p.ISR)})
	}
	cl.ReadSettings(ctx)
	facts.settings = cl.Settings
	out := facts.findings(c)
	if right := c.MissingRight(t.AuthorizedOperations); right != "" {
		out = append(out, protocol.Finding{
			Check: "permissions", Level: protocol.LevelError, Found: fmt.Sprintf("%s lacks the permission %s on the topic %s", c.UserInWords(), strings.ToUpper(right), c.Topic),
			Effect: "a run fails when it starts", Fix: cmp.Or(c.Grant(ACLTopic(c.Topic), c.TopicRights()...), AskAdmin),
		})
	}
	return out
}

// missing is the finding about a topic that does not exist.
func missing(ctx context.Context, cl *Cluster) protocol.Finding {
	c := cl.Config
	f := protocol.Finding{Check: "topic", Found: fmt.Sprintf("the topic %s does not exist", c.Topic)}
	if c.Create != nil {
		f.Found += ", and the run creates it"
		return f
	}
	if e, ok := errors.AsType[*protocol.Error](c.MissingTopic(c.Topic, kerr.UnknownTopicOrPartition)); ok {
		f.Fix = e.Hint
	}
	auto, partitions := "", ""
	if len(cl.Brokers) > 0 {
		rs, err := cl.Admin.DescribeBrokerConfigs(ctx, cl.Brokers[0].ID)
		if err == nil && len(rs) == 1 && rs[0].Err == nil {
			for _, kv := range rs[0].Configs {
				switch kv.Key {
				case "auto.create.topics.enable":
					auto = kv.MaybeValue()
				case "num.partitions":
					partitions = kv.MaybeValue()
				}
			}
		}
	}
	f.Level, f.Effect = protocol.LevelError, "a run fails when it starts"
	switch {
	case c.OnlyReads():
	case auto == "true":
		f.Level = protocol.LevelWarning
		f.Effect = "the brokers create it when the run starts, with their defaults, which decide what is measured"
		if partitions != "" {
			f.Effect = fmt.Sprintf("the brokers create it when the run starts, with their defaults (partitions: %s), which decide what is measured", partitions)
		}
	case auto == "":
		f.Level = protocol.LevelWarning
		f.Effect = "a run fails when it starts, unless the brokers create topics automatically"
	}
	return f
}
