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
			"--interval", "5s", "--for", lasts.String()),
		u.inToolsPlace("as sangrenel -noop", lasts, "sangrenel", "-noop"),
	)
	u.addComparison(r, asTool, carronade, eventsPerS, atLeast(0.95), bound{})
}

func (u *Suite) asKafkaProducer(b testing.TB) {
	s := u.startDiscardingKafka(b)
	n := strconv.Itoa(u.records(60_000_000))
	r := u.alternate(b.Context(), "as kafka-producer-perf-test --throughput -1, 100 B",
		u.producer(carronade, "as kafka-producer-perf-test, carronade run", "kafka://"+s.addr+"/"+topic, "--profile", "java", "--payload", "letters", "--size", "100",
			"--client-property", "client.id=perf-producer-client", "--interval", "5s", "--count", n),
		u.inToolsPlace("as kafka-producer-perf-test", 0, "kafka-producer-perf-test", "--topic", topic, "--num-records", n, "--record-size", "100", "--throughput", "-1",
			"--bootstrap-server", s.addr),
	)
	u.addComparison(r, asTool, carronade, eventsPerS, atLeast(0.95), bound{})
}
