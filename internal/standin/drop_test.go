package standin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestDrop(t *testing.T) {
	if !CanDrop() {
		t.Skip("this kernel drops nothing")
	}
	out, in := testkit.Pair(t)
	d := NewDropper(in)
	const rounds, size = 50, 100003
	go func() {
		for i := range rounds {
			_, _ = out.Write(bytes.Repeat([]byte{'x'}, size))
			_, _ = out.Write([]byte{byte(i)})
		}
	}()
	for i := range rounds {
		assert.OK(t, d.Drop(size))
		var b [1]byte
		if _, err := io.ReadFull(in, b[:]); err != nil || b[0] != byte(i) {
			t.Fatalf("after round %d: got %d, %v", i, b[0], err)
		}
	}
	five := []byte("12345")
	n := testing.AllocsPerRun(10, func() {
		_, _ = out.Write(five)
		_ = d.Drop(5)
	})
	assert.True(t, n == 0, "%v allocations, want none", n)
	out.Close()
	err := d.Drop(1)
	assert.True(t, errors.Is(err, io.ErrUnexpectedEOF), "at the end: got %v, want %v", err, io.ErrUnexpectedEOF)
}

func TestNewDropperWhereItCannot(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	assert.True(t, NewDropper(a) == nil, "a pipe's bytes are dropped in the kernel")
}

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

func TestFlags(t *testing.T) {
	t.Parallel()
	var (
		size  int64
		pause time.Duration
		one   int
		many  []int
	)
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	fs.Var(SizeValue(&size), "size", "")
	fs.Var(DurationValue(&pause), "pause", "")
	fs.Var(&Value[int]{&one, strconv.Atoi, strconv.Itoa, "number"}, "one", "")
	fs.Var(&List[int]{&many, strconv.Atoi, strconv.Itoa, "number"}, "many", "")
	shows := func(want string) {
		t.Helper()
		got := ""
		fs.VisitAll(func(f *pflag.Flag) { got += fmt.Sprintf("%s %s %q, ", f.Name, f.Value.Type(), f.Value) })
		assert.Equal(t, got, want)
	}
	shows(`many number "", one number "", pause duration "", size size "", `)
	assert.OK(t, fs.Parse([]string{"--size", "2KiB", "--pause", "5ms", "--one", "7", "--many", "1", "--many", "2"}))
	assert.True(t, size == 2048 && pause == 5*time.Millisecond && one == 7 && len(many) == 2,
		"got %d, %v, %d and %v", size, pause, one, many)
	shows(`many number "1,2", one number "7", pause duration "5ms", size size "2KiB", `)
	for _, bad := range []string{"--one=x", "--many=x", "--size=x", "--pause=1"} {
		assert.True(t, fs.Parse([]string{bad}) != nil, "%s is accepted, want an error", bad)
	}
	assert.True(t, one == 7 && len(many) == 2 && size == 2048, "a refused flag has changed a value")
}

func TestTLS(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none.pem")
	for _, test := range []struct {
		name string
		tls  TLS
		want string
	}{
		{"none", TLS{}, ""},
		{"half", TLS{Cert: none}, "both a certificate and its key"},
		{"an authority alone", TLS{ClientCA: none}, "needs TLS"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.tls.Check()
			assert.True(t, (err == nil) == (test.want == "") && (err == nil || strings.Contains(err.Error(), test.want)),
				"got %v, want %q", err, test.want)
		})
	}
	c, err := (TLS{}).Config()
	assert.True(t, c == nil && err == nil, "got %v, %v; want no TLS", c, err)
	_, err = (TLS{Cert: none, Key: none}).Config()
	assert.True(t, errors.Is(err, os.ErrNotExist), "got %v, want %v", err, os.ErrNotExist)
}
