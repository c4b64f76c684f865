package bench

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"
)

// Settings say what is measured and for how long. The zero value is not usable.
type Settings struct {
	Runs  int            // rounds; each contestant runs once in each
	Scale float64        // factor of durations and numbers of records; the table has 1
	Rows  *regexp.Regexp // matches the names of the groups to measure; nil: all
	Out   string         // file for the table; empty: none
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

// scaled scales a duration, to at least a second: shorter runs would mainly measure
// the start of a program.
func (s Settings) scaled(d time.Duration) time.Duration {
	return max(time.Second, time.Duration(float64(d)*s.Scale).Round(100*time.Millisecond))
}

// records scales a number of records.
func (s Settings) records(n int) int { return max(200_000, int(float64(n)*s.Scale)) }
