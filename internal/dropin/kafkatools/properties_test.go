package kafkatools

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carronade/internal/dropin"
	"carronade/test/testkit/assert"
)

func TestProperties(t *testing.T) {
	file := filepath.Join(t.TempDir(), "client.properties")
	assert.OK(t, os.WriteFile(file, []byte("acks=1\ngroup.id=g\nlinger.ms = 5\nmade.up=1\n"), 0o600))
	p := assert.Value(readProperties(file, []string{"acks=all", "sasl.jaas.config=M required username=\"a=b\";"}))(t)
	for name, want := range map[string]string{"acks": "all", "group.id": "g", "linger.ms": "5", "sasl.jaas.config": "M required username=\"a=b\";"} {
		got, ok := p.get(name)
		assert.True(t, ok && got == want, "%s is %q, %v; want %q", name, got, ok, want)
	}
	_, ok := p.get("retries")
	assert.True(t, !ok, "there is a property that was not given")
	var d dropin.Draft
	p.set(&d, "--producer.config", "--producer-props")
	var got []string
	for _, e := range d.Entries {
		got = append(got, e.Name+" by "+e.Where)
	}
	want := []string{"client-config by --producer.config", "client-property by --producer-props", "client-property by --producer-props"}
	assert.True(t, slices.Equal(got, want), "settings %q, want %q", got, want)
	for op, want := range map[string][]string{"produce": {"group.id"}, "consume": {"acks", "linger.ms"}, "roundtrip": nil} {
		got := p.unused(op)
		assert.True(t, slices.Equal(got, want), "%s does not use %q, want %q", op, got, want)
	}
	var warnings strings.Builder
	p.warn(&warnings, "produce")
	if want := "warning: the client property sasl.jaas.config is visible in the process list: put it into a properties file\n" +
		"warning: the client property group.id has no meaning for the operation produce and is ignored\n"; warnings.String() != want {
		t.Errorf("warnings %q, want %q", warnings.String(), want)
	}
}

// An error about unreadable properties quotes nothing.
func TestUnreadableProperties(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		pairs      []string
	}{
		{"no such file", filepath.Join(t.TempDir(), "none"), nil},
		{"no pair", "", []string{"hunter2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readProperties(tt.file, tt.pairs)
			assert.True(t, err != nil && !strings.Contains(err.Error(), "hunter2"), "err %v", err)
		})
	}
}
