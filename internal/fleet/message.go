package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
)

// A Kind is what a message is about.
type Kind string

// The kinds of messages. The operator sends ping, load, recover, beat and halt; agents send
// the others.
const (
	Ping        Kind = "ping"    // an exchange of clock times; any run and session will do to learn who is there
	Pong        Kind = "pong"    // its answer, with Info
	Load        Kind = "load"    // a run begins: open the target
	Recover     Kind = "recover" // deliver an earlier run from the spool
	Beat        Kind = "beat"    // what the operator wants, and what it has
	Halt        Kind = "halt"    // end the run, whichever side began it; Reason says why
	Status      Kind = "status"  // what the agent does, and what it has
	Refuse      Kind = "refuse"  // the agent does not take part; Err says why
	FrameRecord Kind = "frame"   // an interval
	PartRecord  Kind = "part"    // a part of the result
)

// A Want is what the operator wants an agent to do, in a beat. It only ever increases,
// in the order below.
type Want string

// The wants.
const (
	WantOpen    Want = "open"    // open the target, report ready
	WantArm     Want = "arm"     // confirm the time of the start
	WantGo      Want = "go"      // fire from then on
	WantStop    Want = "stop"    // fire nothing more, wait for answers, end
	WantAbort   Want = "abort"   // end at once
	WantRelease Want = "release" // remove the run from the spool
)

var wantOrder = map[Want]int{WantOpen: 1, WantArm: 2, WantGo: 3, WantStop: 4, WantAbort: 5, WantRelease: 6}

// A Phase is what an agent does in a run.
type Phase string

// The phases of an agent.
const (
	Idle     Phase = ""         // no run
	Opening  Phase = "opening"  // the engine opens its target
	Ready    Phase = "ready"    // it is open
	Armed    Phase = "armed"    // the time of the start is known
	Running  Phase = "running"  // the engine fires, or will at that time
	Stopping Phase = "stopping" // the engine got the order to end
	Ended    Phase = "ended"    // it has ended: only frames and the result remain to be delivered
	Released Phase = "released" // all is delivered and removed
)

var phases = map[Phase]bool{Opening: true, Ready: true, Armed: true, Running: true, Stopping: true, Ended: true, Released: true}

// Info is what an agent says of itself.
type Info struct {
	Name         string   `json:"name"`
	Incarnation  string   `json:"incarnation"` // differs for each process
	Version      string   `json:"version"`     // of the program
	Layout       string   `json:"layout"`      // of its histograms
	Protocol     int      `json:"protocol"`
	Processors   int      `json:"processors,omitempty"`
	Weight       int      `json:"weight,omitempty"` // its share of the clients, beside those of others
	AllowTargets []string `json:"allow_targets,omitempty"`
	Busy         string   `json:"busy,omitempty"` // the run in progress
}

// A Message is everything that goes over the bus, in both directions. Kind says which
// fields it has. Times are those of a monotonic clock: of the agent's, unless said
// otherwise.
type Message struct {
	Protocol    int    `json:"protocol"`
	Kind        Kind   `json:"kind"`
	Run         string `json:"run"`
	Session     string `json:"session"`               // the coordinator, of which a run has a second one when it is recovered
	Incarnation string `json:"incarnation,omitempty"` // the agent's process; empty in the first pings
	// Number counts pings, beats, or the records of a run: its frames, then the parts of
	// its result, from 1.
	Number uint64 `json:"number,omitempty"`

	// ping, pong
	Sent     time.Duration `json:"sent,omitempty"` // the ping, on the operator's clock
	Received time.Duration `json:"received,omitempty"`
	Answered time.Duration `json:"answered,omitempty"`
	Info     *Info         `json:"info,omitempty"`

	// load
	Version string `json:"version,omitempty"`
	Layout  string `json:"layout,omitempty"`
	Plan    []byte `json:"plan,omitempty"`
	Share   []byte `json:"share,omitempty"`
	Hash    []byte `json:"hash,omitempty"` // load: SHA-256 of Plan and Share; status: of the result

	// beat, status
	Want   Want          `json:"want,omitempty"`
	Phase  Phase         `json:"phase,omitempty"`
	Start  time.Duration `json:"start,omitempty"`  // T0 on the agent's clock
	Reason string        `json:"reason,omitempty"` // why the operator wants a stop
	Now    time.Duration `json:"now,omitempty"`    // status: when it was sent
	Heard  time.Duration `json:"heard,omitempty"`  // beat: Now of the newest status that arrived
	Acked  uint64        `json:"acked,omitempty"`  // beat: all records up to this one arrived
	Beyond uint32        `json:"beyond,omitempty"` // beat: bit i: record Acked+2+i arrived too
	Frames uint64        `json:"frames,omitempty"` // status: how many exist
	Parts  uint64        `json:"parts,omitempty"`  // status: of the result, once it ended
	Lapsed bool          `json:"lapsed,omitempty"` // status: the lease ended before the run did
	Origin string        `json:"origin,omitempty"` // status, records: the process that made them
	Fired  bool          `json:"fired,omitempty"`  // status: the engine had the order to start, and was not stopped before
	// status: the engine got the order to end, and did not end by itself.
	Stopped bool   `json:"stopped,omitempty"`
	Broken  bool   `json:"broken,omitempty"` // status: the spool fails, what is missing will not come
	Err     string `json:"err,omitempty"`    // status, refuse

	// frame, part: behind the JSON, as it is
	Data []byte `json:"-"`
}

// A ProtocolError is a message in another version of the protocol.
type ProtocolError struct{ Got int }

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("it speaks version %d of the fleet's protocol, this program version %d: use the same version of the program everywhere", e.Got, Protocol)
}

// Encode returns the message as one JSON object, and a line feed and Data behind it if there are
// any: most bytes of a run are Data, and a text would make a third more of them.
func (m *Message) Encode() []byte {
	c := *m
	c.Protocol = Protocol
	c.Err, c.Reason = printable(c.Err), printable(c.Reason)
	b, err := json.Marshal(&c)
	if err != nil {
		panic("fleet: " + err.Error()) // no field can fail
	}
	if len(m.Data) > 0 {
		b = append(append(b, dataFollows), m.Data...)
	}
	return b
}

// dataFollows is between the JSON of a message, in which it cannot be, and its data.
const dataFollows = '\n'

// DecodeMessage parses what Encode returned. It refuses messages that are too large, of
// an unknown kind, or without the fields of their kind, and those in another version of
// the protocol with a ProtocolError. Texts of the other side come back without control
// characters. It does not keep data.
func DecodeMessage(data []byte) (*Message, error) {
	if len(data) > MaxMessage {
		return nil, fmt.Errorf("a message of %d bytes: at most %d", len(data), MaxMessage)
	}
	data, behind, has := bytes.Cut(data, []byte{dataFollows})
	var head struct {
		Protocol int `json:"protocol"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("not a message: %w", err)
	}
	if head.Protocol != Protocol {
		return nil, &ProtocolError{Got: head.Protocol}
	}
	m := new(Message)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("not a message: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not a message: more follows it")
	}
	if has {
		if len(behind) == 0 || m.Kind != FrameRecord && m.Kind != PartRecord {
			return nil, fmt.Errorf("not a message: a %s with data behind it", shorten(string(m.Kind)))
		}
		m.Data = slices.Clone(behind)
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	m.clean()
	return m, nil
}

// check reports what a message lacks.
func (m *Message) check() error {
	if !ValidRun(m.Run) {
		return errors.New("a message without a valid run")
	}
	if m.Session == "" || len(m.Session) > maxName || len(m.Incarnation) > maxName || len(m.Origin) > maxName {
		return errors.New("a message without a valid session or process")
	}
	var ok bool
	switch m.Kind {
	case Ping:
		ok = m.Number > 0
	case Pong:
		ok = m.Number > 0 && m.Info != nil && m.Info.Incarnation == m.Incarnation && m.Incarnation != ""
	case Load:
		ok = m.Incarnation != "" && len(m.Hash) == hashSize && len(m.Plan)+len(m.Share) <= MaxPlan
	case Recover, Halt:
		ok = m.Incarnation != ""
	case Beat:
		ok = m.Incarnation != "" && m.Number > 0 && wantOrder[m.Want] > 0
	case Status:
		ok = m.Incarnation != "" && phases[m.Phase] && (len(m.Hash) == 0 || len(m.Hash) == hashSize) &&
			m.Frames < maxRecords && m.Parts < maxRecords
	case Refuse:
		ok = m.Incarnation != ""
	case FrameRecord, PartRecord:
		ok = m.Incarnation != "" && m.Origin != "" && m.Number > 0 && len(m.Data) <= MaxFrame
	default:
		return fmt.Errorf("a message of the unknown kind %q", shorten(string(m.Kind)))
	}
	if !ok {
		return fmt.Errorf("a %s has missing or too many fields", m.Kind)
	}
	return nil
}

const (
	hashSize   = 32
	maxName    = 128
	maxText    = 4096
	maxRecords = 1 << 40
)

// ValidRun reports whether a run can have the name: letters, digits, dashes, dots and
// underscores, at most 128, not starting with a dot. So it is also a name of a folder.
func ValidRun(name string) bool {
	if name == "" || len(name) > maxName || name[0] == '.' {
		return false
	}
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_') {
			return false
		}
	}
	return true
}

// clean makes the texts of the other side printable.
func (m *Message) clean() {
	for _, s := range []*string{&m.Reason, &m.Err, &m.Version, &m.Layout, &m.Session, &m.Incarnation, &m.Origin} {
		*s = printable(*s)
	}
	if m.Info != nil {
		for _, s := range []*string{&m.Info.Name, &m.Info.Incarnation, &m.Info.Version, &m.Info.Layout, &m.Info.Busy} {
			*s = printable(*s)
		}
		for i := range m.Info.AllowTargets {
			m.Info.AllowTargets[i] = printable(m.Info.AllowTargets[i])
		}
	}
}

// printable escapes what a terminal would not print, and shortens long texts.
func printable(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}

func shorten(s string) string { return s[:min(len(s), 40)] }
