package acceptance

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/internal/testkit/assert"
	"carronade/internal/testkit/kafkatest"
)

// TestWords gives the program invalid arguments: it reports them at once, with exit
// code 2 and a hint, and makes no connection.
func TestWords(t *testing.T) {
	t.Parallel()
	// Nothing listens there, so a program that connects first prints another error.
	url := "kafka://" + closedAddress(t) + "/t"
	tests := []struct {
		name string
		args []string
		says []string
	}{
		{"unknown command", []string{"runn", url}, []string{"runn", "run"}},
		{"command left out", []string{url}, []string{"carronade run"}},
		{"no target", []string{"run"}, []string{"error:"}},
		{"unknown scheme", []string{"run", "kafak://127.0.0.1:9092/t"}, []string{"kafak", "kafka"}},
		{"no scheme", []string{"run", "127.0.0.1:9092"}, []string{"kafka://"}},
		{"unknown flag", []string{"run", url, "--compresion", "lz4"}, []string{"--compresion", "--compression"}},
		{"unknown value", []string{"run", url, "--compression", "gzipp"}, []string{"gzipp", "gzip"}},
		{"duration without unit", []string{"run", url, "--for", "20"}, []string{"--for", "20s"}},
		{"unknown unit", []string{"run", url, "--for", "20parsecs"}, []string{"--for", "20parsecs"}},
		{"meaningless size", []string{"run", url, "--batch-size", "lots"}, []string{"--batch-size", "lots"}},
		{"rate zero", []string{"run", url, "--rate", "0"}, []string{"--rate"}},
		{"rate negative", []string{"run", url, "--rate=-5"}, []string{"--rate"}},
		{"rate absurd", []string{"run", url, "--rate", "1e30"}, []string{"--rate"}},
		{"meaningless rate", []string{"run", url, "--rate", "fast"}, []string{"--rate", "fast"}},
		{"count zero", []string{"run", url, "--count", "0"}, []string{"--count"}},
		{"concurrency negative", []string{"run", url, "--concurrency=-1"}, []string{"--concurrency"}},
		{"rate and concurrency", []string{"run", url, "--rate", "5/s", "--concurrency", "2"}, []string{"rate", "--concurrency"}},
		{"shape broken", []string{"run", url, "--shape", "ramp(1k/s"}, []string{"--shape"}},
		{"size broken", []string{"run", url, "--size", "100-"}, []string{"size"}},
		{"key broken", []string{"run", url, "--key", "uniform"}, []string{"key"}},
		{"header broken", []string{"run", url, "--header", "novalue"}, []string{"header"}},
		{"label broken", []string{"run", url, "--label", "novalue"}, []string{"--label"}},
		{"unknown operation", []string{"run", url, "--op", "produse"}, []string{"produse", "produce"}},
		{"acks two", []string{"run", url, "--acks", "2"}, []string{"--acks"}},
		{"plain password", []string{"run", url, "--user", "u", "--sasl-mechanism", "PLAIN", "--password", "canary-5512"}, []string{"env:"}},
		{"password of a missing variable", []string{"run", url, "--user", "u", "--sasl-mechanism", "PLAIN", "--password", "env:NO_SUCH_VARIABLE"}, []string{"NO_SUCH_VARIABLE"}},
		{"topic option broken", []string{"run", url, "--create-topic", "partitions=many"}, []string{"partitions=many"}},
		{"port absurd", []string{"run", "kafka://127.0.0.1:99999/t"}, []string{"99999"}},
		{"file missing", []string{"run", "-f", "/no/such/file.yaml"}, []string{"/no/such/file.yaml"}},
		{"client config missing", []string{"run", url, "--client-config", "/no/such/client.properties"}, []string{"/no/such/client.properties"}},
		{"hdr unwritable", []string{"run", url, "--hdr", "/no/such/dir/x.hlog", "--count", "1"}, []string{"/no/such/dir"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := start(t, tt.args...).wait(20*time.Second).want(t, 2).says(t, append([]string{"error:"}, tt.says...)...)
			assert.True(t, !strings.Contains(e.stderr, "canary-5512"), "the password is shown")
			assert.True(t, !strings.Contains(e.stderr, "refused"), "it connected before it checked its arguments")
		})
	}
}

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
			if len([]rune(line)) > 80 && !strings.HasPrefix(line, "  report  ") {
				t.Errorf("line %d is %d columns wide: %q", n+1, len([]rune(line)), line)
			}
		}
		assert.True(t, !strings.ContainsRune(e.stdout+e.stderr, '\x1b'), "an escape sequence is printed without a terminal")
		for _, word := range []string{"response", "service", "p99", "seed", topic} {
			assert.True(t, strings.Contains(e.stdout, word), "the report does not contain %q:\n%s", word, e.stdout)
		}
	})
	t.Run("more percentiles", func(t *testing.T) {
		e := run(t, "run", topicURL(broker, topic), "--rate", "1000/s", "--for", "1s", "--percentiles", "25,75", "--json", "--quiet").succeeded(t)
		var d struct{ Response map[string]float64 }
		assert.OK(t, json.Unmarshal([]byte(e.stdout), &d))
		for _, name := range []string{"p25_us", "p75_us", "p99_us", "p9999_us"} {
			if _, ok := d.Response[name]; !ok {
				t.Errorf("response has no %s: %v", name, d.Response)
			}
		}
	})
	t.Run("steps", func(t *testing.T) {
		d := run(t, "run", topicURL(broker, topic), "--shape", "steps(500/s:1s,1000/s:1s)", "--json", "--quiet").succeeded(t).document(t)
		if len(d.Steps) != 2 || d.Steps[0].Totals.Offered != 500 || d.Steps[1].Totals.Offered != 1000 || d.Steps[0].Response == nil {
			t.Errorf("steps: %+v", d.Steps)
		}
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
		if d.Totals.Acked != 0 || d.Totals.Unknown != 5000 || d.Service != nil || d.Response != nil {
			t.Errorf("totals %+v, service %v, response %v: nothing is acknowledged", d.Totals.counts, d.Service, d.Response)
		}
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

// TestDemo runs the demo, which is the first command of a new user.
func TestDemo(t *testing.T) {
	t.Parallel()
	d := run(t, "demo", "--json").succeeded(t).document(t)
	if d.Ledger == nil || d.Ledger.Lost != 0 || d.Ledger.Acked == 0 || d.EndToEnd == nil {
		t.Errorf("ledger %+v, end to end %+v", d.Ledger, d.EndToEnd)
	}
}
