package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/host"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

func TestArgs(t *testing.T) {
	for _, tt := range []struct {
		name       string
		args       []string
		want, hint string
	}{
		{"enough", []string{"a"}, "", ""},
		{"most", []string{"a", "b"}, "", ""},
		{"too few", nil, "tool needs a target", "usage: tool TARGET"},
		{"too many", []string{"a", "b", "c"}, `tool: unexpected argument "c"`, "usage: tool TARGET"},
		{"a flag without dashes", []string{"a", "b", "rate=5"}, `tool: unexpected argument "rate=5"`, "flags begin with two dashes: --rate=5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Args(1, 2, "a target")(&cobra.Command{Use: "tool TARGET", DisableFlagsInUseLine: true}, tt.args)
			got, hint := "", ""
			if w, ok := errors.AsType[*protocol.Error](err); ok {
				got, hint = w.Error(), w.Hint
			}
			assert.True(t, got == tt.want && hint == tt.hint, "got %q (%q), want %q (%q)", got, hint, tt.want, tt.hint)
		})
	}
}

// The error of an interrupted command is not printed, unless the command has a result.
func TestRun(t *testing.T) {
	broken := Exit{Code: host.ExitBroken}
	for _, tt := range []struct {
		name        string
		interrupted bool
		err         error
		want        int // exit code; 0: the error is returned unchanged
	}{
		{"done", false, nil, 0},
		{"failed", false, errors.New("no"), 0},
		{"canceled by another", false, context.Canceled, 0},
		{"interrupted", true, fmt.Errorf("asking: %w", context.Canceled), host.ExitInterrupted},
		{"interrupted, with a result", true, broken, host.ExitBroken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.interrupted {
				cancel()
			}
			cmd := &cobra.Command{}
			cmd.SetContext(ctx)
			err := Run(func(*cobra.Command, []string) error { return tt.err })(cmd, nil)
			var e Exit
			errors.As(err, &e)
			assert.True(t, e.Code == tt.want && (tt.want != 0 || errors.Is(err, tt.err)),
				"got %v with code %d, want code %d", err, e.Code, tt.want)
		})
	}
}

// cannon is a kind with its own options.
type cannon struct{ protocol.Kind }

func (cannon) Name() string      { return "cannon" }
func (cannon) Schemes() []string { return []string{"cannon"} }
func (cannon) Ops() []string     { return []string{workload.Produce} }
func (cannon) Options() []protocol.Option {
	return []protocol.Option{{Name: "calibre"}, {Name: "loud", Type: protocol.Bool}}
}

// Flags collect what was typed, in order, and the last one counts.
func TestSettings(t *testing.T) {
	var s Settings
	fs := pflag.NewFlagSet("tool", pflag.ContinueOnError)
	s.Bind(fs, []protocol.Kind{cannon{}})
	assert.OK(t, fs.Parse([]string{"--calibre", "32", "--rate=5/s", "--loud", "--calibre", "68"}))
	for name, want := range map[string]string{"calibre": "68", "rate": "5/s", "loud": "true", "for": ""} {
		assert.Equal(t, s.Last(name), want, "--%s", name)
	}
	var typed []string
	for _, e := range s.Doc.Entries {
		typed = append(typed, e.Name+"="+strings.Join(e.Values, ","))
	}
	assert.Same(t, typed, []string{"calibre=32", "rate=5/s", "loud=true", "calibre=68"}, "typed")
	row, ok := SettingOf(fs.Lookup("calibre"))
	assert.True(t, ok && row.Kind == "cannon", "--calibre is not a setting of cannon: %+v", row)
	fs.Bool("plain", false, "")
	_, ok = SettingOf(fs.Lookup("plain"))
	assert.True(t, !ok, "--plain is a setting")
}

func TestReason(t *testing.T) {
	_, err := os.Open("nowhere/at/all")
	got, want := Reason(err), fs.ErrNotExist.Error()
	assert.True(t, got == "no such file or directory" || got == want, "got %q", got)
}
