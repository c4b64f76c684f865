package payload

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carronade/internal/testkit"
)

const goldenFile = "testdata/java.tsv"

// Functions and operators give what Java gives. testdata/Golden.java printed the values.
func TestGolden(t *testing.T) {
	if testkit.Update() {
		if err := os.WriteFile(goldenFile, []byte(java(t)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	rows := 0
	for line := range strings.Lines(string(data)) {
		text, want, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			t.Fatalf("%q is not a row", line)
		}
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
		if got := string(e.Append(nil, 0)); got != "<"+want+">" {
			t.Errorf("%s: got %s, want <%s>", text, got, want)
		}
	}
	if rows < 1000 {
		t.Errorf("the golden file has only %d rows", rows)
	}
	// These depend on the time, the environment or random numbers, and have other tests.
	others := strings.Fields("date:formatNowIso8601 date:formatNowRfc1123 date:formatNowAmazonStyle env:get math:random path:random time:millisSinceEpoch time:nanos")
	for i := range functions {
		name := functions[i].name
		if !tried[name] && !strings.Contains(strings.Join(others, " ")+" ", name+" ") {
			t.Errorf("the golden file does not have %s", name)
		}
	}
}

// The golden file is what a Java of this machine prints.
func TestGoldenIsOfJava(t *testing.T) {
	if _, err := exec.LookPath("java"); err != nil {
		t.Skip("java is missing")
	}
	data, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(data), java(t)); diff != "" {
		t.Errorf("the golden file differs (-file +java):\n%s", diff)
	}
}

func java(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "java", "-XX:TieredStopAtLevel=1", "testdata/Golden.java").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
