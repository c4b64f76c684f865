package standin

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"carronade/units"
)

// CapacityOptions are the capacity of a stand-in and its bad days. The zero value has no
// limit.
type CapacityOptions struct {
	Server   CapacitySettings
	Collapse time.Duration // after an event that waited longer, half of the capacity is left until one does not wait; 0: never
	Credits  Credits
	Warm     time.Duration // how long it must serve until it has its full capacity
}

// CapacitySettings are those of the queue and its servers.
type CapacitySettings struct {
	Rate    float64 // events a second that all servers together serve; 0: no server
	Service Service
	Servers int
	Queue   int64 // most events that wait
	Seed    uint64
}

// Credits let a server serve at a higher rate for a while.
type Credits struct {
	For  time.Duration // how long, without a pause, from full credits
	Rate float64       // events a second in that time; 0: no credits
}

// A Service is a distribution of service times.
type Service struct {
	Kind  string
	Sigma float64 // of Lognormal: the standard deviation of the logarithm
}

// The kinds of distributions.
const (
	Exponential = "exponential"
	Constant    = "constant"
	Lognormal   = "lognormal"
)

func (v Service) String() string {
	if v.Kind == Lognormal {
		return v.Kind + "(" + strconv.FormatFloat(v.Sigma, 'f', -1, 64) + ")"
	}
	return v.Kind
}

func parseService(s string) (Service, error) {
	switch s {
	case Exponential, Constant:
		return Service{Kind: s}, nil
	}
	if inner, ok := strings.CutPrefix(s, Lognormal+"("); ok && strings.HasSuffix(inner, ")") {
		sigma, err := strconv.ParseFloat(strings.TrimSuffix(inner, ")"), 64)
		if err == nil && sigma > 0 && sigma <= maxSigma {
			return Service{Lognormal, sigma}, nil
		}
	}
	return Service{}, fmt.Errorf("service times %q: want exponential, constant or lognormal(SIGMA) with a sigma above 0 and up to %d, such as lognormal(0.5)", s, maxSigma)
}

// Limits of settings, and their defaults.
const (
	minRate        = 0.001 // events a second
	maxRate        = 1e8
	maxServers     = 1000
	maxQueue       = 100_000_000
	maxSigma       = 4
	defaultServers = 1
	defaultQueue   = 100_000
)

// ParseSettings parses "rate=1000/s,service=constant,servers=2,queue=10k,seed=7". All
// but the rate have defaults.
func ParseSettings(s string) (CapacitySettings, error) {
	v := CapacitySettings{Service: Service{Kind: Exponential}, Servers: defaultServers, Queue: defaultQueue}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(s, ",") {
		name, text, ok := strings.Cut(part, "=")
		if name = strings.TrimSpace(name); !ok {
			return CapacitySettings{}, fmt.Errorf("server %q: want NAME=VALUE pairs with a rate, such as rate=1000/s,service=constant", s)
		}
		if seen[name] {
			return CapacitySettings{}, fmt.Errorf("server %q: %s is given twice", s, name)
		}
		seen[name] = true
		if err := v.set(name, strings.TrimSpace(text)); err != nil {
			return CapacitySettings{}, fmt.Errorf("server %q: %w", s, err)
		}
	}
	if !seen["rate"] {
		return CapacitySettings{}, fmt.Errorf("server %q: want its rate too, such as rate=1000/s", s)
	}
	return v, nil
}

func (v *CapacitySettings) set(name, text string) (err error) {
	switch name {
	case "rate":
		if v.Rate, err = units.ParseRate(text); err == nil && (v.Rate < minRate || v.Rate > maxRate) {
			err = fmt.Errorf("a rate of %s: want 0.001/s to 100M/s", units.FlagRate(v.Rate))
		}
	case "service":
		v.Service, err = parseService(text)
	case "servers":
		if v.Servers, err = strconv.Atoi(text); err != nil || v.Servers < 1 || v.Servers > maxServers {
			err = fmt.Errorf("%q servers: want 1 to %d", text, maxServers)
		}
	case "queue":
		var n uint64
		if n, err = units.ParseCount(text); err == nil && n > maxQueue {
			err = fmt.Errorf("a queue of %s: want at most 100M events", units.FormatCount(n))
		}
		v.Queue = int64(min(n, maxQueue))
	case "seed":
		if v.Seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			err = fmt.Errorf("a seed of %q: want a whole number", text)
		}
	default:
		err = fmt.Errorf("unknown setting %q: want rate, service, servers, queue or seed", name)
	}
	return err
}

// String is a form that ParseSettings parses.
func (v CapacitySettings) String() string {
	if v.Rate == 0 {
		return ""
	}
	s := fmt.Sprintf("rate=%s,service=%s,servers=%d,queue=%d", units.FlagRate(v.Rate), v.Service, v.Servers, v.Queue)
	if v.Seed != 0 {
		s += ",seed=" + strconv.FormatUint(v.Seed, 10)
	}
	return s
}

// ParseCredits parses "60s@2000/s".
func ParseCredits(s string) (Credits, error) {
	length, rate, ok := strings.Cut(s, "@")
	if !ok {
		return Credits{}, fmt.Errorf("credits %q: want DURATION@RATE, such as 60s@2000/s", s)
	}
	var c Credits
	var err error
	if c.For, err = units.ParseDuration(length); err != nil {
		return Credits{}, fmt.Errorf("credits %q: %w", s, err)
	}
	if c.Rate, err = units.ParseRate(rate); err != nil {
		return Credits{}, fmt.Errorf("credits %q: %w", s, err)
	}
	if c.For <= 0 || c.Rate <= 0 || c.Rate > maxRate {
		return Credits{}, fmt.Errorf("credits %q: want a duration above 0 and a rate of at most 100M/s", s)
	}
	return c, nil
}

// String is the form that ParseCredits parses.
func (c Credits) String() string {
	if c == (Credits{}) {
		return ""
	}
	return units.FlagDuration(c.For) + "@" + units.FlagRate(c.Rate)
}

// On reports whether the capacity is limited.
func (o CapacityOptions) On() bool { return o.Server.Rate > 0 }

// Check reports what is wrong with the options together.
func (o CapacityOptions) Check() error {
	switch {
	case o.Collapse < 0 || o.Warm < 0:
		return errors.New("a collapse or warming up: want a duration above 0")
	case !o.On() && (o.Collapse > 0 || o.Warm > 0 || o.Credits.Rate > 0):
		return errors.New("collapse, credits and warm change the capacity of a server: give that too, such as server rate=1000/s")
	case o.Credits.Rate > 0 && o.Credits.Rate <= o.Server.Rate:
		return fmt.Errorf("credits for %s on a server of %s: want more than the server's rate, which it serves without credits", units.FlagRate(o.Credits.Rate), units.FlagRate(o.Server.Rate))
	}
	return nil
}

// Bind adds the flags to fs.
func (o *CapacityOptions) Bind(fs *pflag.FlagSet) {
	fs.Var(&Value[CapacitySettings]{To: &o.Server, Parse: ParseSettings, Format: CapacitySettings.String, Kind: "settings"}, "server",
		"answer when a server of a known capacity has served the events: `SETTINGS`, rate=1000/s and after commas any of service=exponential, constant or lognormal(SIGMA), servers=1, queue=100k (events that wait; more are refused) and seed=0; these are the defaults")
	fs.Var(DurationValue(&o.Collapse), "collapse", "with --server: after an event waited longer than 1s, or this `DURATION`, the capacity is halved until an event does not have to wait")
	fs.Lookup("collapse").NoOptDefVal = "1s"
	fs.Var(&Value[Credits]{To: &o.Credits, Parse: ParseCredits, Format: Credits.String, Kind: "credits"}, "credits",
		"with --server: serve at a higher rate until credits for that time are used up; they grow while it is idle; `DURATION@RATE` such as 60s@2000/s")
	fs.Var(DurationValue(&o.Warm), "warm", "with --server: begin with a quarter of the capacity, which grows to all of it while the server serves for this `DURATION`")
}
