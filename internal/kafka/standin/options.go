package standin

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"carronade/internal/secret"
	"carronade/internal/standin"
)

// Options configures a stand-in. The zero value is a broker at 127.0.0.1:9092 that
// keeps its data in a temporary folder.
type Options struct {
	Listen    string // address to listen on; port 0 picks a free one
	Advertise string // address given to clients; default: the one listened on

	Discard    bool    // keep nothing and serve synthetic records
	Partitions int     // of topics created on demand; default 3
	Topics     []Topic // created at the start

	DataDir    string // where the broker keeps its data, and finds those of an earlier one; default: a temporary folder, removed at the end
	Fsync      bool   // flush each batch to the disk before the ack
	InMemory   bool   // keep the data in memory instead
	Retain     int64  // bytes kept per partition; default 1 GiB, in memory 128 MiB
	MaxMessage int64  // largest record batch in bytes (message.max.bytes); default Kafka's 1,048,588

	Events      uint64 // synthetic records in each partition of the discard broker at the start; default 10^12
	EventSize   int    // bytes of each; default 100
	BatchEvents int    // synthetic records in a batch; default 1000, fewer if a batch would exceed 1 MB

	Delay  time.Duration // of each answer
	Stall  standin.Stall
	Errors []ErrorRule // for produce requests, per partition
	Seed   uint64      // of the random errors

	Capacity standin.CapacityOptions // of the server that serves produced records

	TLS  standin.TLS // spoken when set
	SASL []Login

	Record string // file for when each request arrived and was answered; empty: none

	Log io.Writer // messages about connections that ended with an error; nil: none
}

// A Topic is a topic to create at the start.
type Topic struct {
	Name       string
	Partitions int
}

func (t Topic) String() string { return fmt.Sprintf("%s:%d", t.Name, t.Partitions) }

// A Login is one SASL user that may do everything.
type Login struct {
	Mechanism string // PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
	User      string
	Password  string
}

// String leaves the password out.
func (l Login) String() string { return l.Mechanism + ":" + l.User }

func (o Options) withDefaults() Options {
	o.Listen = cmp.Or(o.Listen, "127.0.0.1:9092")
	if o.Retain == 0 {
		o.Retain = 1 << 30
		if o.InMemory {
			o.Retain = 128 << 20
		}
	}
	o.MaxMessage = cmp.Or(o.MaxMessage, 1048588)
	o.Events = cmp.Or(o.Events, 1e12)
	o.Partitions = cmp.Or(o.Partitions, 3)
	o.EventSize = cmp.Or(o.EventSize, 100)
	if o.BatchEvents == 0 {
		o.BatchEvents = max(1, min(1000, 1000000/(o.EventSize+16)))
	}
	o.Topics = slices.Clone(o.Topics)
	for i := range o.Topics {
		o.Topics[i].Partitions = cmp.Or(o.Topics[i].Partitions, o.Partitions)
	}
	return o
}

// mostPartitions is the most that a topic may have.
const mostPartitions = 10_000

// Check reports what is wrong with the options after filling in the defaults.
func (o Options) Check() error {
	o = o.withDefaults()
	_, _, err := net.SplitHostPort(o.Listen)
	switch {
	case err != nil:
		return fmt.Errorf("listen address %q: want host:port, such as 127.0.0.1:9092: %w", o.Listen, err)
	case o.Partitions < 1 || o.Partitions > mostPartitions:
		return fmt.Errorf("%d partitions: want 1 to %d", o.Partitions, mostPartitions)
	case o.EventSize < 1 || o.EventSize > 64<<20:
		return fmt.Errorf("events of %d bytes: want 1B to 64MiB", o.EventSize)
	case o.BatchEvents < 1 || o.BatchEvents > 1<<20 || int64(o.BatchEvents)*int64(o.EventSize+16) > 256<<20:
		return fmt.Errorf("batches of %d events: want 1 to 1048576, and at most 256 MiB", o.BatchEvents)
	case o.Events > 1<<62:
		return fmt.Errorf("%d events: want at most 2^62", o.Events)
	case o.Retain < 1:
		return fmt.Errorf("%d bytes kept per partition: want more than 0", o.Retain)
	case o.MaxMessage < 1 || o.MaxMessage > maxFrame:
		return fmt.Errorf("record batches of at most %d bytes: want 1B to 100MiB", o.MaxMessage)
	case o.DataDir != "" && (o.Discard || o.InMemory):
		return errors.New("with in-memory or discard no data are written: leave out data-dir, or in-memory and discard")
	case o.Fsync && o.DataDir == "":
		return errors.New("fsync has no effect on data that are removed at the end: add data-dir, or leave out fsync")
	case o.Discard && len(o.SASL) > 0:
		return errors.New("the discard broker does not support logins; leave out discard")
	}
	if err := standin.CheckRecord(o.Record, o.TLS); err != nil {
		return err
	}
	if err := o.TLS.Check(); err != nil {
		return err
	}
	if err := standin.CheckRules(o.Delay, o.Errors); err != nil {
		return err
	}
	if err := o.Capacity.Check(); err != nil {
		return err
	}
	for _, l := range o.SASL {
		if !slices.Contains(mechanisms, l.Mechanism) {
			return fmt.Errorf("login mechanism %q: want one of %s", l.Mechanism, strings.Join(mechanisms, ", "))
		}
	}
	return nil
}

var mechanisms = []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}

// An ErrorRule refuses a share of the partitions in produce requests with one of
// Kafka's errors: its code, and its name in lower case with dashes, such as
// not-leader-or-follower.
type ErrorRule = standin.Rule[int16]

// errorAliases are short names for the errors that are injected most often.
var errorAliases = map[string]string{
	"timeout":      "request-timed-out",
	"not-leader":   "not-leader-or-follower",
	"too-large":    "message-too-large",
	"unauthorized": "topic-authorization-failed",
	"throttled":    "throttling-quota-exceeded",
}

// ParseErrorRule parses "timeout@1%": the error's name, and the share of the
// partitions that get it.
func ParseErrorRule(s string) (ErrorRule, error) {
	return standin.ParseRule(s, "NAME@SHARE, such as timeout@1%", func(name string) (ErrorRule, error) {
		full := strings.ToLower(name)
		if a, ok := errorAliases[full]; ok {
			full = a
		}
		for code := int16(1); code < 200; code++ {
			e := kerr.TypedErrorForCode(code)
			if e == nil || e == kerr.UnknownServerError {
				continue
			}
			if errorName(e) == full {
				return ErrorRule{Name: full, What: code}, nil
			}
		}
		return ErrorRule{}, fmt.Errorf("Kafka has no error %q: want a name such as timeout, not-leader, too-large, unauthorized or throttled, or any of Kafka's own in lower case with dashes", name)
	})
}

// errorName is Kafka's name of an error in the form that rules use.
func errorName(e *kerr.Error) string {
	if e == kerr.NotLeaderForPartition {
		return "not-leader-or-follower" // its name since Kafka 2.6
	}
	return strings.ReplaceAll(strings.ToLower(e.Message), "_", "-")
}

// ParseTopic parses "NAME" or "NAME:PARTITIONS".
func ParseTopic(s string) (Topic, error) {
	name, n, ok := strings.Cut(s, ":")
	t := Topic{Name: name}
	if name == "" {
		return t, fmt.Errorf("topic %q: want NAME or NAME:PARTITIONS", s)
	}
	if ok {
		var err error
		if t.Partitions, err = strconv.Atoi(n); err != nil || t.Partitions < 1 || t.Partitions > mostPartitions {
			return t, fmt.Errorf("topic %q: want NAME or NAME:PARTITIONS, such as carronade:12, with 1 to %d", s, mostPartitions)
		}
	}
	return t, nil
}

// ParseLogin parses "MECHANISM:USER:PASSWORD"; the password may be env:NAME or
// file:PATH.
func ParseLogin(s string) (Login, error) {
	mechanism, rest, _ := strings.Cut(s, ":")
	user, password, ok := strings.Cut(rest, ":")
	if !ok || user == "" {
		return Login{}, errors.New("login: want MECHANISM:USER:PASSWORD, such as SCRAM-SHA-256:alice:env:PASSWORD")
	}
	password, _, err := secret.Read(password)
	if err != nil {
		return Login{}, fmt.Errorf("login of %s: %w", user, err)
	}
	return Login{Mechanism: strings.ToUpper(mechanism), User: user, Password: password}, nil
}
