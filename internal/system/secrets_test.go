//go:build linux

package system

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/internal/secret"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A system does not get the secrets that this process keeps in its environment.
func TestSystemHasNoSecretsOfThisProcess(t *testing.T) {
	testkit.Program(t, "sh")
	t.Setenv(host.OwnEnv+"HEY_APM_1", canary)
	s := start(t, Spec{Command: "sh -c 'env; echo ready to serve; exec sleep 1000'", Ready: "log:ready to serve", ReadyWithin: time.Minute, Logf: t.Logf})
	assert.OK(t, s.Stop())
	if got, _ := s.Output(); !strings.Contains(got, "PATH=") || strings.Contains(got, host.OwnEnv) || strings.Contains(got, canary) {
		t.Errorf("it got %s", got)
	}
}

// A secret of which a long line has only the beginning is hidden, too.
func TestOutputOfLongLines(t *testing.T) {
	testkit.Program(t, "sh")
	s := start(t, Spec{
		Command: "sh -c 'printf %08187d 0; echo " + canary + "; echo ready to serve; exec sleep 1000'", Secrets: []string{canary},
		Ready: "log:ready to serve", ReadyWithin: time.Minute, Logf: t.Logf,
	})
	assert.OK(t, s.Stop())
	if got, _ := s.Output(); !strings.Contains(got, "0***\n") || strings.Contains(got, canary[:2]) {
		t.Errorf("got %q", got[max(0, len(got)-100):])
	}
}

// What a build printed is without the secrets of the system, too: an earlier run that built
// it may not have known them.
func TestBuildOutputIsMasked(t *testing.T) {
	log := filepath.Join(t.TempDir(), "build.log")
	assert.OK(t, os.WriteFile(log, []byte("built with "+canary+"\nenvironment:\n  password: |\n    x7-plain\nmade\n"), 0o600))
	s := start(t, Spec{Build: &Build{Log: log}, Secrets: []string{canary}, Logf: t.Logf})
	got, cut, err := s.BuildOutput()
	want := "built with ***\nenvironment:\n  password: ***\nmade\n"
	assert.True(t, got == want && cut == 0 && err == nil, "got %q after %d bytes, %v, want %q", got, cut, err, want)
	s = start(t, Spec{Revision: "4.1", Logf: t.Logf})
	got, cut, err = s.BuildOutput()
	assert.True(t, got == "" && cut == 0 && err == nil, "got %q after %d bytes, %v without a build", got, cut, err)
}

// The last lines of a system, which are shortened, have no part of a secret.
func TestLastLinesHaveNoPartOfASecret(t *testing.T) {
	var m secret.Mask
	m.Add(canary)
	tail := newTail("")
	tail.add(strings.Repeat("x", maxLine-5) + canary)
	if got := tail.last(1, m.Text)[0]; strings.Contains(got, canary[:2]) || len(got) < maxLine-5 {
		t.Errorf("got %q", got[maxLine-10:])
	}
}

// The branch is masked like the revision.
func TestBranchIsMasked(t *testing.T) {
	for _, spec := range []Spec{{Revision: canary, Branch: "b/" + canary}, {Build: &Build{GitFacts: GitFacts{Branch: "b/" + canary, Revision: canary}}}} {
		spec.Secrets = []string{canary}
		spec.Logf = t.Logf
		facts := start(t, spec).Facts()
		assert.True(t, facts["branch"] == "b/"+secret.Hidden && facts["revision"] == secret.Hidden &&
			!strings.Contains(fmt.Sprint(facts), canary), "got %v", facts)
	}
}
