package fault

import (
	"errors"
	"fmt"
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
)

// What a fault is done to.
const (
	System = "system" // the system under test
	Leader = "leader" // the server that leads a partition
	PID    = "pid"    // a process
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
}

// String is the fault for people, without its time: "stop leader".
func (f *Fault) String() string {
	text := f.Action + " " + f.What
	if f.What == PID || f.What == Leader && f.Number >= 0 {
		text += " " + strconv.Itoa(f.Number)
	}
	return text
}

// Form is how a fault is written.
const Form = "such as 60s:stop=leader,10s, 60s:kill=leader:3 or 60s:restart=system"

var errForm = errors.New("it is not TIME:ACTION=WHAT,LENGTH")

// ErrAction is the error of an action that a run cannot make itself.
var ErrAction = errors.New("not an action: they are stop, kill and restart")

// Parse parses TIME:ACTION=WHAT[,LENGTH].
func Parse(text string) (Fault, error) {
	f := Fault{Number: -1}
	at, rest, ok := strings.Cut(text, ":")
	if !ok {
		return f, errForm
	}
	var err error
	if f.At, err = units.ParseDuration(at); err != nil {
		return f, fmt.Errorf("its time: %w", err)
	}
	action, what, named := strings.Cut(rest, "=")
	if f.Action = strings.TrimSpace(action); !named {
		return f, errForm
	}
	switch f.Action {
	case Stop, Kill, Restart:
	default:
		return f, fmt.Errorf("%q is %w", f.Action, ErrAction)
	}
	what, length, timed := strings.Cut(what, ",")
	if timed {
		if f.Length, err = units.ParseDuration(strings.TrimSpace(length)); err != nil {
			return f, fmt.Errorf("its length: %w", err)
		}
	}
	if err := f.parseWhat(strings.TrimSpace(what)); err != nil {
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
	}
	return f, nil
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
	}
	return false // what is killed is not undone, and the second of two restarts waits for the first
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
