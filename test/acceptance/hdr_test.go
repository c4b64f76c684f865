//go:build conformance

package acceptance

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

var totalCount = regexp.MustCompile(`Total count\s*=\s*(\d+)`)

// TestHDR reads the log of a run with HdrHistogram's Java reader, which comes with
// Kafka.
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
