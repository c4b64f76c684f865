package standin

import (
	"errors"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

func TestParseRule(t *testing.T) {
	t.Parallel()
	byName := func(name string) (Rule[int], error) {
		if name == "sleepy" {
			return Rule[int]{}, errors.New("no server sleeps")
		}
		return Rule[int]{Name: strings.ToLower(name), What: len(name)}, nil
	}
	for _, test := range []struct {
		name, in string
		want     Rule[int]
		err      string
	}{
		{"a percentage", "Late@1%", Rule[int]{"late", 4, 0.01}, ""},
		{"a part of one", "late@0.25", Rule[int]{"late", 4, 0.25}, ""},
		{"all", "late@100%", Rule[int]{"late", 4, 1}, ""},
		{"an @ in the name", "user@host@2%", Rule[int]{"user@host", 9, 0.02}, ""},
		{"no share", "late", Rule[int]{}, `error rule "late": want LATE@SHARE`},
		{"no name", "@1%", Rule[int]{}, "want LATE@SHARE"},
		{"an empty share", "late@", Rule[int]{}, `error rule "late@": `},
		{"more than all", "late@101%", Rule[int]{}, "more than the whole"},
		{"no such error", "sleepy@1%", Rule[int]{}, `error rule "sleepy@1%": no server sleeps`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := ParseRule(test.in, "LATE@SHARE", byName)
			if test.err != "" {
				assert.ErrorHas(t, err, test.err)
				return
			}
			assert.OK(t, err)
			assert.Same(t, got, test.want)
			again, err := ParseRule(got.String(), "LATE@SHARE", byName)
			assert.True(t, err == nil && again == got, "got %v, %v from %q, want the same rule", again, err, got)
		})
	}
}

func TestCheckRules(t *testing.T) {
	t.Parallel()
	half, most := []Rule[int]{{"a", 1, 0.5}, {"b", 2, 0.5}}, []Rule[int]{{"c", 3, 0.6}, {"d", 4, 0.6}}
	for _, test := range []struct {
		name  string
		delay time.Duration
		lists [][]Rule[int]
		want  string
	}{
		{"nothing", 0, nil, ""},
		{"a delay", time.Hour, nil, ""},
		{"a negative delay", -time.Millisecond, nil, "a delay of -1ms: want 0 or more"},
		{"100% in sum in each list", 0, [][]Rule[int]{half, half}, ""},
		{"more than 100% in sum", 0, [][]Rule[int]{half, most}, "errors in 120% of the answers: want at most 100% in sum"},
		{"more than 100%", 0, [][]Rule[int]{{{"e", 5, 1.5}}}, "error e in 150% of the answers: want 0% to 100%"},
		{"less than 0%", 0, [][]Rule[int]{{{"e", 5, -0.1}, {"f", 6, 0.2}}}, "error e in -10% of the answers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if err := CheckRules(test.delay, test.lists...); err != nil {
				got = err.Error()
			}
			assert.True(t, strings.HasPrefix(got, test.want) && (test.want != "" || got == ""), "got %q, want %q", got, test.want)
		})
	}
}

func TestDiceOf(t *testing.T) {
	t.Parallel()
	d := NewRuleDice(1, []Rule[int]{{"never", 1, 0}, {"always", 2, 1}})
	for range 100 {
		got := d.Draw()
		assert.Must(t, got == 1, "got side %d, want 1", got)
	}
	assert.Equal(t, NewRuleDice[int](1, nil).Draw(), -1, "a draw without rules")
}
