//go:build conformance

package acceptance

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// This file runs commands that others published years ago, with only addresses and
// topics changed, and parses the output by the grammar of the published output.

// A printedCommand is a published command.
type printedCommand struct {
	name         string
	line         string
	replacements []string      // old and new, alternating: addresses, topics, and in one of them a count
	interruptAt  string        // the text on stdout at which it is interrupted
	timeout      time.Duration // 0: twice runTimeout
	forms        []form
	want         []string // forms or fields that must occur at least once
	same         map[string]string
	code         int
}

// sangrenelForms are the lines of sangrenel of 2014.
var sangrenelForms = []form{
	many("blank", ``),
	line("title", `::: Sangrenel :::`),
	line("workers", `Starting (?P<n>\d+) workers`),
	line("size", `Message size (?P<bytes>\d+) bytes`),
	many("connected", `client_\d+ connected`),
	many("down", `client_\d+ shutting down`),
	many("producing", `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d) Producing (?P<output>\d+)(Mb|KB)/sec raw data @ (?P<rate>\d+) messages/sec \| topic: [\w.-]+ \| (?P<ms>\d+\.\d\d)ms avg latency`),
}

const (
	brokers2018 = "172.25.52.170:33092,172.25.52.171:33092,172.25.52.169:33092,172.25.52.168:33092,172.25.52.167:33092"
	brokers2014 = "10.0.1.37:9092,10.0.1.40:9092,10.0.1.62:9092"
)

func TestPrintedCommands(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	addr := broker.Bootstrap()
	topic := func() string { return broker.CreateTopic(t, 3, 1) }
	repeat := func(addr string, n int) string { return strings.TrimSuffix(strings.Repeat(addr+",", n), ",") }
	list := func(n int) string { return repeat(addr, n) }
	// With delayed answers, a run lasts longer than a window.
	slow := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory", "--partitions", "1", "--delay", "15ms").addr
	refuses := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory", "--error", "invalid-record@100%", "--delay", "20ms").addr
	// A broker that keeps nothing accepts the published numbers of records.
	bottomless := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--discard").addr
	for _, p := range []printedCommand{
		{
			name: "sangrenel, to brokers",
			line: "./sangrenel --size=2500 --workers=8 --topic=rep --brokers=" + brokers2014, replacements: []string{brokers2014, list(3), "=rep", "=" + topic()},
			interruptAt: "messages/sec", forms: sangrenelForms, want: []string{"title.", "producing.rate"}, same: map[string]string{"workers.n": "8", "size.bytes": "2500"},
		},
		{
			name: "sangrenel, to a broker that refuses",
			line: "./sangrenel --size=2500 --topic=rep --brokers=" + brokers2014, replacements: []string{brokers2014, refuses},
			interruptAt: "messages/sec", forms: sangrenelForms, same: map[string]string{"producing.rate": "0"}, code: 1,
		},
		{
			name:        "sangrenel, to nowhere",
			line:        "./sangrenel --noop=true",
			interruptAt: "messages/sec", forms: sangrenelForms, want: []string{"producing.rate"}, same: map[string]string{"workers.n": "1", "size.bytes": "300", "producing.ms": "0.00"},
		},
		{name: "sangrenel, help", line: "./sangrenel -h"},
		{
			name:         "ten thousand records",
			line:         "./kafka-producer-perf-test.sh --topic api-test --num-records 10000 --record-size 2000 --throughput 10000 --producer-props bootstrap.servers=" + brokers2018 + " batch.size=8196",
			replacements: []string{brokers2018, list(5), "api-test", topic()}, forms: producerForms2018, same: map[string]string{"total.records": "10000"},
		},
		{
			name:         "a million records",
			line:         "./kafka-producer-perf-test.sh --topic api-test --num-records 1000000 --record-size 100 --throughput 1000000 --producer-props bootstrap.servers=" + brokers2018 + " batch.size=8196",
			replacements: []string{brokers2018, list(5), "api-test", topic()}, forms: producerForms2018, same: map[string]string{"total.records": "1000000"},
		},
		{
			name:         "ten thousand records, slowly answered",
			line:         "./kafka-producer-perf-test.sh --topic api-test --num-records 10000 --record-size 2000 --throughput 10000 --producer-props bootstrap.servers=" + brokers2018 + " batch.size=8196",
			replacements: []string{brokers2018, repeat(slow, 5)}, forms: producerForms2018, want: []string{"window.rate"}, same: map[string]string{"total.records": "10000"},
		},
		{
			// 200 GB, with only addresses changed, to a broker that keeps nothing.
			name: "a hundred million records", timeout: 15 * time.Minute,
			line:         "./kafka-producer-perf-test.sh --topic api-test --num-records 100000000 --record-size 2000 --throughput 100000000 --producer-props bootstrap.servers=" + brokers2018 + " batch.size=8196",
			replacements: []string{brokers2018, repeat(bottomless, 5)}, forms: producerForms2018,
			want: []string{"window.rate"}, same: map[string]string{"total.records": "100000000"},
		},
		{
			name:         "a million of them, to a broker",
			line:         "./kafka-producer-perf-test.sh --topic api-test --num-records 100000000 --record-size 2000 --throughput 100000000 --producer-props bootstrap.servers=" + brokers2018 + " batch.size=8196",
			replacements: []string{brokers2018, list(5), "api-test", topic(), "--num-records 100000000", "--num-records 1000000"}, forms: producerForms2018,
			same: map[string]string{"total.records": "1000000"},
		},
		{
			name:         "records of one byte",
			line:         "./bin/kafka-run-class.sh org.apache.kafka.tools.ProducerPerformance --throughput=-1 --topic=test-one --num-records=2000000 --record-size=1 --producer-props bootstrap.servers=localhost:9092 buffer.memory=33554432 batch.size=200",
			replacements: []string{"localhost:9092", addr, "test-one", topic()}, forms: producerForms2018, same: map[string]string{"total.records": "2000000"},
		},
	} {
		t.Run(strings.ReplaceAll(p.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			p.check(t)
		})
	}
}

// check runs the command in a folder where its program is a link to carronade.
func (p *printedCommand) check(t *testing.T) {
	dir := t.TempDir()
	args := strings.Fields(strings.NewReplacer(p.replacements...).Replace(p.line))
	link := filepath.Join(dir, args[0])
	assert.OK(t, os.MkdirAll(filepath.Dir(link), 0o700))
	assert.OK(t, os.Symlink(program, link))
	run := prepare(t, args[1:]...)
	run.cmd.Path, run.cmd.Args[0], run.cmd.Dir, run.home = link, link, dir, dir
	run.begin()
	if p.interruptAt != "" {
		run.awaitStdout(1, p.interruptAt)
		run.signal(syscall.SIGINT)
	}
	e := run.wait(cmp.Or(p.timeout, 2*runTimeout))
	s := side{who: carronadeSide, code: e.code, out: e.stdout, errs: e.stderr}
	// 3: a generator that fell behind on a busy machine
	assert.True(t, s.code == p.code || s.code == 3, "exit %d, want %d", s.code, p.code)
	assert.OK(t, s.parse(p.forms))
	for _, name := range p.want {
		if form, field, _ := strings.Cut(name, "."); field != "" && len(s.fields[name]) == 0 || field == "" && !strings.Contains(strings.Join(s.lines, " "), form) {
			t.Errorf("no line has %s", name)
		}
	}
	for name, want := range p.same {
		got := s.fields[name]
		assert.True(t, len(got) > 0 && got[0] == want, "%s is %q, want %q", name, got, want)
	}
	if t.Failed() {
		t.Logf("%s\n%s%s", strings.Join(args, " "), s.out, s.errs)
	}
}
