package kafka

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

	"carronade/internal/conn"
	"carronade/target"
	"carronade/units"
)

// inspected are the options that Inspect uses besides those of security and connections.
var inspected = []string{"acks", "batch-size", "compression", "create-topic", "idempotent"}

// Inspects reports whether Inspect uses an option.
func Inspects(o *target.Option) bool {
	switch o.Group {
	case groupSecurity, groupConn:
		return o.Name != "rack"
	}
	return slices.Contains(inspected, o.Name)
}

// Inspect looks at a cluster and a topic before a run, see target.Inspector. It makes the connections
// that a run makes first, and then asks about the topic, its settings, the brokers and the quotas. It
// creates no topic.
func Inspect(ctx context.Context, s target.Spec) (target.Inspection, error) {
	c, err := parseConfig(s)
	if err != nil {
		return target.Inspection{}, err
	}
	in := target.Inspection{Addresses: c.seeds}
	seeds, err := contactSeeds(ctx, c)
	if err != nil {
		return in, err
	}
	in.Findings = append(in.Findings, seeds.findings(time.Now())...)
	reached := *c
	reached.seeds = seeds.answered // others would only delay what follows
	cl, err := reached.client()
	if err != nil {
		return in, err
	}
	defer cl.close()
	meta, err := cl.metadata(ctx, c.topic, false)
	if err != nil {
		return in, c.explain("ask for the topic "+c.topic, err)
	}
	leaderless := cl.applyMetadata(meta)
	in.Connections = c.clients * len(cl.brokers)

	var (
		wg     sync.WaitGroup
		quotas target.Finding
		topic  []target.Finding
	)
	wg.Go(func() { cl.contactBrokers(ctx) })
	wg.Go(func() { quotas = quotasOf(ctx, cl) })
	wg.Go(func() { topic = inspectTopic(ctx, cl, &meta.Topics[0], leaderless) })
	wg.Wait()
	in.Findings = append(in.Findings, login(c.security))
	in.Findings = append(in.Findings, brokerFindings(cl.brokers, cl.leaders, isStandin(cl.id))...)
	in.Findings = append(in.Findings, topic...)
	in.Findings = append(in.Findings, quotas, clockOf(cl.brokers))
	return in, nil
}

// tool is a command line of one of Kafka's own tools for the run's cluster. With a login, it reads
// that from the run's --client-config, or from a file like it.
func tool(c *config, name, args string) string {
	login := ""
	if c.security.protocol() != plaintext {
		flag := "--command-config"
		if name == "kafka-leader-election" {
			flag = "--admin.config"
		}
		file := "FILE"
		if c.clientConfig != "" {
			file = quoted(c.clientConfig)
		}
		login = " " + flag + " " + file
	}
	return name + " --bootstrap-server " + quoted(strings.Join(c.seeds, ",")) + login + " " + args
}

// seeds is what connecting to the bootstrap brokers found.
type seeds struct {
	contacts []conn.Contact
	errs     []error // of the protocol or the login, by seed
	hints    []string
	answered []string
}

// contactSeeds connects to all seeds at once. It is an error if none answers as a broker.
func contactSeeds(ctx context.Context, c *config) (*seeds, error) {
	s := &seeds{contacts: make([]conn.Contact, len(c.seeds)), errs: make([]error, len(c.seeds))}
	d := conn.Dialer{TLS: c.security.tls}
	var wg sync.WaitGroup
	for i, addr := range c.seeds {
		wg.Go(func() { s.contacts[i] = d.Contact(ctx, addr) })
		wg.Go(func() { s.errs[i] = c.probeOne(ctx, addr) })
	}
	wg.Wait()
	for i, err := range s.errs {
		if err == nil {
			s.answered = append(s.answered, c.seeds[i])
			s.hints = append(s.hints, "")
		} else {
			s.hints = append(s.hints, c.hint(err))
		}
	}
	if len(s.answered) == 0 {
		return nil, c.noneAnswered(s.errs)
	}
	return s, nil
}

func (s *seeds) findings(now time.Time) []target.Finding {
	var out []target.Finding
	for i := range s.contacts {
		c := &s.contacts[i]
		if err := s.errs[i]; err != nil {
			out = append(out, target.Finding{
				Check: "address " + c.Addr, Level: target.LevelWarning,
				Found:  fmt.Sprintf("%s does not answer as a broker: %v", c.Addr, err),
				Effect: "a run starts with the other addresses, and may wait for this one first",
				Mend:   s.hints[i],
			})
			continue
		}
		out = append(out, c.Findings(now)...)
	}
	return out
}

// login is the finding about the listener's security, after it let us in.
func login(s *security) target.Finding {
	f := target.Finding{Check: "login", Found: "the brokers accept " + s.String()}
	switch {
	case s.skipVerify:
		f.Level, f.Effect = target.LevelNote, "another server could answer instead of the broker; times are not affected"
		f.Mend = "give --tls-ca FILE instead of --tls-insecure-skip-verify"
	case s.mechanism == nil && s.tls == nil:
		f.Found = "the brokers accept clients without TLS and without a login"
	}
	return f
}

// mostNamed limits the brokers with a finding of their own.
const mostNamed = 4

// brokerFindings are those about the brokers and their advertised addresses.
func brokerFindings(brokers []broker, leaders []int32, standin bool) []target.Finding {
	var (
		out      []target.Finding
		versions = map[string]bool{}
		answer   int
	)
	for i := range brokers {
		b := &brokers[i]
		if b.err == nil {
			answer++
			versions[b.version] = true
			continue
		}
		if len(out) == mostNamed {
			continue
		}
		f := target.Finding{
			Check: fmt.Sprintf("advertised address %s", b.addr), Level: target.LevelError,
			Found: fmt.Sprintf("broker %d advertises %s, which does not answer from here: %v", b.id, b.addr, b.err),
			Mend:  "set advertised.listeners of the broker to an address that this machine can reach",
		}
		if n := led(leaders, b.id); n > 0 {
			f.Effect = fmt.Sprintf("it leads %d of the %d partitions of the topic, and their events cannot be sent", n, len(leaders))
		} else {
			f.Level, f.Effect = target.LevelWarning, "events fail when it becomes a leader of the topic"
		}
		if errors.Is(b.err, errTooOld) {
			f.Found = fmt.Sprintf("broker %d at %s is too old: %v", b.id, b.addr, b.err)
			f.Mend = "add --engine client to the run"
		}
		out = append(out, f)
	}
	f := target.Finding{Check: "brokers", Found: fmt.Sprintf("%d of %s answer at the addresses that they advertise", answer, units.Plural(len(brokers), "broker"))}
	if answer == len(brokers) {
		f.Found = units.Plural(len(brokers), "broker") + " answer at the addresses that they advertise"
		if answer == 1 {
			f.Found = "1 broker answers at the address that it advertises, " + brokers[0].addr
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
		f.Level = target.LevelNote
		f.Found += "; by their API versions they differ: Kafka " + strings.ReplaceAll(strings.Join(names, ", "), "v", "")
		f.Effect = "partitions of different brokers may be fast in different ways"
		f.Mend = "finish the upgrade first"
	}
	return append(out, f)
}

// clockOf says what is known about the brokers' clocks: the protocol has no question for the
// time, and the stamp of a written record would cost a write.
func clockOf(brokers []broker) target.Finding {
	f := target.Finding{Check: "clock of the brokers"}
	for i := range brokers {
		if !conn.IsLocal(brokers[i].addr) {
			f.Level = target.LevelUnknown
			f.Found = "Kafka's protocol does not ask brokers for the time without writing"
			f.Effect = "times of events do not depend on it; retention by time, and other consumers' end-to-end times do"
			return f
		}
	}
	f.Found = "the brokers run on this machine, by its clock"
	return f
}

// inspectTopic looks at the topic. It does not create it.
func inspectTopic(ctx context.Context, cl *cluster, t *kmsg.MetadataResponseTopic, leaderless []int32) []target.Finding {
	c := cl.cfg
	err := kerr.ErrorForCode(t.ErrorCode)
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return []target.Finding{missing(ctx, cl)}
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return []target.Finding{{
			Check: "topic", Level: target.LevelError, Found: fmt.Sprintf("the user may not see the topic %s", c.topic),
			Effect: "a run fails when it starts", Mend: cmp.Or(c.grant(aclTopic(c.topic), c.seeRights()...), askAdmin),
		}}
	case err != nil:
		return []target.Finding{{
			Check: "topic", Level: target.LevelError, Found: fmt.Sprintf("the topic %s cannot be used: %v", c.topic, err),
			Effect: "a run fails when it starts", Mend: c.hint(err),
		}}
	}
	facts := topicFacts{name: c.topic, brokers: len(cl.brokers), leaders: cl.leaders, leaderless: leaderless}
	for i := range t.Partitions {
		p := &t.Partitions[i]
		facts.partitions = append(facts.partitions, partitionFacts{p.Partition, len(p.Replicas), len(p.ISR)})
	}
	cl.readSettings(ctx)
	facts.settings = cl.settings
	out := facts.findings(c)
	if right := c.missingRight(t.AuthorizedOperations); right != "" {
		out = append(out, target.Finding{
			Check: "permissions", Level: target.LevelError, Found: fmt.Sprintf("%s lacks the permission %s on the topic %s", c.userInWords(), strings.ToUpper(right), c.topic),
			Effect: "a run fails when it starts", Mend: cmp.Or(c.grant(aclTopic(c.topic), c.topicRights()...), askAdmin),
		})
	}
	return out
}

// missing is the finding about a topic that does not exist.
func missing(ctx context.Context, cl *cluster) target.Finding {
	c := cl.cfg
	f := target.Finding{Check: "topic", Found: fmt.Sprintf("the topic %s does not exist", c.topic)}
	if c.create != nil {
		f.Found += ", and the run creates it"
		return f
	}
	if e := (*target.Error)(nil); errors.As(c.missingTopic(kerr.UnknownTopicOrPartition), &e) {
		f.Mend = e.Hint
	}
	auto, partitions := "", ""
	if len(cl.brokers) > 0 {
		rs, err := cl.admin.DescribeBrokerConfigs(ctx, cl.brokers[0].id)
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
	f.Level, f.Effect = target.LevelError, "a run fails when it starts"
	switch {
	case c.onlyReads():
	case auto == "true":
		f.Level = target.LevelWarning
		f.Effect = "the brokers create it when the run starts, with their defaults, which decide what is measured"
		if partitions != "" {
			f.Effect = fmt.Sprintf("the brokers create it when the run starts, with their defaults (partitions: %s), which decide what is measured", partitions)
		}
	case auto == "":
		f.Level = target.LevelWarning
		f.Effect = "a run fails when it starts, unless the brokers create topics automatically"
	}
	return f
}
