package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"carronade/units"
)

// A findMore are the flags that a search can do without.
type findMore struct {
	confirm string
}

func (m *findMore) bind(fs *pflag.FlagSet) {
	fs.StringVar(&m.confirm, "confirm", "", "after the answer, run its lower end for this `TIME`, beyond the budget")
}

// leastSoak is the shortest soak: a shorter one says less than the search itself.
const leastSoak = 30 * time.Second

// parse puts the flags into the options of the search.
func (m *findMore) parse(f *searching) (err error) {
	if m.confirm != "" {
		if f.Soak, err = units.ParseDuration(m.confirm); err == nil && f.Soak < leastSoak {
			err = errors.New("less than 30 s says no more than the search itself")
		}
		if err != nil {
			return &words{Err: fmt.Errorf("--confirm: %w", err), Hint: "give a time such as 30m"}
		}
	}
	return nil
}
