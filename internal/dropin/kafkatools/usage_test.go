package kafkatools

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"carronade/internal/dropin"
	"carronade/internal/dropin/dropintest"
	"carronade/test/testkit/assert"
)

// A refusal is a wrong command line of one of Kafka's tools.
type refusal struct {
	name, generation, args string

	errs  string // how stderr begins
	table bool   // followed by the options
}

// refused checks that a tool answers wrong usage with its messages and exit code, and that nothing
// runs. word is in its table of options.
func refused(t *testing.T, run func(*testing.T, dropin.Program, ...string) dropintest.Result, word string, all []refusal) {
	t.Helper()
	for _, tt := range all {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, dropin.Program{Generation: tt.generation}, strings.Fields(tt.args)...)
			table := strings.Contains(got.Errs, "\nOption ") && strings.Contains(got.Errs, "--strict") && strings.Contains(got.Errs, word)
			if got.Code != 1 || got.Workloads != nil || got.Out != "" || !strings.HasPrefix(got.Errs, tt.errs) || table != tt.table {
				t.Errorf("exit %d, workloads %v, stdout %q, stderr:\n%s", got.Code, got.Workloads, got.Out, got.Errs)
			}
		})
	}
}

// allTested checks that the tests in a file use every option.
func allTested[T any](t *testing.T, file string, options []T, name func(T) string) {
	t.Helper()
	data := assert.Value(os.ReadFile(file))(t)
	for _, o := range options {
		assert.True(t, regexp.MustCompile(`--`+regexp.QuoteMeta(name(o))+`\b`).Match(data), "--%s is not tested", name(o))
	}
}
