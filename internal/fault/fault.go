package fault

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"carronade/units"
)

// The actions.
const (
	Stop    = "stop"    // the processes stand still (SIGSTOP), and go on after Length (SIGCONT)
	Kill    = "kill"    // they are ended at once (SIGKILL)
	Restart = "restart" // the same, and after Length the system is started again

	// These last for Length.
	NetDelay = "net-delay" // each round trip of the run's connections takes Delay longer
	NetLoss  = "net-loss"  // of the packets that arrive at the system, Share are dropped
	DiskFull = "disk-full" // the filesystem of Folder is full
)

// What a fault is done to.
const (
	System = "system" // the system under test
	Leader = "leader" // the server that leads a partition
	PID    = "pid"    // a process

	Connections = "connections" // of the run, and of no other program
	Filesystem  = "filesystem"
)

// A Fault is one that a run makes.
type Fault struct {
	At     time.Duration // from the start of the run
	Action string
	What   string
	// Number is the partition of Leader, below 0 the server that leads most of them; of PID, the
	// process.
	Number int
	Length time.Duration

	Delay  time.Duration // of NetDelay
	Share  float64       // of NetLoss, above 0 and at most 1
	Folder string        // of DiskFull, as it was written; absolute
}

// String is the fault for people, without its time: "stop leader".
func (f *Fault) String() string {
	switch f.Action {
	case NetDelay:
		return f.Action + " " + units.FormatDuration(f.Delay)
	case NetLoss:
		return f.Action + " " + units.FormatPercent(f.Share)
	case DiskFull:
		return f.Action + " " + f.Folder
	}
	text := f.Action + " " + f.What
	if f.What == PID || f.What == Leader && f.Number >= 0 {
		text += " " + strconv.Itoa(f.Number)
	}
	return text
}

// Form is how a fault is written.
const Form = "such as 60s:stop=leader,10s, 60s:kill=leader:3, 60s:restart=system, 60s:net-delay=200ms,10s, 60s:net-loss=5%,10s or 60s:disk-full=/data,10s"

// ErrForm is an error whose hint is Form.
var ErrForm = errors.New("it is not TIME:ACTION=WHAT,LENGTH")

// Parse parses TIME:ACTION=WHAT[,LENGTH].
func Parse(text string) (Fault, error) {
	f := Fault{Number: -1}
	at, rest, ok := strings.Cut(text, ":")
	if !ok {
		return f, ErrForm
	}
	var err error
	if f.At, err = units.ParseDuration(at); err != nil {
		return f, fmt.Errorf("its time: %w", err)
	}
	action, what, named := strings.Cut(rest, "=")
	if f.Action = strings.TrimSpace(action); !named {
		return f, ErrForm
	}
	what, length, timed := cutLength(f.Action, what)
	if timed {
		if f.Length, err = units.ParseDuration(length); err != nil {
			return f, fmt.Errorf("its length: %w", err)
		}
	}
	switch f.Action {
	case NetDelay, NetLoss, DiskFull:
		err = f.parseAmount(what)
		if err == nil && f.Length <= 0 {
			err = fmt.Errorf("%s has a length, after which it is undone: %s=%s,10s", f.Action, f.Action, what)
		}
		return f, err
	}
	if err := f.parseWhat(what); err != nil {
		return f, err
	}
	switch f.Action {
	case Stop:
		if f.Length <= 0 {
			return f, errors.New("a stop has a length, after which the processes go on")
		}
	case Kill:
		if timed {
			return f, errors.New("what was killed does not come back: kill takes no length")
		}
		if f.What == System {
			return f, errors.New("without the system nothing is left to measure: restart=system starts it again")
		}
	case Restart:
		if f.What != System {
			return f, errors.New("only the system that the run started can be started again: restart=system")
		}
	default:
		return f, fmt.Errorf("%q is not an action: they are stop, kill, restart, net-delay, net-loss and disk-full", f.Action)
	}
	return f, nil
}

// cutLength separates WHAT from LENGTH. The name of a folder may have commas.
func cutLength(action, text string) (what, length string, timed bool) {
	i := strings.Index(text, ",")
	if action == DiskFull {
		i = strings.LastIndex(text, ",")
	}
	if i < 0 {
		return strings.TrimSpace(text), "", false
	}
	return strings.TrimSpace(text[:i]), strings.TrimSpace(text[i+1:]), true
}

// mostDelay is the longest delay of a round trip: a longer one is an outage.
const mostDelay = time.Minute

// parseAmount parses how much a fault of the network does, or the folder of a full filesystem.
func (f *Fault) parseAmount(text string) (err error) {
	switch f.Action {
	case NetDelay:
		f.What = Connections
		if f.Delay, err = units.ParseDuration(text); err != nil {
			return fmt.Errorf("its delay: %w", err)
		}
		if f.Delay <= 0 || f.Delay > mostDelay {
			return fmt.Errorf("a delay is above 0 and at most %s", units.FormatDuration(mostDelay))
		}
	case NetLoss:
		f.What = System
		if f.Share, err = units.ParseShare(text); err != nil {
			return fmt.Errorf("its share: %w", err)
		}
		if f.Share <= 0 || f.Share > 1 {
			return errors.New("a share of packets is above 0 and at most 100%")
		}
	case DiskFull:
		f.What = Filesystem
		if f.Folder = text; !path.IsAbs(text) {
			return fmt.Errorf("%q is not an absolute path of a folder", text)
		}
	}
	return nil
}

// Overlaps reports whether another fault does the same to the same, or may, while this one lasts:
// the end of one would undo the other.
func (f *Fault) Overlaps(g *Fault) bool {
	if f.At >= g.At+g.Length || g.At >= f.At+f.Length {
		return false
	}
	switch {
	case f.Action == Stop && g.Action == Stop: // a leader may be any process
		return f.What != PID || g.What != PID || f.Number == g.Number
	case f.Action == Stop && g.Action == Restart, f.Action == Restart && g.Action == Stop:
		return f.What != PID && g.What != PID
	case f.Action == Restart: // the second waits for the first
		return false
	}
	return f.Action == g.Action
}

func (f *Fault) parseWhat(text string) error {
	what, number, numbered := strings.Cut(text, ":")
	f.What = what
	if numbered && (what == Leader || what == PID) {
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil || what == PID && n == 0 {
			return fmt.Errorf("%q is not a number", number)
		}
		f.Number = int(n)
	}
	switch {
	case what == System && !numbered, what == Leader, what == PID && numbered:
		return nil
	case what == PID:
		return errors.New("it lacks the process id: pid:4711")
	}
	return fmt.Errorf("%q is not one of system, leader, leader:PARTITION and pid:N", text)
}

// A Moment is when a command is run, and what mark that makes.
type Moment struct {
	At   time.Duration
	Kind string // fault, heal or note
}

// ParseMoment parses TIME or TIME:KIND.
func ParseMoment(text string) (Moment, error) {
	at, kind, named := strings.Cut(text, ":")
	if !named {
		kind = MarkFault
	}
	d, err := units.ParseDuration(at)
	switch {
	case err != nil:
		return Moment{}, err
	case kind != MarkFault && kind != MarkHeal && kind != MarkNote:
		return Moment{}, fmt.Errorf("%q is not one of fault, heal and note", kind)
	}
	return Moment{At: d, Kind: kind}, nil
}
