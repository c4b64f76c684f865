package payload

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

const goldenFile = "testdata/java.tsv"

// Functions and operators give what Java gives. testdata/Golden.java printed the values.
func TestGolden(t *testing.T) {
	if testkit.Update() {
		assert.OK(t, os.WriteFile(goldenFile, []byte(java(t)), 0o644))
	}
	data := assert.Value(os.ReadFile(goldenFile))(t)
	tried := map[string]bool{}
	rows := 0
	for line := range strings.Lines(string(data)) {
		text, want, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		assert.Must(t, ok, "%q is not a row", line)
		rows++
		for i := range functions {
			if strings.Contains(text, functions[i].name+"(") {
				tried[functions[i].name] = true
			}
		}
		e, err := ParseTemplate("<${"+text+"}>", TemplateOptions{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		assert.Equal(t, string(e.Append(nil, 0)), "<"+want+">", "%s", text, want)
	}
	assert.True(t, rows >= 1000, "the golden file has only %d rows", rows)
	// These depend on the time, the environment or random numbers, and have other tests.
	others := strings.Fields("date:formatNowIso8601 date:formatNowRfc1123 date:formatNowAmazonStyle env:get math:random path:random time:millisSinceEpoch time:nanos")
	for i := range functions {
		name := functions[i].name
		assert.True(t, tried[name] || strings.Contains(strings.Join(others, " ")+" ", name+" "), "the golden file does not have %s", name)
	}
}

// The golden file is what a Java of this machine prints.
func TestGoldenIsOfJava(t *testing.T) {
	if _, err := exec.LookPath("java"); err != nil {
		t.Skip("java is missing")
	}
	data := assert.Value(os.ReadFile(goldenFile))(t)
	assert.Same(t, java(t), string(data), "the golden file and Java")
}

func java(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "java", "-XX:TieredStopAtLevel=1", "testdata/Golden.java").Output()
	assert.OK(t, err)
	return string(out)
}
