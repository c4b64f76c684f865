package cluster

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"carronade/internal/conn"
	"carronade/protocol"
)

// A Partitioner determines to which partition an event goes.
type Partitioner struct {
	Kind  string // roundrobin, sticky, murmur2, fixed
	Fixed int32
}

// String returns the option's text.
func (p Partitioner) String() string {
	if p.Kind == "fixed" {
		return fmt.Sprintf("fixed(%d)", p.Fixed)
	}
	return p.Kind
}

// partitionerForms lists the texts that parsePartitioner accepts.
const partitionerForms = "roundrobin, sticky, murmur2 (of the key, as the Java client does), fixed(N)"

func parsePartitioner(s string) (Partitioner, error) {
	switch s {
	case "roundrobin", "sticky", "murmur2":
		return Partitioner{Kind: s}, nil
	}
	if arg, ok := strings.CutPrefix(s, "fixed("); ok && strings.HasSuffix(arg, ")") {
		n, err := strconv.ParseInt(strings.TrimSuffix(arg, ")"), 10, 32)
		if err == nil && n >= 0 {
			return Partitioner{Kind: "fixed", Fixed: int32(n)}, nil
		}
	}
	return Partitioner{}, fmt.Errorf("partitioner %q: want one of %s", s, partitionerForms)
}

// A Position is where consuming starts.
type Position struct {
	Kind   string // earliest, latest, time, offset
	Time   time.Time
	Offset int64
}

// The ends of a log.
var (
	FromStart = Position{Kind: "earliest"}
	FromEnd   = Position{Kind: "latest"}
)

// positionForms lists the texts that parsePosition accepts.
const positionForms = "earliest, latest, an offset such as 1000, a time such as 2026-11-21T09:00:00Z"

func parsePosition(s string) (Position, error) {
	switch s {
	case "earliest", "latest":
		return Position{Kind: s}, nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 {
		return Position{Kind: "offset", Offset: n}, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return Position{Kind: "time", Time: t}, nil
	}
	return Position{}, fmt.Errorf("from %q: want one of %s", s, positionForms)
}

// String returns the option's text.
func (p Position) String() string {
	switch p.Kind {
	case "offset":
		return strconv.FormatInt(p.Offset, 10)
	case "time":
		return p.Time.Format(time.RFC3339)
	}
	return p.Kind
}

// ParseAcks reads the option acks.
func ParseAcks(s string) (int16, error) {
	switch s {
	case "0":
		return 0, nil
	case "1":
		return 1, nil
	case "all", "-1":
		return AcksAll, nil
	}
	return 0, fmt.Errorf("acks %q: want 0, 1 or all", s)
}

// parseTarget reads kafka://host:port,host/topics. text is what names the topics.
func parseTarget(u *url.URL, v protocol.Values) (seeds, names []string, text string, err error) {
	const doing = "read the target"
	if err := conn.CheckURL(u, doing, "give --user NAME --password env:NAME (or file:PATH) and --sasl-mechanism",
		"settings are flags; a client's own properties are given by --client-property k=v"); err != nil {
		return nil, nil, "", err
	}
	if u.Host != "" { // else a property names the brokers
		if seeds, err = conn.Hosts(u.Host, DefaultPort); err != nil {
			return nil, nil, "", &protocol.Error{Doing: doing, Err: err, Hint: "a target is kafka://host:9092/topic, several hosts separated by commas"}
		}
	}
	text = cmp.Or(strings.Trim(u.Path, "/"), defaultTopic)
	if names, err = parseTopicNames(text); err == nil {
		names, text, err = firstTopics(names, text, v.String("topics"))
	}
	return seeds, names, text, err
}

// parseSeeds reads the property bootstrap.servers. Like the Java clients, it skips
// empty entries between commas
// (org.apache.kafka.clients.ClientUtils.parseAndValidateAddresses).
func parseSeeds(list string) ([]string, error) {
	var named []string
	for s := range strings.SplitSeq(list, ",") {
		if s = strings.TrimSpace(s); s != "" {
			named = append(named, s)
		}
	}
	if len(named) == 0 {
		return nil, nil
	}
	return conn.Hosts(strings.Join(named, ","), DefaultPort)
}

// CheckTopic applies Kafka's own rule for topic names
// (org.apache.kafka.common.internals.Topic).
func CheckTopic(name string) error {
	const most = 249
	bad := func(why string) error {
		return &protocol.Error{
			Doing: fmt.Sprintf("read the topic %q", name),
			Err:   fmt.Errorf("%s", why),
			Hint:  "a topic's name has 1 to 249 letters, digits, dots, underscores and dashes: kafka://host:9092/my-topic",
		}
	}
	switch {
	case name == "":
		return bad("it is empty")
	case len(name) > most:
		return bad(fmt.Sprintf("it has %d characters, more than %d", len(name), most))
	case name == "." || name == "..":
		return bad("it is a dot name")
	}
	for _, c := range name {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
		if !ok {
			return bad(fmt.Sprintf("it has the character %q", c))
		}
	}
	return nil
}

// A Location is where a pipeline reads, if it is not where it produces.
type Location struct {
	Seeds []string
	Topic string
}

// parseStage reads the options of a pipeline's second stage.
func (c *Config) parseStage(v protocol.Values) (err error) {
	if c.Op != OpPipeline {
		return nil
	}
	if c.Stage, err = protocol.ParseStage(v); err != nil {
		return err
	}
	text := v.String("read-from")
	if text == "" {
		return nil
	}
	wrong := func(err error) error {
		return &protocol.Error{Doing: "read the option read-from", Err: err, Hint: "give the URL of a topic, such as --read-from kafka://host:9092/" + c.Topic}
	}
	u, err := url.Parse(text)
	if err != nil {
		return wrong(fmt.Errorf("%s is not a URL", text))
	}
	if u.Scheme != "kafka" {
		return wrong(fmt.Errorf("%s does not begin with kafka://", text))
	}
	from := &Location{}
	var names []string
	if from.Seeds, names, _, err = parseTarget(u, nil); err != nil {
		return wrong(err)
	}
	if len(names) > 1 {
		return wrong(fmt.Errorf("%s names several topics", text))
	}
	from.Topic = names[0]
	if len(from.Seeds) == 0 {
		return wrong(fmt.Errorf("%s has no broker address", text))
	}
	c.ReadFrom = from
	return nil
}
