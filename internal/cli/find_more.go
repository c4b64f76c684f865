package cli

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"carronade/internal/verdict/find"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/units"
)

// A findMore are the flags that a search can do without.
type findMore struct {
	confirm string
	repeat  int
	to      string
	over    string
}

// repeatSetting repeats the search. In a workload file it would repeat each trial.
const repeatSetting = "repeat"

// searchLabel is the label of the reports of several searches: which of them, from 1.
const searchLabel = "find-search"

func (m *findMore) bind(fs *pflag.FlagSet) {
	fs.StringVar(&m.confirm, "confirm", "", "after the answer, run its lower end for this `TIME`, beyond the budget")
	fs.StringVar(&m.to, "to", "", "never offer more than this `RATE`")
	fs.StringVar(&m.over, "over", "", "search the smallest concurrency that reaches 95 % of the best throughput, not the rate: `concurrency`")
	fs.IntVar(&m.repeat, repeatSetting, 1, "search this `NUMBER` of times, each from the beginning and with the whole budget")
}

// leastSoak is the shortest soak: a shorter one says less than the search itself.
const leastSoak = 30 * time.Second

// hasLimit reports whether settings limit results.
func hasLimit(entries []workload.Entry) bool {
	return slices.ContainsFunc(entries, func(e workload.Entry) bool { return e.Name == "slo" })
}

// parse puts the flags into the options of the search.
func (m *findMore) parse(f *searching) (err error) {
	switch f.Over = m.over; m.over {
	case "":
	case find.OverConcurrency:
		if f.From > 0 || f.To > 0 || f.least > 0 || m.confirm != "" {
			return errNoRateOrLimit
		}
	default:
		return &protocol.Error{Err: fmt.Errorf("--over: %q cannot be searched", m.over), Hint: "without --over it searches the rate, with --over concurrency the number of requests in flight"}
	}
	if m.confirm != "" {
		if f.Soak, err = units.ParseDuration(m.confirm); err == nil && f.Soak < leastSoak {
			err = errors.New("less than 30 s says no more than the search itself")
		}
		if err != nil {
			return &protocol.Error{Err: fmt.Errorf("--confirm: %w", err), Hint: "give a time such as 30m"}
		}
	}
	if f.To > 0 && max(f.From, f.least) > f.To {
		return &protocol.Error{Err: errors.New("--to is below --from or --at-least"), Hint: "a search never offers more than --to"}
	}
	if m.repeat < 1 || m.repeat > mostRepeats {
		return &protocol.Error{Err: fmt.Errorf("--repeat: it must be from 1 to %d", mostRepeats), Hint: "3 shows how much the answer differs; with 6, carronade compare finds a difference of a few percent"}
	}
	return nil
}

// oneAnswer refuses what several searches together do not have.
func (f *searching) oneAnswer() error {
	where := f.settings.Where("full")
	if f.html != "" {
		where = "--html"
	}
	if f.more.repeat < 2 || where == "" {
		return nil
	}
	return &protocol.Error{
		Err:  fmt.Errorf("%s does not go with --repeat: each search has a report of its own", where),
		Hint: "leave it out; then carronade report show ID --full prints the report of a search, and carronade report export ID --as html writes its page",
	}
}

// errNoRateOrLimit is the error of settings that --over concurrency cannot have.
var errNoRateOrLimit = &protocol.Error{Err: errors.New("--over concurrency compares throughput: it has no rate and no limit"), Hint: "leave out --slo, --from, --to, --at-least, --precision and --confirm"}

// mostRepeats bounds what a mistyped number costs.
const mostRepeats = 100

// begun reports whether a trial was run: the target was there.
func (f *searching) begun() bool { return len(f.history) > 0 || len(f.searches) > 0 }

// another reports whether another search follows the one with this answer, and begins it.
func (f *searching) another(a *find.Answer) bool {
	if len(f.searches)+1 >= f.more.repeat || f.Interrupted || a.Ending == find.Died {
		return false
	}
	f.searches, f.history = append(f.searches, a), nil
	return true
}

// all is the result of all searches, of which this is the last answer. A search that was cut
// short counts only if none ended before it.
func (f *searching) all(last *find.Answer) *find.Repeated {
	searches := f.searches
	if !last.CutShort() || len(searches) == 0 {
		searches = append(searches, last)
	}
	return find.Repeat(searches)
}

// which names the search in progress if there are several.
func (f *searching) which() string {
	if f.more.repeat < 2 {
		return ""
	}
	return fmt.Sprintf("search %d of %d, ", len(f.searches)+1, f.more.repeat)
}

// before says how many searches ended before the one in progress.
func (f *searching) before() string {
	if len(f.searches) == 0 {
		return ""
	}
	return units.Plural(len(f.searches), "search") + " and "
}
