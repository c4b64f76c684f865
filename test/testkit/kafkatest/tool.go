package kafkatest

import (
	"bytes"
	"cmp"
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// javaArgs returns the arguments of java for a class of Kafka's jars; jvm are more
// options of the JVM.
func javaArgs(jvm []string, jars, heap, class string, args ...string) []string {
	return slices.Concat(jvm, []string{
		"-Xmx" + heap, "-XX:-UsePerfData", "-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true",
		"-cp", filepath.Join(jars, "*"), class,
	}, args)
}

// toolTimeout bounds the run of a tool.
const toolTimeout = 3 * time.Minute

// className completes a tool's short name: "TopicCommand" and most others are in
// org.apache.kafka.tools, "ConsoleConsumer" and some in a package below.
func className(class string) string {
	switch {
	case strings.Contains(class, "."):
		return class
	case class == "ConsoleConsumer":
		return "org.apache.kafka.tools.consumer.ConsoleConsumer"
	case class == "GroupCommand", class == "ConsumerGroupCommand":
		return "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
	}
	return "org.apache.kafka.tools." + class
}

// Tool runs one of Kafka's Java tools to its end and returns its stdout. If the
// tool fails, the test fails with the tool's output. A class without dots is in
// the packages of Kafka's tools: TopicCommand, ProducerPerformance,
// ConsumerPerformance, EndToEndLatency, DumpLogSegments, GetOffsetShell,
// ConsoleConsumer. It works with any server that supports Kafka's protocol.
func Tool(t testing.TB, class string, args ...string) string {
	t.Helper()
	dir := Jars(t)
	ctx, cancel := context.WithTimeout(t.Context(), toolTimeout)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, "java", javaArgs(quick(), dir, "512m", className(class), args...)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	assert.OK(t, testkit.Launch(cmd), "kafkatest: start %s", class)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("kafkatest: %s %s: %v\n%s%s", class, strings.Join(args, " "), err, out.Bytes(), errs.Bytes())
	}
	return out.String()
}

// ToolCommand is Tool for a caller that observes the running tool: it returns the
// command, which the caller starts with [testkit.Launch], and which ends with the context.
// heap is as in -Xmx; empty is 512m.
func ToolCommand(t testing.TB, ctx context.Context, heap, class string, args ...string) *exec.Cmd { //nolint:revive // the test comes first, as in testing's own helpers
	t.Helper()
	heap = cmp.Or(heap, "512m")
	dir := Jars(t)
	return exec.CommandContext(ctx, "java", javaArgs(quick(), dir, heap, className(class), args...)...)
}

// Tool runs one of Kafka's tools against the cluster: --bootstrap-server, and
// the administrator's properties when it is secure, come first.
func (c *Cluster) Tool(t testing.TB, class string, args ...string) string {
	t.Helper()
	first := []string{"--bootstrap-server", c.Bootstrap()}
	if c.pki != nil {
		first = append(first, "--command-config", c.ClientProperties(t, Admin, ScramSHA256))
	}
	return Tool(t, class, append(first, args...)...)
}
