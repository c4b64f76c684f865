// Package inject has the grammar of faults that a run makes itself, such as 60s:stop=leader,10s, and
// of the moments at which it runs commands.
//
// It only parses. Making a fault is up to the run, which knows the processes.
package inject

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

const form = "such as 60s:stop=leader,10s, 60s:kill=leader:3, 60s:kill=pid:4711 or 60s:restart=system"

// ErrForm is an error whose hint is the form.
var ErrForm = errors.New("it is not TIME:ACTION=WHAT,LENGTH")

// Form is how a fault is written.
func Form() string { return form }

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
	rest, length, timed := strings.Cut(rest, ",")
	action, what, named := strings.Cut(rest, "=")
	if f.Action = strings.TrimSpace(action); !named {
		return f, ErrForm
	}
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
	default:
		return f, fmt.Errorf("%q is not an action: they are stop, kill and restart", f.Action)
	}
	return f, nil
}

func (f *Fault) parseWhat(text string) error {
	what, number, numbered := strings.Cut(text, ":")
	f.What = what
	if numbered {
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
	return fmt.Errorf("%q is none of system, leader, leader:PARTITION and pid:N", text)
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
		kind = "fault"
	}
	d, err := units.ParseDuration(at)
	switch {
	case err != nil:
		return Moment{}, err
	case kind != "fault" && kind != "heal" && kind != "note":
		return Moment{}, fmt.Errorf("%q is none of fault, heal and note", kind)
	}
	return Moment{At: d, Kind: kind}, nil
}
