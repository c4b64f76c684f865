package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// asTool is the name of the program in an old tool's place. Compared with a run of
// the same workload it only prints additional lines, which must cost nothing.
const asTool = "carronade as the tool"

// inToolsPlace is the program in a tool's place: it runs to its end, or for lasts if
// the tool does not end.
func (u *Suite) inToolsPlace(what string, lasts time.Duration, tool string, args ...string) contestant {
	return contestant{asTool, func(ctx context.Context) (sample, error) {
		file := filepath.Join(u.dir, "as.json")
		args := append([]string{"as", tool, "--report-json", file}, args...)
		u.note(what, u.program, args...)
		e, err := runFor(ctx, lasts, u.program, args...)
		if err != nil {
			return nil, err
		}
		if e.out, err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("read the tool's report: %w: %s", err, e.stderr)
		}
		d, err := readDocument(e)
		if err != nil {
			return nil, err
		}
		return sample{eventsPerS: d.Totals.EventsPS, bytesPerS: d.Totals.BytesPS}.cpu(e, d.Totals.Acked), nil
	}}
}

func (u *Suite) asSangrenel(b testing.TB) {
	lasts := u.scaled(5 * time.Second)
	r := u.alternate(b.Context(), "as sangrenel -noop, 300 B",
		u.producer(carronade, "as sangrenel -noop, carronade run", "null://noop", "--size", "300", "--batch-events", "1", "--clients", "1", "--max-in-flight", "5",
			"--payload", "chars(a-zA-Z0-9!@#$^&*(){}][:<>.)", "--fresh", "--interval", "5s", "--for", lasts.String()),
		u.inToolsPlace("as sangrenel -noop", lasts, "sangrenel", "-noop"),
	)
	u.addComparison(r, asTool, carronade, eventsPerS, atLeast(0.95), bound{})
}

// asKafkaProducer compares the rate without a codec, and the processor time of a
// record with each: the tool makes each record and compresses each batch as it sends
// them, and so does the program in its place.
func (u *Suite) asKafkaProducer(b testing.TB) {
	s := u.startDiscardingKafka(b)
	for _, codec := range []struct {
		name    string
		records int
	}{{"none", 60_000_000}, {"gzip", 2_000_000}, {"zstd", 10_000_000}} {
		n := strconv.Itoa(u.records(codec.records))
		work, what := "as kafka-producer-perf-test --throughput -1, 100 B", "as kafka-producer-perf-test"
		if codec.name != "none" {
			work, what = work+", "+codec.name, what+", "+codec.name
		}
		r := u.alternate(b.Context(), work,
			u.producer(carronade, what+", carronade run", "kafka://"+s.addr+"/"+topic, "--profile", "java", "--payload", "letters", "--fresh", "--size", "100",
				"--compression", codec.name, "--client-property", "client.id=perf-producer-client", "--interval", "5s", "--count", n),
			u.inToolsPlace(what, 0, "kafka-producer-perf-test", "--topic", topic, "--num-records", n, "--record-size", "100", "--throughput", "-1",
				"--bootstrap-server", s.addr, "--command-property", "compression.type="+codec.name),
		)
		if codec.name == "none" {
			u.addComparison(r, asTool, carronade, eventsPerS, atLeast(0.95), bound{})
		}
		u.addComparison(r, asTool, carronade, cpuPerEvent, atMost(1.1), bound{})
	}
}
