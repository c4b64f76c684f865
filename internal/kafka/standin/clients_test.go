package standin

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// kcat runs librdkafka's command line tool, with in on its standard input.
func kcat(t *testing.T, in string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(testkit.Minute(t), testkit.Program(t, "kcat"), args...)
	cmd.Stdin = strings.NewReader(in)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("kcat %s: %v\n%s", strings.Join(args, " "), err, errs.Bytes())
	}
	return out.String()
}

func TestKcat(t *testing.T) {
	t.Parallel()
	testkit.OnlyConformance(t, "kcat; Java's client and franz-go have the same in make test")
	forBoth(t, func(t *testing.T, opts Options) {
		opts.Topics = []Topic{{"t", 1}}
		s := start(t, opts)
		const n = 1000
		var in strings.Builder
		for i := range n {
			fmt.Fprintln(&in, "line", i)
		}
		for i, args := range [][]string{nil, {"-z", "lz4"}, {"-z", "snappy", "-X", "enable.idempotence=true"}, {"-X", "acks=0"}} {
			kcat(t, in.String(), append([]string{"-P", "-b", s.Addr(), "-t", "t"}, args...)...)
			want := uint64((i + 1) * n)
			// Without acks kcat does not wait until they have arrived.
			testkit.Until(t, "the events have arrived", func() bool { return s.Counts().Events >= want })
			assert.Equal(t, s.Counts().Events, want, "with %v events in all", args)
		}
		want := 4 * n
		if opts.Discard {
			want += int(opts.Events)
		}
		got := strings.Split(strings.TrimSpace(kcat(t, "", "-C", "-q", "-e", "-b", s.Addr(), "-t", "t", "-o", "beginning")), "\n")
		assert.Must(t, len(got) == want, "got %d lines back, want %d", len(got), want)
		last := got[len(got)-1]
		assert.True(t, opts.Discard || last == "line 999", "got last line %q", last)
		// A group, from its start to the end of the partition.
		group := kcat(t, "", "-q", "-e", "-b", s.Addr(), "-G", "g", "-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=6000", "t")
		assert.Equal(t, strings.Count(group, "\n"), want, "lines of a group")
	})
}

var (
	sent     = regexp.MustCompile(`(?m)^(\d+) records sent, .* 99\.9th`)
	consumed = regexp.MustCompile(`(?m)^[-0-9: ]+, [-0-9: ]+, [0-9.]+, [0-9.]+, (\d+), `)
)

// number finds a number in what a tool printed.
func number(t *testing.T, pattern *regexp.Regexp, out string) int {
	t.Helper()
	m := pattern.FindStringSubmatch(out)
	assert.Must(t, m != nil, "no %s in:\n%s", pattern, out)
	n := assert.Value(strconv.Atoi(m[1]))(t)
	return n
}

// TestJavaTools runs Kafka's performance tools against both stand-ins.
func TestJavaTools(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a Java process several times; not with -short")
	}
	forBoth(t, func(t *testing.T, opts Options) {
		opts.Events = 200_000
		s := start(t, opts)
		const n = 200_000
		out := kafkatest.Tool(t, "ProducerPerformance", "--topic", "perf", "--num-records", strconv.Itoa(n),
			"--record-size", "100", "--throughput", "-1", "--bootstrap-server", s.Addr())
		assert.Equal(t, number(t, sent, out), n, "records that the producer sent:\n%s", out)
		assert.Equal(t, s.Counts().Events, n, "counted events")
		for _, protocol := range []string{"classic", "consumer"} {
			out := kafkatest.Tool(t, "ConsumerPerformance", "--topic", "perf", "--num-records", strconv.Itoa(n), "--group", "g-"+protocol,
				"--command-property", "group.protocol="+protocol, "--bootstrap-server", s.Addr())
			got := number(t, consumed, out)
			assert.True(t, got >= n, "the consumer (%s groups) read %d, want %d:\n%s", protocol, got, n, out)
		}
	})
}
