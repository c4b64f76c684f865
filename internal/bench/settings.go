package bench

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"
)

// Settings say what is measured and how long. The zero Settings are not usable.
type Settings struct {
	Runs  int            // rounds; each contestant runs once in each
	Scale float64        // of durations and numbers of records; 1 is the table's
	Rows  *regexp.Regexp // of the names of groups; nil is all
	Out   string         // the table also goes into this file; "" is none
}

// FromEnv reads BENCH_RUNS, BENCH_SCALE, BENCH_ROWS and BENCH_OUT.
func FromEnv() (Settings, error) {
	s := Settings{Runs: 5, Scale: 1, Out: os.Getenv("BENCH_OUT")}
	var err error
	if v := os.Getenv("BENCH_RUNS"); v != "" {
		if s.Runs, err = strconv.Atoi(v); err != nil || s.Runs < 1 {
			return s, fmt.Errorf("BENCH_RUNS=%s: want a number of rounds, 1 or more", v)
		}
	}
	if v := os.Getenv("BENCH_SCALE"); v != "" {
		if s.Scale, err = strconv.ParseFloat(v, 64); err != nil || !(s.Scale > 0 && s.Scale <= 10) {
			return s, fmt.Errorf("BENCH_SCALE=%s: want a factor above 0 and up to 10, such as 0.2", v)
		}
	}
	if v := os.Getenv("BENCH_ROWS"); v != "" {
		if s.Rows, err = regexp.Compile("(?i)" + v); err != nil {
			return s, fmt.Errorf("BENCH_ROWS=%s: %w", v, err)
		}
	}
	return s, nil
}

// lasting scales a duration, to no less than a second: below that, starting up
// is what would be measured.
func (s Settings) lasting(d time.Duration) time.Duration {
	return max(time.Second, time.Duration(float64(d)*s.Scale).Round(100*time.Millisecond))
}

// records scales a number of records.
func (s Settings) records(n int) int { return max(200_000, int(float64(n)*s.Scale)) }
