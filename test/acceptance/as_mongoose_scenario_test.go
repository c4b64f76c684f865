//go:build conformance

package acceptance

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// TestMongooseScenarios runs the scenarios in the documentation of mongoose's driver against a
// real Kafka, with only the names of topics and the number of records changed. It does not run next to
// other tests: a hundred thousand records one at a time take half a minute by themselves.
func TestMongooseScenarios(t *testing.T) {
	broker := kafkatest.Shared(t)
	home := t.TempDir()
	brokers := "--storage-net-node-addrs=" + broker.Bootstrap()
	write := func(t *testing.T, name, text string) {
		t.Helper()
		assert.OK(t, os.WriteFile(filepath.Join(home, name), []byte(text), 0o644))
	}
	play := func(t *testing.T, name string, swap []string, args ...string) ended {
		t.Helper()
		text := assert.Value(os.ReadFile(filepath.Join("../compat/mongoose/testdata/listings", name)))(t)
		write(t, name, strings.NewReplacer(swap...).Replace(string(text)))
		return startMongoose(t, home, append(args, brokers, "--run-scenario="+name)...).wait(runTimeout).wantOneOf(t, 0, 3)
	}
	write(t, "values.txt", strings.Repeat("v", 64)) // values are pieces of it

	// The rows of the trace are joined as the tool for end-to-end latency joins them.
	t.Run("end-to-end latency", func(t *testing.T) {
		const records = 100_000
		topic := kafkatest.TopicName(t)
		e := play(t, "e2e_latency.js", []string{"1000000", strconv.Itoa(records), "end_to_end", topic},
			"--item-data-size=1", "--load-step-id=e2e", "--storage-driver-limit-concurrency=1000")
		n := strings.Count(e.stdout, "    Successful:                "+strconv.Itoa(records)+"\n")
		assert.True(t, n == 2, "%d results of %d records, want 2:\n%s", n, records, e.stdout)
		readRows := func(name string, want int) [][]string {
			rows := testkit.CSV(t, filepath.Join(home, ".mongoose/4.2.11/log/e2e", name))
			assert.Must(t, len(rows) == want, "%s: %d rows, want %d", name, len(rows), want)
			return rows
		}
		rows := readRows("op.trace.csv", 2*records)
		number := func(row []string, column int) int64 {
			if row[column] == "" {
				return 0
			}
			n := assert.Value(strconv.ParseInt(row[column], 10, 64))(t, "row %v", row)
			return n
		}
		const path, op, status, start, duration, latency = 1, 2, 3, 4, 5, 6
		created, began, took := make(map[string]int64), make(map[string]int64), make(map[string]int64)
		read, later := 0, 0
		for _, row := range rows {
			assert.Must(t, row[status] == "4", "row %v: not a success", row)
			if row[op] == "1" {
				began[row[path]] = number(row, start)
				created[row[path]] = number(row, start) + number(row, duration)
				continue
			}
			acked, ok := created[row[path]]
			assert.Must(t, ok && row[op] == "2", "row %v: read before it was created", row)
			took[row[path]] = number(row, start) + number(row, latency) - acked
			if read++; number(row, start)+number(row, latency) > acked {
				later++
			}
		}
		// e2e.csv has what that tool makes of the trace: path, time of creation, time to the read.
		base := int64(-1)
		for _, row := range readRows("e2e.csv", records) {
			at := began[row[0]] - number(row, 1)
			if base < 0 {
				base = at
			}
			if want, ok := took[row[0]]; !ok || number(row, 2) != want || at != base {
				t.Fatalf("e2e.csv: row %v, want a latency of %d, known %v; creation is counted from %d and from %d", row, want, ok, at, base)
			}
			delete(took, row[0])
		}
		if got := broker.EndSum(t, topic); read != records || len(created) != records || got != records || later == 0 {
			t.Errorf("%d read, %d later than they were acknowledged, %d created; the broker has %d", read, later, len(created), got)
		}
	})

	t.Run("topics", func(t *testing.T) {
		one, two := kafkatest.TopicName(t), kafkatest.TopicName(t)
		write(t, "topic_list.csv", one+"\n"+two+"\n")
		e := play(t, "topics.js", []string{"topic1", one, "topic2", two}, "--item-data-size=1")
		_, last, _ := strings.Cut(e.stdout, "  Operation Type:              READ\n")
		if !strings.Contains(last, "    Successful:                2\n") || !strings.Contains(last, "  Transfer Size:               10B\n") {
			t.Errorf("results of reading:\n%s", last)
		}
	})

	for file, want := range map[string]string{
		"headers.js":            `^header-name-0:header_value_0,header-name-1:header_value_1,header-name-N:header_value_N$`,
		"header_expressions.js": `^x-amz-meta-([1-9]|[12][0-9]|30):[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+0000$`,
	} {
		t.Run(file, func(t *testing.T) {
			topic := kafkatest.TopicName(t)
			play(t, file, nil, "--item-data-input-file=values.txt", "--item-data-size=5", "--item-output-path="+topic, "--load-op-limit-count=20")
			form, different := regexp.MustCompile(want), make(map[string]bool)
			for _, r := range broker.Consume(t, 20, topic) {
				different[r.Headers] = true
				assert.True(t, form.MatchString(r.Headers) && r.Value == "vvvvv", "%+v does not have the headers %s", r, want)
			}
			assert.Equal(t, file == "header_expressions.js", (len(different) > 1), "headers that differ")
		})
	}

	t.Run("endless, until Ctrl-C", func(t *testing.T) {
		write(t, "endless.js", `var small = Load.config({item: {output: {path: "`+kafkatest.TopicName(t)+`"}, data: {size: 10}}});
while (true) {
	small.config({load: {op: {limit: {count: 10}}}}).run();
	small.run();
}`)
		s := startMongoose(t, home, brokers, "--run-scenario=endless.js")
		s.awaitStderr("until Ctrl-C")
		s.signal(os.Interrupt)
		e := s.wait(runTimeout)
		assert.True(t, e.code == 130 && strings.Contains(e.stdout, "# Results"), "exit %d:\n%s%s", e.code, e.stdout, e.stderr)
	})
}
