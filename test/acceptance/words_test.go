package acceptance

import (
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// TestWords gives the program invalid arguments: it reports them at once, with exit
// code 2 and a hint, and makes no connection.
func TestWords(t *testing.T) {
	t.Parallel()
	// Nothing listens there, so a program that connects first prints another error.
	url := "kafka://" + closedAddress(t) + "/t"
	for _, tt := range []struct {
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
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := start(t, tt.args...).wait(runTimeout).want(t, 2).says(t, append([]string{"error:"}, tt.says...)...)
			assert.True(t, !strings.Contains(e.stderr, "canary-5512"), "the password is shown")
			assert.True(t, !strings.Contains(e.stderr, "refused"), "it connected before it checked its arguments")
		})
	}
}

// TestDemo runs the demo, which is the first command of a new user.
func TestDemo(t *testing.T) {
	t.Parallel()
	d := run(t, "demo", "--json").succeeded(t).document(t)
	assert.True(t, d.Ledger != nil && d.Ledger.Lost == 0 && d.Ledger.Acked > 0 && d.EndToEnd != nil,
		"ledger %+v, end to end %+v", d.Ledger, d.EndToEnd)
}
