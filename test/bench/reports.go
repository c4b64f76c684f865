package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/internal/report"
	"carronade/internal/store/sqlite"
	"carronade/test/testkit/kafkatest"
	"carronade/test/testkit/reporttest"
)

const wallMS metric = "ms on the clock"

// manyReports is the number of reports in the store for which commands are timed.
const manyReports = 10_000

// storedReports measures commands on a store of many reports: of runs of 120
// revisions of two branches at five rates, as after a year of nightly runs.
func (u *Suite) storedReports(b testing.TB) {
	place := filepath.Join(u.dir, "many.db")
	if err := storeMany(b.Context(), place, manyReports); err != nil {
		b.Fatal("bench: keep reports: ", err)
	}
	work := fmt.Sprintf("%d stored reports", manyReports)
	for _, args := range [][]string{
		{"report", "list", "branch=main", "rate>=10k/s"},
		{"collate", "rate", "branch=main", "for=1m"},
		{"collate", "branch", "branch=main", "rate=10k/s"},
		{"verify", "branch=main", "rate=10k/s", "-n", "8760h"},
	} {
		r := u.alternate(b.Context(), work+", "+strings.Join(args, " "), contestant{carronade, func(ctx context.Context) (sample, error) {
			e, err := u.runBriefly(ctx, append(args, "--store", place)...)
			if err != nil {
				return nil, err
			}
			if e.code != 0 && e.code != 1 && e.code != 4 || len(e.out) == 0 {
				return nil, fmt.Errorf("exit code %d: %s", e.code, e.stderr)
			}
			return sample{wallMS: float64(e.wall.Microseconds()) / 1e3, maxRSS: float64(e.peak)}, nil
		}})
		u.addLine(r, wallMS, atMost(300), bound{})
		u.addLine(r, maxRSS, atMost(150<<20), bound{}).Worst = true
	}
}

// runBriefly runs the program for a short command, and samples its size more often
// than each second.
func (u *Suite) runBriefly(ctx context.Context, args ...string) (*processResult, error) {
	u.note("stored reports, carronade", u.program, args...)
	ctx, cancel := context.WithTimeout(ctx, processTimeout)
	defer cancel()
	return runWatched(ctx, 2*time.Millisecond, u.program, args...)
}

// storeMany makes a store of n reports.
func storeMany(ctx context.Context, place string, n int) (err error) {
	s, err := sqlite.Open(ctx, place)
	if err != nil {
		return err
	}
	defer func() {
		if closing := s.Close(); err == nil {
			err = closing
		}
	}()
	now := time.Now()
	for i := range n {
		d := reporttest.Document(i, 1)
		d.StartedAt = now.Add(-time.Duration(n-i) * 45 * time.Minute).UTC()
		d.EndedAt = d.StartedAt.Add(time.Minute)
		d.Totals.EventsPerS *= 1 + float64(i*7919%1000-500)/20_000 // 2.5% up and down
		for k := range d.Settings {
			if d.Settings[k].Name == "rate" {
				d.Settings[k].Value = strconv.Itoa(i%5*10+10) + "k/s"
			}
		}
		revision := i / (n / 120)
		d.System = &report.System{LastLines: []string{}, PeakRSSBytes: 400 << 20, CPUS: 12, Facts: map[string]any{
			"branch": []string{"main", "faster"}[i/5%2], "revision": fmt.Sprintf("%040x", revision*7919),
			"revision_date": now.Add(-time.Duration(n-revision*(n/120)) * 45 * time.Minute).UTC().Format(time.RFC3339),
		}}
		if err := d.Seal(); err != nil {
			return err
		}
		if err := s.Put(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// series measures the series in the note on a new Kafka cluster (`report table` makes
// its table): growing numbers of records of 2,000 bytes, produced and then consumed,
// in one file of workloads.
func (u *Suite) series(b testing.TB) {
	c := kafkatest.Start(b, kafkatest.Config{Properties: map[string]string{"log.segment.bytes": "1073741824", "log.retention.bytes": "-1"}})
	counts := []int{10_000, 100_000, 1_000_000, u.records(10_000_000)}
	once := *u
	once.Runs = 1 // it fills the disk with 22 GB
	r := once.alternate(b.Context(), fmt.Sprintf("a series of 2,000 B to a real broker, up to %d events", counts[3]), contestant{carronade, func(ctx context.Context) (sample, error) {
		place := filepath.Join(u.dir, "series.db")
		var text strings.Builder
		for i, n := range counts {
			to := fmt.Sprintf("kafka://%s/series-%d", c.Bootstrap(), i)
			fmt.Fprintf(&text, "- {target: %q, op: produce, count: %d, size: 2000, create-topic: \"partitions=15,replicas=1\"}\n- {target: %q, op: consume, count: %d}\n", to, n, to, n)
		}
		file := filepath.Join(u.dir, "series.yaml")
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			return nil, err
		}
		u.note("series, carronade", u.program, "run", "-f", file, "--quiet", "--store", place)
		e, err := runWatched(ctx, 0, u.program, "run", "-f", file, "--quiet", "--store", place) // longer than processTimeout
		if err == nil && e.code != 0 && e.code != 3 {
			err = fmt.Errorf("exit code %d: %s", e.code, e.stderr)
		}
		if err != nil {
			return nil, err
		}
		return u.tables(ctx, place, len(counts))
	}})
	u.addLine(r, producedPerS, bound{}, bound{})
	u.addLine(r, consumedPerS, bound{}, bound{})
}

const (
	producedPerS metric = "produced events/s"
	consumedPerS metric = "consumed events/s"
)

// tables reads the rates of the largest run from both tables of a series.
func (u *Suite) tables(ctx context.Context, place string, runs int) (sample, error) {
	e, err := runSuccessfully(ctx, u.program, "report", "table", "--as", "json", "--store", place)
	if err != nil {
		return nil, err
	}
	var tables []struct {
		Runs []struct {
			PerS float64 `json:"per_s"`
		}
	}
	if err := json.Unmarshal(e.out, &tables); err != nil {
		return nil, err
	}
	if len(tables) != 2 || len(tables[0].Runs) != runs || len(tables[1].Runs) != runs {
		return nil, fmt.Errorf("the tables are not those of %d runs: %s", runs, e.out)
	}
	return sample{producedPerS: tables[0].Runs[runs-1].PerS, consumedPerS: tables[1].Runs[runs-1].PerS}, nil
}
