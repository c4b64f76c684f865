//go:build conformance

package acceptance

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// TestWorkloadFile gives the program files instead of flags.
func TestWorkloadFile(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	topic := broker.CreateTopic(t, 1, 1)
	file := func(t *testing.T, text string) string {
		name := filepath.Join(t.TempDir(), "w.yaml")
		writeFile(t, name, text)
		return name
	}
	t.Run("good", func(t *testing.T) {
		name := file(t, "target: "+topicURL(broker, topic)+"\ncount: 200\nsize: 10\n")
		d := run(t, "run", "-f", name, "--count", "300", "--json", "--quiet").succeeded(t).document(t)
		assert.Equal(t, d.Totals.Acked, 300, "acked events")
	})
	for _, tt := range []struct{ name, text, says string }{
		{"unknown key", "target: kafka://127.0.0.1:1/t\ncompresion: lz4\n", "compression"},
		{"not YAML", "target: [\n", "w.yaml"},
		{"wrong unit", "target: kafka://127.0.0.1:1/t\nfor: 20\n", "for"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start(t, "run", "-f", file(t, tt.text)).wait(20*time.Second).want(t, 2).says(t, "error:", tt.says)
		})
	}
}

// TestReport checks the report as text and as JSON.
func TestReport(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	topic := broker.CreateTopic(t, 1, 1)
	t.Run("text", func(t *testing.T) {
		e := run(t, "run", topicURL(broker, topic), "--rate", "1000/s", "--for", "2s", "--seed", "7").wantOneOf(t, 0, 3)
		for n, line := range strings.Split(e.stdout, "\n") {
			// Paths and commands are meant to be copied, and are not wrapped.
			assert.True(t, len([]rune(line)) <= 80 || strings.HasPrefix(line, "  report  "),
				"line %d is %d columns wide: %q", n+1, len([]rune(line)), line)
		}
		assert.True(t, !strings.ContainsRune(e.stdout+e.stderr, '\x1b'), "an escape sequence is printed without a terminal")
		assert.Has(t, e.stdout, "response", "service", "p99", "seed", topic)
	})
	t.Run("more percentiles", func(t *testing.T) {
		e := run(t, "run", topicURL(broker, topic), "--rate", "1000/s", "--for", "1s", "--percentiles", "25,75", "--json", "--quiet").succeeded(t)
		var d struct{ Response map[string]float64 }
		assert.OK(t, json.Unmarshal([]byte(e.stdout), &d))
		for _, name := range []string{"p25_us", "p75_us", "p99_us", "p9999_us"} {
			_, ok := d.Response[name]
			assert.True(t, ok, "response has no %s: %v", name, d.Response)
		}
	})
	t.Run("steps", func(t *testing.T) {
		d := run(t, "run", topicURL(broker, topic), "--shape", "steps(500/s:1s,1000/s:1s)", "--json", "--quiet").succeeded(t).document(t)
		assert.True(t, len(d.Steps) == 2 && d.Steps[0].Totals.Offered == 500 && d.Steps[1].Totals.Offered == 1000 &&
			d.Steps[0].Response != nil, "steps: %+v", d.Steps)
	})
	t.Run("repeat", func(t *testing.T) {
		e := run(t, "run", topicURL(broker, topic), "--count", "100", "--repeat", "3", "--json", "--quiet").wantOneOf(t, 0, 3)
		dec := json.NewDecoder(strings.NewReader(e.stdout))
		n := 0
		for dec.More() {
			var d struct {
				document
				Replaces string
			}
			assert.OK(t, dec.Decode(&d))
			assert.Equal(t, d.Totals.Acked, 100, "repetition %d acked events", n)
			if d.Replaces == "" { // on a busy machine, others replace those that were not trusted
				n++
			}
		}
		assert.Equal(t, n, 3, "repetitions")
	})
	t.Run("acks 0", func(t *testing.T) {
		d := run(t, "run", topicURL(broker, topic), "--acks", "0", "--count", "5000", "--json", "--quiet").succeeded(t).document(t)
		assert.True(t, d.Totals.Acked == 0 && d.Totals.Unknown == 5000 && d.Service == nil && d.Response == nil,
			"totals %+v, service %v, response %v: nothing is acknowledged", d.Totals.counts, d.Service, d.Response)
	})
	t.Run("drops", func(t *testing.T) {
		// One batch of one event in flight cannot keep up with this rate.
		args := []string{
			"run", topicURL(broker, topic), "--rate", "200k/s", "--for", "1s", "--overload", "drop", "--max-in-flight", "1",
			"--batch-events", "1", "--linger", "0s", "--json", "--quiet",
		}
		e := run(t, args...)
		d := e.document(t)
		assert.True(t, d.Totals.Dropped != 0 && d.Totals.Offered == 200_000, "totals: %+v", d.Totals.counts)
		assert.True(t, e.code == 0 || e.code == 3, "exit %d: drops change the exit code only through a limit", e.code)
		run(t, append(args, "--slo", "dropped<=10")...).wantOneOf(t, 1, 3)
	})
}

var totalCount = regexp.MustCompile(`Total count\s*=\s*(\d+)`)

// TestHDR reads the log of a run with HdrHistogram's Java reader, which comes with Kafka.
func TestHDR(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	log := filepath.Join(t.TempDir(), "run.hlog")
	d := run(t, "run", topicURL(broker, broker.CreateTopic(t, 1, 1)), "--rate", "2000/s", "--for", "3s", "--hdr", log, "--json", "--quiet").succeeded(t).document(t)
	read := func(tag string) (uint64, string) {
		cmd := exec.Command("java", "-cp", filepath.Join(kafkatest.Jars(t), "*"), "org.HdrHistogram.HistogramLogProcessor", "-i", log, "-tag", tag)
		out, err := cmd.CombinedOutput()
		assert.OK(t, err, "HistogramLogProcessor: \n%s", out)
		m := totalCount.FindSubmatch(out)
		assert.Must(t, m != nil, "HistogramLogProcessor found no histograms of %s:\n%s", tag, out)
		n := assert.Value(strconv.ParseUint(string(m[1]), 10, 64))(t)
		return n, string(out)
	}
	if n, out := read("response"); n != d.Response.Count || n != 6000 {
		t.Errorf("the log has %d response times, the report %d, want 6000\n%s", n, d.Response.Count, out)
	}
	n, _ := read("service")
	assert.True(t, n == d.Service.Count, "the log has %d service times, the report %d", n, d.Service.Count)
}
