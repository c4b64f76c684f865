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

// A messageKind is what a message is about.
type messageKind string

// The kinds of messages. The operator sends ping, load, recover, beat and halt; agents send
// the others.
const (
	kindPing    messageKind = "ping"    // an exchange of clock times; any run and session will do to learn who is there
	kindPong    messageKind = "pong"    // its answer, with Info
	kindLoad    messageKind = "load"    // a run begins: open the target
	kindRecover messageKind = "recover" // deliver an earlier run from the spool
	kindBeat    messageKind = "beat"    // what the operator wants, and what it has
	kindHalt    messageKind = "halt"    // end the run, whichever side began it; Reason says why
	kindStatus  messageKind = "status"  // what the agent does, and what it has
	kindRefuse  messageKind = "refuse"  // the agent does not take part; Err says why
	kindFrame   messageKind = "frame"   // an interval
	kindPart    messageKind = "part"    // a part of the result
)

// A want is what the operator wants an agent to do, in a beat. It only ever increases,
// in the order below.
type want string

// The wants.
const (
	wantOpen    want = "open"    // open the target, report ready
	wantArm     want = "arm"     // confirm the time of the start
	wantGo      want = "go"      // fire from then on
	wantStop    want = "stop"    // fire nothing more, wait for answers, end
	wantAbort   want = "abort"   // end at once
	wantRelease want = "release" // remove the run from the spool
)

var wantOrder = map[want]int{wantOpen: 1, wantArm: 2, wantGo: 3, wantStop: 4, wantAbort: 5, wantRelease: 6}

// An agentPhase is what an agent does in a run.
type agentPhase string

// The phases of an agent.
const (
	phaseOpening  agentPhase = "opening"  // the engine opens its target
	phaseReady    agentPhase = "ready"    // it is open
	phaseArmed    agentPhase = "armed"    // the time of the start is known
	phaseRunning  agentPhase = "running"  // the engine fires, or will at that time
	phaseStopping agentPhase = "stopping" // the engine got the order to end
	phaseEnded    agentPhase = "ended"    // it has ended: only frames and the result remain to be delivered
	phaseReleased agentPhase = "released" // all is delivered and removed
)

var phases = map[agentPhase]bool{phaseOpening: true, phaseReady: true, phaseArmed: true, phaseRunning: true, phaseStopping: true, phaseEnded: true, phaseReleased: true}

// Info is what an agent says of itself.
type Info struct {
	Name         string   `json:"name"`
	Incarnation  string   `json:"incarnation"` // differs for each process
	Version      string   `json:"version"`     // of the program
	Layout       string   `json:"layout"`      // of its histograms
	Protocol     int      `json:"protocol"`
	Processors   int      `json:"processors,omitempty"`
	Weight       int      `json:"weight,omitempty"` // its share of the clients, with those of others
	AllowTargets []string `json:"allow_targets,omitempty"`
	Busy         string   `json:"busy,omitempty"` // the run in progress
}

// A message is everything that goes over the bus, in both directions. Kind says which
// fields it has. Times are those of a monotonic clock: of the agent's, unless said
// otherwise.
type message struct {
	Protocol    int         `json:"protocol"`
	Kind        messageKind `json:"kind"`
	Run         string      `json:"run"`
	Session     string      `json:"session"`               // the coordinator, of which a run has a second one when it is recovered
	Incarnation string      `json:"incarnation,omitempty"` // the agent's process; empty in the first pings
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
	Want   want          `json:"want,omitempty"`
	Phase  agentPhase    `json:"phase,omitempty"`
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
	// status: what else uses the agent's machine, if that disturbs the run.
	Disturbed string `json:"disturbed,omitempty"`

	// frame, part: behind the JSON, as it is
	Data []byte `json:"-"`
}

// A protocolError is a message in another version of the protocol.
type protocolError struct{ Got int }

func (e *protocolError) Error() string {
	return fmt.Sprintf("it speaks version %d of the fleet's protocol, this program version %d: use the same version of the program everywhere", e.Got, protocolVersion)
}

// Encode returns the message as one JSON object, and a line feed and Data behind it if there are
// any: most bytes of a run are Data, and a text would make a third more of them.
func (m *message) Encode() []byte {
	c := *m
	c.Protocol = protocolVersion
	c.Err, c.Reason, c.Disturbed = printable(c.Err), printable(c.Reason), printable(c.Disturbed)
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

// decodeMessage parses what Encode returned. It refuses messages that are too large, of
// an unknown kind, or without the fields of their kind, and those in another version of
// the protocol with a protocolError. Texts of the other side come back without control
// characters. It does not keep data.
func decodeMessage(data []byte) (*message, error) {
	if len(data) > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes: at most %d", len(data), maxMessage)
	}
	data, behind, has := bytes.Cut(data, []byte{dataFollows})
	var head struct {
		Protocol int `json:"protocol"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("not a message: %w", err)
	}
	if head.Protocol != protocolVersion {
		return nil, &protocolError{Got: head.Protocol}
	}
	m := new(message)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("not a message: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not a message: more follows it")
	}
	if has {
		if len(behind) == 0 || m.Kind != kindFrame && m.Kind != kindPart {
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
func (m *message) check() error {
	if !validRun(m.Run) {
		return errors.New("a message without a valid run")
	}
	if m.Session == "" || len(m.Session) > maxName || len(m.Incarnation) > maxName || len(m.Origin) > maxName {
		return errors.New("a message without a valid session or process")
	}
	var ok bool
	switch m.Kind {
	case kindPing:
		ok = m.Number > 0
	case kindPong:
		ok = m.Number > 0 && m.Info != nil && m.Info.Incarnation == m.Incarnation && m.Incarnation != ""
	case kindLoad:
		ok = m.Incarnation != "" && len(m.Hash) == hashSize && len(m.Plan)+len(m.Share) <= maxPlan
	case kindRecover, kindHalt:
		ok = m.Incarnation != ""
	case kindBeat:
		ok = m.Incarnation != "" && m.Number > 0 && wantOrder[m.Want] > 0
	case kindStatus:
		ok = m.Incarnation != "" && phases[m.Phase] && (len(m.Hash) == 0 || len(m.Hash) == hashSize) &&
			m.Frames < maxRecords && m.Parts < maxRecords
	case kindRefuse:
		ok = m.Incarnation != ""
	case kindFrame, kindPart:
		ok = m.Incarnation != "" && m.Origin != "" && m.Number > 0 && len(m.Data) <= maxFrame
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

// validRun reports whether a run can have the name: letters, digits, dashes, dots and
// underscores, at most 128, not starting with a dot. So it is also a name of a folder.
func validRun(name string) bool {
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
func (m *message) clean() {
	for _, s := range []*string{&m.Reason, &m.Err, &m.Disturbed, &m.Version, &m.Layout, &m.Session, &m.Incarnation, &m.Origin} {
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
