package protocoltest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/protocol"
)

// Inspector returns a function that looks at a target, and checks what it finds: the level of
// the finding whose check begins so, and a part of its text. Checks that are absent have none.
func Inspector(t *testing.T, kind protocol.Inspector) func(name string, s protocol.Spec, check string, level protocol.Level, want string, absent ...string) {
	return func(name string, s protocol.Spec, check string, level protocol.Level, want string, absent ...string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			in, err := Inspect(t, kind, s, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			Found(t, FindingOf(in.Findings, check), level, want)
			for _, check := range absent {
				if FindingOf(in.Findings, check).Check != "" {
					t.Errorf("there is a finding %s", check)
				}
			}
		})
	}
}

// Inspect looks at a target until a time is over. Every finding that is not good must
// have its effect, and what changes it.
func Inspect(t *testing.T, kind protocol.Inspector, s protocol.Spec, within time.Duration) (protocol.Inspection, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	in, err := kind.Inspect(ctx, s)
	for _, f := range in.Findings {
		if f.Level >= protocol.LevelNote && (f.Effect == "" || f.Fix == "") {
			t.Errorf("%+v lacks its effect or what changes it", f)
		}
	}
	return in, err
}

// FindingOf returns the first finding of a check with that beginning.
func FindingOf(fs []protocol.Finding, check string) protocol.Finding {
	i := slices.IndexFunc(fs, func(f protocol.Finding) bool { return strings.HasPrefix(f.Check, check) })
	if i < 0 {
		return protocol.Finding{Found: "no such finding"}
	}
	return fs[i]
}

// Found checks the level of a finding, and a part of its text.
func Found(t testing.TB, f protocol.Finding, level protocol.Level, want string) {
	if f.Level != level || !strings.Contains(f.Found, want) {
		t.Helper()
		t.Errorf("got %v: %s, want %v: %s", f.Level, f.Found, level, want)
	}
}
