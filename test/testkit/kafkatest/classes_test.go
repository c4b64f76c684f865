package kafkatest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// The archive has Kafka's own classes, and a JVM uses it.
func TestClassArchive(t *testing.T) {
	dir := Jars(t)
	assert.Value(classArchive())(t)
	const class = "org.apache.kafka.common.Uuid "
	for _, tt := range []struct {
		name string
		with []string
		want bool
	}{{"with it", classes(), true}, {"without it", nil, false}} {
		t.Run(tt.name, func(t *testing.T) {
			options := slices.Concat(shortLived, tt.with, []string{"-Xlog:class+load"})
			out, err := exec.Command("java", javaArgs(options, dir, "64m", "kafka.tools.StorageTool", "random-uuid")...).Output()
			assert.OK(t, err)
			mapped := false
			for line := range strings.Lines(string(out)) {
				mapped = mapped || strings.Contains(line, class) && strings.Contains(line, "shared objects file")
			}
			assert.Equal(t, mapped, tt.want, "%s comes from the archive", class)
		})
	}
}

func TestNoJava(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	assert.ErrorHas(t, checkJava(), "apt-get install default-jre-headless")
}
